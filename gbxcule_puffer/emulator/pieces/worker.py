"""The process that finds and compiles a ROM's pieces. Arguments: a folder, with rom.gb and envs.state, and a model.

It counts what the game executes from these states on, chooses traces, and compiles them, so that the emulator only has
to load them.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from gbxcule_puffer.emulator.build import cache
from gbxcule_puffer.emulator.cartridge import Cartridge, load_cartridge
from gbxcule_puffer.emulator.hw import counters
from gbxcule_puffer.emulator.loops.find import marked_words
from gbxcule_puffer.emulator.loops.table import MARK_SHIFT
from gbxcule_puffer.emulator.pieces.native import Pieces, keep
from gbxcule_puffer.emulator.pieces.source import SYMBOL, source
from gbxcule_puffer.emulator.pieces.traces import Trace, Tracer
from gbxcule_puffer.emulator.probes.counting import CountingEmulator
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.kernel_objects import compile_cpp

STEPS = 60


def find_traces(cartridge: Cartridge, states: Snapshot) -> list[Trace]:
    """The traces of a ROM in what it executes from `states` on."""
    words, _ = marked_words(cartridge.data)
    return Tracer(cartridge.data, profile_of(cartridge, states), words >> MARK_SHIFT != 0).find()


def profile_of(cartridge: Cartridge, states: Snapshot) -> np.ndarray:
    """Executions of each instruction of the ROM from `states` on with random buttons, int64, by ROM index."""
    screen = "full" if states.screen.shape[1] == 144 else "half"
    emulator = CountingEmulator(cartridge, states.num_envs, screen=screen)
    emulator.load(states)
    emulator.counts.zero_()  # what its own start executed
    generator = torch.Generator().manual_seed(int(hashlib.sha256(cartridge.data).hexdigest()[:8], 16))
    table = torch.tensor([0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x80], dtype=torch.uint8)
    for _ in range(STEPS):
        emulator.step(table[torch.randint(len(table), (states.num_envs,), generator=generator)])
    executed = emulator.counts[counters.EXECUTED, : len(cartridge.data)].numpy().copy()
    emulator.close()
    return executed


def compile_pieces(cartridge: Cartridge, traces: Sequence[Trace]) -> Pieces:
    """Compile the pieces of these traces; a game whose code runs in RAM has none."""
    parts = [trace.segments for trace in traces]
    compiled = compile_cpp(source(cartridge, traces), SYMBOL, folder_of_objects()) if traces else None
    return Pieces(
        [[list(part.indices) for part in each] for each in parts],
        [part.bound for each in parts for part in each],
        compiled,
    )


def folder_of_objects() -> Path:
    """The folder of the objects of ROMs."""
    return cache.directory()


def main() -> None:
    """The command line."""
    folder, model = Path(sys.argv[1]), sys.argv[2]
    os.nice(10)
    cartridge = load_cartridge((folder / "rom.gb").read_bytes(), "pyboy", model)
    keep(cartridge, compile_pieces(cartridge, find_traces(cartridge, Snapshot.from_file(folder / "envs.state"))))


if __name__ == "__main__":
    main()
