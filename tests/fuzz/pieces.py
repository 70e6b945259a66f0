"""`python -m tests.fuzz.pieces [--seeds 0:40] [--steps N] [--faults]`: native code beside the interpreter.

Random ROMs (generator.py: self-modifying code, bank switches, interrupts, DMA) run with their pieces as native code and
without. All fields, memory and pictures have to be equal after each step. With --faults, each of FAULTS is planted into
the native code, and one of the ROMs has to find it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.build import cache
from gbxcule_puffer.emulator.cartridge import Cartridge, load_cartridge
from gbxcule_puffer.emulator.pieces import worker
from gbxcule_puffer.emulator.pieces.native import Pieces
from gbxcule_puffer.emulator.pieces.source import source
from gbxcule_puffer.emulator.pieces.traces import Trace
from gbxcule_puffer.emulator.pieces.worker import compile_pieces, find_traces, loops_of
from gbxcule_puffer.emulator.state import INDEX
from gbxcule_puffer.kernel_objects import load_address
from tests.fuzz.generator import make_rom

Fault = tuple[str, str]  # text of the source, and what stands in its stead
FAULTS: dict[str, Fault] = {
    "an event comes within a piece": ("<= bounds[", "<= 0 * bounds["),
    "a piece runs at another address": ("(pc < 0x4000) != (index < 0x4000)", "false"),
    "a piece goes on in another bank": ("if (rom_high != ", "if (false && rom_high != "),
    "bank 0 is another one": (" | c.rom_low", ""),
    "a bank switch is not noticed": (" && c.rom_high == x.rom_high", ""),
    "lines are not drawn before VRAM changes": ("c.render && c.next_line < 144 ? 0 : 0x10", "0x10"),
    "the echo is memory": ("0x60 : 0x40", "0xE0 : 0xC0"),
    "IE is memory": ("< 0x7F;", "< 0x80;"),
    "a locked VRAM is read": ("((c.lcdc & 0x80) == 0 || c.ly >= 144) ? 0x10 : 0", "true ? 0x10 : 0"),
    "cartridge RAM is always on": ("c.ram_enabled == 1 && ", ""),
    "cartridge RAM has one bank": (" && c.ram_offset == 0x2000", ""),
    "flags are lost": ("c.f = f;", ""),
    "DI is lost": ("c.ime = ime;", ""),
    "the last instruction's time is lost": ("c.previous = c.now - last;", ""),
    "... before an access": ("x.c.previous = now - last;", ""),
    "pieces run during an OAM DMA": ("c.ei_delay | c.dma_active", "c.ei_delay"),
    "pieces run after EI": ("c.ei_delay | c.dma_active", "c.dma_active"),
    "the end of a batch is not noticed": ("c.next_event == x.event && ", ""),
    "an access is when its instruction begins": ("now + t, lookahead", "now, lookahead"),
    "no access looks ahead": ("now + t, lookahead", "now + t, 0"),
    "STAT and LY do not change in a batch": ("at >= c.lcd_target || ", ""),
    "the LCD stands still": ("if (!is_settled(x, now, at)) advance(x, now, last, at);", ""),
    "VRAM is read in mode 3": ("mode == 3 || ", ""),
    "... at the end of mode 2": ("until <= 4", "until <= 0"),
    "VRAM is written in mode 3": (" || (c.stat & 3) != 3)", " || true)"),
    "lines are not drawn before such a write": (" && !(c.render && c.next_line < 144)", ""),
    "a round is skipped although A changed": ("h.a == a && ", ""),
    "... F": ("h.f == f && ", ""),
    "... BC": ("h.bc == bc", "true"),
    "... DE": ("h.de == de", "true"),
    "... memory": ("x.changed |= at ^ (byte)value;", ""),
    "... P1": (" && c.p1 == p1", ""),
    "rounds are skipped over an event": (": left - 1) / round", ": left + 4 * round) / round"),
    "... over a change of the LCD": ("x.polled && until_lcd < left - 1", "false"),
    "... although an access could change something": ("    x.changed = 1;", ""),
    "a poll of STAT or LY is not noticed": ("x.polled = 1;", ""),
    "STAT does not keep the time": ("c.lcd_last = at;", ""),
    "RETI does not end a batch": ("(c.interrupt_flag & c.interrupt_enable & 31) != 0", "false"),
}
COLOR_FAULTS: dict[str, Fault] = {
    "a VRAM DMA is lost": (f" == {hw.HDMA5})", " == 1)"),
    "WRAM has one bank": ("c.wram_shift", "0"),
    "VRAM has one bank": ("c.vram_shift", "0"),
    "VRAM is read while the LCD's clock has wrapped": ("c.lcd_wrapped == 0", "true"),
}
SCHEDULES = ((24, 8), (3, 1), (1, 1))  # frames of a step, and of them with the buttons held
ENVS = 8
KINDS = {"dmg": (None, "banks", "polls", "loops", "io-stack"), "cgb": ("color", "color-scenes", None)}
"""Of the ROMs of seeds, by the model; None: by the seed."""


class PiecesOfRoms:
    """The pieces of some ROMs. They are compiled into a folder that is gone afterwards."""

    def __init__(self, cartridges: Sequence[Cartridge], traces: Sequence[Sequence[Trace]]) -> None:
        self.cartridges, self.traces = cartridges, traces
        self._compiled: dict[tuple[int, Fault | None], Pieces | None] = {}

    def pieces(self, index: int, fault: Fault | None = None) -> Pieces | None:
        """Those of a ROM; None where its code does not have the text of a fault."""
        if (index, fault) not in self._compiled:
            self._compiled[index, fault] = self._compile(index, fault)
        return self._compiled[index, fault]

    def _compile(self, index: int, fault: Fault | None) -> Pieces | None:
        cartridge, traces = self.cartridges[index], self.traces[index]
        if fault is not None and fault[0] not in source(cartridge, traces, loops_of(cartridge)[0]):
            return None

        def changed(*arguments: Any) -> str:
            text = source(*arguments)
            return text if fault is None else text.replace(*fault)

        with (
            tempfile.TemporaryDirectory(dir=cache.directory()) as folder,
            patch.multiple(worker, source=changed, folder_of_objects=lambda: Path(folder)),
        ):
            pieces = compile_pieces(cartridge, traces)
            if pieces.compiled is not None:
                load_address(pieces.compiled)  # which stays loaded
            return pieces


def plain(cartridge: Cartridge, frames: int, release: int, native: bool = False) -> Emulator:
    """An emulator; native: it has no pieces yet."""
    return Emulator(cartridge, ENVS, native=native, frames_per_step=frames, release_after_frames=release)


def traces_of(cartridge: Cartridge) -> list[Trace]:
    """The traces that a ROM executes from its start on: a random program may lock the machine in its first step."""
    return find_traces(cartridge, plain(cartridge, 24, 8).save())


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


def search(roms: PiecesOfRoms, steps: int, fault: Fault | None = None) -> tuple[dict[str, str], int]:
    """Differences by ROM and schedule, and the number of instructions that were compared; with a fault, until the first
    difference."""
    found, instructions = dict[str, str](), 0
    for index, cartridge in enumerate(roms.cartridges):
        if fault and found:
            break
        pieces = roms.pieces(index, fault)
        for frames, release in SCHEDULES if pieces is not None else ():
            native, interpreted = plain(cartridge, frames, release, True), plain(cartridge, frames, release)
            assert native.native is not None and pieces is not None
            native.native.take(pieces)
            difference = first_difference(native, interpreted, max(2, steps // frames), index)
            instructions += ENVS * max(2, steps // frames) * int(interpreted.save().state[INDEX["instructions"]].mean())
            if difference:
                found[f"ROM {index}, {frames} frames a step"] = difference
            native.close()
            interpreted.close()
    return found, instructions


def cartridges_of(seeds: Sequence[int], kind: str | None, model: str) -> list[Cartridge]:
    """The ROMs of seeds, by their numbers; kind: of all."""
    kinds = KINDS[model]
    roms = [make_rom(seed, kind or kinds[seed % len(kinds)]) for seed in seeds]
    return [load_cartridge(rom.data, "pyboy", model) for rom in roms]


def main() -> int:
    """The command line. Returns 1 where something differs that should not, or a fault is not found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:24", help="first and last + 1")
    parser.add_argument("--kind", help="of the ROMs (default: by the seed)")
    parser.add_argument("--model", default="dmg", choices=("dmg", "cgb"))
    parser.add_argument("--steps", type=int, default=2_400, help="frames that each ROM runs on each schedule")
    parser.add_argument("--faults", action="store_true", help="plant each fault as well")
    args = parser.parse_args()
    first, last = map(int, args.seeds.split(":"))
    faults = FAULTS | (COLOR_FAULTS if args.model == "cgb" else {})
    total, failed, missed = 0, 0, set(faults) if args.faults else set[str]()
    for seed in range(first, last):
        began = time.monotonic()
        cartridges = cartridges_of([seed], args.kind, args.model)
        traces = [traces_of(cartridge) for cartridge in cartridges]
        roms = PiecesOfRoms(cartridges, traces)
        found, instructions = search(roms, args.steps)
        total, failed = total + instructions, failed + len(found)
        pieces = sum(map(len, traces))
        seconds = time.monotonic() - began
        print(f"seed {seed}: {pieces} pieces, {instructions:,} instructions, {seconds:.0f} s", found, flush=True)
        for name in sorted(missed):
            if search(roms, args.steps, faults[name])[0]:
                missed.discard(name)
                print(f"  found: {name}", flush=True)
    print(f"{total:,} instructions, {failed} differences, faults not found: {sorted(missed) or 'none'}")
    return 1 if failed or missed else 0


if __name__ == "__main__":
    sys.exit(main())
