"""Returns against slow loops in NumPy, against frozen numbers, and by hand where episodes end."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cleanrl_style.a2c_overlap import td_targets
from cleanrl_style.dqn_nstep import n_step_returns
from cleanrl_style.ppo_lite import gae
from cleanrl_style.pqn import q_lambda_returns

STEPS, ENVS, GAMMA = 40, 6, 0.97


def rollout(seed: int) -> dict[str, np.ndarray]:
    """Random rewards, values and episode ends; no step is both terminal and truncated."""
    random = np.random.default_rng(seed)
    shape = (STEPS, ENVS)
    end = random.random(shape)
    parts = {name: random.normal(size=shape) for name in ("rewards", "values", "next_values")}
    return {**parts, "terminals": end < 0.1, "truncations": end > 0.9}


def tensors(parts: dict[str, np.ndarray], *names: str) -> list[torch.Tensor]:
    return [torch.from_numpy(parts[name]) for name in names]


def as_rollout(*parts: torch.Tensor) -> dict[str, torch.Tensor]:
    """A rollout of these, as PPO keeps it."""
    return dict(zip(("rewards", "values", "next_values", "terminals", "truncations"), parts, strict=True))


def slow_gae(parts: dict[str, np.ndarray], gae_lambda: float) -> np.ndarray:
    """The definition: the sum of discounted TD errors until the episode or the rollout ends."""
    advantages = np.zeros((STEPS, ENVS))
    for start in range(STEPS):
        for env in range(ENVS):
            weight = 1.0
            for step in range(start, STEPS):
                terminal, truncated = parts["terminals"][step, env], parts["truncations"][step, env]
                bootstrap = 0.0 if terminal else parts["next_values"][step, env]
                error = parts["rewards"][step, env] + GAMMA * bootstrap - parts["values"][step, env]
                advantages[start, env] += weight * error
                if terminal or truncated:
                    break
                weight *= GAMMA * gae_lambda
    return advantages


def slow_n_step(parts: dict[str, np.ndarray], n_step: int, start: int, env: int) -> tuple[float, float, int]:
    total, length = 0.0, 0
    for step in range(start, start + n_step):
        if parts["truncations"][step, env]:
            break
        total += GAMMA**length * parts["rewards"][step, env]
        length += 1
        if parts["terminals"][step, env]:
            return total, 0.0, length
    return total, GAMMA**length, length


@pytest.mark.parametrize("gae_lambda", [0.0, 0.5, 0.95, 1.0])
def test_gae_is_the_slow_loop(gae_lambda: float) -> None:
    parts = rollout(1)
    advantages, returns = gae({name: torch.from_numpy(part) for name, part in parts.items()}, GAMMA, gae_lambda)
    np.testing.assert_allclose(advantages.numpy(), slow_gae(parts, gae_lambda), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(returns.numpy(), slow_gae(parts, gae_lambda) + parts["values"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_step", [1, 3, 7])
def test_n_step_returns_are_the_slow_loop(n_step: int) -> None:
    parts = rollout(2)
    returns, discounts, lengths = n_step_returns(
        *tensors(parts, "rewards", "terminals", "truncations"), n_step=n_step, gamma=GAMMA
    )
    assert returns.shape == (STEPS - n_step + 1, ENVS)
    for start in range(len(returns)):
        for env in range(ENVS):
            total, discount, length = slow_n_step(parts, n_step, start, env)
            assert returns[start, env].item() == pytest.approx(total, abs=1e-12)
            assert discounts[start, env].item() == pytest.approx(discount, abs=1e-12)
            assert lengths[start, env].item() == length


def test_a_terminal_is_worth_nothing_and_a_truncation_its_value() -> None:
    rewards, values = torch.zeros(1, 3), torch.zeros(1, 3)
    terminals, truncations = torch.tensor([[True, False, False]]), torch.tensor([[False, True, False]])
    next_values = torch.full((1, 3), 10.0)
    assert td_targets(rewards, next_values, terminals, terminals | truncations, 0.9, 0.5).tolist() == [[0.0, 9.0, 9.0]]
    advantages, _ = gae(as_rollout(rewards, values, next_values, terminals, truncations), 0.9, 0.95)
    assert advantages.tolist() == [[0.0, 9.0, 9.0]]


@pytest.mark.parametrize("td_lambda", [0.0, 0.7, 1.0])
def test_td_targets_are_values_and_gae_advantages(td_lambda: float) -> None:
    """Where the value behind a step is that of the next step's observation, as within an episode."""
    rewards, terminals, truncations, next_values = tensors(
        rollout(3), "rewards", "terminals", "truncations", "next_values"
    )
    values = torch.cat([torch.zeros_like(next_values[:1]), next_values[:-1]])
    ended = terminals | truncations
    targets = td_targets(rewards, next_values, terminals, ended, GAMMA, td_lambda)
    advantages, _ = gae(as_rollout(rewards, values, next_values, terminals, truncations), GAMMA, td_lambda)
    torch.testing.assert_close(targets, values + advantages)
    if td_lambda == 0:
        assert torch.equal(targets, rewards + GAMMA * next_values * ~terminals)


def test_nothing_crosses_the_end_of_an_episode() -> None:
    """The reward after an end reaches no step before it, whichever end it was."""
    rewards = torch.tensor([[0.0, 0.0], [0.0, 0.0], [100.0, 100.0]])
    terminals = torch.tensor([[False, False], [True, False], [False, False]])
    truncations = torch.tensor([[False, False], [False, True], [False, False]])
    zeros = torch.zeros(3, 2)
    advantages, _ = gae(as_rollout(rewards, zeros, zeros, terminals, truncations), 0.9, 0.95)
    assert advantages[:2].abs().sum() == 0
    returns, discounts, lengths = n_step_returns(rewards, terminals, truncations, 3, 0.5)
    assert returns.tolist() == [[0.0, 0.0]]
    assert discounts.tolist() == [[0.0, 0.5]]
    assert lengths.tolist() == [[2, 1]], "the truncated window ends at the last observation of its episode"


def test_frozen_numbers() -> None:
    """Against a change of both the functions and the loops above."""
    rewards = torch.tensor([[1.0], [0.5], [-1.0], [2.0], [0.25]], dtype=torch.float64)
    values = torch.tensor([[0.3], [0.2], [0.1], [-0.4], [0.6]], dtype=torch.float64)
    next_values = torch.tensor([[0.2], [0.1], [0.9], [0.6], [-0.5]], dtype=torch.float64)
    terminals = torch.tensor([[False], [False], [False], [True], [False]])
    truncations = torch.tensor([[False], [False], [True], [False], [False]])
    advantages, returns = gae(as_rollout(rewards, values, next_values, terminals, truncations), 0.99, 0.95)
    assert advantages.flatten().tolist() == pytest.approx([1.0883905878, 0.2024355, -0.209, 2.4, -0.845], abs=1e-8)
    assert returns.flatten().tolist() == pytest.approx([1.3883905878, 0.4024355, -0.109, 2.0, -0.245], abs=1e-8)
    found = n_step_returns(rewards, terminals, truncations, 2, 0.99)
    wanted = ([1.495, 0.5, 0.0, 2.0], [0.9801, 0.99, 1.0, 0.0], [2, 1, 0, 1])
    for numbers, expected in zip(found, wanted, strict=True):
        assert numbers.flatten().tolist() == pytest.approx(expected)


def slow_q_lambda(parts: dict[str, np.ndarray], q_lambda: float, start: int, env: int) -> float:
    """The definition: the mean of the n-step returns, each with the weight (1 - lambda) lambda^(n-1). The longest,
    which ends with the episode or the rollout, has what is left."""
    values, total, mean, weight = parts["behind"][:, env], 0.0, 0.0, 1.0
    if parts["truncations"][start, env]:
        return values[start]
    for step in range(start, STEPS):
        distance = step - start
        if parts["truncations"][step, env]:  # of the step before, the value of this observation was the last
            return mean + weight * (total + GAMMA**distance * values[step])
        total += GAMMA**distance * parts["rewards"][step, env]
        if parts["terminals"][step, env]:
            return mean + weight * total
        bootstrapped = total + GAMMA ** (distance + 1) * values[step + 1]
        if step == STEPS - 1:
            return mean + weight * bootstrapped
        mean += weight * (1 - q_lambda) * bootstrapped
        weight *= q_lambda
    raise AssertionError


@pytest.mark.parametrize("q_lambda", [0.0, 0.65, 1.0])
def test_q_lambda_is_the_slow_loop(q_lambda: float) -> None:
    parts = rollout(4)
    parts["behind"] = np.random.default_rng(5).normal(size=(STEPS + 1, ENVS))
    arrays = {name: torch.from_numpy(part) for name, part in parts.items()}
    returns = q_lambda_returns(arrays | {"values": arrays["behind"]}, GAMMA, q_lambda)
    slow = [[slow_q_lambda(parts, q_lambda, start, env) for env in range(ENVS)] for start in range(STEPS)]
    np.testing.assert_allclose(returns.numpy(), slow, rtol=1e-9)
