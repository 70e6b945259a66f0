"""What the environment's tests share: HOMEWARD's first stage as a task, random actions, and a player."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.tasks.actions import get_codec
from gbxcule_puffer.tasks.goals.recipe import GoalRecipe, GoalSettings
from gbxcule_puffer.tasks.stages.list import make_stages

STAGE = Path(__file__).parents[2] / "roms/homeward/stage1.json"
CODEC = get_codec("pokemonred_puffer_v1")
NUM_ACTIONS = CODEC.num_actions


@dataclass
class Task:
    """A stage's files as env arguments, and the actions that solve it, goal steps included."""

    kwargs: dict[str, Any]
    solution: list[int]


def make_test_task(folder: Path, device: str = "cpu") -> Task:
    files = GoalRecipe.load(STAGE, GoalSettings(device=device)).make(folder)
    kwargs = {"rom": str(files.rom), "start_state": str(files.start_state), "goal_dir": str(files.goal_dir)}
    return Task(kwargs, CODEC.parse(json.loads(STAGE.read_text())["solve_actions"] + ["NOOP"] * 4))


def random_actions(steps: int, num_envs: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, NUM_ACTIONS, (steps, num_envs), dtype=np.int32)


def host(array: Any) -> np.ndarray:
    """A copy of an array or tensor."""
    return torch.as_tensor(array).cpu().numpy().copy()


def play(env: Any, actions: np.ndarray) -> list[list[np.ndarray]]:
    """Copies of (observations, rewards, terminals, truncations) after reset and each step, as NumPy arrays."""
    observations, _ = env.reset(seed=3)
    history = [[host(observations)]]
    for row in actions:
        torch_io = getattr(env, "io", "numpy") == "torch"
        step = env.step(torch.from_numpy(row) if torch_io else row)
        history.append([host(part) for part in step[:4]])
    return history


def assert_same(first: list[list[np.ndarray]], second: list[list[np.ndarray]]) -> None:
    for parts, others in zip(first, second, strict=True):
        for part, other in zip(parts, others, strict=True):
            np.testing.assert_array_equal(part, other)


def make_test_stages(folder: Path, device: str = "cpu") -> dict[str, Any]:
    """HOMEWARD's stages as env arguments; the list is made for whatever ROM is in the repository now."""
    source = STAGE.parent / "stages.json"
    spec = json.loads(source.read_text())
    spec["rom_sha256"] = load_cartridge(STAGE.parent.parent / "homeward.gb").sha256
    for row in spec["stages"]:
        row["recipe"] = str(STAGE.parent / row["recipe"])
    (folder / "recipes.json").write_text(json.dumps(spec))
    rom, stages = make_stages(folder / "recipes.json", folder / "made", GoalSettings(device=device))
    return {"rom": str(rom), "stages": str(stages)}


def solution(stage: int) -> list[int]:
    """Actions that solve HOMEWARD's stage 1, 2 or 3 from its start, goal steps included."""
    spec = json.loads((STAGE.parent / f"stage{stage}.json").read_text())
    return CODEC.parse(spec["solve_actions"] + ["NOOP"] * 4)


def recorded(env: GBxCuLEEnv, actions: torch.Tensor) -> torch.cuda.CUDAGraph:
    """The env's step with `actions` as a CUDA graph; the env is as before."""
    state, graph = env.state_dict(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
        env.step(actions)
    env.load_state_dict(state)
    return graph


def assert_same_in_a_graph(eager: GBxCuLEEnv, captured: GBxCuLEEnv, actions: np.ndarray) -> None:
    """Two equal envs on a GPU: a step allocates nothing, and `captured` replays it from a CUDA graph with the same
    results; actions: shape (steps, num_envs)."""
    device, num_envs = eager.observations.device, actions.shape[1]
    current = torch.zeros(num_envs, dtype=torch.int64, device=device)
    rows = torch.from_numpy(actions).to(device, torch.int64)
    for env in (eager, captured):
        env.reset()
        for _ in range(3):
            env.step(current)
    torch.cuda.synchronize()
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    eager.step(rows[0])
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == before
    captured.step(rows[0])
    graph = recorded(captured, current)
    for row in rows[1:]:
        current.copy_(row)
        graph.replay()
        eager.step(row)
    torch.cuda.synchronize()
    assert torch.equal(captured.observations, eager.observations)
    assert torch.equal(captured.rewards, eager.rewards)
    assert (captured.emulator.state_hash() == eager.emulator.state_hash()).all()
