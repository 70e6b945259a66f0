"""`puffer profile`: what limits a game's speed."""

from __future__ import annotations

from pathlib import Path

from gbxcule_puffer.apps.flags import GAME, STEP, GameFlags, plain_codec
from gbxcule_puffer.commandline import command, flag
from gbxcule_puffer.env.option_flags import option_flag


@command
class Profile(GameFlags):
    """Say what limits a game's speed: loops that wait, interrupts, what stops a GPU.

    Plays the game with random actions on the CPU, counts executed instructions and interrupts, and reports in plain
    words. The first run compiles the kernels that count.
    """

    num_envs: int = flag(4, "games", least=1)
    warmup: int = flag(24, "steps before counting", least=1)
    steps: int = flag(12, "steps to count", least=1)
    cpu_only: bool = flag(False, "leave out the stops of the GPU's kernel")
    symbols: str | None = option_flag("symbols", GAME)
    action_codec: str = option_flag("action_codec", STEP)
    frames_per_step: int = option_flag("frames_per_step", STEP)

    def run(self) -> None:
        from gbxcule_puffer.apps.profile.measure import measure
        from gbxcule_puffer.apps.profile.names import AddressNames
        from gbxcule_puffer.apps.profile.report import report
        from gbxcule_puffer.layout import find_rom
        from gbxcule_puffer.tasks.ram.symbols import Symbols

        names = AddressNames(Symbols.find_files(self.symbols, find_rom(self.rom)))
        kernels = ("interpreter",) if self.cpu_only else ("interpreter", "datapath")
        options = {name: getattr(self, name) for name in ("start_state", "header", "model", "num_envs", "warmup")}
        options |= {name: getattr(self, name) for name in ("steps", "frames_per_step")}
        options["release_after_frames"] = max(1, self.frames_per_step // 3)
        counts = [measure(self.rom, kernel, plain_codec(self.action_codec), **options) for kernel in kernels]
        print(report(Path(self.rom).name, counts[0], counts[1] if len(counts) > 1 else None, names))


COMMAND = Profile
