"""Hooks and early ends of steps as an environment has them: options, what a Task sees, the same with PyBoy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import StepInfo, StepResult, Task
from tests.support.envs import STAGE, make_test_task, random_actions, recorded

ROM = STAGE.parent.parent / "homeward.gb"
SYMBOLS = ROM.with_suffix(".sym")
STILL = "step_left==0,player_facing&FC==0"


class Steps(Task):
    """Reward: steps of the hero that began, told by a routine of the game; tells frames, and how often VBlank came."""

    def setup(self, ram: Ram) -> None:
        ram.hook("camera_wanted")
        ram.hook(0x40)

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.total = torch.zeros(ram.num_envs, dtype=torch.int32, device=ram.device)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
        self.total = self.total + info.frames
        return StepResult(
            ram.executions("camera_wanted"),
            truncation=self.total > 90,
            statistics={"frames": self.total, "vblanks": ram.executions((0, 0x40))},
        )


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """HOMEWARD beside the bed, without a goal."""
    task = make_test_task(tmp_path_factory.mktemp("start"))
    return {"rom": str(ROM), "start_state": task.kwargs["start_state"], "symbols": str(SYMBOLS), "num_envs": 2}


def test_pyboy_gives_the_same(start: dict[str, Any]) -> None:
    kwargs = {**start, "task": Steps, "until": STILL, "log_interval": 12, "max_steps": 1000}
    own, other = GBxCuLEEnv(**kwargs), PyBoyPufferVec(**kwargs, backend="serial")
    for env in (own, other):
        env.reset(seed=2)
    lengths, paid, infos = set(), 0.0, []
    for row in random_actions(12, 2, seed=3):
        mine, theirs = own.step(row), other.step(row)
        for part, their in zip(mine[:4], theirs[:4], strict=True):
            np.testing.assert_array_equal(part, their)
        np.testing.assert_array_equal(own.frames, other.frames)
        lengths |= set(own.frames.tolist())
        paid += mine[1].sum()
        infos += [mine[4], theirs[4]]
    assert infos[-1] == infos[-2] and 90 < infos[-1][0]["task/frames"] <= 114
    assert len(lengths) > 1 and min(lengths) >= 9 and max(lengths) <= 24 and paid > 0
    assert own.config["until"] == STILL
    other.close()


def test_an_env_counts_by_bank_and_address_or_symbol(start: dict[str, Any]) -> None:
    env = GBxCuLEEnv(**start)
    with pytest.raises(ConfigError, match="call reset first"):
        env.hook(0, 0x40)
    env.reset()
    env.hook(0, 0x40)
    env.hook(None, "read_joypad")
    for _ in range(2):
        env.step(np.zeros(2, int))
        assert env.ram.executions(0x40).tolist() == [24, 24]
        assert env.ram.executions("read_joypad").tolist() == [24, 24]
        assert env.ram.executions([0x40, "read_joypad"]).tolist() == [[24, 24]] * 2
        assert env.frames.tolist() == [24, 24]
    for bank, address, why in (
        (None, "read_joypat", "did you mean read_joypad"),
        (None, "player_x", "C0A1: code there is in RAM"),
        (0, 0xFF80, "FF80: code there is in RAM"),
    ):
        with pytest.raises(ConfigError, match=why):
            env.hook(bank, address)
    with pytest.raises(ConfigError, match="has no hook"):
        env.ram.executions("vblank")


@pytest.mark.parametrize(
    ("until", "why"),
    [
        ("step_lefd==0", "until 'step_lefd==0': symbol 'step_lefd' .* did you mean step_left"),
        ("step_left", "is not a condition"),
        ("step_left==300", "value of .* must be from 0 to 255"),
        ("0150==3", "0150 is not VRAM"),
        ("FF44==3", "FF44 is not VRAM"),
    ],
)
def test_conditions_that_end_no_step(start: dict[str, Any], until: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        GBxCuLEEnv(**start, until=until)


def test_buttons_that_are_held_end_no_step(start: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"until .*: lower release_after_frames"):
        GBxCuLEEnv(**start, until=STILL, release_after_frames=24)


def test_a_task_that_asks_for_what_it_did_not_hook(start: dict[str, Any]) -> None:
    class Forgetful(Task):
        def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
            return ram.executions("vblank")

    env = GBxCuLEEnv(**start, task=Forgetful)
    env.reset()
    with pytest.raises(ConfigError, match="task Forgetful: 01BD of bank 0 has no hook: set one before the step"):
        env.step(np.zeros(2, int))


@pytest.mark.gpu
@pytest.mark.usefixtures("cpu_kernels")
def test_a_gpu_gives_the_same_from_a_graph(cuda_device: str, start: dict[str, Any], tmp_path: Path) -> None:
    kwargs = {**start, "num_envs": 16, "task": Steps, "until": STILL, "io": "torch", "info_mode": "none"}
    cpu, captured = GBxCuLEEnv(**kwargs), GBxCuLEEnv(**kwargs, device=cuda_device)
    current = torch.zeros(16, dtype=torch.int64, device=cuda_device)
    for env in (cpu, captured):
        env.reset(seed=1)
        for _ in range(3):
            env.step(torch.zeros(16, dtype=torch.int64, device=env.device))
    graph = recorded(captured, current)
    for row in torch.from_numpy(random_actions(20, 16, seed=5)).long():
        current.copy_(row)
        graph.replay()
        cpu.step(row)
        for name in ("rewards", "truncations", "observations", "frames"):
            assert torch.equal(getattr(captured, name).cpu(), getattr(cpu, name)), name
