"""GBxCuLEEnv: PufferLib's contract, rewards and episodes against plain arithmetic, every io, stack and backend."""

from __future__ import annotations

import numpy as np
import pufferlib.vector
import pytest
import torch
from pufferlib.pufferlib import PufferEnv

from gbxcule_puffer import env_creator
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.tasks.goals.template import GoalTemplate
from tests.support.envs import CODEC, NUM_ACTIONS, Task, assert_same, host, make_test_task, play, random_actions


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return make_test_task(tmp_path_factory.mktemp("stage"))


# -- PufferLib's contract --


def test_puffer_env_contract(task: Task) -> None:
    env = env_creator("gbxcule")(**task.kwargs, num_envs=3, max_steps=4, log_interval=2)
    assert PufferEnv in type(env).__mro__
    assert env.num_agents == 3
    assert env.single_observation_space.shape == (1, 72, 80)
    assert env.single_observation_space.dtype == np.uint8
    assert env.single_action_space.n == NUM_ACTIONS
    buffers = [env.observations, env.rewards, env.terminals, env.truncations, env.masks]
    assert [part.dtype for part in buffers] == [np.uint8, np.float32, bool, bool, bool]

    observations, infos = env.reset(seed=1)
    assert observations is buffers[0]
    assert infos == []
    assert env.masks.all()
    for step in range(1, 9):
        *parts, infos = env.step(np.full(3, 1, np.int32))
        assert all(part is buffer for part, buffer in zip(parts, buffers, strict=False)), "buffers change in place"
        assert isinstance(infos, list)
        assert len(infos) == (step % 2 == 0)
        for info in infos:
            assert all(isinstance(value, float) for value in info.values())
        assert env.truncations.all() == (step % 4 == 0)
    env.async_reset(seed=1)
    env.send(np.zeros(3, np.int32))
    assert env.recv()[0] is buffers[0]
    env.close()


def test_given_buffers_are_filled(task: Task) -> None:
    buffers = {
        "observations": np.zeros((2, 1, 72, 80), np.uint8),
        "rewards": np.zeros(2, np.float32),
        "terminals": np.zeros(2, bool),
        "truncations": np.zeros(2, bool),
        "masks": np.zeros(2, bool),
        "actions": np.zeros(2, np.int32),
        "teacher_actions": np.zeros(2, np.int32),  # of newer releases of pufferlib-core
    }
    env = GBxCuLEEnv(**task.kwargs, num_envs=2, max_steps=1, buf=buffers)
    env.reset()
    assert buffers["masks"].all()
    assert len(np.unique(buffers["observations"])) > 1
    env.step(np.zeros(2, np.int32))
    assert buffers["truncations"].all()
    assert (buffers["rewards"] == np.float32(-0.01)).all()


def test_vector_backends_equal_the_native_env(task: Task) -> None:
    """Two workers or two serial envs of two Game Boys each play what four do in one env."""
    actions = random_actions(12, 4)
    kwargs = {**task.kwargs, "num_envs": 2, "max_steps": 5, "num_threads": 1}
    make, creator = pufferlib.vector.make, env_creator("gbxcule")
    native = make(creator, env_kwargs={**kwargs, "num_envs": 4}, backend=PufferEnv)
    expected = play(native, actions)
    serial = make(creator, env_kwargs=kwargs, backend=pufferlib.vector.Serial, num_envs=2)
    assert_same(play(serial, actions), expected)
    serial.close()
    workers = make(
        creator,
        env_kwargs=kwargs,
        backend=pufferlib.vector.Multiprocessing,
        num_envs=2,
        num_workers=2,
        overwork=True,
    )
    try:
        assert_same(play(workers, actions), expected)
    finally:
        workers.close()


# -- rewards, ends and resets --


def test_solving_the_stage(task: Task) -> None:
    """The goal ends the episode at its fourth step in a row; rewards follow the formula from the pictures."""
    goal = GoalTemplate.load(task.kwargs["goal_dir"])
    env = GBxCuLEEnv(**task.kwargs, num_envs=2, log_interval=1)

    def distance(picture: np.ndarray) -> float:
        return float(np.abs(goal.frames.astype(float) - picture).mean((1, 2)).min() / 3)

    first = env.reset()[0].copy()
    previous, near, total, steps = distance(first[0, 0]), 0, 0.0, 0
    for action in task.solution:
        steps += 1
        observations, rewards, terminals, truncations, infos = env.step(np.array([action, 0]))
        now = distance(env.final_observation[0, 0])
        near = near + 1 if now < env.tau else 0
        reward = -0.01 + 10 * (previous - now) + 5 * (near == 4)
        total += reward
        assert rewards[0] == pytest.approx(reward, abs=1e-5)
        assert terminals.tolist() == [near == 4, False]
        assert not truncations.any()
        if terminals[0]:
            break
        previous = now
    assert near == 4, "the solution reaches the goal"
    assert env.final_mask.tolist() == [True, False]
    assert distance(env.final_observation[0, 0]) < env.tau
    np.testing.assert_array_equal(observations[0], first[0])
    assert infos[0]["success"] == infos[0]["episodes"] == 1
    assert infos[0]["episode_length"] == steps
    assert infos[0]["episode_return"] == pytest.approx(total, abs=1e-4)
    # The distance starts anew: standing still costs a step and nothing else.
    assert env.step(np.zeros(2, int))[1].tolist() == pytest.approx([-0.01, -0.01])


def test_autoreset_at_max_steps(task: Task) -> None:
    env = GBxCuLEEnv(**task.kwargs, num_envs=2, max_steps=3)
    emulator = Emulator(task.kwargs["rom"], 2)
    emulator.load(Snapshot.from_file(task.kwargs["start_state"]))
    first = env.reset()[0].copy()
    np.testing.assert_array_equal(first[:, 0], emulator.screen.numpy())
    for step, row in enumerate(random_actions(3, 2), 1):
        emulator.step(torch.tensor([CODEC.to_buttons(action) for action in row], dtype=torch.uint8))
        observations, _, terminals, truncations, _ = env.step(row)
        np.testing.assert_array_equal(env.final_observation[:, 0], emulator.screen.numpy())
        assert truncations.all() == env.final_mask.all() == (step == 3)
        assert not terminals.any()
    np.testing.assert_array_equal(observations, first)
    assert (env.final_observation != first).any()


def test_a_locked_env_is_truncated_and_the_others_go_on() -> None:
    """A ROM that runs an illegal opcode when A is held."""
    rom = bytearray(0x8000)
    rom[0x100:0x104] = bytes([0x00, 0xC3, 0x50, 0x01])  # nop; jp 0150
    # ld a,10; ldh (00),a; ldh a,(00); and 1; jr nz,0150; db D3
    rom[0x150:0x15B] = bytes([0x3E, 0x10, 0xE0, 0x00, 0xF0, 0x00, 0xE6, 0x01, 0x20, 0xF6, 0xD3])
    rom[0x14D] = (-sum(rom[0x134:0x14D]) - 25) & 0xFF
    env = GBxCuLEEnv(bytes(rom), num_envs=2, log_interval=1)
    env.reset()
    noop, a = CODEC.parse(["NOOP", "A"])
    assert not env.step(np.array([noop, noop]))[3].any()
    *_, terminals, truncations, infos = env.step(np.array([noop, a]))
    assert truncations.tolist() == [False, True]
    assert not terminals.any()
    assert infos[0]["locked"] == 1
    assert not env.step(np.array([noop, noop]))[3].any(), "the env plays again"


def test_without_a_goal_only_max_steps_ends(task: Task) -> None:
    env = GBxCuLEEnv(task.kwargs["rom"], num_envs=2, max_steps=3, log_interval=3)
    env.reset()
    for step in range(1, 7):
        _, rewards, terminals, truncations, infos = env.step(np.array([0, 3]))
        assert rewards.tolist() == pytest.approx([-0.01, -0.01])
        assert not terminals.any()
        assert truncations.all() == (step % 3 == 0)
    assert "dist_p50" not in infos[0]


@pytest.mark.parametrize("io", ["numpy", "torch"])
def test_chosen_envs_begin_anew(task: Task, io: str) -> None:
    """They begin as after an autoreset, the others play on, and what they left counts for no statistics."""
    env = GBxCuLEEnv(**task.kwargs, num_envs=3, io=io, max_steps=6, log_interval=6)
    convert = torch.from_numpy if io == "torch" else np.asarray
    first = host(env.reset()[0])
    for row in random_actions(3, 3):
        before = host(env.step(convert(row))[0])
    after = host(env.reset_envs(convert(np.array([True, False, True]))))
    np.testing.assert_array_equal(after[[0, 2]], first[[0, 2]])
    np.testing.assert_array_equal(after[1], before[1])
    assert not host(env.final_mask).any()
    for _ in range(3):
        *_, truncations, infos = env.step(convert(np.zeros(3, np.int64)))
    assert host(truncations).tolist() == [False, True, False]
    assert infos[0]["episodes"] == 1
    last = host(env.final_observation)
    env.reset_envs(convert(np.array([True, False, False])))
    assert host(env.final_mask).tolist() == [False, True, False], "what the others show stays"
    np.testing.assert_array_equal(host(env.final_observation)[1:], last[1:])
    assert (last[1] != host(env.observations)[1]).any()
    for wrong in (np.ones(2, bool), np.ones(3, int)):
        with pytest.raises(ConfigError, match=r"give \(3,\) of bool"):
            env.reset_envs(convert(wrong))


# -- randomness, statistics, state --


def test_start_waits_and_seeds(task: Task) -> None:
    """Random starts follow the seed, differ between envs and do not depend on num_envs."""

    def starts(num_envs: int, seed: int) -> list[list[int]]:
        env = GBxCuLEEnv(task.kwargs["rom"], num_envs=num_envs, max_steps=1, start_waits=7)
        env.reset(seed=seed)
        slots = []
        for _ in range(6):
            slots.append(env._episodes.envs.slots.tolist())
            env.step(np.zeros(num_envs, int))
        return slots

    one, again, other = starts(8, 1), starts(8, 1), starts(8, 2)
    assert one == again
    assert one != other
    assert len({slot for row in one for slot in row}) > 4
    assert [row[:3] for row in one] == starts(3, 1)


def test_sticky_actions_repeat(task: Task) -> None:
    actions = random_actions(60, 8)
    env = GBxCuLEEnv(task.kwargs["rom"], num_envs=8, sticky_actions=0.5)
    env.reset(seed=1)
    repeats, previous = 0, None
    for row in actions:
        env.step(row)
        executed = env.taken_actions.copy()
        if previous is None:
            np.testing.assert_array_equal(executed, row)
        else:
            assert ((executed == row) | (executed == previous)).all()
            repeats += int((executed != row).sum())
        previous = executed
    # Half of the steps stick, and 7 of 8 of those differ from the new action.
    assert 0.35 < repeats / (59 * 8) < 0.53


def test_statistics_equal_the_host_s_count(task: Task) -> None:
    actions = random_actions(40, 16, seed=5)
    env = GBxCuLEEnv(**task.kwargs, num_envs=16, max_steps=9, log_interval=40, info_mode="full")
    env.reset()
    returns, ended = np.zeros(16), []
    for row in actions:
        _, rewards, terminals, truncations, infos = env.step(row)
        returns += rewards
        ended += [float(value) for value in returns[terminals | truncations]]
        returns[terminals | truncations] = 0
    (info,) = infos
    assert info["episodes"] == len(ended) > 16
    assert info["episode_return"] == pytest.approx(np.mean(ended), abs=1e-4)
    assert info["trunc_rate"] + info["done_rate"] == pytest.approx(info["reset_rate"])
    assert 0 <= info["dist_p10"] <= info["dist_p50"] <= info["dist_p90"] <= 1
    assert info["dist_below_tau"] == pytest.approx(np.mean(np.asarray(env.distance) < env.tau))
    shares = [info[f"action_hist/{name}"] for name in CODEC.actions]
    assert shares == pytest.approx((np.bincount(actions.ravel(), minlength=NUM_ACTIONS) / actions.size).tolist())


def test_info_modes(task: Task) -> None:
    for mode, expected in (("none", None), ("stats", False), ("full", True)):
        env = GBxCuLEEnv(**task.kwargs, info_mode=mode, log_interval=1)
        env.reset()
        infos = env.step(np.zeros(1, int))[4]
        assert (infos == []) if expected is None else (("action_hist/NOOP" in infos[0]) == expected)


@pytest.mark.parametrize("io", ["numpy", "torch"])
def test_saved_state_continues_exactly(task: Task, io: str) -> None:
    options = {"num_envs": 3, "max_steps": 7, "start_waits": 3, "sticky_actions": 0.2, "stack_k": 2, "io": io}
    actions = random_actions(20, 3)
    env = GBxCuLEEnv(task.kwargs["rom"], **options)
    other = GBxCuLEEnv(task.kwargs["rom"], **options)
    convert = torch.from_numpy if io == "torch" else np.asarray
    env.reset(seed=9)
    for row in actions[:10]:
        env.step(convert(row))
    other.load_state_dict(env.state_dict())
    np.testing.assert_array_equal(host(other.observations), host(env.observations))
    for row in actions[10:]:
        parts, others = env.step(convert(row)), other.step(convert(row))
        assert_same([[host(part) for part in parts[:4]]], [[host(part) for part in others[:4]]])
    assert (env.emulator.state_hash() == other.emulator.state_hash()).all()
    with pytest.raises(StateError, match="num_envs"):
        GBxCuLEEnv(task.kwargs["rom"], **{**options, "num_envs": 2}).load_state_dict(env.state_dict())
    with pytest.raises(StateError, match="has frames_per_step 24, not 20"):
        GBxCuLEEnv(task.kwargs["rom"], **options, frames_per_step=20).load_state_dict(env.state_dict())
    with pytest.raises(StateError, match="not a saved env state"):
        env.load_state_dict({"tensors": {}})
