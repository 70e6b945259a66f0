"""PPO and PQN with a memory: sequences are what was played, step by step; a task is learned that needs a memory."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from benchmarks.training import recall
from cleanrl_style import ppo_lite, ppo_recurrent, pqn_recurrent
from gbxcule_puffer.tasks.observe.layout import shades_layout
from gbxcule_puffer.toy import ToyEnv
from gbxcule_puffer.trainers.blocks import rollout_memory
from gbxcule_puffer.trainers.meters import Stopwatch
from tests.support.training_runs import merged, words

SCRIPTS = [pytest.param(script, id=script.EXP_NAME) for script in (ppo_recurrent, pqn_recurrent)]
RECALL = words(f"--rom micro/alu_loop --task {recall.__file__}:Recall --action-codec NOOP,LEFT,RIGHT --max-steps 4")
RECALL += words("--frames-per-step 1 --release-after-frames 1 --obs grey_20x20 --device cpu")
RECALL += words("--num-envs 64 --num-steps 8 --num-minibatches 2 --update-epochs 3 --gamma 0.95 --lr 3e-3")
RECALL += words("--eval-every-steps 1000000 --media-every 1000000 --eval-episodes 64 --eval-envs 64")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def network(script: ModuleType, kind: str) -> Any:
    torch.manual_seed(1)
    return (script.Agent if script is ppo_recurrent else script.QNetwork)(shades_layout(1, 20, 20), 8, kind)


def played(script: ModuleType, kind: str, rollouts: int) -> tuple[Any, Any, dict[str, torch.Tensor]]:
    """(network, flags, the last of several rollouts of the toy), whose episodes end after 3 steps at the latest."""
    env, model = ToyEnv(num_envs=6, max_steps=3), network(script, kind)
    env.reset(seed=1)
    args = script.Args(env="toy", num_steps=8, num_envs=6, recurrent=kind)
    rollout = script.empty_rollout(args, env.layout, env.device)
    memory, clock = torch.zeros_like(rollout["memory"]), Stopwatch(env.device, False)
    for _ in range(rollouts):
        own = () if script is ppo_recurrent else (torch.tensor(0.5),)
        script.collect(model, env, rollout, memory, *own, clock)
    return model, args, rollout


@pytest.mark.parametrize("kind", ["gru", "lstm"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_sequences_are_what_was_played(script: ModuleType, kind: str) -> None:
    """With the memory that a rollout began with, and without one where an episode began in it."""
    model, _, rollout = played(script, kind, 2)
    ended = rollout["terminals"] | rollout["truncations"]
    assert rollout["memory"].any(1).sum() > 1 and ended[:-1].any() and not ended.all()
    envs = torch.tensor([4, 1, 3])
    unrolled = model.unroll(rollout["obs"][:, envs], rollout["memory"][envs], ended[:, envs])
    if script is ppo_recurrent:
        logits, values = unrolled
        logprobs = logits.log_softmax(1).gather(1, rollout["actions"][:, envs].flatten()[:, None]).squeeze(1)
        torch.testing.assert_close(logprobs, rollout["logprobs"][:, envs].flatten())
        values = values.view(8, 3)
    else:
        values = unrolled.amax(2)
    torch.testing.assert_close(values, rollout["values"][:8, envs])
    other = model.unroll(rollout["obs"][:, envs], torch.zeros_like(rollout["memory"][envs]), ended[:, envs])
    assert not torch.equal(*(each[0] if script is ppo_recurrent else each for each in (other, unrolled)))


@pytest.mark.parametrize("script", SCRIPTS)
def test_nothing_passes_from_one_episode_to_the_next(script: ModuleType) -> None:
    """No gradient, and no number."""
    model, steps = network(script, "lstm"), 5
    obs = torch.randint(4, (steps, 1, 1, 20, 20), dtype=torch.uint8)
    ended = torch.zeros((steps, 1), dtype=torch.bool)
    ended[1] = True
    memory = torch.randn((1, model.state_size), requires_grad=True)

    def last(memory: torch.Tensor) -> torch.Tensor:
        found = model.unroll(obs, memory, ended)
        return (found[0] if script is ppo_recurrent else found.flatten(0, 1))[2:]

    assert torch.equal(last(memory), last(torch.zeros_like(memory)))
    (gradient,) = torch.autograd.grad(last(memory).sum(), memory)
    assert not gradient.any()


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_memory_estimate_is_what_is_allocated(script: ModuleType) -> None:
    args = script.Args(env="toy", num_envs=16, num_steps=32, recurrent="lstm")
    rollout = script.empty_rollout(args, shades_layout(1, 20, 20), torch.device("cpu"))

    def of(kind: str) -> Any:
        return lambda layout, actions: (script.Agent if script is ppo_recurrent else script.QNetwork)(
            layout, actions, kind
        )

    estimate = rollout_memory(args, script.empty_rollout, of("lstm"))
    assert estimate["rollout"] == sum(part.nbytes for part in rollout.values())
    assert estimate["minibatch"] > rollout_memory(args, script.empty_rollout, of("gru"))["minibatch"]


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("script", "steps", "least", "most"),
    [
        pytest.param(ppo_lite, 2048, 0.2, 0.7, id="ppo_lite", marks=pytest.mark.long),
        pytest.param(ppo_recurrent, 7168, 0.9, 1.0, id="ppo_recurrent"),
    ],
)
def test_what_is_no_longer_shown_is_remembered(
    script: ModuleType, steps: int, least: float, most: float, tmp_path: Path
) -> None:
    """A cue of two, which an agent without a memory can only guess."""
    assert script.main([*RECALL, f"--total-env-steps={steps}", "--run-dir", str(tmp_path)]) == 0
    assert least <= merged(tmp_path)["eval/success_rate"] <= most
