"""copy.copy, copy.deepcopy and pickle of what runs: a copy has memory of its own, and goes on equally."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.probes.until import ByteTest
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.gym import make, make_vec
from gbxcule_puffer.integrations.pufferl.env import PuffeRLEnv
from gbxcule_puffer.integrations.pyboy_api import GameBoys
from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import StepInfo, Task

ROM = Path(__file__).parents[1] / "roms/homeward.gb"
START, DOWN, A = 0x80, 0x08, 0x10
COPIERS: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


class Visits(Task):
    """Reward for WRAM that changes, sampled; its memory is a tensor, and it may hold plain values."""

    def __init__(self) -> None:
        self.factor, self.names = torch.tensor(2.0), ["a"]

    def setup(self, ram: Ram) -> None:
        ram.hook((0, 0x20D))
        self.before = torch.zeros(ram.num_envs, 16, dtype=torch.int32, device=ram.device)

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.before = ram[0xC0A0:0xC0B0]

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        now = ram[0xC0A0:0xC0B0]
        changed, self.before = (now != self.before).sum(1), now
        lucky = self.sample(3, info.length.to(torch.int64)) + ram.executions((0, 0x20D))
        return changed * self.factor.to(changed.device) + lucky


def steps_of(emulator: Emulator, count: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        pressed = torch.randint(0, 256, (emulator.num_envs,), generator=generator, dtype=torch.uint8)
        emulator.step(pressed.to(emulator.device))


def assert_equal(one: Emulator, two: Emulator) -> None:
    np.testing.assert_array_equal(one.state_hash(), two.state_hash())
    for name in ("memory", "screen", "locked", "frames"):
        assert torch.equal(getattr(one, name), getattr(two, name)), name
    if one.launches is None:
        assert torch.equal(one.skipped, two.skipped)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "options",
    [{}, {"model": "cgb", "screen": "full"}, {"frames_per_step": 6, "release_after_frames": 3, "num_threads": 1}],
)
def test_emulators(device: str, options: dict[str, Any]) -> None:
    emulator = Emulator(ROM, 3, device, **options)
    emulator.hook(0, 0x20D)
    emulator.end_steps_when([ByteTest(None, 0xC0A0, 0, 255)])
    steps_of(emulator, 4, 1)
    for copier in COPIERS:
        other = copier(emulator)
        assert_equal(emulator, other)
        assert torch.equal(emulator.executions(0, 0x20D), other.executions(0, 0x20D))
        before = emulator.state_hash()
        steps_of(other, 3, 2)
        np.testing.assert_array_equal(emulator.state_hash(), before)
        assert not np.array_equal(other.state_hash(), before)
        after = other.state_hash()
        emulator_again = copier(emulator)
        steps_of(emulator_again, 3, 2)
        np.testing.assert_array_equal(emulator_again.state_hash(), after)
        assert torch.equal(emulator_again.executions(0, 0x20D), other.executions(0, 0x20D))
        other.close()
    steps_of(emulator, 3, 2)
    np.testing.assert_array_equal(emulator.state_hash(), after)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("options", [
    {"io": "torch", "task": Visits, "sticky_actions": 0.3, "start_waits": 20, "max_steps": 5, "log_interval": 2},
    {"io": "numpy", "visit_bonus": 0.1, "archive_slots": 8, "max_steps": 4, "stack_k": 2, "info_mode": "full"},
    {"io": "torch", "task": Visits(), "model": "cgb", "obs": "rgb", "max_steps": 3, "until": "C0A0==0"},
])  # fmt: skip
def test_envs(device: str, options: dict[str, Any]) -> None:
    """The copies' steps, infos and seeds; the copies step alone."""
    env = GBxCuLEEnv(ROM, 3, device, **options)
    rng = np.random.default_rng(0)

    def play(one: Any, count: int, rows: np.ndarray) -> list[Any]:
        found = []
        for row in rows[:count]:
            actions = torch.from_numpy(row).to(device) if options["io"] == "torch" else row
            *parts, infos = one.step(actions)
            results = [*parts, one.final_observation, one.final_mask, one.distance, one.taken_actions]
            found.append([torch.as_tensor(part).cpu().clone().numpy() for part in results] + [infos])
        return found

    env.reset(seed=[4, 5, 6])
    play(env, 6, rng.integers(0, 8, (6, 3)))
    rows = rng.integers(0, 8, (7, 3))
    copies = [copier(env) for copier in COPIERS]
    for other in copies:
        for name in ("observations", "rewards", "terminals", "truncations", "final_observation", "final_mask"):
            one, two = (torch.as_tensor(getattr(each, name)).cpu() for each in (env, other))
            assert torch.equal(one, two), name
    histories = [play(other, 7, rows) for other in copies] + [play(env, 7, rows)]
    for history in histories[:-1]:
        np.testing.assert_equal(history, histories[-1])
    if device == "cpu":
        for other in copies:
            np.testing.assert_array_equal(other.emulator.state_hash(), env.emulator.state_hash())
    for other in (*copies, env):
        other.close()


def test_an_env_that_has_not_begun() -> None:
    env = GBxCuLEEnv(ROM, 2, max_steps=3)
    other = copy.deepcopy(env)
    np.testing.assert_array_equal(env.reset()[0], other.reset()[0])
    assert other.options == env.options


def test_a_copy_of_a_task_plays_in_no_env() -> None:
    task = Visits()
    env = GBxCuLEEnv(ROM, 2, task=task, io="torch")
    other = copy.deepcopy(task)
    assert task._sampler is not None and other._sampler is None
    GBxCuLEEnv(ROM, 2, task=other, io="torch")
    with pytest.raises(ConfigError, match="plays in another env already"):
        GBxCuLEEnv(ROM, 2, task=task, io="torch")
    env.close()


@pytest.mark.parametrize("device", DEVICES)
def test_game_boys(device: str) -> None:
    boys = GameBoys(ROM, 2, device, symbols=ROM.with_suffix(".sym"))
    boys.hook_register(None, "read_joypad")
    boys.game_area_dimensions(1, 2, 18, 14, False)
    boys.tick(60)
    boys.button("start", 8, torch.tensor([True, False]))
    boys.tick(3)  # START is held, and to be released
    copies = [copier(boys) for copier in COPIERS]
    for other in copies:
        other.tick(30)
        other.memory[0xC100] = 77
    assert boys.memory[0xC100].tolist() != [77, 77]
    boys.tick(30)
    boys.memory[0xC100] = 77
    for other in copies:
        assert other.frame_count == boys.frame_count and other.symbol_lookup("read_joypad") == (0, 0x20D)
        np.testing.assert_array_equal(other.emulator.state_hash(), boys.emulator.state_hash())
        assert torch.equal(other.game_area(), boys.game_area())
        assert torch.equal(other.hook_executions(None, "read_joypad"), boys.hook_executions(None, "read_joypad"))


def test_envs_of_other_libraries() -> None:
    """Whatever holds one of ours can be copied with it: tree search in Gymnasium's envs."""
    single: Any = make(rom=ROM, max_steps=6)
    several: Any = make_vec(num_envs=2, rom=ROM, max_steps=6)
    puffer: Any = PuffeRLEnv(ROM, 2, render_mode="rgb_array", max_steps=6)
    theirs: Any = PyBoyPufferSingle(ROM, 2, max_steps=6)
    cases: tuple[tuple[Any, Any], ...] = (
        (single, 2),
        (several, np.array([1, 2])),
        (puffer, np.array([1, 2])),
        (theirs, np.array([3, 1])),
    )
    for env, action in cases:
        env.reset(seed=3)
        env.step(action)
        for copier in COPIERS[1:]:
            other = copier(env)
            for _ in range(8):
                results = [one.step(action) for one in (env, other)]
                np.testing.assert_equal(results[0][:4], results[1][:4])
                if env is single and (results[0][2] or results[0][3]):
                    for one in (env, other):
                        one.reset(seed=1)
    assert copy.copy(puffer).render_mode == "rgb_array"
    theirs.close()


def test_what_cannot_be_copied_says_so() -> None:
    for thing, line in (
        (PyBoyEmulator(ROM), "load what save"),
        (PyBoyPufferVec(ROM, 2, backend="serial"), "state_dict"),
    ):
        for copier in COPIERS:
            with pytest.raises(ConfigError, match=f"cannot be copied: make another one, .*{line}"):
                copier(thing)
        thing.close()
