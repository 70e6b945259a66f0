"""`puffer watch RUN`: the agent of a run's newest checkpoint plays, and a web page shows it."""

from __future__ import annotations

from gbxcule_puffer.apps.watch.flags import WatchFlags
from gbxcule_puffer.commandline import command


@command
class Watch(WatchFlags):
    """Watch a run's agent play, in a browser."""

    def run(self) -> None:
        from gbxcule_puffer.apps.watch.watch import watch

        watch(self)


COMMAND = Watch
