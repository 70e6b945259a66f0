"""A start state, found from power-on: a moment at which each direction moves something, and the opposite moves it back.

Walkers go on their own: waits, START, A, and now and then another button, at different rates. After some steps, each
walker plays nothing, each direction and A from the same state; what then differs says how far it is in the game.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.schedule import FRAMES_PER_STEP, RELEASE_AFTER_FRAMES
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.emulator.state import INDEX
from gbxcule_puffer.progress import counted
from gbxcule_puffer.scan.recording import SPARSE
from gbxcule_puffer.scan.result import Start
from gbxcule_puffer.scan.statistics import wrapped
from gbxcule_puffer.tasks.actions import buttons_of
from gbxcule_puffer.tasks.start import play_to_start

STEPS = 90  # steps of 24 frames of the walk (36 s)
EARLY, TEST_EVERY, LATE_EVERY = 30, 3, 6  # steps, and steps between two tests until then and from then on
NAMES = ("NOOP", "START", "A", "B", "RIGHT", "DOWN", "LEFT", "UP", "SELECT")
# How often each walk presses each of NAMES; the first is quick, the second patient, the third also looks around.
WALKS = (
    (8, 6, 6, 0, 0, 0, 0, 0, 0),
    (24, 2, 2, 0, 0, 0, 0, 0, 0),
    (10, 3, 5, 1, 1, 1, 1, 1, 0),
    (6, 0, 8, 0, 0, 1, 0, 0, 0),
)
TESTED = ("NOOP", "RIGHT", "LEFT", "UP", "DOWN", "A")
MIDDLE, LAST = 4, 8  # looks of a test at which what differs is seen
SCENE, MOST_SCENES, BIG = 0.6, 3, 0.5  # worth of a change of scene, as titles have things to move, too
ENOUGH, SETTLED_STEPS = 10.5, 18  # worth of a state, and steps that are still walked after it
MOST_WORK = 8_000_000  # instructions of a Game Boy, without skipped loops, after which any state that moves is enough
DELAY = 0.015  # worth that a step costs
NEARLY = 0.7  # part of the best state's worth that an earlier one needs
WORTH = {"axis": 2.0, "goes_on": 3.0, "own": 1.5, "jumps": 2.0}
SAME = 0.15  # part of the picture that A changes at most where it makes something jump, and is not a menu's choice


def find_start(emulator: Emulator, seed: int, copies: int = 1) -> Start:
    """The best state that was found, or an earlier one on its way that is nearly as good, with the actions that lead
    there.

    copies: envs of each walker, a divisor of num_envs. A test plays as many of TESTED at the same time: on a GPU, six
    take little longer than one. They change no result.
    """
    walk = _Walk(emulator, seed, copies)
    for step in counted(STEPS, "steps from power-on"):
        walk.step()
        if is_tested(step + 1):
            walk.test(step + 1)
            if walk.is_settled(step + 1):
                break
    walker, steps = (int(each) for each in walk.best.tolist())
    tests = [(at, float(worth[walker]), int(scenes[walker])) for at, worth, scenes in walk.tests if at <= steps]
    first = earliest(tests) if tests and tests[-1][0] == steps else steps
    names = tuple(NAMES[i] for i in torch.stack(walk.history)[:first, walker].tolist())
    state = walk.state() if first == steps else play_to_start(emulator.cartridge, names, model=emulator.model)
    return Start(state, names, walk.moves())


class _Walk:
    """All walkers on their way from power-on. An env is copies * walker + copy; but for tests, the copies of a walker
    are alike."""

    def __init__(self, emulator: Emulator, seed: int, copies: int) -> None:
        self.emulator, self.copies, device, count = emulator, copies, emulator.device, emulator.num_envs
        self.walkers = count // copies
        emulator.reset()
        self.pool = emulator.pool([emulator.save(0)], spare=self.walkers + 1)
        self._generator = torch.Generator(device=device).manual_seed(seed)
        self._weights = torch.tensor(WALKS, dtype=torch.float32, device=device)[
            torch.arange(self.walkers, device=device) % len(WALKS)
        ]
        self._masks = torch.tensor([buttons_of(name) for name in NAMES], dtype=torch.uint8, device=device)
        self._nothing = torch.zeros(count, dtype=torch.uint8, device=device)
        self._state = wp.to_torch(emulator.machine.state)
        self._everyone = torch.ones(count, dtype=torch.bool, device=device)
        self._env = torch.arange(count, dtype=torch.int32, device=device)
        self._slot = 1 + self._env // copies
        self._kept = torch.full_like(self._slot, self.walkers + 1)
        self._first = self._env % copies == 0  # copy of each walker
        self.history: list[torch.Tensor] = []
        self.best = torch.zeros(2, dtype=torch.int64, device=device)  # walker, steps
        self._worth = torch.full((), -1.0, device=device)
        self._scenes = torch.zeros(self.walkers, device=device)
        self._changing = self._scenes > 0
        self._work = torch.zeros((), dtype=torch.int64, device=device)  # of all walkers
        self.tests = list[tuple[int, torch.Tensor, torch.Tensor]]()  # steps, worth without scenes, scenes

    def step(self) -> None:
        """One step of the default schedule: the button is pressed for 8 of 24 frames."""
        index = torch.multinomial(self._weights, 1, generator=self._generator)[:, 0]
        self.history.append(index)
        before = self._pictures()[:, 0]
        frames = torch.full_like(self._env, RELEASE_AFTER_FRAMES)
        self._emulate(self._masks[index].repeat_interleave(self.copies), 1, frames)
        self._emulate(self._nothing, 1, torch.full_like(frames, FRAMES_PER_STEP - RELEASE_AFTER_FRAMES))
        changed = (self._pictures()[:, 0] != before).float().mean(1) > BIG
        self._scenes += changed & ~self._changing
        self._changing = changed

    def _emulate(self, buttons: torch.Tensor, counted: int, frames: torch.Tensor | None = None) -> None:
        """Runs all envs; the work of the first `counted` copies of each walker counts."""
        self.emulator.step(buttons, frames)
        work = self._state[INDEX["instructions"]] - self.emulator.skipped
        self._work += work.view(self.walkers, self.copies)[:, :counted].sum()

    def _pictures(self) -> torch.Tensor:
        """Some pixels of each env, (walkers, copies, pixels)."""
        return self.emulator.screen[:, ::SPARSE, ::SPARSE].reshape(self.walkers, self.copies, -1)

    def test(self, steps: int) -> None:
        """Plays nothing, each direction and A from where each walker is; keeps the best one if it is better than
        before."""
        self.pool.save(self._first, self._slot)
        seen = [
            each
            for first in range(0, len(TESTED), self.copies)
            for each in self._branches(TESTED[first : first + self.copies])
        ]
        self.pool.reset(self._everyone, self._slot)
        own = _worth(seen)
        self.tests.append((steps, own, self._scenes.clone()))
        worth = own + SCENE * self._scenes.clamp(max=MOST_SCENES) - DELAY * steps
        best, walker = worth.max(0)
        better = best > self._worth
        self._worth = torch.where(better, best, self._worth)
        self.best = torch.where(better, torch.stack([walker, torch.full_like(walker, steps)]), self.best)
        self.pool.save((self._env == walker * self.copies) & better, self._kept)

    def is_settled(self, steps: int) -> bool:
        """True if the walk may end."""
        work = int(self._work) / self.walkers
        return is_enough(float(self._worth) + DELAY * int(self.best[1]), steps - int(self.best[1]), work)

    def moves(self) -> bool:
        """True if directions move something of their own in the state that was kept."""
        return moves(float(self._worth) + DELAY * int(self.best[1]))

    def state(self) -> Snapshot:
        """The state that was kept."""
        self.pool.reset(self._everyone, self._kept)
        return self.emulator.save(0)

    def _branches(self, names: Sequence[str]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """For each of at most `copies` buttons: sprites and camera (walkers, 2, bytes) in the middle and at the end of
        a test, and the picture at its end."""
        self.pool.reset(self._everyone, self._slot)
        held = self._nothing.view(self.walkers, self.copies).clone()
        for copy, name in enumerate(names):
            held[:, copy] = buttons_of(name)
        seen = []
        for look in range(1, LAST + 1):
            self._emulate(held.flatten(), len(names))
            if look in (MIDDLE, LAST):
                sprites = self.emulator.memory[:, hw.OAM - hw.ROW_BASE : hw.OAM_END - hw.ROW_BASE]
                camera = self._state[[INDEX["scy"], INDEX["scx"]]].T.to(torch.uint8)
                seen.append(torch.cat([sprites.view(-1, 40, 4)[:, :, :2].flatten(1), camera], 1))
        places = torch.stack(seen, 1).view(self.walkers, self.copies, 2, -1)
        pictures = self._pictures()
        return [(places[:, copy], pictures[:, copy]) for copy in range(len(names))]


def earliest(tests: Sequence[tuple[int, float, int]]) -> int:
    """Of the tests of one env (steps, worth without scenes, scenes), the steps of the first one in the last one's scene
    that is worth nearly as much: who has played on may have scored, or lost a life."""
    _, worth, scene = tests[-1]
    return next(steps for steps, each, its in tests if its == scene and each >= NEARLY * worth)


def is_tested(steps: int) -> bool:
    """True for the steps after which a walk is tested. A test takes as long as eight steps; few games begin late."""
    return steps % (TEST_EVERY if steps <= EARLY else LATE_EVERY) == 0


def moves(worth: float) -> bool:
    """True for the worth of a state in which directions move something of their own: scenes alone are not worth it."""
    return worth > SCENE * MOST_SCENES


def is_enough(worth: float, ago: int, work: float) -> bool:
    """True if the best state, found `ago` steps ago, leaves nothing to wish for; where Game Boys have taken much work
    (instructions of each), if anything moves in it."""
    return ago >= SETTLED_STEPS and (worth >= ENOUGH or (work >= MOST_WORK and moves(worth)))


def _worth(seen: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """The degree to which each env looks like a game that is played, (envs,)."""
    (nothing, blank), *others, (lifted, after_a) = seen
    apart = [wrapped(places.short() - nothing.short()) for places, _ in others]  # (envs, 2, bytes)
    worth = torch.zeros(len(nothing), device=nothing.device)
    for ahead, behind in ((0, 1), (2, 3)):
        one, other = apart[ahead], apart[behind]
        axis = 0 if ahead else 1  # sprites' bytes are y, x
        part = slice(axis, None, 2)
        near = (one[..., part].abs() < 64) & (other[..., part].abs() < 64)
        opposite = (one[..., part] * other[..., part] < 0) & near
        worth += WORTH["axis"] * opposite[:, 1].any(1)
        single = ((one[..., part] != 0) ^ (other[..., part] != 0)) & near
        worth += 0.5 * WORTH["axis"] * (single[:, 1].any(1) & ~opposite[:, 1].any(1))
        grows = [
            (each[:, 1, part].abs() > each[:, 0, part].abs()) & (each[:, 1, part] * each[:, 0, part] > 0)
            for each in (one, other)
        ]
        worth += WORTH["goes_on"] * (grows[0] | grows[1]).any(1)
    # What jumps or flies with A, where directions may do nothing.
    high = wrapped(lifted.short() - nothing.short())[..., ::2]
    moved = ((high != 0) & (high.abs() < 64)).any(2)
    worth += WORTH["jumps"] * (moved.all(1) & ((after_a != blank).float().mean(1) < SAME))
    pictures = torch.stack([blank, *[picture for _, picture in others]], 1)
    for first in range(5):
        for second in range(first):
            worth += 0.1 * WORTH["own"] * (pictures[:, first] != pictures[:, second]).any(1)
    return worth
