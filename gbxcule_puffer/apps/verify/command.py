"""`puffer verify`: a ROM in lockstep with PyBoy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from gbxcule_puffer.apps.verify.flags import VerifyFlags
from gbxcule_puffer.commandline import command


@command
class Verify(VerifyFlags):
    """Check a ROM against PyBoy, step by step.

    Runs a ROM on the emulator and on PyBoy and compares registers, memory and picture after every step. Exit code: 0
    equal, 1 different, 2 bad input.
    """

    may_hang: ClassVar[bool] = True

    def defaults(self) -> dict[str, Any]:
        """The values in the folder of --game, or the options of the bundle that is replayed."""
        found = super().defaults()
        if self.replay is None:
            return found
        from gbxcule_puffer.apps.verify.bundle import replayed

        return found | replayed(Path(self.replay))

    def run(self) -> int:
        from gbxcule_puffer.apps.verify.run import run

        return run(self)


COMMAND = Verify
