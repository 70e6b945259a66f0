"""Random network distillation: what is new is rewarded, in units of its own, and the training can go on exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from cleanrl_style import ppo_lite
from gbxcule_puffer.tasks.observe.layout import ObservationLayout, shades_layout
from gbxcule_puffer.tasks.observe.pictures import observation_kind
from gbxcule_puffer.trainers.blocks import Novelty
from gbxcule_puffer.trainers.distributed import World
from tests.support.training_runs import records, toy_run

STEPS, ENVS = 8, 6
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def novelty_of(layout: ObservationLayout) -> tuple[Novelty, dict[str, torch.Tensor]]:
    """(novelty, the rollout that it looks at)."""
    torch.manual_seed(1)
    args = ppo_lite.Args(env="toy", num_steps=STEPS, num_envs=ENVS)
    rollout = ppo_lite.empty_rollout(args, layout, CPU)
    return Novelty(layout, rollout, 0.99, World(), CPU), rollout


def look(novelty: Novelty, rollout: dict[str, torch.Tensor], obs: torch.Tensor) -> torch.Tensor:
    """The rewards of steps between observations (STEPS + 1, ENVS, ...)."""
    rollout["obs"].copy_(obs[:-1])
    novelty.look(obs[-1])
    return novelty.rollout["rewards"].clone()


def test_what_was_seen_often_is_rewarded_less_than_what_is_new() -> None:
    """A step is rewarded for the picture to which it led."""
    layout = shades_layout(2, 20, 20)
    novelty, rollout = novelty_of(layout)
    known = torch.randint(4, (4, *layout.shape), dtype=torch.uint8)
    for _ in range(80):
        look(novelty, rollout, known[torch.randint(4, (STEPS + 1, ENVS))])
        novelty.learn(2)
    obs = known[torch.randint(4, (STEPS + 1, ENVS))]
    obs[4, 2, 1, 5:9] = 3 - obs[4, 2, 1, 5:9]
    obs[7, 5, 0] = 3 - obs[7, 5, 0]  # an older picture of the stack
    rewards = look(novelty, rollout, obs)
    new = torch.zeros_like(rewards, dtype=torch.bool)
    new[3, 2] = True
    assert rewards[new].min() > 2 * rewards[~new].max() > 0


def test_pixels_are_normalised() -> None:
    """By their moments over all rollouts; one that never changed counts as much as the clip allows."""
    layout = shades_layout(1, 20, 20)
    novelty, rollout = novelty_of(layout)
    shades = [torch.randint(4, (STEPS + 1, ENVS, *layout.shape), dtype=torch.uint8) for _ in range(3)]
    for obs in shades:
        obs[..., 0, 0] = 2
        look(novelty, rollout, obs)
    seen = torch.cat([obs[:-1] for obs in shades]).flatten(0, 1) / 3.0
    mean, square = novelty.moments
    torch.testing.assert_close(mean, seen.mean(0))
    torch.testing.assert_close(square, seen.square().mean(0))
    given: list[torch.Tensor] = []
    novelty.target.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    changed = shades[0].clone()
    changed[1, 2, ..., 0, 0] = 3
    look(novelty, rollout, changed)
    assert given[0][:, 0, 0, 0].max() == 5.0 and all(each.abs().max() <= 5.0 for each in given)
    assert given[0][:, 0, 1:].std() == pytest.approx(1.0, abs=0.2)


def test_rewards_are_in_units_of_their_returns_and_pass_the_ends_of_episodes() -> None:
    layout = shades_layout(1, 20, 20)
    novelty, rollout = novelty_of(layout)
    rollout["terminals"].fill_(True)
    obs = torch.randint(4, (STEPS + 1, ENVS, *layout.shape), dtype=torch.uint8)
    for _ in range(5):
        rewards = look(novelty, rollout, obs)
    with torch.no_grad():
        errors = torch.stack([novelty._errors(each) for each in obs[1:]])
    torch.testing.assert_close(rewards, errors / novelty.scale.deviation)
    assert novelty.error == pytest.approx(errors.mean().item())
    assert torch.equal(novelty.rollout["next_values"][:-1], novelty.rollout["values"][1:])
    assert not novelty.rollout["terminals"].any()


@pytest.mark.parametrize("obs", ["shades", "packed", "rgb555", "luma", "tiles", "objects"])
def test_it_looks_at_every_kind_of_picture(obs: str) -> None:
    layout = ObservationLayout(observation_kind(obs), 2)
    novelty, rollout = novelty_of(layout)
    most = {"objects": 2, "packed": 256, "rgb555": 2**15}.get(obs, layout.kind.most)
    pictures: Any = torch.randint(most, (STEPS + 1, ENVS, *layout.shape)).to(layout.kept_dtype)
    rewards = look(novelty, rollout, pictures)
    novelty.learn(2)
    assert rewards.isfinite().all() and (rewards > 0).any()


def test_a_run_says_how_new_its_pictures_are(tmp_path: Path) -> None:
    sizes = {"num_envs": 16, "num_steps": 32, "num_minibatches": 4, "total_env_steps": 4096, "log_interval": 2}
    assert ppo_lite.main(toy_run(tmp_path, rnd_coef=0.5, eval_every_steps=4096, **sizes)) == 0
    new = [row["charts/novelty"] for row in records(tmp_path) if "charts/novelty" in row]
    assert len(new) == 4 and 0 < new[-1] < new[0]
