"""The replay against the whole history of a run, kept in lists: windows, stacks, the ring's end, priorities, saving."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from cleanrl_style.dqn_nstep import sample_transitions
from gbxcule_puffer.env.step_end.step_end import StepEnd
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.tasks.observe.layout import ObservationLayout, shades_layout
from gbxcule_puffer.tasks.observe.pictures import PICTURES
from gbxcule_puffer.tasks.observe.pixels import unpack
from gbxcule_puffer.tasks.observe.stack import FrameStack
from gbxcule_puffer.toy import ToyEnv
from gbxcule_puffer.trainers.blocks.replay import PRIORITY_FLOOR, Replay, pack

CPU = torch.device("cpu")
ENVS, GAMMA = 5, 0.9


@dataclass
class History:
    """What happened: tensors (steps, num_envs, ...)."""

    obs: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    terminals: torch.Tensor
    truncations: torch.Tensor


def fill(replay: Replay, steps: int, serial: bool = False) -> History:
    """Plays the toy at random into the replay, all envs at once or one by one."""
    env = ToyEnv(num_envs=ENVS, side=3, max_steps=6, stack_k=replay.stack_k)
    obs, _ = env.reset(seed=1)
    generator = torch.Generator().manual_seed(2)
    rows = []
    for _ in range(steps):
        actions = torch.randint(8, (ENVS,), generator=generator)
        before = obs.clone()
        obs, rewards, terminals, truncations, _ = env.step(actions)
        parts = (before, actions, rewards.clone(), terminals.clone(), truncations.clone())
        rows.append(parts)
        replay.add(before, actions, rewards, terminals, truncations, serial)
    return History(*(torch.stack(column) for column in zip(*rows, strict=True)))


def make_replay(capacity: int, stack_k: int = 1, n_step: int = 3, alpha: float = 0.0) -> Replay:
    return Replay(capacity, ENVS, shades_layout(stack_k, 12, 12), CPU, n_step=n_step, alpha=alpha)


def moment(replay: Replay, index: int) -> tuple[int, int]:
    """(step since the beginning, env) of a transition's index."""
    row, env = divmod(index, ENVS)
    newest = replay.count - 1
    return newest - (newest - row) % replay.capacity, env


@pytest.mark.parametrize(
    ("capacity", "stack_k", "alpha"),
    [
        pytest.param(capacity, stack_k, alpha, marks=[pytest.mark.long] * ((capacity < 90) == (stack_k > 1)))
        for capacity in (200, 23)  # partly full, or wrapped
        for stack_k, alpha in ((1, 0.7), (3, 0.7), (1, 0.0), (3, 0.0))
    ],
)
def test_transitions_are_those_of_the_history(capacity: int, stack_k: int, alpha: float) -> None:
    n_step = 3
    replay = make_replay(capacity, stack_k, n_step, alpha)
    history = fill(replay, 90)
    torch.manual_seed(0)
    batch = sample_transitions(replay, 6000, GAMMA)
    seen, lengths, ended = set(), set(), set()
    for i in range(6000):
        step, env = moment(replay, int(batch["index"][i]))
        seen.add((step, env))
        assert torch.equal(batch["obs"][i], history.obs[step, env])
        assert batch["actions"][i] == history.actions[step, env]
        total, length, terminal = 0.0, 0, False
        while length < n_step and not terminal and not history.truncations[step + length, env]:
            total += GAMMA**length * float(history.rewards[step + length, env])
            terminal = bool(history.terminals[step + length, env])
            length += 1
        lengths.add(length)
        ended.add(terminal)
        assert (batch["weights"][i] > 0) == (length > 0)
        if length:
            assert batch["returns"][i].item() == pytest.approx(total, abs=1e-5)
            assert batch["discounts"][i].item() == pytest.approx(0.0 if terminal else GAMMA**length)
            if not terminal:
                assert torch.equal(batch["next_obs"][i], history.obs[step + length, env])
    oldest = max(0, 90 - capacity) + (stack_k - 1 if capacity < 90 else 0)
    assert seen == {(step, env) for step in range(oldest, 90 - n_step) for env in range(ENVS)}, "all, and no other"
    assert lengths == {0, 1, 2, 3} and ended == {False, True}


@pytest.mark.parametrize("capacity", [200, 23])
def test_sequences_are_those_of_the_history(capacity: int) -> None:
    replay = make_replay(capacity, stack_k=2)
    history = fill(replay, 60)
    drawn = replay.sample_sequences(500, 7)
    assert len(drawn.obs) == 7
    first = max(0, 60 - capacity) + (1 if capacity < 60 else 0)
    found = set()
    for i in range(500):
        matches = [
            (step, env)
            for step in range(first, 60 - 7 + 1)
            for env in range(ENVS)
            if torch.equal(drawn.actions[:, i], history.actions[step : step + 7, env])
            and torch.equal(drawn.rewards[:, i], history.rewards[step : step + 7, env])
        ]
        step, env = matches[0]
        found.add((step, env))
        assert torch.equal(drawn.obs[:, i], history.obs[step : step + 7, env])
        assert torch.equal(drawn.terminals[:, i], history.terminals[step : step + 7, env])
        assert torch.equal(drawn.truncations[:, i], history.truncations[step : step + 7, env])
    assert {step for step, _ in found} == set(range(first, 60 - 7 + 1))


@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_one_env_at_a_time_writes_the_same(alpha: float) -> None:
    together, serial = make_replay(40, 2, alpha=alpha), make_replay(40, 2, alpha=alpha)
    fill(together, 55)
    fill(serial, 55, serial=True)
    one, other = together.state_dict(), serial.state_dict()
    assert all(torch.equal(torch.as_tensor(one[name]), torch.as_tensor(other[name])) for name in one)


def test_draws_follow_the_priorities() -> None:
    replay = make_replay(40, alpha=0.5)
    fill(replay, 40)
    valid = replay.priorities.view(-1) > 0
    assert valid.sum() == 37 * ENVS, "new transitions have the highest priority, unfinished windows none"
    index = valid.nonzero().squeeze(1)
    errors = torch.rand(len(index), generator=torch.Generator().manual_seed(3)) * 4
    weights = torch.ones(len(index))
    weights[:10] = 0
    replay.update_priorities(index, errors, weights)
    expected = (errors + PRIORITY_FLOOR) ** 0.5 * (weights > 0)
    batch = sample_transitions(replay, 200_000, GAMMA, beta=0.4)
    counts = torch.bincount(batch["index"], minlength=40 * ENVS)[index] / 200_000
    assert counts[:10].sum() == 0
    assert torch.allclose(counts, expected / expected.sum(), atol=4e-4)
    probability = expected / expected.sum()
    wanted = torch.zeros(40 * ENVS)
    wanted[index] = torch.where(probability > 0, probability**-0.4, 0)
    drawn = batch["weights"] > 0  # 0 where the first step was truncated
    ratio = batch["weights"][drawn] / wanted[batch["index"][drawn]]
    assert torch.allclose(ratio, ratio[0].expand_as(ratio), rtol=1e-4), "importance is the inverse of the share"
    assert batch["weights"].max() == 1
    assert replay.max_priority == max(1.0, expected.max())


@pytest.mark.parametrize("steps", [15, 50])
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_a_saved_replay_goes_on_the_same(steps: int, alpha: float) -> None:
    first, second = make_replay(30, 2, alpha=alpha), make_replay(30, 2, alpha=alpha)
    fill(first, steps)
    state = first.state_dict()
    assert len(state["pictures"]) == min(steps, 30), "no more than there is"
    second.load_state_dict(state)
    fill(first, 20)
    fill(second, 20)
    draws = []
    for replay in (first, second):
        torch.manual_seed(4)
        draws.append(replay.sample(300))
    assert all(torch.equal(one, other) for one, other in zip(*draws, strict=True))


@pytest.mark.parametrize("steps", [0, 37])
def test_a_saved_replay_can_go_on_with_new_episodes(steps: int) -> None:
    """No window and no stack spans the episodes before and after."""
    first, second = make_replay(60, 3), make_replay(60, 3)
    before = fill(first, steps) if steps else None
    second.load_state_dict(first.state_dict())
    second.cut_episodes()
    after = fill(second, 15)
    torch.manual_seed(1)
    batch = sample_transitions(second, 5000, GAMMA)
    row, env = batch["index"] // ENVS, batch["index"] % ENVS
    for i in (row == steps).nonzero().flatten().tolist():
        assert torch.equal(batch["obs"][i], after.obs[0, env[i]]), "a stack of its first picture"
    if before is not None:
        last = row == steps - 1
        assert last.any()
        goal = before.terminals[-1, env[last]]
        assert torch.equal(batch["weights"][last] > 0, goal), "the action cut off has no target"
        for i in (row == steps - 2).nonzero().flatten().tolist():
            if batch["discounts"][i] > 0:
                assert torch.equal(batch["next_obs"][i], before.obs[-1, env[i]]) or batch["weights"][i] == 0


def test_the_first_whole_window_can_be_drawn() -> None:
    replay = make_replay(40, n_step=3)
    fill(replay, 3)
    assert not replay.has(4)
    replay = make_replay(40, n_step=3)
    fill(replay, 4)
    assert replay.has(4) and not replay.has(5)
    assert set((replay.sample(50).index // ENVS).tolist()) == {0}


@pytest.mark.kernel
def test_pictures_are_packed_as_the_env_packs_them() -> None:
    screen = torch.randint(4, (3, 72, 80), dtype=torch.uint8)
    stack, step_end = FrameStack(screen, ObservationLayout(PICTURES["packed"], 1)), StepEnd(3, CPU)
    step_end.use(**stack.members)
    step_end.run("obs_only")
    assert torch.equal(pack(screen), stack.observations[:, 0])
    assert torch.equal(unpack(pack(screen)), screen)


def test_the_estimate_is_what_is_allocated() -> None:
    for alpha in (0.0, 0.5):
        replay = make_replay(100, 4, alpha=alpha)
        rings = [replay.pictures, replay.actions, replay.rewards, replay.terminals, replay.truncations, replay.ages]
        allocated = sum(ring.nbytes for ring in (*rings, replay.priorities))
        assert Replay.bytes_needed(100, ENVS, shades_layout(4, 12, 12), alpha) == allocated


def test_bad_sizes_are_named() -> None:
    for shape, capacity, n_step, message in (
        ((1, 12, 12), 40, 0, "n_step 0 must be at least 1"),
        ((4, 12, 12), 10, 3, "replay of 10 steps is too short"),
        ((1, 12, 10), 40, 3, "10 columns cannot be packed"),
    ):
        with pytest.raises(ConfigError, match=message):
            Replay(capacity, ENVS, shades_layout(*shape), CPU, n_step=n_step)
    with pytest.raises(StateError, match="pictures"):
        other = Replay(40, ENVS + 1, shades_layout(1, 12, 12), CPU, n_step=3)
        replay = make_replay(40)
        fill(replay, 5)
        other.load_state_dict(replay.state_dict())
