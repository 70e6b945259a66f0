"""`puffer export`: a mode of PufferLib."""

from __future__ import annotations

from gbxcule_puffer.apps.train.pufferl import REST, SUBJECT, run_mode
from gbxcule_puffer.commandline import command, word


@command
class Export:
    """Write a policy's weights to one binary file, with PufferLib."""

    subject: str = word(SUBJECT, "ENV")
    words: tuple[str, ...] = word(REST, "...", (), rest=True)

    def run(self) -> None:
        run_mode("export", self.subject, self.words)


COMMAND = Export
