"""Machines in states that no file may hold, and in any that one may: the first are refused, the others harm nobody.

    python -m tests.hostile.states --roms 50 --envs 64

Every state is run by both kernels between guard pages (tests/support/guarded.py): an access beside an env's own arrays
ends the process with a signal.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import torch

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.emulator.state import COLOR_FIELDS, FIELDS, INDEX, Field, allowed_banks
from tests.fuzz.generator import KINDS, make_rom, model_of
from tests.fuzz.lockstep import random_buttons
from tests.support.guarded import GuardedEmulator

EXTREMES = (-(2**31), -(2**20) - 1, -0x8000, -2, -1, 256, 0x8000, 0x10000, 2**20 + 1, 2**31 - 2, hw.NEVER)


def fields_of(cartridge: Cartridge) -> list[Field]:
    """The fields of a model's state."""
    return FIELDS if cartridge.model == "dmg" else [*FIELDS, *COLOR_FIELDS]


def allowed(field: Field, cartridge: Cartridge) -> list[int] | range:
    """The values that a field may have between two steps."""
    if field.name == "lcd_transition" and cartridge.model == "cgb":
        return range(4)
    if field.name == "f":
        return range(0, 0x100, 0x10)
    return allowed_banks(cartridge).get(field.name) or range(field.low, field.high + 1)


def refused_values(field: Field, cartridge: Cartridge) -> list[int]:
    """Values that a field may not have: extreme ones, and those next to the allowed ones."""
    values = allowed(field, cartridge)
    near = {value for value in (values[0] - 1, values[-1] + 1) if -(2**31) <= value < 2**31}
    found = {value for value in (*EXTREMES, *near) if value not in values}
    return sorted(found - ({hw.NEVER} if field.may_be_never else set()))


def random_states(start: Snapshot, cartridge: Cartridge, count: int, generator: np.random.Generator) -> Snapshot:
    """`count` envs like `start` in which up to all fields have other values that they may have, and much of the memory
    others, too."""
    state, memory = start.state.repeat(count, 1), start.memory.repeat(count, 0)
    share = generator.choice((0.02, 0.1, 0.5, 1.0), count)
    for field in fields_of(cartridge):
        values = allowed(field, cartridge)
        drawn = np.array([values[generator.integers(len(values))] for _ in range(count)])
        ends = np.array([values[0], values[-1], hw.NEVER if field.may_be_never else values[0]])
        drawn = np.where(generator.random(count) < 0.5, generator.choice(ends, count), drawn)
        changed = (generator.random(count) < share) & (field.name != "locked")
        state[INDEX[field.name]] = np.where(changed, drawn, state[INDEX[field.name]])
    other = generator.random(memory.shape) < share[:, None] * 0.5
    memory[other] = generator.integers(0, 256, int(other.sum()))
    return Snapshot(start.rom_sha256, state, memory, start.screen.repeat(count, 0), start.profile)


def run(seed: int, envs: int, steps: int) -> str:
    """Random states of one random ROM, run by both kernels between guard pages; returns the model. Half of the ROMs
    that are for a DMG run on a Game Boy Color."""
    generator = np.random.default_rng(seed)
    kind = None if seed % 2 else sorted(KINDS)[seed // 2 % len(KINDS)]
    rom = make_rom(seed, kind)
    model = "cgb" if model_of(rom.data) == "cgb" or generator.random() < 0.5 else "dmg"
    buttons = random_buttons(seed, 8 + steps, envs)
    states = None
    for kernel in ("interpreter", "datapath"):
        emulator = GuardedEmulator(
            rom.data, envs, screen="full", frames_per_step=2, release_after_frames=1, num_threads=1, kernel=kernel,
            model=model,
        )  # fmt: skip
        for row in buttons[:8]:
            emulator.step(torch.from_numpy(row))
        states = states or random_states(emulator.save(0), emulator.cartridge, envs, generator)
        emulator.load(states)
        for row in buttons[8:]:
            emulator.step(torch.from_numpy(row))
        emulator.check_padding()
        emulator.close()
    return model


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="seed of the first ROM")
    parser.add_argument("--roms", type=int, default=10, help="random ROMs")
    parser.add_argument("--envs", type=int, default=32, help="random states of each")
    parser.add_argument("--steps", type=int, default=2, help="steps of two frames that each is run")
    args = parser.parse_args()
    for seed in range(args.first, args.first + args.roms):
        print(f"ROM {seed}", end=" ", flush=True)
        print(run(seed, args.envs, args.steps), flush=True)
    print(f"{args.roms} ROMs, {args.roms * args.envs:,} states, 2 kernels: no access outside of an env")
    return 0


if __name__ == "__main__":
    sys.exit(main())
