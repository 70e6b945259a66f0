"""`python -m tests.fuzz.pieces [--seeds 0:40] [--steps N] [--faults]`: native code beside the interpreter.

Random ROMs (generator.py: self-modifying code, bank switches, interrupts, DMA) run with their pieces as native code and
without. All fields, memory and pictures have to be equal after each step. With --faults, each of FAULTS is planted into
the native code, and one of the ROMs has to find it. Several ROMs share one kernel, which takes long to compile.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np
import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.build.instantiate import Edit
from gbxcule_puffer.emulator.build.variant import Variant, build
from gbxcule_puffer.emulator.cartridge import Cartridge, load_cartridge
from gbxcule_puffer.emulator.pieces.native import PIECE
from gbxcule_puffer.emulator.pieces.source import source
from gbxcule_puffer.emulator.pieces.traces import Trace
from gbxcule_puffer.emulator.pieces.worker import find_traces
from gbxcule_puffer.emulator.state import INDEX
from tests.fuzz.generator import make_rom

BUS = "cpu.piece_bus"
FAULTS = {
    "an event comes within a piece": Edit(BUS, "can_start", "c.now + bound < c.next_event", "c.now < c.next_event"),
    "a piece runs at another address": Edit(BUS, "can_start", "c.pc == pc", "c.pc == c.pc"),
    "lines are not drawn before VRAM changes": Edit(BUS, "can_write", "r.drawing == 0", "r.drawing == r.drawing"),
    "the echo is memory": Edit(BUS, "is_ram", "address < hw.ECHO", "address < hw.OAM"),
    "IE is memory": Edit(BUS, "is_ram", "address < hw.IE", "address <= hw.IE"),
    "a locked VRAM is read": Edit(BUS, "can_read_ahead", "address < hw.VRAM", "address < hw.CART_RAM"),
    "flags are lost": Edit(BUS, "leave", "r.f", "c.f"),
    "DI is lost": Edit(BUS, "leave", "r.ime", "c.ime"),
    "the last instruction's time is lost": Edit(BUS, "leave", "r.previous", "c.previous"),
    "pieces run during an OAM DMA": Edit("cpu.pieces", "run", "(c.ei_delay | c.dma_active) == 0", "c.ei_delay == 0"),
    "pieces run after EI": Edit("cpu.pieces", "run", "(c.ei_delay | c.dma_active) == 0", "c.dma_active == 0"),
}
SCHEDULES = ((24, 8), (3, 1), (1, 1))  # frames of a step, and of them with the buttons held
ENVS = 8


class PiecesOfRoms:
    """The pieces of several ROMs of one model in one kernel; edits: faults."""

    def __init__(self, cartridges: Sequence[Cartridge], traces: Sequence[Sequence[Trace]], edits: Sequence[Edit] = ()):
        self.cartridges, self.traces = cartridges, traces
        variant = Variant(
            color=cartridges[0].model == "cgb", pieces=source([trace for found in traces for trace in found])
        )
        self.kernel = build("interpreter", variant, tuple(edits)).step

    def emulator(self, index: int, frames: int, release: int) -> Emulator:
        """An emulator of ROM `index` whose pieces run as native code."""
        pieces, first = self, sum(map(len, self.traces[:index]))

        class NativeEmulator(Emulator):
            """An emulator with the kernel of all of them."""

            def _kernel(self) -> wp.Kernel:
                return pieces.kernel

        emulator = plain(self.cartridges[index], frames, release, NativeEmulator)
        for number, trace in enumerate(self.traces[index]):
            emulator._code[trace.begin] = PIECE | first + number
        return emulator


def plain(cartridge: Cartridge, frames: int, release: int, kind: type[Emulator] = Emulator) -> Emulator:
    """An emulator without native code of its own."""
    return kind(cartridge, ENVS, native=False, frames_per_step=frames, release_after_frames=release)


def traces_of(cartridge: Cartridge) -> list[Trace]:
    """The traces that a ROM's first steps execute."""
    emulator = plain(cartridge, 24, 8)
    emulator.step(torch.zeros(ENVS, dtype=torch.uint8))
    return find_traces(cartridge, emulator.save())


def first_difference(native: Emulator, interpreted: Emulator, steps: int, seed: int) -> str:
    """Where two emulators differ first with random buttons, '' where they do not."""
    rows = np.random.default_rng(seed).integers(0, 256, (steps, ENVS), dtype=np.uint8)
    for step, row in enumerate(torch.from_numpy(rows)):
        native.step(row)
        interpreted.step(row)
        ours, theirs = native.save(), interpreted.save()
        fields = (ours.state != theirs.state).any(axis=1)
        if fields.any():
            names = [name for name, index in INDEX.items() if index < len(fields) and fields[index]]
            return f"step {step}: {', '.join(names[:6])}"
        if not np.array_equal(ours.memory, theirs.memory) or not np.array_equal(ours.screen, theirs.screen):
            return f"step {step}: memory or picture"
    return ""


def search(roms: PiecesOfRoms, steps: int) -> tuple[dict[str, str], int]:
    """Differences by ROM and schedule, and the number of instructions that were compared."""
    found, instructions = dict[str, str](), 0
    for index, cartridge in enumerate(roms.cartridges):
        for frames, release in SCHEDULES:
            native, interpreted = roms.emulator(index, frames, release), plain(cartridge, frames, release)
            difference = first_difference(native, interpreted, max(2, steps // frames), index)
            instructions += ENVS * max(2, steps // frames) * int(interpreted.save().state[INDEX["instructions"]].mean())
            if difference:
                found[f"ROM {index}, {frames} frames a step"] = difference
            native.close()
            interpreted.close()
    return found, instructions


def cartridges_of(seeds: Sequence[int], kind: str | None, model: str) -> list[Cartridge]:
    """The ROMs of seeds."""
    return [load_cartridge(make_rom(seed, kind).data, "pyboy", model) for seed in seeds]


def main() -> int:
    """The command line. Returns 1 where something differs that should not, or a fault is not found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:24", help="first and last + 1")
    parser.add_argument("--kind", help="of the ROMs (default: by the seed)")
    parser.add_argument("--model", default="dmg", choices=("dmg", "cgb"))
    parser.add_argument("--steps", type=int, default=2_400, help="frames that each ROM runs on each schedule")
    parser.add_argument("--at-once", type=int, default=8, help="ROMs that share a kernel")
    parser.add_argument("--faults", action="store_true", help="plant each fault as well")
    args = parser.parse_args()
    first, last = map(int, args.seeds.split(":"))
    total, failed, missed = 0, 0, set(FAULTS) if args.faults else set[str]()
    for begin in range(first, last, args.at_once):
        began = time.monotonic()
        cartridges = cartridges_of(range(begin, min(begin + args.at_once, last)), args.kind, args.model)
        traces = [traces_of(cartridge) for cartridge in cartridges]
        found, instructions = search(PiecesOfRoms(cartridges, traces), args.steps)
        total, failed = total + instructions, failed + len(found)
        pieces = sum(map(len, traces))
        seconds = time.monotonic() - began
        print(f"seeds from {begin}: {pieces} pieces, {instructions:,} instructions, {seconds:.0f} s", found, flush=True)
        for name in sorted(missed):
            if search(PiecesOfRoms(cartridges, traces, [FAULTS[name]]), args.steps)[0]:
                missed.discard(name)
                print(f"  found: {name}", flush=True)
    print(f"{total:,} instructions, {failed} differences, faults not found: {sorted(missed) or 'none'}")
    return 1 if failed or missed else 0


if __name__ == "__main__":
    sys.exit(main())
