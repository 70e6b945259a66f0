"""`puffer record`: a GIF or MP4 of Game Boys that play."""

from __future__ import annotations

from gbxcule_puffer.apps.record.flags import RecordFlags
from gbxcule_puffer.commandline import command


@command
class Record(RecordFlags):
    """Film random buttons or a trained policy, one Game Boy or a mosaic.

    The env is as in the policy's training; without --start-state and --goal-dir it plays the task that lies in the
    checkpoint's folder.
    """

    def run(self) -> None:
        from gbxcule_puffer.apps.record.record import record

        made = record(self)
        size, kilobytes = f"{made.width}x{made.height}", made.path.stat().st_size // 1000
        boys = f"{self.num_envs} Game Boy{'s' * (self.num_envs > 1)}"
        print(f"{made.path}: {made.steps} steps of {boys}, {size}, {kilobytes:,} kB")
        print(f"episodes {made.episodes}" + ("" if made.solved is None else f", solved {made.solved}"))


COMMAND = Record
