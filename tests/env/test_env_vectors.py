"""Observations of more than pictures: RAM, places visited, actions, what a Task observes; their layout everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pufferlib.pytorch
import pufferlib.vector
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.gym import make, make_vec
from gbxcule_puffer.tasks.observe.observers import RamEntry, parse_ram_obs
from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import StepInfo, Task
from tests.support.envs import STAGE, assert_same, make_test_task, play, random_actions

ROM = STAGE.parent.parent / "homeward.gb"
SYMBOLS = ROM.with_suffix(".sym")
VECTORS = {"ram_obs": "player_map:3,C0A5", "visited_obs": 4, "action_obs": 2}
LIMIT = 5


class Place(Task):
    """The player's place and the steps of the episode."""

    observations: ClassVar = {"place": (2,), "age": ()}

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.age = torch.zeros(ram.num_envs, dtype=torch.int32, device=ram.device)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        self.age = self.age + 1
        return ram["player_x"]

    def observe(self, ram: Ram, picture: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"place": ram[["player_x", "player_y"]], "age": self.age}


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    task = make_test_task(tmp_path_factory.mktemp("start"))
    return {"rom": str(ROM), "start_state": task.kwargs["start_state"], "symbols": str(SYMBOLS), "max_steps": LIMIT}


def test_the_parts_of_an_observation(start: dict[str, Any]) -> None:
    """Also at an episode's end: final_observation is of the state before the reset, the observation of the next one."""
    n, actions = 3, random_actions(12, 3, seed=4)
    env = GBxCuLEEnv(**start, num_envs=n, task=Place, **VECTORS)
    plain = GBxCuLEEnv(**start, num_envs=n)
    free = GBxCuLEEnv(**{**start, "max_steps": 99}, num_envs=n)
    first, _ = env.reset()
    plain.reset()
    free.reset()
    parts = env.layout.split(first)
    assert {name: part.shape[1:] for name, part in parts.items()} == {
        "picture": (1, 72, 80), "ram": (4,), "visited": (9, 9), "actions": (2, 8), "place": (2,), "age": (),
    }  # fmt: skip
    origin = free.emulator.read_memory(0, 0xC0A0, 6)
    places, ages = [[tuple(origin[:3])] for _ in range(n)], 0
    for row in actions:
        observations, _, _, _, _ = env.step(row)
        plain.step(row)
        free.step(row)
        ages += 1
        last = env.layout.split(env.final_observation)
        np.testing.assert_array_equal(last["picture"], plain.final_observation)
        for i in range(n):
            ram = free.emulator.read_memory(i, 0xC0A0, 6)
            places[i].append(tuple(ram[:3]))
            np.testing.assert_array_equal(last["ram"][i], ram[[0, 1, 2, 5]].astype(np.float32) * np.float32(1 / 255))
            np.testing.assert_array_equal(last["place"][i], ram[1:3])
            assert last["age"][i] == ages
            area, x, y = (int(number) for number in ram[:3])
            around = [[(area, x + dx, y + dy) in places[i] for dx in range(-4, 5)] for dy in range(-4, 5)]
            np.testing.assert_array_equal(last["visited"][i], around)
            assert last["actions"][i].argmax(1)[1] == row[i] and last["actions"][i].sum() == min(ages, 2)
        now = env.layout.split(observations)
        np.testing.assert_array_equal(now["picture"], plain.observations)
        if env.final_mask.any():
            assert env.final_mask.all()
            for name in ("ram", "visited", "actions", "place", "age"):
                np.testing.assert_array_equal(now[name], env.layout.split(first)[name])
            assert now["visited"].sum() == n and not now["age"].any()
            free.reset()
            places, ages = [[tuple(origin[:3])] for _ in range(n)], 0
        else:
            np.testing.assert_array_equal(observations, env.final_observation)
    assert ages < len(actions)


def test_bits_of_ram(start: dict[str, Any]) -> None:
    """They stand where their entry stands, the lowest bit of a byte first."""
    env = GBxCuLEEnv(**start, num_envs=2, ram_obs="player_x:2:bits,player_map,C0A5:bits")
    env.reset()
    for row in random_actions(3, 2, seed=4):
        observations = env.step(row)[0]
    for i, numbers in enumerate(env.layout.split(observations)["ram"]):
        ram = env.emulator.read_memory(i, 0xC0A0, 6).astype(int)
        bits = [[byte >> bit & 1 for bit in range(8)] for byte in ram]
        assert numbers.tolist() == [*bits[1], *bits[2], float(np.float32(ram[0]) * np.float32(1 / 255)), *bits[5]]


@pytest.mark.parametrize("kind", ["torch", "pyboy", "stack"])
def test_the_same_elsewhere(start: dict[str, Any], kind: str) -> None:
    kwargs = {**start, "num_envs": 2, "task": Place, "stack_k": 2 if kind == "stack" else 1, **VECTORS}
    actions = random_actions(8, 2, seed=6)
    own = GBxCuLEEnv(**kwargs)
    if kind == "pyboy":
        other: Any = PyBoyPufferVec(**kwargs, backend="serial")
    else:
        other = GBxCuLEEnv(**kwargs, io="torch")
    assert_same(play(own, actions), play(other, actions))
    np.testing.assert_array_equal(own.final_observation, np.asarray(other.final_observation))
    other.close()


def test_a_saved_state_goes_on(start: dict[str, Any]) -> None:
    env = GBxCuLEEnv(**start, num_envs=2, task=Place, **VECTORS)
    actions = random_actions(9, 2, seed=8)
    play(env, actions[:3])
    state = env.state_dict()
    after = [env.step(row)[0].copy() for row in actions[3:]]
    env.load_state_dict(state)
    np.testing.assert_array_equal(after, [env.step(row)[0].copy() for row in actions[3:]])


def test_pufferlib_makes_a_dict_of_it(start: dict[str, Any]) -> None:
    kwargs = {**start, "num_envs": 2, "task": Place, **VECTORS}
    env = pufferlib.vector.make(GBxCuLEEnv, env_kwargs=kwargs, num_envs=2, backend=pufferlib.vector.Serial)
    observations, _ = env.reset(seed=1)
    driver = env.driver_env
    assert isinstance(driver.single_observation_space, gymnasium.spaces.Box)
    dtype = pufferlib.pytorch.nativize_dtype(driver.emulated)
    native: Any = pufferlib.pytorch.nativize_tensor(torch.from_numpy(observations), dtype)
    parts = driver.layout.split(torch.from_numpy(observations))
    assert native.keys() == parts.keys()
    for name, part in parts.items():
        assert torch.equal(native[name].view(part.shape), part), name
    env.close()


def test_gymnasium_has_a_dict_space(start: dict[str, Any]) -> None:
    options = {**start, **VECTORS}
    envs = make_vec(num_envs=2, **options)
    observations, _ = envs.reset(seed=1)
    assert isinstance(envs.single_observation_space, gymnasium.spaces.Dict)
    assert observations in envs.observation_space
    for row in random_actions(LIMIT, 2):
        observations, _, _, truncations, info = envs.step(row)
    assert truncations.all()
    assert observations in envs.observation_space
    assert all(final in envs.single_observation_space for final in info["final_obs"])
    single = make(**options)
    first, _ = single.reset(seed=1)
    assert first in single.observation_space
    assert single.step(0)[0] in single.observation_space
    np.testing.assert_array_equal(first["ram"], envs.reset(seed=1)[0]["ram"][0])


def task_of(**members: Any) -> type[Task]:
    step = {"step": lambda self, ram, picture, info: torch.zeros(ram.num_envs)}
    return type("Wrong", (Task,), {**step, **members})


@pytest.mark.parametrize(
    "members, fault",
    [
        ({"observations": {"a": (2,)}}, r"observe gave \[\]: give what `observations` names, \['a'\]"),
        ({"observations": {"a": (2,)}, "observe": lambda *_: {"a": torch.zeros(1, 3)}}, r"\(1, 3\) of torch.float32"),
        ({"observations": {"a": (2,)}, "observe": lambda *_: {"a": [1]}}, "observation 'a' is a list"),
        ({"observations": {"picture": (2,)}}, "name 'picture', which is taken"),
        ({"observations": {"a": 3}}, r"'a' of shape 3: give sizes, such as \(3,\)"),
        ({"observations": {"a": (2**20, 2**20)}}, "'a' of 1,099,511,627,776 numbers: give at most 65,536"),
        ({"observations": ["a"]}, "observations are a list: give shapes by name"),
    ],
)
def test_a_task_that_observes_something_else(members: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=f"task Wrong: .*{fault}"):
        GBxCuLEEnv(ROM, task=task_of(**members)).reset()


@pytest.mark.parametrize(
    "options, fault",
    [
        ({"ram_obs": "wMoney"}, r"ram_obs 'wMoney': symbol 'wMoney' is not in .*homeward\.sym: give one of its names"),
        ({"ram_obs": "player_q", "symbols": SYMBOLS}, "'player_q' is not in .*did you mean"),
        ({"ram_obs": "C000:0"}, "has 0 bytes: give from 1 to 1024"),
        ({"ram_obs": "C000:bits:3"}, "'C000:bits:3' has ':3' after :bits"),
        ({"ram_obs": "0100"}, "is not VRAM, WRAM, OAM or HRAM"),
        ({"ram_obs": ""}, "is not a hexadecimal address"),
        ({"visited_obs": 32}, "must be from 0 to 31"),
        ({"action_obs": -1}, "must be from 0 to 64"),
    ],
)
def test_options_that_are_wrong(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        GBxCuLEEnv(ROM, **options)


def test_visited_obs_needs_a_place() -> None:
    with pytest.raises(ConfigError, match="visited_obs 2 needs position: give MAP,ROW,COLUMN"):
        GBxCuLEEnv(ROM.parent / "micro/alu_loop.gb", visited_obs=2)


def test_entries_of_ram_obs(tmp_path: Path) -> None:
    assert parse_ram_obs("C0A0:3, 0xC0A5,1:A000:2,1:A010, C0A7:bits,1:A000:2:bits") == [
        RamEntry(0xC0A0, 3), RamEntry(0xC0A5), RamEntry((1, 0xA000), 2), RamEntry((1, 0xA010)),
        RamEntry(0xC0A7, 1, True), RamEntry((1, 0xA000), 2, True),
    ]  # fmt: skip
