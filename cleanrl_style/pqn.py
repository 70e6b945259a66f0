"""PQN, parallelised Q-learning: Q(lambda) returns and LayerNorm in place of a replay and a target network. Run it with
--help to see the flags.

On several GPUs: torchrun --nproc_per_node=N cleanrl_style/pqn.py ...

Gallici et al. 2024, "Simplifying Deep Temporal Difference Learning", https://arxiv.org/abs/2407.04811
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
LOSSES = ("td_loss", "td_error", "value", "grad_norm")
OWN = {"values": 1, "returns": 0}  # of a rollout, with so many steps more


@dataclass
class Args(GraphFlags):
    num_envs: int = 64
    """Game Boys in parallel, of each process"""
    num_steps: int = 16
    """steps of each env in a rollout"""
    lr: float = 5e-4
    """learning rate"""
    anneal_lr: bool = False
    """lower the learning rate to 0 over total_env_steps"""
    gamma: float = 0.99
    """discount factor"""
    q_lambda: float = 0.65
    """lambda of the Q(lambda) returns: 0 is one-step Q-learning, 1 the returns to the end of the rollout"""
    eps_start: float = 1.0
    """share of random actions at first"""
    eps_end: float = 0.05
    """share of random actions in the end"""
    eps_steps: int = 100_000
    """steps over all environments until then"""
    grad_clip: float = 10.0
    """maximum norm of the gradient"""
    update_epochs: int = 2
    """passes over a rollout"""
    num_minibatches: int = 8
    """optimizer steps of a pass"""
    log_interval: int = 1
    """rollouts between two records of metrics"""

    on_gpu: ClassVar = {
        **dict(num_envs=4096, num_steps=32, num_minibatches=32, eps_steps=2_000_000, total_env_steps=100_000_000),
        **dict(eval_every_steps=524_288, eval_envs=50, media_every=20_000_000),
    }
    in_smoke: ClassVar = dict(
        num_envs=4, num_steps=8, total_env_steps=128, eval_every_steps=64, checkpoint_every=64, media_every=128
    )
    counts: ClassVar = ("num_envs", "num_steps", "update_epochs", "num_minibatches", "eps_steps", "log_interval")
    shares: ClassVar = ("gamma", "q_lambda", "eps_start", "eps_end")

    def check(self) -> None:
        super().check()
        if (steps := self.num_steps * self.num_envs) < self.num_minibatches:
            raise ConfigError(f"--num-minibatches {self.num_minibatches} is more than {steps} steps: give fewer")

    def free_on_resume(self) -> set[str]:
        return super().free_on_resume() - ({"total_env_steps"} if self.anneal_lr else set())


class QNetwork(nn.Module):
    """Convolutions on the pictures, each layer normalised before its ReLU, and the actions' values.

    LayerNorm bounds what bootstrapping can make of the values, so that no target network is needed.
    """

    def __init__(self, layout: ObservationLayout, num_actions: int) -> None:
        super().__init__()
        self.trunk = blocks.Trunk(layout, normalised=True)
        self.head = blocks.layer_init(nn.Linear(blocks.FEATURES, num_actions), 0.01)

    def forward(self, obs: Tensor) -> Tensor:
        """Values (batch, num_actions) of observations (batch, *shape)."""
        return self.head(self.trunk(obs))


@torch.no_grad()
def collect(model: Any, env: Any, rollout: Mapping[str, Tensor], epsilon: Tensor, clock: Stopwatch) -> None:
    """Fills the rollout with num_steps steps of all envs. One forward a step: the values that a step acts by are what
    the step before bootstraps from."""
    for step in range(len(rollout["obs"])):
        values = model(env.observations)
        actions = blocks.explore(values, epsilon)
        # Before the step, which overwrites the observations.
        blocks.store(rollout, step, obs=env.observations, actions=actions, values=values.amax(1))
        clock.mark("time/infer")
        _, rewards, terminals, truncations, _ = env.step(actions)
        blocks.store(rollout, step, rewards=rewards, terminals=terminals, truncations=truncations)
        clock.mark("time/env")
    rollout["values"][-1] = model(env.observations).amax(1)
    clock.mark("time/infer")


def q_lambda_returns(rollout: Mapping[str, Tensor], gamma: float, q_lambda: float) -> Tensor:
    """Q(lambda) returns (num_steps, num_envs); `values` are the best ones of each step's observation and of the one
    behind the last.

    Behind a terminal nothing is to come. A truncated step has no return, since the observation that it led to is of
    another episode: there stands the value of its own observation, from which the step before bootstraps.
    """
    rewards, values, terminals = rollout["rewards"], rollout["values"], rollout["terminals"]
    returns, later = torch.empty_like(rewards), values[-1]
    for step in reversed(range(len(rewards))):
        ahead = torch.lerp(values[step + 1], later, q_lambda)
        later = rewards[step] + gamma * ahead * ~terminals[step]
        returns[step] = later = torch.where(rollout["truncations"][step], values[step], later)
    return returns


def loss_of(model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, in which a truncated step has no part, and all of LOSSES but the last."""
    values = model(batch["obs"]).gather(1, batch["actions"][:, None]).squeeze(1)
    errors = (batch["returns"] - values) * ~batch["truncations"]
    loss = 0.5 * errors.square().mean()
    return loss, torch.stack([loss, errors.abs().mean(), values.mean()])


def minibatches(model: nn.Module, optimizer: Any, rollout: Mapping[str, Tensor], args: Args) -> blocks.Minibatches:
    """Those of a rollout, of what the loss is made of."""
    kept = {name: rollout[name] for name in ("obs", "actions", "returns", "truncations")}
    return blocks.Minibatches(kept, args.num_minibatches, partial(loss_of, model), optimizer, args.cuda_graph)


def learn(
    model: nn.Module,
    optimizer: Any,
    rollout: Mapping[str, Tensor],
    batches: blocks.Minibatches,
    args: Args,
    world: World,
) -> Tensor:
    """All epochs and minibatches of a rollout; returns the mean of each of LOSSES, on the device."""
    rollout["returns"].copy_(q_lambda_returns(rollout, args.gamma, args.q_lambda))
    means = torch.zeros(len(LOSSES), device=rollout["returns"].device)
    for losses in batches.gradients(args.update_epochs):
        world.average_gradients(model)
        norm = nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
        optimizer.step()
        means[:-1] += losses
        means[-1] += norm
    return means / (args.update_epochs * args.num_minibatches)


def play(model: nn.Module, epsilon: float, env: Any, greedy: bool, seed: int) -> Policy:
    """A copy of the model as a policy for `env`: its best actions, or `epsilon` random ones among them."""
    model, generator = blocks.own_copy(model, env, seed)
    return lambda obs, starts=None: blocks.explore(model(obs), 0.0 if greedy else epsilon, generator)


def load_policy(checkpoint: dict[str, Any], env: Any, seed: int, greedy: bool = False) -> Policy:
    """The policy of a checkpoint of this script in `env`, for evaluate.py and `puffer record`."""
    model = QNetwork(env.layout, env.codec.num_actions)
    load_weights(model, checkpoint["model"])
    return play(model, checkpoint["args"]["eps_end"], env, greedy, seed)


def train(args: Args, run: Run) -> None:
    """One run, from its envs to its report."""
    run.check_memory(blocks.rollout_memory(args, OWN, QNetwork), "lower --num-envs or --num-steps")
    (env,) = run.open_envs()
    model = run.place(QNetwork(env.layout, env.codec.num_actions))
    torch.manual_seed(args.seed + run.world.rank)
    optimizer = blocks.RAdam(model.parameters(), lr=args.lr)
    rollout = blocks.allocate_rollout(args.num_steps, env.num_envs, env.layout, env.device, **OWN)
    run.restore(LOSSES, {"model": model, "optimizer": optimizer})

    epsilon = torch.zeros((), device=env.device)
    forward = run.compiled(model)
    act = run.recorded(partial(collect, forward, env, rollout, epsilon), args.cuda_graph)
    batches = minibatches(forward, optimizer, rollout, args)

    for update in run.updates(args.num_steps, args.log_interval, partial(play, model, args.eps_end)):
        lr = args.lr * (1 - (update - 1) / run.total_updates) if args.anneal_lr else args.lr
        optimizer.param_groups[0]["lr"] = lr
        eps = blocks.linear_schedule(args.eps_start, args.eps_end, args.eps_steps, run.step - run.steps)
        epsilon.fill_(eps)
        act()
        run.losses.add(learn(model, optimizer, rollout, batches, args, run.world))
        run.clock.mark("time/learn")
        run.log({"charts/epsilon": eps, "charts/learning_rate": lr})


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one training; bad input is one line on stderr and exit code 2."""
    return launch(train, Args, EXP_NAME, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
