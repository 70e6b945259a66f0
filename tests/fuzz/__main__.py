"""`python -m tests.fuzz --seeds 0:1000 --frames 60 [--kind NAME] [--out DIR] [--record FILE]`: compare seeded random
ROMs with PyBoy.

A failing ROM is shrunk and written to DIR with its buttons and what differs. Exit code 0 if nothing differs, else 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np

from gbxcule_puffer.emulator.cpu.disassembler import disassemble
from gbxcule_puffer.files import write_json
from gbxcule_puffer.provenance import git_sha, versions
from tests.fuzz.generator import KINDS, FuzzRom, make_rom
from tests.fuzz.lockstep import SCHEDULES, compare_seed, random_buttons
from tests.fuzz.shrink import code_left, shrink

LONGEST_S = 120.0
"""Time for one ROM before PyBoy counts as hung."""


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Compare seeded random ROMs with PyBoy.")
    parser.add_argument("--seeds", default="0:100", help="first:end, the end not included")
    parser.add_argument("--frames", type=int, default=60, help="frames of each ROM")
    parser.add_argument("--kind", choices=KINDS, help="ROMs of one kind only")
    parser.add_argument("--envs", type=int, default=1, help="environments, each with its own buttons and PyBoy")
    parser.add_argument("--device", default="cpu", help="the emulator's device: cpu, cuda or cuda:N")
    parser.add_argument("--out", type=Path, help="folder for failing ROMs")
    parser.add_argument("--record", type=Path, help="JSON file for what was compared")
    parser.add_argument("--no-shrink", action="store_true", help="keep failing ROMs as they are")
    args = parser.parse_args()
    first, _, end = args.seeds.partition(":")
    if not (first.isdigit() and end.isdigit()):
        parser.error(f"--seeds is {args.seeds!r}; give first:end, for example 0:100")
    failing, instructions, begin = 0, 0, time.perf_counter()
    for seed in range(int(first), int(end)):
        rom = make_rom(seed, args.kind)
        watchdog = threading.Timer(LONGEST_S, give_up, [seed])
        watchdog.daemon = True
        watchdog.start()
        result = compare_seed(rom.data, seed, args.frames, args.envs, args.device)
        watchdog.cancel()
        instructions += result.instructions
        if result.difference:
            failing += 1
            print(
                f"seed {seed} ({rom.kind}) differs within {result.frames} frames:", *result.difference[:8], sep="\n  "
            )
            if args.out:
                keep(args.out, rom, args.frames, args.envs, result.difference, not args.no_shrink)
    seconds = time.perf_counter() - begin
    print(f"seeds {args.seeds}: {instructions:,} instructions compared in {seconds:.0f} s, {failing} ROMs differ")
    if args.record:
        found = {
            "kind": args.kind,
            "seeds": args.seeds,
            "frames": args.frames,
            "envs": args.envs,
            "device": args.device,
            "instructions": instructions,
        }
        write_json(
            args.record,
            {
                **found,
                "roms_that_differ": failing,
                "seconds": round(seconds),
                "git_sha": git_sha(),
                "versions": versions(),
            },
        )
    return 1 if failing else 0


def give_up(seed: int) -> None:
    """PyBoy never returns from an illegal opcode: where only PyBoy meets one, the machines differ."""
    print(f"seed {seed}: PyBoy does not come back, and the emulator did", flush=True)
    os._exit(1)


def keep(folder: Path, rom: FuzzRom, frames: int, num_envs: int, difference: list[str], with_shrinking: bool) -> None:
    """Write a failing ROM, small if possible, and a listing of what is left of it."""
    folder.mkdir(parents=True, exist_ok=True)
    frames_per_step = SCHEDULES[rom.seed % len(SCHEDULES)]
    data, buttons = rom.data, random_buttons(rom.seed, -(-frames // frames_per_step), num_envs)
    if with_shrinking:
        data, buttons = shrink(data, buttons, frames_per_step)
    (folder / f"seed{rom.seed}.gb").write_bytes(data)
    np.save(folder / f"seed{rom.seed}.buttons.npy", buttons)
    title = f"seed {rom.seed} ({rom.kind}), {len(buttons)} steps of {frames_per_step}, {code_left(data)} bytes left"
    lines = [title, *difference, ""]
    index = 0
    while index < len(data):
        if data[index] == 0:
            index += 1
            continue
        text, length = disassemble(data[index : index + 3], index)
        lines.append(f"{index:06X}  {data[index : index + length].hex(' '):9}  {text}")
        index += length
    (folder / f"seed{rom.seed}.txt").write_text("\n".join(lines[:400]) + "\n")


if __name__ == "__main__":
    sys.exit(main())
