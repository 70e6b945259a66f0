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
from gbxcule_puffer.emulator.emulator import Emulator
from gbxcule_puffer.emulator.hw import counters
from gbxcule_puffer.emulator.loops.find import marked_words
from gbxcule_puffer.emulator.loops.table import MARK_SHIFT
from gbxcule_puffer.emulator.pieces.native import Pieces, keep
from gbxcule_puffer.emulator.pieces.source import SYMBOL, source
from gbxcule_puffer.emulator.pieces.traces import Trace, Tracer
from gbxcule_puffer.emulator.probes.counting import CountingEmulator
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.kernel_objects import compile_cpp

STEPS = 60


def find_traces(cartridge: Cartridge, states: Snapshot) -> list[Trace]:
    """The traces of a ROM in what it executes from `states` on."""
    words, _ = marked_words(cartridge.data)
    return Tracer(cartridge.data, profile_of(cartridge, states), words >> MARK_SHIFT != 0).find()


def profile_of(cartridge: Cartridge, states: Snapshot) -> np.ndarray:
    """Executions of each instruction of the ROM from `states` on with random buttons, int64, by ROM index."""
    emulator = CountingEmulator(cartridge, states.num_envs, screen=_screen_of(states))
    emulator.load(states)
    emulator.counts.zero_()  # what its own start executed
    for row in _buttons(cartridge, states):
        emulator.step(row)
    executed = emulator.counts[counters.EXECUTED, : len(cartridge.data)].numpy().copy()
    emulator.close()
    return executed


def check(cartridge: Cartridge, states: Snapshot, pieces: Pieces) -> None:
    """Run the pieces beside the interpreter from `states` on: a compiler can have faults, and one was met.

    Raises: StateError where they differ.
    """
    emulators = [
        Emulator(cartridge, states.num_envs, screen=_screen_of(states), native=native) for native in (False, True)
    ]
    for emulator in emulators:
        if emulator.native is not None:
            emulator.native.take(pieces)
        emulator.load(states)
        for row in _buttons(cartridge, states):
            emulator.step(row)
    first, second = (emulator.save() for emulator in emulators)
    for emulator in emulators:
        emulator.close()
    if not np.array_equal(first.state, second.state) or not np.array_equal(first.memory, second.memory):
        raise StateError("it does not do what the interpreter does")


def _screen_of(states: Snapshot) -> str:
    return "full" if states.screen.shape[1] == 144 else "half"


def _buttons(cartridge: Cartridge, states: Snapshot) -> torch.Tensor:
    """Random buttons of STEPS steps, always the same for a ROM."""
    generator = torch.Generator().manual_seed(int(hashlib.sha256(cartridge.data).hexdigest()[:8], 16))
    table = torch.tensor([0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x80], dtype=torch.uint8)
    return table[torch.randint(len(table), (STEPS, states.num_envs), generator=generator)]


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
    states = Snapshot.from_file(folder / "envs.state")
    pieces = compile_pieces(cartridge, find_traces(cartridge, states))
    check(cartridge, states, pieces)
    keep(cartridge, pieces)


if __name__ == "__main__":
    main()
