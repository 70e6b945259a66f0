"""A2C whose steps overlap: groups, memory, lambda targets and reused values against slow loops, and learning."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cleanrl_style.a2c_overlap import Agent, Args, main, play_round, sample, td_losses
from gbxcule_puffer.tasks.observe.layout import shades_layout
from gbxcule_puffer.toy import ToyEnv
from gbxcule_puffer.trainers.blocks import Group
from gbxcule_puffer.trainers.meters import Stopwatch
from tests.support.training_runs import merged, toy_run

CLOCK = Stopwatch(torch.device("cpu"), False)


@pytest.mark.parametrize("gru", [False, True])
@pytest.mark.parametrize("shape", [(1, 72, 80), (4, 72, 80), (1, 144, 160)])
def test_the_agent_fits_every_observation(shape: tuple[int, int, int], gru: bool) -> None:
    model = Agent(shades_layout(*shape), 8, gru)
    memory = torch.zeros((3, model.state_size))
    logits, values, after = model(torch.randint(0, 4, (3, *shape), dtype=torch.uint8), memory)
    assert logits.shape == (3, 8)
    assert values.shape == (3,)
    assert after.shape == memory.shape
    assert logits.softmax(1).max() < 0.2, "a new policy is nearly uniform"


def test_bf16_gives_nearly_the_same_logits() -> None:
    torch.manual_seed(1)
    exact, rounded = Agent(shades_layout(1, 72, 80), 8, gru=True), Agent(shades_layout(1, 72, 80), 8, True, bf16=True)
    rounded.load_state_dict(exact.state_dict())
    inputs = torch.randint(0, 4, (16, 1, 72, 80), dtype=torch.uint8), torch.rand(16, 128)
    for full, half in zip(exact(*inputs), rounded(*inputs), strict=True):
        assert half.dtype == torch.float32
        assert not torch.equal(full, half)
        torch.testing.assert_close(half, full, rtol=0.05, atol=0.05)
    for kept in rounded(*inputs)[:2]:
        assert not torch.equal(kept, kept.bfloat16().float()), "a value's error would be as large as an advantage"


def round_by_round(args: Args, model: Agent, envs: list[ToyEnv], rounds: int) -> torch.Tensor:
    """The gradients of `rounds` rounds, step by step as in a textbook: act, step, then the loss at once."""
    states = [torch.zeros((env.num_envs, model.state_size)) for env in envs]
    for _ in range(rounds):
        total = torch.zeros(())
        for step in range(args.update_every):
            for i, env in enumerate(envs):
                logits, value, after = model(env.observations.clone(), states[i])
                actions = sample(logits.detach())
                _, rewards, terminals, truncations, _ = env.step(actions)
                with torch.no_grad():
                    following = model(env.final_observation, after)[1]
                target = torch.where(terminals, rewards, rewards + args.gamma * following)
                if args.reuse_values and step < args.update_every - 1:
                    target = torch.where(truncations, value.detach(), target)
                policy_loss, value_loss, entropy = td_losses(logits, value, actions, target)
                total = total + policy_loss + args.value_coef * value_loss - 0.03 * entropy
                states[i] = after * ~(terminals | truncations)[:, None]
        (total / (args.update_every * len(envs))).backward()
        states = [state.detach() for state in states]
    return gradients(model)


def gradients(model: Agent) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("recurrent", ["none", "gru"])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_round_is_what_the_textbook_says(groups: int, recurrent: str, reuse: bool) -> None:
    """Episodes of 3 steps and rounds of 4: goals, truncations, resets and the memory over them all take part."""
    found = []
    for textbook in (True, False):
        torch.manual_seed(1)
        args = Args(env="toy", update_every=4, env_groups=groups, recurrent=recurrent, reuse_values=reuse)  # pyright: ignore
        envs = [ToyEnv(32, max_steps=3, seed=seed) for seed in range(groups)]
        model = Agent(envs[0].layout, 8, recurrent == "gru")
        for env in envs:
            env.reset()
        if textbook:
            found.append(round_by_round(args, model, envs, 3))
            continue
        members = [Group(env, model.state_size, overlap=True) for env in envs]
        for _ in range(3):
            play_round(model, members, td_losses, args, torch.tensor(0.03), torch.zeros(5), CLOCK)
        found.append(gradients(model))
        ended = sum(int(info["episodes"]) for env in envs for info in [env.read_infos()])
        assert ended > 32, "episodes have ended on the way"
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-6)
    assert found[0].abs().max() > 0.01


def test_lambda_targets_are_learned_from_at_the_end_of_a_round() -> None:
    """With lambda the loss is over all steps of a round; its gradient is that of the losses with the targets given."""
    found = []
    for whole in (True, False):
        torch.manual_seed(1)
        args = Args(env="toy", update_every=4, td_lambda=0.9)
        env = ToyEnv(32, max_steps=3, seed=0)
        model = Agent(shades_layout(1, 20, 20), 8)
        env.reset()
        if whole:
            group = Group(env, 0, overlap=True)
            play_round(model, [group], td_losses, args, torch.tensor(0.03), torch.zeros(5), CLOCK)
        else:
            no_memory, kept = torch.zeros((32, 0)), []
            for _ in range(4):
                logits, value, _ = model(env.observations.clone(), no_memory)
                actions = sample(logits.detach())
                _, rewards, terminals, truncations, _ = env.step(actions)
                following = model(env.final_observation, no_memory)[1].detach()
                kept.append(
                    (logits, value, actions, rewards.clone(), following, terminals.clone(), truncations.clone())
                )
            later, losses = kept[-1][4], []
            for logits, value, actions, rewards, following, terminals, truncations in reversed(kept):
                ahead = torch.where(truncations, following, 0.1 * following + 0.9 * later)
                later = torch.where(terminals, rewards, rewards + args.gamma * ahead)
                policy_loss, value_loss, entropy = td_losses(logits, value, actions, later)
                losses.append(policy_loss + args.value_coef * value_loss - 0.03 * entropy)
            (sum(losses, torch.zeros(())) / 4).backward()
        found.append(gradients(model))
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-6)
    assert found[0].abs().max() > 0.01


@pytest.mark.long
def test_it_learns_the_toy(tmp_path: Path) -> None:
    changes = {"num_envs": 32, "lr": 1e-3, "update_every": 2, "total_env_steps": 16_000, "eval_every_steps": 16_000}
    changes |= {"env_groups": 2, "eval_envs": 50, "eval_episodes": 100, "media_every": 100_000, "log_interval": 64}
    assert main(toy_run(tmp_path, recurrent="gru", **changes)) == 0
    assert merged(tmp_path)["eval/random_success_rate"] < 0.4
    assert merged(tmp_path)["eval/success_rate"] > 0.9
