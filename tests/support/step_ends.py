"""The end of a step, put together from its parts without an emulator, and the same in slow NumPy."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.emulator.launch import words
from gbxcule_puffer.emulator.pool import arrays
from gbxcule_puffer.env.curriculum.starts import Starts
from gbxcule_puffer.env.fields import EnvTensors
from gbxcule_puffer.env.options import EnvOptions
from gbxcule_puffer.env.randomness import CounterRandom
from gbxcule_puffer.env.score import GoalScore
from gbxcule_puffer.env.step_end.step_end import StepEnd
from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.observe.pictures import PICTURES
from gbxcule_puffer.tasks.observe.stack import FrameStack
from gbxcule_puffer.tasks.stages.open import Stage

SHAPE = (8, 16)
STEP_COST, ALPHA, BONUS = -0.01, 3.7, 5.0
STATE, MEMORY = 5, 24  # words of a made-up machine


def make_task(frames: list[np.ndarray], taus: list[float], ks: list[int], limits: list[int]) -> list[Stage]:
    """A stage for each goal."""
    goals: list[Any] = [SimpleNamespace(frames=goal) for goal in frames]
    parts = zip(goals, taus, ks, limits, strict=True)
    return [Stage(str(number), [], goal, tau, k, limit) for number, (goal, tau, k, limit) in enumerate(parts)]


class MadeUpStep:
    """n envs with a random screen, and a pool of slots, each of one of the `slots`' stages."""

    def __init__(
        self, task: list[Stage], slots: list[int], n: int, device: str, obs: str = "shades", k: int = 1, **options: Any
    ) -> None:
        where, rng = torch.device(device), np.random.default_rng(3)

        def zeros(*shape: int, dtype: torch.dtype = torch.bool) -> torch.Tensor:
            return torch.zeros(shape, dtype=dtype, device=where)

        def noise(*shape: int) -> torch.Tensor:
            return torch.from_numpy(rng.integers(0, 4, shape, dtype=np.uint8)).to(where)

        self.screen, self.locked = noise(n, *SHAPE), zeros(n, dtype=torch.int32)
        pixels = 4 if obs == "packed" else 1
        kind = replace(PICTURES[obs], rows=SHAPE[0], row_values=SHAPE[1] // pixels)
        self.stack = FrameStack(self.screen, ObservationLayout(kind, k))
        options = {"step_cost": STEP_COST, "alpha": ALPHA, "goal_bonus": BONUS, **options}
        self.envs = EnvTensors(n, where)
        self.score = GoalScore(task, EnvOptions(**options), self.envs)
        distance, random = torch.linspace(0.1, 0.9, len(slots), device=where), CounterRandom(n, where)
        starts = {"per_start": 1, "spare": 0, "archive_steps": None}
        starts |= {"curriculum": "uniform", "random": random, "envs": self.envs}
        self.starts = Starts(slots, distance, **starts)
        self.final = torch.zeros_like(self.stack.observations)
        self.state, self.memory = zeros(STATE, n, dtype=torch.int32), zeros(n, 4 * MEMORY, dtype=torch.uint8)
        self.pool_state = torch.arange(STATE * len(slots), dtype=torch.int32, device=where).view(STATE, -1)
        self.pool_memory, self.pool_screen = noise(len(slots), 4 * MEMORY), noise(len(slots), *SHAPE)
        self.step_end = StepEnd(n, where)
        for members in (self.envs.members(), self.stack.members, self.score.members, self.starts.members):
            self.step_end.use(**members)
        self.step_end.use(locked=self.locked, final_observation=words(self.final))
        machines = arrays(self.state, self.memory, self.screen)
        self.step_end.use(machines=machines, pool=arrays(self.pool_state, self.pool_memory, self.pool_screen))

    def host(self) -> dict[str, np.ndarray]:
        """Everything that a step changes."""
        own = {name: getattr(self, name) for name in ("final", "state", "memory", "screen")}
        found = {**self.envs.members(), **own, "observations": self.stack.observations, "counts": self.starts.counts}
        del found["sampled_slot"]
        return {name: tensor.cpu().numpy().copy() for name, tensor in found.items()}


def distances(task: list[Stage], screens: np.ndarray, stages: np.ndarray) -> np.ndarray:
    """Of each env's screen to its goal, float32."""
    goals: list[Any] = [task[stage].goal for stage in stages]
    pairs = zip(screens.astype(int), goals, strict=True)
    least = [min(abs(screen - frame).sum() for frame in goal.frames) for screen, goal in pairs]
    return np.array(least, np.float32) * np.float32(1 / (3 * SHAPE[0] * SHAPE[1]))


def pack(screen: np.ndarray) -> np.ndarray:
    """Four pixels a byte, the leftmost in bits 7-6."""
    quads = screen.reshape(*screen.shape[:-1], -1, 4)
    return (quads << np.array([6, 4, 2, 0], np.uint8)).sum(-1, dtype=np.uint8)


def expected(
    end: MadeUpStep, task: list[Stage], before: dict[str, np.ndarray], screens: np.ndarray, locked: np.ndarray,
    drawn: np.ndarray, obs: str, chain: bool,
) -> dict[str, np.ndarray]:  # fmt: skip
    """What `full_step` makes of the state `before` with new pictures, in NumPy, one thing after the other."""
    now = {name: part.copy() for name, part in before.items()}
    limits = [stage.max_steps for stage in task]
    limits = [sum(limits[i:]) for i in range(len(limits))] if chain else limits
    show = pack if obs == "packed" else np.copy
    now["observations"] = np.concatenate([before["observations"][:, 1:], show(screens)[:, None]], axis=1)
    now["age"] = before["age"] + 1
    now["distance"] = distances(task, screens, before["stage"])
    near = now["distance"] < np.array([stage.tau for stage in task], np.float32)[before["stage"]]
    now["hold"] = (before["hold"] + 1) * near
    now["reached"] = now["hold"] >= np.array([stage.k_consecutive for stage in task])[before["stage"]]
    rewards = (before["previous"] - now["distance"]) * np.float32(ALPHA)
    rewards = rewards + np.float32(STEP_COST)
    now["rewards"] = rewards + np.float32(BONUS) * now["reached"]
    goes_on = now["reached"] & (before["stage"] < len(task) - 1) & chain
    now["stage_before"], now["stage"] = before["stage"], before["stage"] + goes_on
    now["previous"] = np.where(goes_on, distances(task, screens, now["stage"]), now["distance"])
    now["hold"] = now["hold"] * ~goes_on
    now["terminals"] = now["reached"] & ~goes_on
    now["was_locked"] = locked != 0
    now["truncations"] = ((now["age"] >= before["limit"]) | now["was_locked"]) & ~now["terminals"]
    ended = now["ended"] = now["terminals"] | now["truncations"]
    now["length"], now["final"] = now["age"].copy(), now["observations"].copy()
    now["from_start"] = before["slots"] < end.starts.given
    now["replaced"] = before["replaced"] & ~ended
    for slot, won, length in zip(before["slots"][ended], now["terminals"][ended], now["age"][ended], strict=True):
        now["counts"][:, slot] += np.array([1, won, length])
    now["episode"] = before["episode"] + ended
    now["screen"] = screens.copy()
    state, memory, screen = (part.cpu().numpy() for part in (end.pool_state, end.pool_memory, end.pool_screen))
    stages, starts = end.starts.stage.cpu().numpy(), end.starts.distance.cpu().numpy()
    for env in np.flatnonzero(ended):
        slot = now["slots"][env] = drawn[env]
        now["state"][:, env], now["memory"][env], now["screen"][env] = state[:, slot], memory[slot], screen[slot]
        now["stage"][env], now["previous"][env] = stages[slot], starts[slot]
        now["limit"][env], now["age"][env], now["hold"][env] = limits[stages[slot]], 0, 0
        now["observations"][env] = show(screen[slot])
    return now


def check_against_numpy(device: str, obs: str, k: int, chain: bool, steps: int = 30) -> None:
    """Random pictures, near a goal or not, for `steps` steps of full_step, and for as many of `end` and `start`."""
    rng, n, slots = np.random.default_rng(11), 37, [0, 1, 2, 1]
    goals = [rng.integers(0, 4, (count, *SHAPE), dtype=np.uint8) for count in (1, 3, 2)]
    task = make_task(goals, [0.2, 0.3, 0.25], [1, 2, 1], [9, 6, 12])
    ends = [MadeUpStep(task, slots, n, device, obs, k, chain=chain) for _ in range(2)]
    seen = dict.fromkeys(("terminals", "truncations", "reached", "was_locked"), 0)
    for step in range(steps):
        before = ends[0].host()
        screens = rng.integers(0, 4, (n, *SHAPE), dtype=np.uint8)
        for env in np.flatnonzero(rng.random(n) < 0.6):  # at its goal but for a share of the pixels
            frames, noise = goals[before["stage"][env]], rng.random(SHAPE) < rng.choice([0.0, 0.1, 0.9])
            screens[env] = np.where(noise, screens[env], frames[rng.integers(len(frames))])
        locked = (rng.random(n) < 0.05).astype(np.int32)
        drawn = np.zeros(n, np.int32)
        for end, sequences in zip(ends, (["full_step"], ["end", "count", "start"]), strict=True):
            end.screen.copy_(torch.from_numpy(screens))
            end.locked.copy_(torch.from_numpy(locked))
            drawn = end.starts.sample(5, end.envs.episode, end.starts.weights).cpu().numpy().copy()
            for sequence in sequences:
                end.step_end.run(sequence)
        wanted = expected(ends[0], task, before, screens, locked, drawn, obs, chain)
        for end in ends:
            for name, found in end.host().items():
                np.testing.assert_array_equal(found, wanted[name], err_msg=f"{name} in step {step}")
        for name in seen:
            seen[name] += int(wanted[name].sum())
    assert min(seen.values()) > 20, f"the pictures lead to everything: {seen}"
