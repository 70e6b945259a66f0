"""PPO: rollouts of all envs on the device, clipped updates over minibatches. Run it with --help to see the flags.

On several GPUs: torchrun --nproc_per_node=N cleanrl_style/ppo_lite.py ...
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from gbxcule_puffer.errors import ConfigError  # before torch, whose threads it keeps from spinning

# isort: split
import torch
from torch import Tensor, nn

from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.trainers import GraphFlags, Policy, Run, Stopwatch, World, blocks, load_weights
from gbxcule_puffer.trainers.launch import launch

EXP_NAME = Path(__file__).stem
LOSSES = ("policy_loss", "value_loss", "entropy", "approx_kl", "clipfrac", "grad_norm")
OWN = {"logprobs": 0, "values": 0, "next_values": 0, "advantages": 0, "returns": 0}
"""Of a rollout, with so many steps more."""


@dataclass
class Args(GraphFlags):
    num_envs: int = 32
    """Game Boys in parallel, of each process"""
    num_steps: int = 128
    """steps of each env in a rollout"""
    lr: float = 5e-4
    """learning rate"""
    anneal_lr: bool = False
    """lower the learning rate to 0 over total_env_steps"""
    gamma: float = 0.99
    """discount factor"""
    gae_lambda: float = 0.95
    """lambda of the generalised advantage estimation"""
    clip_coef: float = 0.2
    """how far the probability ratio of an update counts"""
    value_clip: float | None = None
    """how far a value may move in an update (default: as far as it likes)"""
    norm_adv: bool = True
    """normalise the advantages of each minibatch"""
    value_coef: float = 0.5
    """weight of the value loss"""
    entropy_coef: float = 0.01
    """weight of the entropy bonus"""
    grad_clip: float = 0.5
    """maximum norm of the gradient"""
    update_epochs: int = 2
    """passes over a rollout"""
    num_minibatches: int = 16
    """optimizer steps of a pass"""
    reuse_values: bool = False
    """take the value of where a step led from the next step's forward, so that a step has one forward, not two; the
    last step of an episode that is truncated is not learned from"""
    bf16: bool = False
    """run the model in bfloat16 where torch.autocast does"""
    log_interval: int = 1
    """rollouts between two records of metrics"""

    on_gpu: ClassVar = {
        **dict(num_envs=4096, num_steps=32, num_minibatches=32),
        **dict(total_env_steps=100_000_000, eval_every_steps=524_288, eval_envs=50, media_every=20_000_000),
    }
    in_smoke: ClassVar = {
        **dict(num_envs=4, num_steps=8, num_minibatches=4, total_env_steps=128),
        **dict(eval_every_steps=64, checkpoint_every=64, media_every=128),
    }
    counts: ClassVar = ("num_envs", "num_steps", "update_epochs", "num_minibatches", "log_interval")
    shares: ClassVar = ("gamma", "gae_lambda")

    def check(self) -> None:
        super().check()
        if (steps := self.num_steps * self.num_envs) < 2 * self.num_minibatches:
            text = f"--num-minibatches {self.num_minibatches} leaves minibatches of under 2 of {steps} steps"
            raise ConfigError(f"{text}: give fewer")

    def free_on_resume(self) -> set[str]:
        return super().free_on_resume() - ({"total_env_steps"} if self.anneal_lr else set())


class Agent(nn.Module):
    """Convolutions on the pictures, and a policy and a value head."""

    def __init__(self, layout: ObservationLayout, num_actions: int, bf16: bool = False) -> None:
        super().__init__()
        self.trunk, self.bf16 = blocks.Trunk(layout), bf16
        self.policy = blocks.layer_init(nn.Linear(blocks.FEATURES, num_actions), 0.01)
        self.value = blocks.layer_init(nn.Linear(blocks.FEATURES, 1), 1.0)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (batch, num_actions) and values (batch,) of observations (batch, *shape)."""
        with torch.autocast(obs.device.type, torch.bfloat16, enabled=self.bf16):
            hidden = self.trunk(obs)
            return self.policy(hidden).float(), self.value(hidden).float().squeeze(1)


def gae(rollout: Mapping[str, Tensor], gamma: float, gae_lambda: float) -> tuple[Tensor, Tensor]:
    """(advantages, returns) by generalised advantage estimation, all (num_steps, num_envs).

    `values` are of the observations the actions were chosen by, `next_values` of those the actions led to, before any
    autoreset. Behind a terminal nothing is to come; behind a truncation the value says what would have been to come.
    """
    deltas = rollout["rewards"] + gamma * rollout["next_values"] * ~rollout["terminals"] - rollout["values"]
    ended = rollout["terminals"] | rollout["truncations"]
    advantages = torch.empty_like(deltas)
    later = torch.zeros_like(deltas[0])
    for step in reversed(range(len(deltas))):
        later = deltas[step] + gamma * gae_lambda * later * ~ended[step]
        advantages[step] = later
    return advantages, advantages + rollout["values"]


def ppo_losses(
    logits: Tensor, values: Tensor, batch: Mapping[str, Tensor], clip_coef: float, value_clip: float | None = None
) -> tuple[Tensor, ...]:
    """(policy loss, value loss, entropy, approx_kl, clipfrac) of a minibatch; the last two tell how far the policy has
    moved on. `batch`: actions, advantages and returns, and the logprobs and values when it was collected, (batch,).
    """
    logprobs = logits.log_softmax(1)
    log_ratio = logprobs.gather(1, batch["actions"][:, None]).squeeze(1) - batch["logprobs"]
    ratio, advantages = log_ratio.exp(), batch["advantages"]
    policy_loss = -torch.min(advantages * ratio, advantages * ratio.clamp(1 - clip_coef, 1 + clip_coef)).mean()
    errors = (values - batch["returns"]).square()
    if value_clip is not None:
        near = batch["values"] + (values - batch["values"]).clamp(-value_clip, value_clip)
        errors = torch.max(errors, (near - batch["returns"]).square())
    entropy = -(logprobs.exp() * logprobs).sum(1).mean()
    approx_kl = (ratio - 1 - log_ratio).mean()  # http://joschu.net/blog/kl-approx.html
    clipfrac = ((ratio - 1).abs() > clip_coef).float().mean()
    return policy_loss, 0.5 * errors.mean(), entropy, approx_kl.detach(), clipfrac


@torch.no_grad()
def collect(model: Any, env: Any, rollout: Mapping[str, Tensor], clock: Stopwatch, reuse: bool = False) -> None:
    """Fills the rollout with num_steps steps of all envs; with `reuse` next_values of the last one only."""
    last = len(rollout["obs"]) - 1
    for step in range(len(rollout["obs"])):
        logits, value = model(env.observations)
        actions = blocks.sample(logits)
        logprobs = logits.log_softmax(1).gather(1, actions[:, None]).squeeze(1)
        # Before the step, which overwrites the observations.
        blocks.store(rollout, step, obs=env.observations, actions=actions, values=value, logprobs=logprobs)
        clock.mark("time/infer")
        _, rewards, terminals, truncations, _ = env.step(actions)
        clock.mark("time/env")
        blocks.store(rollout, step, rewards=rewards, terminals=terminals, truncations=truncations)
        if step == last or not reuse:
            # Where the action led, also in envs that have begun a new episode meanwhile: what a truncation is worth.
            blocks.store(rollout, step, next_values=model(env.final_observation)[1])
        clock.mark("time/infer")


def reuse_values(rollout: Mapping[str, Tensor], gamma: float) -> None:
    """Fills the next_values of all steps but the last with the values of the steps behind them. Behind a truncation
    that is the value of another episode: there it is one with which the step has no TD error."""
    values, rewards = rollout["values"], rollout["rewards"]
    cut = (rollout["truncations"] & ~rollout["terminals"])[:-1]
    without_error = (values - rewards)[:-1] / (gamma or 1.0)
    rollout["next_values"][:-1] = torch.where(cut, without_error, values[1:])


def loss_of(model: nn.Module, args: Args, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and all of LOSSES but the last."""
    if args.norm_adv:
        advantages = batch["advantages"]
        batch = {**batch, "advantages": (advantages - advantages.mean()) / (advantages.std() + 1e-8)}
    logits, values = model(batch["obs"])
    losses = ppo_losses(logits, values, batch, args.clip_coef, args.value_clip)
    return losses[0] + args.value_coef * losses[1] - args.entropy_coef * losses[2], torch.stack(losses)


def minibatches(model: nn.Module, optimizer: Any, rollout: Mapping[str, Tensor], args: Args) -> blocks.Minibatches:
    """Those of a rollout, of what the loss is made of."""
    kept = {name: rollout[name] for name in ("obs", "actions", "logprobs", "values", "advantages", "returns")}
    return blocks.Minibatches(kept, args.num_minibatches, partial(loss_of, model, args), optimizer, args.cuda_graph)


def learn(
    model: nn.Module,
    optimizer: Any,
    rollout: Mapping[str, Tensor],
    batches: blocks.Minibatches,
    args: Args,
    world: World,
) -> Tensor:
    """All epochs and minibatches of a rollout; returns the mean of each of LOSSES, on the device."""
    if args.reuse_values:
        reuse_values(rollout, args.gamma)
    for name, part in zip(("advantages", "returns"), gae(rollout, args.gamma, args.gae_lambda), strict=True):
        rollout[name].copy_(part)
    means = torch.zeros(len(LOSSES), device=rollout["returns"].device)
    for losses in batches.gradients(args.update_epochs):
        world.average_gradients(model)
        norm = nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
        optimizer.step()
        means[:-1] += losses
        means[-1] += norm
    return means / (args.update_epochs * args.num_minibatches)


def play(model: nn.Module, env: Any, greedy: bool, seed: int) -> Policy:
    """A copy of the model as a policy for `env`: its likeliest actions, or samples from its own random stream."""
    model, generator = blocks.own_copy(model, env, seed)
    return lambda obs, starts=None: model(obs)[0].argmax(1) if greedy else blocks.sample(model(obs)[0], generator)


def load_policy(checkpoint: dict[str, Any], env: Any, seed: int, greedy: bool = False) -> Policy:
    """The policy of a checkpoint of this script in `env`, for evaluate.py and `puffer record`."""
    model = Agent(env.layout, env.codec.num_actions)
    load_weights(model, checkpoint["model"])
    return play(model, env, greedy, seed)


def train(args: Args, run: Run) -> None:
    """One run, from its envs to its report."""
    run.check_memory(blocks.rollout_memory(args, OWN, Agent), "lower --num-envs or --num-steps")
    (env,) = run.open_envs()
    model = run.place(Agent(env.layout, env.codec.num_actions, args.bf16), channels_last=True)
    torch.manual_seed(args.seed + run.world.rank)
    optimizer = blocks.Adam(model.parameters(), lr=args.lr, eps=1e-5)
    forward = run.compiled(model)
    rollout = blocks.allocate_rollout(args.num_steps, env.num_envs, env.layout, env.device, **OWN)
    run.restore(LOSSES, {"model": model, "optimizer": optimizer})

    act = run.recorded(partial(collect, forward, env, rollout, reuse=args.reuse_values), args.cuda_graph)
    batches = minibatches(forward, optimizer, rollout, args)

    for update in run.updates(args.num_steps, args.log_interval, partial(play, model)):
        lr = args.lr * (1 - (update - 1) / run.total_updates) if args.anneal_lr else args.lr
        optimizer.param_groups[0]["lr"] = lr
        act()
        run.losses.add(learn(model, optimizer, rollout, batches, args, run.world))
        run.clock.mark("time/learn")
        run.log({"charts/learning_rate": lr})


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one training; bad input is one line on stderr and exit code 2."""
    return launch(train, Args, EXP_NAME, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
