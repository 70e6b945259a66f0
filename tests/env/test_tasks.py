"""Tasks of one's own: when they are called, what they may give, and the same numbers with PyBoy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete

from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import StepInfo, StepResult, Task
from tests.support.envs import STAGE, make_test_task, random_actions

ROM = STAGE.parent.parent / "homeward.gb"
SYMBOLS = ROM.with_suffix(".sym")
LIMIT = 6


class Walk(Task):
    """Reward: columns and rows walked; ends in the village; tells the column."""

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.at = ram[["player_x", "player_y"]]
        self.steps = torch.zeros(ram.num_envs, device=ram.device)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
        place = ram[["player_x", "player_y"]]
        moved = (place - self.at).abs().sum(1)
        self.at = place
        self.steps = self.steps + 1
        column = place[:, 0]
        return StepResult(moved / 8 + column, terminal=ram["player_map"] == 1, truncation=column == 2,
                          statistics={"column": column, "length": self.steps})  # fmt: skip


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """HOMEWARD beside the bed, without a goal."""
    task = make_test_task(tmp_path_factory.mktemp("start"))
    return {"rom": str(ROM), "start_state": task.kwargs["start_state"], "symbols": str(SYMBOLS)}


def test_reward_and_ends_are_of_the_state_before_the_reset(start: dict[str, Any]) -> None:
    n, actions = 4, random_actions(20, 4, seed=1)
    env = GBxCuLEEnv(**start, num_envs=n, max_steps=LIMIT, task=Walk)
    env.reset()
    free = [GBxCuLEEnv(**start, max_steps=10_000) for _ in range(n)]  # each begun anew by hand, after it was read
    for other in free:
        other.reset()
    first = free[0].emulator.read_memory(0, 0xC0A0, 3)
    places, ages, ends = [first] * n, [0] * n, 0
    for row in actions:
        _, rewards, terminals, truncations, _ = env.step(row)
        for i, other in enumerate(free):
            other.step(row[i : i + 1])
            before, now = places[i].astype(int), other.emulator.read_memory(0, 0xC0A0, 3).astype(int)
            ages[i] += 1
            assert rewards[i] == abs(now - before)[1:].sum() / 8 + now[1]
            assert terminals[i] == (now[0] == 1)
            assert truncations[i] == ((ages[i] == LIMIT or now[1] == 2) and not terminals[i])
            places[i] = now
            if terminals[i] or truncations[i]:
                ends += 1
                places[i], ages[i] = first, 0
                other.reset_envs(np.ones(1, bool))
    assert ends > 8


@pytest.mark.parametrize("backend", ["single", pytest.param("serial", marks=pytest.mark.long), "mp_sync"])
def test_pyboy_gives_the_same(start: dict[str, Any], backend: str) -> None:
    kwargs = {**start, "num_envs": 4, "max_steps": LIMIT, "task": Walk, "log_interval": 15, "start_waits": 1}
    own = GBxCuLEEnv(**kwargs)
    single = backend == "single"
    other: Any = PyBoyPufferSingle(**kwargs) if single else PyBoyPufferVec(**kwargs, backend=backend, num_workers=2)
    try:
        np.testing.assert_array_equal(own.reset(seed=2)[0], other.reset(seed=2)[0])
        for row in random_actions(15, 4, seed=2):
            mine, theirs = own.step(row), other.step(row)
            for part, their in zip(mine[:4], theirs[:4], strict=True):
                np.testing.assert_array_equal(part, their)
            assert mine[4] == theirs[4]
        assert 0 < mine[4][0]["task/length"] <= LIMIT
        assert mine[4][0]["task/length"] == mine[4][0]["episode_length"]
    finally:
        other.close()


@pytest.mark.parametrize("make", [GBxCuLEEnv, PyBoyPufferVec])
def test_what_is_told_of_a_task_beside_the_infos(start: dict[str, Any], make: Any) -> None:
    """Statistics of the episodes that a step ended, the range of the Task's own rewards, whether it can succeed."""

    class Count(Task):
        def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
            ends = {"terminal": info.length > 2} if succeeds else {"failure": info.length > 2}
            return StepResult(info.length, statistics={"length": info.length}, **ends)

    for succeeds in (True, False):
        options = {"num_workers": 2, "backend": "serial"} if make is PyBoyPufferVec else {}
        env = make(**start, num_envs=2, task=Count, reward_scale=0.5, step_cost=-1, io="torch", **options)
        env.reset()
        for _ in range(3):
            env.step(torch.zeros(2, dtype=torch.int64))
        assert env.terminals.all() and env.statistics()["task/length"].tolist() == [3, 3]
        assert env.reward_ranges() == {"Count": (1, 3)}, "as the Task gave them"
        assert env.has_success == succeeds and not env.has_goal
        infos = env.read_infos()
        assert ("success" in infos) == ("done_rate" in infos) == succeeds
        env.reset()
        env.step(torch.zeros(2, dtype=torch.int64))
        assert env.reward_ranges() == {"Count": (1, 1)}
        env.close()


def test_a_task_beside_a_goal_adds_to_its_reward(tmp_path: Path) -> None:
    kwargs = {**make_test_task(tmp_path).kwargs, "num_envs": 2, "symbols": str(SYMBOLS)}

    class One(Task):
        def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
            assert picture.shape == (2, 72, 80)
            return torch.ones(2)

    envs = [GBxCuLEEnv(**kwargs, step_cost=-0.5), GBxCuLEEnv(**kwargs, task=One, step_cost=-0.5)]
    for env in envs:
        env.reset()
    for row in random_actions(4, 2):
        rewards = [env.step(row)[1] for env in envs]
        np.testing.assert_allclose(rewards[1], rewards[0] + 1, rtol=1e-6)
    alone = GBxCuLEEnv(str(ROM), num_envs=2, task=One)
    alone.reset()
    assert alone.step(np.zeros(2, int))[1].tolist() == [1, 1], "no step cost where there is no goal"


def test_a_saved_env_goes_on_with_its_task(start: dict[str, Any]) -> None:
    kwargs = {**start, "num_envs": 3, "max_steps": LIMIT, "task": Walk, "log_interval": 10}
    env, actions = GBxCuLEEnv(**kwargs), random_actions(20, 3, seed=4)
    env.reset()
    for row in actions[:8]:
        env.step(row)
    state = env.state_dict()
    rest = [[np.array(part) for part in env.step(row)[1:4]] + [env.infos] for row in actions[8:]]
    other = GBxCuLEEnv(**kwargs)
    other.reset()
    for row in actions[:3]:
        other.step(row)
    for goes_on in (other, GBxCuLEEnv(**kwargs)):
        goes_on.load_state_dict(state)
        for row, wanted in zip(actions[8:], rest, strict=True):
            found = goes_on.step(row)
            for part, expected in zip(found[1:4], wanted[:3], strict=True):
                np.testing.assert_array_equal(part, expected)
            assert goes_on.infos == wanted[3]
        goes_on.close()


def test_the_sums_of_a_task_keep_their_place(start: dict[str, Any]) -> None:
    """A recorded CUDA graph goes on adding to the tensors that it was recorded with."""
    env = GBxCuLEEnv(**start, num_envs=2, max_steps=LIMIT, task=Walk)
    env.reset()
    env.step(np.zeros(2, int))
    places = {name: total.data_ptr() for name, total in env._episodes.tasks.totals().items()}
    assert places
    env.load_state_dict(env.state_dict())
    env.reset()
    assert {name: total.data_ptr() for name, total in env._episodes.tasks.totals().items()} == places


def test_a_reset_begins_the_memory_anew(start: dict[str, Any]) -> None:
    class Steps(Task):
        def setup(self, ram: Ram) -> None:
            self.weight = torch.full((ram.num_envs,), 2.0)
            self.ever = torch.zeros(ram.num_envs)

        def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
            self.ever += self.weight
            return self.ever

    env = GBxCuLEEnv(**start, num_envs=2, max_steps=2, task=Steps)
    for _ in range(2):
        env.reset()
        assert [env.step(np.zeros(2, int))[1][0] for _ in range(3)] == [2, 4, 6]


def test_pokes_reach_the_next_step(start: dict[str, Any]) -> None:
    class Teleport(Task):
        def reset(self, ram: Ram, which: torch.Tensor) -> None:
            ram.poke("quest_flags", 1, which)

        def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
            return ram["quest_flags"]

    for kind in (GBxCuLEEnv, PyBoyPufferSingle):
        env = kind(**start, num_envs=2, max_steps=2, task=Teleport)
        env.reset()
        assert [env.step(np.zeros(2, int))[1].tolist() for _ in range(4)] == [[1, 1]] * 4
        env.close()


def test_torch_works_on_one_thread_in_a_task(start: dict[str, Any]) -> None:
    """Its threads would spin between a Task's many small operations, and take the emulator's cores."""

    class Threads(Task):
        def reset(self, ram: Ram, which: torch.Tensor) -> None:
            self.begun = torch.full((ram.num_envs,), torch.get_num_threads())

        def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
            if info.length[0] == 2:
                raise KeyError
            return self.begun + torch.get_num_threads()

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        env = GBxCuLEEnv(**start, num_envs=2, task=Threads)
        env.reset()
        assert env.step(np.zeros(2, int))[1].tolist() == [2, 2]
        with pytest.raises(ConfigError, match="KeyError"):
            env.step(np.zeros(2, int))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_combinations_press_the_same_in_pyboy(start: dict[str, Any]) -> None:
    envs = [
        kind(**start, num_envs=2, action_codec="NOOP,SELECT,RIGHT+A,DOWN,UP+LEFT+B")
        for kind in (GBxCuLEEnv, PyBoyPufferSingle)
    ]
    for env in envs:
        assert env.single_action_space == Discrete(5)
        env.reset()
    for row in np.random.default_rng(1).integers(0, 5, (12, 2)):
        pictures = [env.step(row)[0] for env in envs]
        np.testing.assert_array_equal(*pictures)
        assert (envs[0].emulator.read_memory(1, 0xC000, 64) == envs[1].emulator.read_memory(1, 0xC000, 64)).all()
    envs[1].close()


def test_the_memory_can_be_read_without_a_task(start: dict[str, Any]) -> None:
    for kind in (GBxCuLEEnv, PyBoyPufferSingle):
        env = kind(**start, num_envs=2)
        with pytest.raises(ConfigError, match="the env is not running: call reset first"):
            _ = env.ram
        env.reset()
        for row in random_actions(4, 2, seed=6):
            env.step(row)
            places = [env.emulator.read_memory(i, 0xC0A1, 2).tolist() for i in range(2)]
            assert env.ram[["player_x", "player_y"]].tolist() == places
        env.close()


def given(**values: Any) -> type[Task]:
    """A Task whose steps give these fields."""

    class Given(Task):
        def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
            return StepResult(**{"reward": torch.zeros(2), **values})

    return Given


class Changes(Task):
    kinds: ClassVar = [torch.zeros(2), torch.zeros(3)]

    def setup(self, ram: Ram) -> None:
        self.memory = self.kinds[0]

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        self.memory = self.kinds[1]
        return torch.zeros(2)


class Late(Task):
    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        self.late = torch.zeros(2)
        return torch.zeros(2)


class Nothing(Task):
    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> Any:
        return None


class Unknown(Task):
    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        return ram["player_z"]


class RomWriter(Task):
    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        ram.poke(0x4000, 1)


class HookInRam(Task):
    def setup(self, ram: Ram) -> None:
        ram.hook("player_x")


class NoBytes(Task):
    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        return ram.popcount("player_x", 0)


class Stepless(Task):
    pass


class Other(Task):
    count = 0

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
        self.count += 1
        return StepResult(torch.zeros(2), statistics={"a" * self.count: torch.zeros(2)})


@pytest.mark.parametrize(
    ("task", "told"),
    [
        (given(reward=torch.zeros(3)), "task Given: reward has shape (3,) of torch.float32: give (2,) of numbers"),
        (given(reward=torch.zeros(2, 1)), "task Given: reward has shape (2, 1)"),
        (given(reward=1.0), "task Given: reward is a float: give a tensor"),
        (given(reward=np.zeros(2)), "task Given: reward is a ndarray"),
        (given(reward=torch.zeros(2, dtype=torch.complex64)), "task Given: reward has shape (2,) of torch.complex64"),
        (given(reward=torch.tensor([0.0, float("nan")])), "task Given: reward is nan in env 1"),
        (given(reward=torch.tensor([float("inf"), 0.0])), "task Given: reward is inf in env 0"),
        (given(terminal=torch.zeros(2)), "task Given: terminal has shape (2,) of torch.float32: give (2,) of"),
        (given(truncation=torch.zeros(1, dtype=torch.bool)), "task Given: truncation has shape (1,)"),
        (given(statistics={"badges": torch.zeros(5)}), "task Given: statistics['badges'] has shape (5,)"),
        (given(reward=torch.zeros(2, device="meta")), "task Given: reward is on meta, the env on cpu"),
        (Changes, "task Changes: attribute 'memory' changes from (2,) of torch.float32 on cpu to (3,)"),
        (Late, "task Late: attribute 'late' is new in step: make it in setup or reset"),
        (Nothing, "task Nothing: step gave a NoneType"),
        (Unknown, "task Unknown: symbol 'player_z' is not in"),
        (RomWriter, "task RomWriter: address 4000 is ROM, which cannot be written"),
        (HookInRam, "task HookInRam: hook at C0A1: code there is in RAM"),
        (NoBytes, "task NoBytes: 0 bytes from C0A1: give a whole number, at least 1"),
        (Stepless, "task Stepless: has no step"),
        (given(statistics=[1]), "task Given: statistics are a list: give tensors by name"),
        (Other, "task Other: statistics are ['aa'], in the first step ['a']"),
    ],
)
def test_what_a_task_does_wrong_is_named(task: type[Task], told: str) -> None:
    env = GBxCuLEEnv(str(ROM), num_envs=2, task=task, symbols=str(SYMBOLS))
    with pytest.raises(ConfigError) as caught:
        env.reset()
        for _ in range(2):
            env.step(np.zeros(2, int))
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


def test_an_instance_plays_in_one_env_at_a_time(start: dict[str, Any]) -> None:
    task = Walk()
    first, second = (GBxCuLEEnv(**start, task=task) for _ in range(2))
    assert first.task is task
    first.reset()
    with pytest.raises(ConfigError, match="task Walk plays in another env already"):
        second.reset()
    first.close()
    second.reset()


@pytest.mark.parametrize(
    ("below", "dtype", "message"),
    [
        (0, torch.int64, r"sample has below 0, .*: give 1 to 16,777,216"),
        (2**24 + 1, torch.int64, "sample has below 16777217"),
        (6, torch.int32, r"counter \(2,\) of torch.int32: .* \(2,\) of torch.int64"),
    ],
)
def test_what_cannot_be_sampled(below: int, dtype: torch.dtype, message: str, start: dict[str, Any]) -> None:
    class Dice(Walk):
        def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
            return self.sample(below, info.length.to(dtype))

    env = GBxCuLEEnv(**start, num_envs=2, task=Dice)
    env.reset()
    with pytest.raises(ConfigError, match=f"task Dice: .*{message}"):
        env.step(np.zeros(2, int))
    with pytest.raises(ConfigError, match="task Dice plays in no env yet: call sample in reset and step"):
        Dice().sample(6, torch.zeros(2, dtype=torch.int64))
