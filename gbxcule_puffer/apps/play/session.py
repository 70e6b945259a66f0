"""A person's game, one step a key: states and traces are saved from it; window and terminal only show it."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

import numpy as np
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.saves.state_files import load_state_file
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.tasks.actions import CODECS, DEFAULT_CODEC
from gbxcule_puffer.tasks.traces import Trace, picture_hash

StrPath = str | os.PathLike[str]
CODEC = CODECS[DEFAULT_CODEC]
UNDO_STEPS = 512
# Keys by the names that both kinds of display give them, and what they do. Steps: an action of the codec.
STEP_KEYS = {
    "up": "UP", "down": "DOWN", "left": "LEFT", "right": "RIGHT",
    "a": "A", "s": "B", "enter": "START", "space": "NOOP",
}  # fmt: skip
STEP_HELP = "arrows  a A  s B  enter START  space waits  "


class PlaySession:
    """One Game Boy that waits for keys; every step is one action of the codec, as an agent's.

    `actions` are those since `origin`, the state the trace begins at: the start, or the state saved last.

    Raises: RomError, StateError or ConfigError.
    """

    def __init__(
        self,
        rom: StrPath,
        out: StrPath | None,
        *,
        start_state: StrPath | None = None,
        header: str = "strict",
        frames_per_step: int = 24,
        release_after_frames: int = 8,
        goal: bool = False,
    ) -> None:
        self.rom, self.goal, self.out = Path(rom), goal, None if out is None else Path(out)
        self.emulator = Emulator(
            rom,
            screen="full",
            frames_per_step=frames_per_step,
            release_after_frames=release_after_frames,
            header=header,
        )
        if start_state is not None:
            snapshot = load_state_file(start_state, self.emulator.cartridge)
            # A state saved with every second pixel shows each of them four times until the first step.
            whole = snapshot.screen.shape[1:] == (144, 160)
            screen = snapshot.screen if whole else snapshot.screen.repeat(2, 1).repeat(2, 2)
            self.emulator.load(Snapshot(snapshot.rom_sha256, snapshot.state, snapshot.memory, screen))
        self.origin = self.emulator.save(0)
        self.actions: list[str] = []
        self.message = ""
        self.finished = self.reached = False
        self._undo: deque[Snapshot] = deque(maxlen=UNDO_STEPS)
        self._saved = 0
        self.written: list[Path] = []

    @property
    def picture(self) -> np.ndarray:
        """Shades [144, 160] uint8."""
        return self.emulator.screen[0].numpy()

    @property
    def status(self) -> str:
        """The line under the picture."""
        return f"step {len(self.actions)}  {self.message}"

    @property
    def help(self) -> str:
        """The line under that: what the keys do."""
        own = "m start  g goal  u undo  q give up" if self.goal else "m state  t trace  u undo  q quit"
        return STEP_HELP + own

    def key(self, name: str) -> None:
        """Takes one key; unknown ones do nothing."""
        if name in STEP_KEYS:
            self.press(STEP_KEYS[name])
        elif name == "u":
            self.undo()
        elif name == "m":
            self.mark()
        elif name == "t" and not self.goal:
            self.save_trace()
        elif name == "g" and self.goal:
            self.finished = self.reached = True
        elif name == "q":
            self.quit()

    def press(self, action: str) -> None:
        """Plays one step."""
        self._undo.append(self.emulator.save(0))
        buttons = CODEC.to_buttons(CODEC.actions.index(action))
        self.emulator.step(torch.full((1,), buttons, dtype=torch.uint8))
        self.actions.append(action)
        self.message = action

    def undo(self) -> None:
        """Takes back the last step of the trace."""
        if not self._undo or not self.actions:
            self.message = "nothing to undo"
            return
        self.emulator.load(self._undo.pop())
        self.actions.pop()
        self.message = "one step back"

    def mark(self) -> None:
        """The trace begins here; outside of a goal's recording the state is saved as a file."""
        self.origin = self.emulator.save(0)
        self.actions = []
        self._undo.clear()
        self._saved = 0
        self.message = "the start is here"
        if self.out is not None and not self.goal:
            path = self._free("state", ".state")
            self.origin.to_file(path)
            self.written.append(path)
            self.message = f"saved {path.name}; a new trace begins here"

    def trace(self) -> Trace:
        """The trace of what was played since `origin`."""
        return Trace(
            rom_sha256=self.emulator.rom_sha256,
            frames_per_step=self.emulator.frames_per_step,
            release_after_frames=self.emulator.release_after_frames,
            start_picture=picture_hash(self.origin.screen[0]),
            end_picture=picture_hash(self.picture),
            actions=tuple(self.actions),
        )

    def save_trace(self) -> None:
        """Writes the trace as a file; playing goes on."""
        if self.out is not None:
            path = self._free("trace", ".json")
            self.trace().save(path)
            self.written.append(path)
            self._saved = len(self.actions)
            self.message = f"saved {path.name}: {len(self.actions)} actions"

    def quit(self) -> None:
        """Ends the game; a trace that was not saved is."""
        self.finished = True
        self.message = ""
        if not self.goal and len(self.actions) > self._saved:
            self.save_trace()

    def _free(self, stem: str, suffix: str) -> Path:
        """The first of out/STEM1, STEM2 ... that does not exist."""
        assert self.out is not None
        number = 1
        while (path := self.out / f"{stem}{number}{suffix}").exists():
            number += 1
        return path
