"""The process that finds and compiles a ROM's pieces. Arguments: a folder, with rom.gb and envs.state, and a model.

It counts what the game executes from these states on, chooses traces, and compiles them, so that the emulator only has
to load them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from gbxcule_puffer.emulator.build import cache
from gbxcule_puffer.emulator.cartridge import Cartridge, load_cartridge
from gbxcule_puffer.emulator.emulator import Emulator
from gbxcule_puffer.emulator.hw import counters
from gbxcule_puffer.emulator.loops import table
from gbxcule_puffer.emulator.loops.find import lcd_polls, marked_words
from gbxcule_puffer.emulator.pieces.native import Pieces, keep
from gbxcule_puffer.emulator.pieces.source import SYMBOL, source
from gbxcule_puffer.emulator.pieces.traces import Trace, Tracer
from gbxcule_puffer.emulator.probes.counting import CountingEmulator
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.kernel_objects import compile_cpp

STEPS = 60
LEAST_OF_CALL = 3.0  # instructions that a piece executes when it is called: a call takes as long as interpreting them
RARE = 0.005  # of all calls: those of a piece do not matter then, but native code may go on with it often


def find_traces(cartridge: Cartridge, states: Snapshot) -> list[Trace]:
    """The traces of a ROM in what it executes from `states` on."""
    loops, polls = loops_of(cartridge)
    executed, repeated, interrupts = profile_of(cartridge, states)
    return Tracer(cartridge.data, executed, loops, polls, repeated, interrupts).find()


def loops_of(cartridge: Cartridge) -> tuple[np.ndarray, np.ndarray]:
    """The beginnings of loops whose rounds are skipped, and of others, that poll LY or STAT, bool by ROM index. Their
    marks stay in Machine's `code`: only pieces lead to the pieces that begin there."""
    words, _ = marked_words(cartridge.data)
    marks = words >> table.MARK_SHIFT
    return (marks != 0) & (marks != table.LCD_POLL), lcd_polls(cartridge.data, marks == table.LCD_POLL)


def profile_of(cartridge: Cartridge, states: Snapshot) -> tuple[np.ndarray, np.ndarray, int]:
    """Executions of each instruction of the ROM from `states` on with random buttons, those in rounds that changed
    nothing of the loop that it ends, both int64 (size of the ROM,), and the interrupts that were dispatched."""
    emulator = CountingEmulator(cartridge, states.num_envs, screen=_screen_of(states))
    emulator.load(states)
    emulator.counts.zero_()  # what its own start executed
    for row in _buttons(cartridge, states):
        emulator.step(row)
    rows = emulator.counts.numpy()
    interrupts = int(rows[counters.CAUSES, counters.DISPATCHED :][: counters.INTERRUPTS].sum())
    emulator.close()
    return *rows[[counters.EXECUTED, counters.REPEATED], : len(cartridge.data)], interrupts


def checked(cartridge: Cartridge, states: Snapshot, pieces: Pieces) -> Pieces:
    """The pieces, called only where that pays, after they have run beside the interpreter from `states` on: a compiler
    can have faults, and one was met. It pays where a call executes at least LEAST_OF_CALL instructions in the mean, or
    where calls are RARE.

    Raises: StateError where they differ.
    """
    counts = torch.zeros((len(pieces.indices), 2), dtype=torch.int64)
    emulators = [
        Emulator(cartridge, states.num_envs, screen=_screen_of(states), native=native, num_threads=1)
        for native in (False, True)
    ]
    for emulator in emulators:
        if emulator.native is not None:
            emulator.native.take(pieces, counts)
        emulator.load(states)
        for row in _buttons(cartridge, states):
            emulator.step(row)
    first, second = (emulator.save() for emulator in emulators)
    for emulator in emulators:
        emulator.close()
    if not np.array_equal(first.state, second.state) or not np.array_equal(first.memory, second.memory):
        raise StateError("it does not do what the interpreter does")
    calls, executed = counts[:, 0], counts[:, 1]
    pays = ((executed >= LEAST_OF_CALL * calls) | (calls < RARE * calls.sum())).tolist()
    entries = [number for number in pieces.entries if pays[number]]
    return replace(pieces, entries=entries) if entries else Pieces([], [], [], None)


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
    loops, polls = loops_of(cartridge)
    is_marked = loops | polls
    compiled = compile_cpp(source(cartridge, traces, loops), SYMBOL, folder_of_objects()) if traces else None
    return Pieces(
        [[list(part.indices) for part in each] for each in parts],
        [part.bound for each in parts for part in each],
        [number for number, trace in enumerate(traces) if not is_marked[trace.begin]],
        compiled,
    )


def folder_of_objects() -> Path:
    """The folder of the objects of ROMs."""
    return cache.directory()


def end_with_parent(folder: Path) -> None:
    """Wait until the run that asked is gone, however it ended, and stdin with it; then end this process, and remove its
    folder, which that run would have removed."""
    os.read(0, 1)  # sys.stdin has a lock, which a process that ends would wait for and then abort
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def main() -> None:
    """The command line."""
    folder, model = Path(sys.argv[1]), sys.argv[2]
    os.nice(10)
    threading.Thread(target=end_with_parent, args=(folder,), daemon=True).start()
    cartridge = load_cartridge((folder / "rom.gb").read_bytes(), "pyboy", model)
    states = Snapshot.from_file(folder / "envs.state")
    pieces = compile_pieces(cartridge, find_traces(cartridge, states))
    keep(cartridge, checked(cartridge, states, pieces))


if __name__ == "__main__":
    main()
