"""A person's game, step by step or in real time. It saves states and traces; displays only show it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from gbxcule_puffer.apps.play.agent import Agent
from gbxcule_puffer.apps.play.memory import Memory
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.probes.samples import HeardEmulator
from gbxcule_puffer.emulator.saves.state_files import load_state_file
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.emulator.state import INDEX
from gbxcule_puffer.errors import ConfigError, GBxCuLEError, StorageError
from gbxcule_puffer.files import StrPath, check_output_folder
from gbxcule_puffer.tasks.actions import Schedule, action_of, buttons_of, without_frames
from gbxcule_puffer.tasks.goals.traces import Trace, picture_hash

FRAMES_A_SECOND, LATEST = 59.7275, 0.1
UNDO_STEPS = 512
MOST_HEARD = 60  # frames whose sound waits to be taken
UNDO_FRAMES = 60  # of real time are taken back at once
ONE_FRAME = (1, 1)  # the schedule of real time: each frame holds its buttons
# Keys by the names that all displays give them, and what they press.
STEP_KEYS = {
    "up": "UP", "down": "DOWN", "left": "LEFT", "right": "RIGHT",
    "a": "A", "s": "B", "enter": "START", "backspace": "SELECT", "space": "NOOP",
}  # fmt: skip
FLAGS = ("rom", "start_state", "header", "model", "frames_per_step", "release_after_frames")  # of a PlaySession
STEP_HELP = "arrows  a A  s B  enter START  space waits  "


class Pace:
    """The console's 59.7 frames per second; delays of more than a tenth of a second are dropped."""

    def __init__(self) -> None:
        self._due = time.monotonic()

    def wait(self) -> None:
        """Waits until the next frame is due."""
        now = time.monotonic()
        self._due = max(self._due + 1 / FRAMES_A_SECOND, now - LATEST)
        time.sleep(max(0.0, self._due - now))


class PlaySession:
    """One Game Boy and its player. Step by step it waits for keys, and each key is an action like an agent's. In real
    time, and while an agent plays, the display calls `frame` 59.7 times per second.

    `actions` are those since `origin`, the state at which the trace begins: the start, the last saved state, or the
    state at which real time or an agent began or ended, because a trace has one schedule. A poke begins a trace, too,
    which is saved with its state; steps with frozen values are in no trace, because nothing would replay them.

    Raises: RomError, StateError or ConfigError.
    """

    def __init__(
        self,
        rom: StrPath,
        out: StrPath | None,
        *,
        start_state: StrPath | None = None,
        header: str = "strict",
        model: str = "dmg",
        sound: bool = False,
        frames_per_step: int = Schedule.frames_per_step,
        release_after_frames: int = Schedule.release_after_frames,
        symbols: StrPath | None = None,
        goal: bool = False,
        agent: Agent | None = None,
    ) -> None:
        """symbols: as of Memory; goal: the session recognises a goal's picture; agent: may take over; sound: with its
        sound unit, which can be heard (`take_sound`)."""
        self.rom, self.goal, self.agent = Path(rom), goal, agent
        self.out = None if out is None else check_output_folder(out)
        kind = HeardEmulator if sound else Emulator
        self.emulator = kind(
            rom,
            screen="full",
            frames_per_step=frames_per_step,
            release_after_frames=release_after_frames,
            header=header,
            model=model,
        )
        self._heard: deque[np.ndarray] = deque(maxlen=MOST_HEARD)
        if start_state is not None:
            snapshot = load_state_file(start_state, self.emulator.cartridge)
            # A state saved with every second pixel shows 2x2 blocks until the first step.
            self.emulator.load(snapshot.doubled())
        self._own_schedule = self.schedule = (frames_per_step, release_after_frames)
        self.origin = self.emulator.save(0)
        self.actions: list[str] = []
        self.message, self.pressed = "", "NOOP"
        self._may_lose = False  # q has said that the trace cannot be saved
        self.last_words = ""  # of a session that has ended, for the one who played
        self.finished = self.reached = self.real_time = self.agent_plays = False
        self._undo: deque[tuple[Snapshot, int]] = deque(maxlen=UNDO_STEPS)  # and the length of the trace there
        self._frame = 0  # of the agent's step that is running
        self._saved = 0
        self._before_poke: tuple[Snapshot, bool] | None = (
            None  # state and _is_poked before that at which the trace begins
        )
        self._is_poked = False  # since the last state that was saved
        self._was_frozen = False  # some step of the trace
        self.written: list[Path] = []
        self.memory = Memory(self.emulator, rom, self.out, symbols, self._check_poke, self._begin_poked)

    @property
    def picture(self) -> np.ndarray:
        """Shades [144, 160] uint8."""
        return self.emulator.screen[0].numpy()

    @property
    def shown(self) -> np.ndarray:
        """The picture for a window or a page: shades, or for a Game Boy Color its colours [144, 160] uint16."""
        return self.picture if self.emulator.model == "dmg" else self.emulator.colors[0].numpy()

    def take_sound(self) -> np.ndarray:
        """The sound since the last call, at most of a second: (samples, 2) uint8, as of HeardEmulator; none without
        sound."""
        parts = [self._heard.popleft() for _ in range(len(self._heard))]
        return np.concatenate(parts) if parts else np.zeros((0, 2), np.uint8)

    @property
    def runs(self) -> bool:
        """True in real time: the display must call `frame`."""
        return self.real_time or self.agent_plays

    @property
    def status(self) -> str:
        """The line under the picture."""
        return f"{'frame' if self.schedule == ONE_FRAME else 'step'} {len(self.actions)}  {self.message}"

    @property
    def help(self) -> str:
        """The line below that: the keys."""
        own = "m start  g goal  u undo  q give up" if self.goal else "m state  t trace  u undo  q quit"
        return STEP_HELP + own

    @property
    def help_in_time(self) -> str:
        """More keys, for displays that can show real time."""
        return "backspace SELECT  r real time" + ("  p the agent plays" if self.agent else "")

    def key(self, name: str) -> None:
        """Handles one key. Unknown keys do nothing, and in real time buttons do nothing here. If a file cannot be
        written, the status line says so and the game goes on; only a second q then quits without the trace."""
        try:
            self._handle(name)
        except (ConfigError, StorageError) as error:
            if name == "q" and self._may_lose:
                self.finished = True
            self._may_lose = name == "q"
            self.message = f"not saved: {error}" + ("; q again quits without the trace" if name == "q" else "")

    def _handle(self, name: str) -> None:
        if name in STEP_KEYS:
            if not self.runs:
                self.press(STEP_KEYS[name])
        elif name == "u":
            self.undo()
        elif name == "m":
            self.mark()
        elif name == "t" and not self.goal:
            self.save_trace()
        elif name == "g" and self.goal:
            if self.schedule == ONE_FRAME:
                self.message = "a goal is reached by steps: press r, then m where they begin"
            else:
                self.finished = self.reached = True
        elif name == "r":
            self.set_real_time(not self.real_time)
        elif name == "p" and self.agent:
            self.let_agent_play(not self.agent_plays)
        elif name == "q":
            self.quit()

    def press(self, action: str) -> None:
        """Plays one step."""
        self._undo.append((self.emulator.save(0), len(self.actions)))
        self._run(action, self.schedule)
        self.actions.append(action)
        self.message = self.pressed = action

    def frame(self, held: Iterable[str] = ()) -> None:
        """Plays one frame with these buttons held; while the agent plays, with its buttons."""
        if self.agent_plays:
            self._agents_frame()
            return
        if len(self.actions) % UNDO_FRAMES == 0:
            self._undo.append((self.emulator.save(0), len(self.actions)))
        self.pressed = action_of(held)
        self._run(self.pressed, ONE_FRAME)
        self.actions.append(self.pressed)

    def set_real_time(self, real_time: bool) -> None:
        """Switches between real time and waiting for keys."""
        self._keep_trace()
        self.real_time, self.agent_plays = real_time, False
        self._begin_trace(ONE_FRAME if real_time else self._own_schedule)
        self.message = "real time" if real_time else "one step per key"

    def let_agent_play(self, plays: bool) -> None:
        """The agent takes over at once, or returns control."""
        assert self.agent is not None
        if not plays:
            self.set_real_time(self.real_time)
            return
        if self.memory.frozen:
            self.message = "the agent cannot play while values are frozen"
            return
        self._keep_trace()
        start = self._start()
        self.emulator.load(start)
        try:
            self.agent.begin(start)
        except GBxCuLEError as error:
            self.message = f"the agent cannot play: {error}"
            return
        self.agent_plays, self._frame = True, 0
        self._begin_trace(self.agent.schedule)
        self.message = "the agent plays"

    def undo(self) -> None:
        """Undoes the last step of the trace, or the last second of real time, or the poke before the first."""
        if self._before_poke is not None and not self.actions and not self.agent_plays:
            snapshot, self._is_poked = self._before_poke
            self.emulator.load(snapshot)
            self._begin_trace(self.schedule)
            self.message = "the poke is taken back"
            return
        if self.agent_plays or not self._undo or not self.actions:
            self.message = "nothing to undo"
            return
        snapshot, length = self._undo.pop()
        self.emulator.load(snapshot)
        del self.actions[length:]
        self._saved = min(self._saved, length)
        self.message = "one second back" if self.real_time else "one step back"

    def mark(self) -> None:
        """Begins the trace here; except while a goal is recorded, saves the state as a file."""
        self.message = "the start is here"
        if self.out is not None and not self.goal:
            self._finish_step()
            path = self._free("state", ".state")
            self._start().to_file(path)
            self._is_poked = False
            self.written.append(path)
            self.message = f"saved {path.name}; a new trace begins here"
        self._begin_trace(self.schedule, keep=False)

    def trace(self) -> Trace:
        """The trace of the actions since `origin`."""
        return Trace(
            rom_sha256=self.emulator.rom_sha256,
            frames_per_step=self.schedule[0],
            release_after_frames=self.schedule[1],
            start_picture=picture_hash(self.origin.screen[0]),
            end_picture=picture_hash(self.picture),
            actions=tuple(self.actions),
        )

    def save_trace(self) -> None:
        """Writes the trace as a file, with the state at which it begins if RAM has been written; the game continues."""
        self._finish_step()
        if self._was_frozen:
            self.message = f"not saved: {len(self.actions)} actions with frozen values, which nothing would replay"
        elif self.out is not None:
            path = self._free("trace", ".json")
            if self._is_poked:
                start = path.with_suffix(".state")
                self.origin.to_file(start)
                self.written.append(start)
            self.trace().save(path)
            self.written.append(path)
            self._saved = len(self.actions)
            self.message = f"saved {path.name}: {len(self.actions)} action{'s' * (len(self.actions) != 1)}"
            self.message += f" from {path.stem}.state, which was poked" if self._is_poked else ""

    def quit(self) -> None:
        """Ends the game and saves an unsaved trace."""
        self.message = ""
        self._keep_trace()
        self.last_words = self.message if self._was_frozen else ""
        self.finished = True
        self.message = ""

    def _run(self, action: str, schedule: tuple[int, int], frames: int | None = None) -> None:
        """A step of a schedule; frames: in place of the schedule's, the action's own."""
        emulator, buttons = self.emulator, torch.full((1,), buttons_of(action), dtype=torch.uint8)
        if isinstance(emulator, HeardEmulator) and schedule[0] > 1:
            for _ in emulator.frames_of_step(buttons, *schedule, Schedule(*schedule).holds):
                self._heard.append(emulator.take_samples())
        else:
            emulator.frames_per_step, emulator.release_after_frames = schedule
            emulator.step(buttons, None if frames is None else torch.full((1,), frames, dtype=torch.int32))
            if isinstance(emulator, HeardEmulator):
                self._heard.append(emulator.take_samples())
        if self.memory.frozen:
            self.memory.write_frozen()
            self._was_frozen = True

    def _agents_frame(self) -> None:
        """The next frame of the agent's step; together, the frames equal the step bit for bit."""
        assert self.agent is not None
        if self._frame == 0:
            self.actions.append(self.agent.choose())
        schedule = Schedule(*self.schedule)
        frames, release_after = schedule.of(self.actions[-1])
        self._frame += 1
        self.pressed = without_frames(self.actions[-1]) if self._frame <= release_after else "NOOP"
        if schedule.holds:
            self._run(self.pressed, ONE_FRAME)
        else:  # a release after 2 frames of 1 is left to the frame that is given as the action's own
            self._run(self.pressed, (1, 2), 1 if self._frame >= release_after else None)
        self._frame %= frames

    def _finish_step(self) -> None:
        """Plays the agent's step to its end."""
        while self._frame:
            self._agents_frame()

    def _keep_trace(self) -> None:
        """Saves the steps that are not saved yet."""
        if not self.goal and len(self.actions) > self._saved:
            self.save_trace()

    def _begin_trace(self, schedule: tuple[int, int], keep: bool = True) -> None:
        """Begins a trace of this schedule; the previous one is saved if it has actions."""
        if keep:
            self._keep_trace()
        self._finish_step()
        self.schedule, self.origin = schedule, self._start()
        self.emulator.load(self.origin)
        self.actions = []
        self._undo.clear()
        self._saved = 0
        self._before_poke, self._was_frozen = None, False

    def _check_poke(self) -> None:
        """Keeps the steps before a poke, which ends the trace, and the state, for undo.

        Raises: ConfigError where nothing may be written into the game's RAM.
        """
        if self.goal:
            raise ConfigError("a goal is reached by buttons alone: RAM is not written here")
        if self.agent_plays:
            raise ConfigError("the agent plays: take over first (p), then write")
        if self.actions:
            self._begin_trace(self.schedule)
        self._before_poke = self._before_poke or (self.emulator.save(0), self._is_poked)

    def _begin_poked(self) -> None:
        """Begins a trace at the state that has been written into."""
        before = None if self.actions else self._before_poke
        self._begin_trace(self.schedule)
        self._before_poke, self._is_poked = before, True

    def _start(self) -> Snapshot:
        """The state at which a trace or the agent begins: all buttons are released, except while the agent plays."""
        snapshot = self.emulator.save(0)
        if not self.agent_plays:
            snapshot.state[INDEX["buttons"]] = 0
        return snapshot

    def _free(self, stem: str, suffix: str) -> Path:
        """The first of out/STEM1, STEM2 ... that does not exist."""
        assert self.out is not None
        number = 1
        while (path := self.out / f"{stem}{number}{suffix}").exists():
            number += 1
        return path
