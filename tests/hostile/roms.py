"""Random ROMs of all mappers and sizes between guard pages: both kernels have to leave the same states.

    python -m tests.hostile.roms --roms 2000
    compute-sanitizer python -m tests.hostile.roms --roms 50 --frames 8 --envs 33 --device cuda

An access beside an env's own arrays ends the process with a signal (tests/support/guarded.py). With `--device cuda` the
data path runs on the GPU, where compute-sanitizer looks at its accesses.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.state import first_fault
from tests.fuzz.generator import KINDS, make_rom, model_of
from tests.fuzz.lockstep import SCHEDULES, random_buttons
from tests.support.guarded import GuardedEmulator


def run(seed: int, frames: int, envs: int, device: str = "cpu") -> tuple[str, int]:
    """The mapper and the size of the ROM of a seed, which both kernels have run, the data path on `device`.

    Raises: AssertionError where their states differ, or are such as no file may hold.
    """
    rom = make_rom(seed, (None, *sorted(KINDS))[seed % (len(KINDS) + 1)])
    frames_per_step = SCHEDULES[seed % len(SCHEDULES)]
    buttons = random_buttons(seed, -(-frames // frames_per_step), envs)
    hashes = []
    keywords: dict[str, Any] = {"frames_per_step": frames_per_step, "release_after_frames": 1}
    keywords["model"] = model_of(rom.data)
    for kernel in ("interpreter", "datapath"):
        if kernel == "interpreter" or device == "cpu":
            emulator: Emulator = GuardedEmulator(rom.data, envs, num_threads=1, kernel=kernel, **keywords)
        else:
            emulator = Emulator(rom.data, envs, device, **keywords)
        for row in buttons:
            emulator.step(torch.from_numpy(row).to(emulator.device))
        if isinstance(emulator, GuardedEmulator):
            emulator.check_padding()
        assert first_fault(emulator.save().state, emulator.cartridge) == "", f"ROM {seed}, {kernel}"
        hashes.append(emulator.state_hash())
    assert np.array_equal(*hashes), f"ROM {seed}: the kernels differ"
    return emulator.cartridge.mapper.name, len(rom.data)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="seed of the first ROM")
    parser.add_argument("--roms", type=int, default=100, help="random ROMs")
    parser.add_argument("--frames", type=int, default=24, help="frames of each")
    parser.add_argument("--envs", type=int, default=2, help="envs, each with its own buttons")
    parser.add_argument("--device", default="cpu", help="of the data path: cpu, cuda or cuda:N")
    args = parser.parse_args()
    mappers: Counter[str] = Counter()
    sizes: Counter[int] = Counter()
    for seed in range(args.first, args.first + args.roms):
        mapper, size = run(seed, args.frames, args.envs, args.device)
        mappers[mapper] += 1
        sizes[size] += 1
    print(f"{args.roms} ROMs, both kernels the same, no access outside of an env")
    print("mappers:", ", ".join(f"{name} {count}" for name, count in mappers.most_common()))
    print("sizes:", ", ".join(f"{size // 1024} KiB {sizes[size]}" for size in sorted(sizes)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
