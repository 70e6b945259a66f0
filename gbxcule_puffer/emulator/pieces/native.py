"""Native code of a ROM: its most executed pieces, compiled in the background, for the interpreter on a CPU.

The interpreter fetches and dispatches each instruction. A piece does a whole trace of them at once, from the same
templates, where nothing can come between: no event is due before its end, and all of its accesses are plain. States are
equal to the bit with and without it. A process in the background compiles the pieces, and their object is loaded
between two steps, in milliseconds. What was found for a ROM is kept beside Warp's kernels, by digests of the ROM and of
the emulator's code, and serves all later runs from their first step.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from gbxcule_puffer.emulator.build import cache, interpreter
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.cpu.pieces import MARK
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.kernel_objects import CpuObject, load_address
from gbxcule_puffer.layout import child_environment

NEVER = 1 << 40  # in place of a bound: no event is as far away
START_SECONDS = 20.0  # of a run, after which pieces are looked for
LOOK_SECONDS = 0.5  # between two looks whether they are there
WORKER = "gbxcule_puffer.emulator.pieces.worker"
ERRORS = "errors.txt"  # what it says where it fails
OFF = "GBXCULE_NO_NATIVE"  # the environment variable that turns native code off, in child processes as well


@dataclass(frozen=True)
class Pieces:
    """The pieces of a ROM. indices: of the instructions of each part of each piece in the ROM, the piece's begin first;
    bounds: of each part, in T-cycles, how much further away than its begin the next event has to be; entries: the
    numbers of those at whose begin the interpreter calls them; compiled: their function, None where there are none."""

    indices: list[list[list[int]]]
    bounds: list[int]
    entries: list[int]
    compiled: CpuObject | None

    def to_text(self) -> str:
        """As `recall` reads it."""
        return json.dumps(asdict(self))


def _name(cartridge: Cartridge) -> str:
    return f"pieces_{cartridge.model}_{cartridge.sha256[:16]}"


def recall(cartridge: Cartridge) -> Pieces | None:
    """The pieces that were found for a ROM by this emulator, on a CPU like this one; None where there are none."""
    text = cache.recall(_name(cartridge), interpreter.makers())
    if text is None:
        return None
    fields = json.loads(text)
    found = None if fields["compiled"] is None else CpuObject(**fields["compiled"])
    return None if found is not None and not found.runs_here() else Pieces(**fields | {"compiled": found})


def keep(cartridge: Cartridge, pieces: Pieces) -> None:
    """Keep what was found."""
    cache.keep(_name(cartridge), interpreter.makers(), pieces.to_text())


class NativeCode:
    """The pieces that an emulator runs. pieces: None while there are none.

    Args: words: Machine's `code`, in which the pieces' begins are marked; attach: is called with Machine's `native`;
    snapshot: of the envs from which a process in the background finds out what this game executes most.
    """

    def __init__(
        self,
        cartridge: Cartridge,
        words: torch.Tensor,
        attach: Callable[[torch.Tensor], None],
        snapshot: Callable[[], Snapshot],
    ) -> None:
        self.pieces: Pieces | None = None
        self._cartridge, self._words, self._attach, self._snapshot = cartridge, words, attach, snapshot
        self._numbers = torch.zeros(0, dtype=torch.int64)  # Machine's `native`: two addresses, then bounds
        self._hooked: set[int] = set()
        self._before: dict[int, int] = {}  # the words at the marks
        self._begin = self._looked = time.monotonic()
        self._search: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._lock: int | None = None
        self._is_over = False
        self.take(recall(cartridge))

    def look(self) -> None:
        """Before a step: look for the pieces, or begin the search."""
        now = time.monotonic()
        if self._is_over or now - self._looked < LOOK_SECONDS or now - self._begin < START_SECONDS:
            return
        self._looked = now
        if self._search is None:
            is_ours = self._has_lock()
            self.take(recall(self._cartridge))  # of another process, which had the lock
            if self._is_over:
                self.close()
            elif is_ours:
                self._start(self._snapshot())
        elif self._search.poll() is not None:
            self.take(recall(self._cartridge) if self._search.returncode == 0 else None)
            if self.pieces is None:
                self._warn()
            self.close()

    def leave_out(self, index: int) -> None:
        """Run no part of a piece with the instruction at a ROM index any more, since the interpreter counts it."""
        self._hooked.add(index)
        number = 1
        for parts in self.pieces.indices if self.pieces is not None else []:
            for part in parts:
                number += 1  # the addresses come first
                if index in part:
                    self._numbers[number] = NEVER
                    if part[0] in self._before and part is parts[0]:
                        self._words[part[0]] = self._before.pop(part[0])

    def find_now(self) -> None:
        """Find and compile the pieces now, which takes half a minute of one core, unless that was done."""
        self._begin = -math.inf
        while not self._is_over:
            self._looked = -math.inf
            self.look()
            time.sleep(LOOK_SECONDS / 10)

    def close(self) -> None:
        """End the search."""
        self._is_over = True
        if self._search is not None:
            if self._search.poll() is None:
                self._search.kill()
                self._search.wait()
            assert self._folder is not None and self._search.stdin is not None
            self._search.stdin.close()
            self._folder.cleanup()
            atexit.unregister(self.close)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _has_lock(self) -> bool:
        """True for one of the processes that run this game: that one looks for its pieces, the others wait for them."""
        path = cache.directory() / f"{_name(self._cartridge)}.lock"
        with contextlib.suppress(OSError):  # another has it; where none can be made, nothing could be kept either
            self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        return False

    def take(self, pieces: Pieces | None, counts: torch.Tensor | None = None) -> None:
        """Load the pieces, in place of others, and mark where they begin. An object that is gone from the cache is
        looked for anew.

        counts: of each piece, how often the interpreter called it, and the instructions that were executed until it
        came back, without those that were skipped; shape (pieces, 2), int64; for one thread.
        """
        if pieces is None:
            return
        with contextlib.suppress(StateError):
            address = 0 if pieces.compiled is None else load_address(pieces.compiled)
            for begin, word in self._before.items():
                self._words[begin] = word
            self._before.clear()
            self._is_over, self.pieces = True, pieces
            counted = 0 if counts is None else counts.data_ptr()
            self._numbers = torch.tensor([address, counted, *pieces.bounds], dtype=torch.int64)
            for number in pieces.entries:
                begin = pieces.indices[number][0][0]
                self._before[begin] = int(self._words[begin])
                self._words[begin] = MARK | number
            for index in self._hooked:
                self.leave_out(index)
            self._attach(self._numbers)

    def _start(self, snapshot: Snapshot) -> None:
        """Begin the search, in a process that leaves the cores to this one."""
        self._folder = tempfile.TemporaryDirectory(prefix="gbxcule_pieces_")
        folder = Path(self._folder.name)
        (folder / "rom.gb").write_bytes(self._cartridge.data)
        snapshot.to_file(folder / "envs.state")
        command = [sys.executable, "-m", WORKER, str(folder), self._cartridge.model]
        with open(folder / ERRORS, "wb") as errors:
            nothing = subprocess.DEVNULL
            self._search = subprocess.Popen(
                command, env=child_environment(), stdin=subprocess.PIPE, stdout=nothing, stderr=errors
            )
        atexit.register(self.close)

    def _warn(self) -> None:
        """Say why there are no pieces."""
        assert self._folder is not None
        last = (Path(self._folder.name) / ERRORS).read_text(errors="replace").strip().rpartition("\n")[2]
        warnings.warn(f"this game's native code could not be compiled; the interpreter continues: {last}", stacklevel=2)
