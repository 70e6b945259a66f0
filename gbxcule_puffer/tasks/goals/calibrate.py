"""`puffer goal calibrate`: measures how well a goal's picture separates the goal from everything else."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.emulator.cartridge import Cartridge, load_cartridge
from gbxcule_puffer.emulator.saves.state_files import load_state_file
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.errors import ConfigError, GoalError
from gbxcule_puffer.files import StrPath, new_file
from gbxcule_puffer.layout import find_rom
from gbxcule_puffer.tasks.actions import Schedule, all_buttons_of, get_codec
from gbxcule_puffer.tasks.goals.distance import GoalDistance
from gbxcule_puffer.tasks.goals.template import MAX_STEPS, META_FILE, GoalTemplate, pictures_of
from gbxcule_puffer.tasks.observe.pictures import picture_kind
from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.ram.condition import Condition, all_hold

GOAL_STEPS = 64  # without a button, at the goal
NEAR_STEPS = 8  # of random play from the goal
SMALLEST_K = 2


@dataclass
class Samples:
    """Distances, and whether the env was at the goal; one row per step and one column per env, each [steps, envs]."""

    distances: list[np.ndarray] = field(default_factory=list)
    at_goal: list[np.ndarray] = field(default_factory=list)

    def split(self) -> tuple[np.ndarray, np.ndarray]:
        """(distances at the goal, distances elsewhere)."""
        distances = np.concatenate([block.ravel() for block in self.distances])
        at_goal = np.concatenate([block.ravel() for block in self.at_goal])
        return distances[at_goal], distances[~at_goal]

    def longest_false_run(self, tau: float) -> int:
        """The most steps in a row for which an env that is not at the goal is below `tau`."""
        longest = 0
        for distances, at_goal in zip(self.distances, self.at_goal, strict=True):
            run = np.zeros(distances.shape[1], int)
            for row in (distances < tau) & ~at_goal:
                run = (run + 1) * row
                longest = max(longest, int(run.max()))
        return longest

    def false_goals(self, tau: float, k: int) -> int:
        """The number of times that an env that is not at the goal stays below `tau` for `k` steps in a row."""
        found = 0
        for distances, at_goal in zip(self.distances, self.at_goal, strict=True):
            run = np.zeros(distances.shape[1], int)
            for row in (distances < tau) & ~at_goal:
                run = (run + 1) * row
                found += int((run == k).sum())
        return found


@dataclass
class Calibration:
    """Distances measured at the goal, near it and in random play, and the resulting tau and k_consecutive."""

    goal: Samples
    near: Samples
    random: Samples
    tau: float
    k_consecutive: int

    def rates(self, tau: float, k: int) -> dict[str, float]:
        """false_negative: share of the steps at the goal that are not recognised. false_positive: share of the random
        steps elsewhere that are recognised. false_goals: runs of k such steps. random_steps: their total number."""
        here = np.concatenate([part.split()[0] for part in (self.goal, self.near, self.random)])
        elsewhere = self.random.split()[1]
        return {
            "false_negative": float((here >= tau).mean()),
            "false_positive": float((elsewhere < tau).mean()) if len(elsewhere) else 0.0,
            "false_goals": self.random.false_goals(tau, k),
            "random_steps": sum(block.size for block in self.random.distances),
        }

    def by_chance(self) -> float:
        """Share of the random episodes that reach the goal, or seem to, with the proposed tau and k."""
        k, met, episodes = self.k_consecutive, 0, 0
        for distances in self.random.distances:
            run, reached = np.zeros(distances.shape[1], int), np.zeros(distances.shape[1], bool)
            for row in distances < self.tau:
                run = (run + 1) * row
                reached |= run >= k
            met, episodes = met + int(reached.sum()), episodes + len(reached)
        return met / episodes


def read_task(folder: StrPath) -> tuple[GoalTemplate, Path]:
    """The goal and the start state in a folder of `puffer goal make`.

    Raises: GoalError if they are missing or damaged.
    """
    folder = Path(folder)
    if (folder / META_FILE).is_file():
        raise GoalError(f"goal {folder} is the goal alone: give the folder that `puffer goal make` wrote around it")
    goal = GoalTemplate.load(folder / "goal")
    start = folder / "start.state"
    if not start.is_file():
        raise GoalError(f"goal {folder} has no start.state beside it: give a folder that `puffer goal make` wrote")
    return goal, start


def rom_of(folder: StrPath, goal: GoalTemplate, rom: StrPath | None = None) -> str:
    """The path of the ROM that is given, else of the one that the goal in `folder` was made from.

    Raises: ConfigError where it is not there.
    """
    own = goal.meta.get("rom_file")
    path = find_rom(rom) if rom is not None else str(Path(folder, "goal", own)) if isinstance(own, str) else None
    if path is None or not os.path.isfile(path):
        raise ConfigError(f"goal {folder}: its ROM {path} is not there: give --rom")
    return path


def calibrate(
    folder: StrPath,
    *,
    rom: StrPath | None = None,
    steps: int = 20_000,
    num_envs: int = 64,
    max_steps: int | None = None,
    truth: Sequence[Condition] = (),
    device: str = "cpu",
    seed: int = 0,
    report: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Measures the goal in `folder` with `steps` of random play from its start, in episodes of `max_steps` (default:
    the goal's own).

    An env is at the goal if all conditions of `truth` on RAM hold. Without conditions, it is at the goal in the steps
    without a button after a solution, and in every step that shows exactly the goal's picture.
    report: called after each random step with the steps so far and their total.

    Raises: GoalError, RomError, StateError, ConfigError or DeviceError.
    """
    for name, value in (("steps", steps), ("num_envs", num_envs), ("max_steps", max_steps)):
        if value is not None and value < 1:
            raise ConfigError(f"{name} {value} must be at least 1")
    if not -(2**63) <= seed < 2**63:
        raise ConfigError(f"seed {seed} must have at most 64 bits")
    goal, start = read_task(folder)
    if not goal.meta.get("solve_actions"):
        raise GoalError(
            f"goal {folder} does not say how it is reached, as one made of a PNG: make it with --actions or --play"
        )
    path = rom_of(folder, goal, rom)
    cartridge = load_cartridge(path, goal.meta.get("header", "strict"), goal.meta.get("model"))
    if cartridge.sha256 != goal.meta["rom_sha256"]:
        own, found = goal.meta["rom_sha256"], cartridge.sha256
        raise GoalError(f"goal {folder} is of ROM {own[:12]}..., {path} is {found[:12]}...: give --rom")
    player = _Player(cartridge, goal, load_state_file(start, cartridge), truth, num_envs, device, seed)
    at_goal, near = player.solutions()
    player.near_goal(near)
    random = player.random_play(steps, max_steps or goal.meta.get("max_steps", MAX_STEPS), report)
    here = np.concatenate([part.split()[0] for part in (at_goal, near, random)])
    elsewhere = np.concatenate([part.split()[1] for part in (at_goal, near, random)])
    if not len(elsewhere):
        raise GoalError(f"goal {folder} shows in every step, so that nothing differs from it: make another")
    tau = best_tau(here, elsewhere)
    k = max(SMALLEST_K, random.longest_false_run(tau) + 1, near.longest_false_run(tau) + 1)
    return Calibration(at_goal, near, random, tau, k)


def best_tau(here: np.ndarray, elsewhere: np.ndarray) -> float:
    """The middle of the gap below the smallest distance elsewhere: a goal recognised a step late costs less than a
    false goal. If no distance at the goal is below that, the threshold with the smallest sum of both error rates."""
    nearest = elsewhere.min()
    if here.min() < nearest:
        return float(here[here < nearest].max() + nearest) / 2
    values = np.unique(np.concatenate([here, elsewhere]))
    candidates = (values[:-1] + values[1:]) / 2
    missed = 1 - np.searchsorted(np.sort(here), candidates) / len(here)
    false = np.searchsorted(np.sort(elsewhere), candidates) / len(elsewhere)
    return float(candidates[np.argmin(missed + false)])


class _Player:
    """Plays the goal's ROM in `num_envs` Game Boys and records distances."""

    def __init__(
        self,
        rom: Cartridge,
        goal: GoalTemplate,
        start: Snapshot,
        truth: Sequence[Condition],
        num_envs: int,
        device: str,
        seed: int,
    ) -> None:
        from gbxcule_puffer.emulator import Emulator

        meta = goal.meta
        self.goal, self.start = goal, start
        self.emulator = Emulator(
            rom,
            num_envs,
            device,
            screen=picture_kind(meta["obs"]).screen,
            frames_per_step=meta["frames_per_step"],
            release_after_frames=meta["release_after_frames"],
        )
        codec = get_codec(meta["action_codec"])
        buttons = [codec.to_buttons(action) for action in range(codec.num_actions)]
        self.table = torch.tensor(buttons, dtype=torch.uint8)
        schedule = Schedule(meta["frames_per_step"], meta["release_after_frames"])
        self.frames = torch.tensor([schedule.of(action)[0] for action in codec.actions], dtype=torch.int32)
        self.distance = GoalDistance(goal.frames, num_envs, self.emulator.device)
        self.truth, self.ram = truth, Ram(self.emulator)
        self.out = torch.empty(num_envs, device=self.emulator.device)
        self.generator = torch.Generator().manual_seed(seed)

    def step(self, buttons: torch.Tensor | int, frames: torch.Tensor | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(distances, whether at the goal) after a step, each (num_envs,)."""
        if isinstance(buttons, int):
            buttons = torch.full((self.emulator.num_envs,), buttons, dtype=torch.uint8)
        device = self.emulator.device
        self.emulator.step(buttons.to(device), None if frames is None else frames.to(device))
        self.distance.measure(pictures_of(self.emulator, self.distance.in_color), self.out)
        distances = self.out.cpu().numpy().copy()
        return distances, all_hold(self.truth, self.ram).cpu().numpy() if self.truth else distances == 0

    def solutions(self) -> tuple[Samples, Samples]:
        """(at the goal: idle steps after each solution; near it: the steps on the way)."""
        at_goal, near = Samples(), Samples()
        meta = self.goal.meta
        for way in (meta["solve_actions"], *meta.get("more_ways", [])):
            self.emulator.load(self.start)
            for buttons in all_buttons_of(way):
                distances, truth = self.step(buttons)
                _note(near, distances[:1], truth[:1])
            self.arrival: Snapshot = self.emulator.save(0)
            for _ in range(GOAL_STEPS):
                distances, truth = self.step(0)
                _note(at_goal, distances[:1], truth[:1] if self.truth else np.ones(1, bool))
        return at_goal, near

    def near_goal(self, near: Samples) -> None:
        """Adds a few random steps from the goal in every env."""
        self.emulator.load(self.arrival)
        self._play(near, NEAR_STEPS)

    def random_play(self, steps: int, max_steps: int, report: Callable[[int, int], None] | None = None) -> Samples:
        """At least `steps` random steps from the start, in episodes of `max_steps`."""
        samples = Samples()
        while (done := sum(block.size for block in samples.distances)) < steps:
            self.emulator.load(self.start)
            left = -(-(steps - done) // self.emulator.num_envs)
            self._play(samples, min(max_steps, left), report and (lambda now, done=done: report(done + now, steps)))
        return samples

    def _play(self, samples: Samples, steps: int, report: Callable[[int], None] | None = None) -> None:
        choices = torch.randint(len(self.table), (steps, self.emulator.num_envs), generator=self.generator)
        rows = []
        for number, row in enumerate(choices, 1):
            rows.append(self.step(self.table[row], self.frames[row]))
            if report is not None:
                report(number * self.emulator.num_envs)
        samples.distances.append(np.stack([distances for distances, _ in rows]))
        samples.at_goal.append(np.stack([truth for _, truth in rows]))


def _note(samples: Samples, distances: np.ndarray, at_goal: np.ndarray) -> None:
    """Adds one step of one env as a separate block."""
    samples.distances.append(distances[None])
    samples.at_goal.append(at_goal[None])


def draw_histogram(path: StrPath, result: Calibration, meta: dict[str, Any], title: str) -> None:
    """Writes the distances at the goal, near it and in random play as a PNG, with the current and the proposed tau.

    Raises: ConfigError if Matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("the histogram needs Matplotlib: pip install matplotlib") from None
    figure = Figure(figsize=(9, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    parts = [part.split() for part in (result.goal, result.near, result.random)]
    series = [
        ("at the goal", np.concatenate([here for here, _ in parts]), "#2a9d5c"),
        ("near the goal", parts[1][1], "#e08e2b"),
        ("elsewhere in random play", parts[2][1], "#4a78b5"),
    ]
    bins = np.linspace(0, max(0.1, *(float(values.max(initial=0)) for _, values, _ in series)), 101)
    for name, values, colour in series:
        label = f"{name} ({len(values):,} steps)"
        axes.hist(values, list(bins), label=label, color=colour, histtype="step", linewidth=1.8)
    axes.axvline(meta["tau"], color="black", linestyle=":", label=f"tau {meta['tau']:.4f}, k {meta['k_consecutive']}")
    label = f"proposed tau {result.tau:.4f}, k {result.k_consecutive}"
    axes.axvline(result.tau, color="#c0392b", label=label)
    rates = result.rates(result.tau, result.k_consecutive)
    axes.set(
        yscale="log",
        xlabel="distance to the goal's pictures",
        ylabel="steps",
        title=f"{title}: false negatives {rates['false_negative']:.2%}, false positive steps "
        f"{rates['false_positive']:.4%},\nfalse goals {rates['false_goals']} in {rates['random_steps']:,} random steps",
    )
    figure.legend(loc="outside lower center", ncols=3)
    with new_file(path) as file:
        figure.savefig(file, format="png", dpi=110)
