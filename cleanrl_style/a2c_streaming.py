"""Streaming A2C: an actor-critic that learns from each step at once, from pixels, without a rollout buffer.
a2c_overlap.py is the same for more Game Boys and distant goals.

On several GPUs: torchrun --nproc_per_node=N cleanrl_style/a2c_streaming.py ...
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gbxcule_puffer.trainers import ConfigError, ObservationLayout, Run, SpeedFlags, Stopwatch, flag, load_weights
from gbxcule_puffer.trainers.blocks import Adam, Patches, layer_init, linear_schedule, object_layers, own_copy
from gbxcule_puffer.trainers.kernels import FastConvolutions
from gbxcule_puffer.trainers.launch import launch
from gbxcule_puffer.trainers.protocol import ActorCritic, EnvLike, PlayedEnv, Policy

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

EXP_NAME = Path(__file__).stem
LOSSES = ("policy_loss", "value_loss", "entropy", "value", "grad_norm")
Losses = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


@dataclass
class Args(SpeedFlags):
    num_envs: int = flag(64, "Game Boys in parallel, of each process", gpu=2048, smoke=8, least=1)
    update_every: int = flag(4, "steps whose gradients are summed into one optimizer step", gpu=1, least=1)
    lr: float = flag(2.5e-4, "learning rate", least=0)
    gamma: float = flag(0.99, "discount factor", least=0, most=1)
    norm_adv: bool = flag(True, "normalise the advantages of each loss")
    adv_floor: float = flag(
        0.1,
        "smallest deviation to divide advantages by: until an agent is rewarded, they are noise and stay small",
        least=1e-6,
    )
    value_coef: float = flag(0.5, "weight of the value loss")
    entropy_coef: float = flag(0.02, "weight of the entropy bonus")
    entropy_end: float | None = flag(
        None, "weight of the entropy bonus after --entropy-steps, reached in a straight line (default: constant)"
    )
    entropy_steps: int = flag(1_000_000, "steps over all environments until the weight is --entropy-end", least=1)
    grad_clip: float = flag(0.5, "maximum norm of the gradient")
    log_interval: int = flag(128, "steps between two records of metrics", gpu=64, smoke=16, least=1, resumable=True)
    total_env_steps: int = flag(2_000_000, smoke=512)
    eval_every_steps: int | None = flag(None, smoke=256)
    checkpoint_every: int | None = flag(None, smoke=128)
    media_every: int = flag(100_000, smoke=256)


SWEEP = {  # ranges of `puffer sweep` (docs/sweep.md); in pairs: on a CPU and on a GPU
    "num_envs": ("16,32,64,128,256", "512,1024,2048,4096,8192"),
    "update_every": "1,2,4,8",
    "lr": "5e-5:2e-3:log",
    "gamma": "0.95,0.98,0.99,0.995,0.998",
    "value_coef": "0.25,0.5,1",
    "entropy_coef": "3e-3:0.1:log",
}


class Agent(nn.Module):
    """Convolutions on the pictures, a hidden layer for their features and the other vectors, a policy and a value
    head."""

    def __init__(self, layout: ObservationLayout, num_actions: int, bf16: bool = False) -> None:
        super().__init__()
        self.layout, self.bf16 = layout, bf16
        self.convolutions = object_layers(layout) or nn.Sequential(
            Patches(layout.kind.most),  # 4x4 pixels as channels: 2x2 of them are 8x8 pixels, with stride 4
            layer_init(nn.Conv2d(16 * layout.picture_shape[0], 16, 2)),
            nn.ReLU(),
            layer_init(nn.Conv2d(16, 32, 4, stride=2)),
            nn.Flatten(),  # before ReLU: on a CPU, gradients in two orders of memory take it ten times as long
            nn.ReLU(),
        )
        size = self.convolutions(torch.zeros(1, *layout.picture_shape)).shape[1] + layout.vector_size
        self.hidden = nn.Sequential(layer_init(nn.Linear(size, 256)), nn.ReLU())
        self.policy = layer_init(nn.Linear(256, num_actions), 0.01)
        self.value = layer_init(nn.Linear(256, 1), 1.0)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (batch, num_actions) and values (batch,) of observations (batch, *shape)."""
        with torch.autocast(obs.device.type, torch.bfloat16, enabled=self.bf16):
            features = self.convolutions(self.layout.pixels(obs))
            hidden = self.hidden(self.layout.join(features, obs))
        hidden = hidden.float()
        return self.policy(hidden), self.value(hidden).squeeze(1)


def sample(logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """One action per row by the Gumbel trick: no host synchronisation, and no probabilities that could be invalid."""
    return (logits - torch.empty_like(logits).exponential_(generator=generator).log()).argmax(1)


def td_losses(
    logits: Tensor, value: Tensor, actions: Tensor, target: Tensor, adv_floor: float | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """(policy loss, value loss, entropy) of steps, (batch,). The advantage is the TD error; with `adv_floor` it is
    normalised, and `adv_floor` is the smallest deviation to divide by."""
    logprobs = logits.log_softmax(1)
    advantage = target - value.detach()
    if adv_floor is not None:
        advantage = (advantage - advantage.mean()) / advantage.std().clamp(min=adv_floor)
    policy_loss = -(advantage * logprobs.gather(1, actions[:, None]).squeeze(1)).mean()
    return policy_loss, 0.5 * (target - value).square().mean(), -(logprobs.exp() * logprobs).sum(1).mean()


def play_round(
    model: ActorCritic, env: EnvLike, losses: Losses, args: Args, coef: Tensor, sums: Tensor, clock: Stopwatch
) -> None:
    """--update-every steps of all Game Boys; adds the gradients of their losses to the model's, and LOSSES but the last
    to `sums`. `coef` is the entropy's weight."""
    for _ in range(args.update_every):
        # A copy: the backward pass may read it after the step has overwritten the original.
        logits, value = model(env.observations.clone())
        actions = sample(logits.detach())
        clock.mark("time/infer")
        _, rewards, terminals, _, _ = env.step(actions)
        clock.mark("time/env")
        # Where the action led, also in envs that have already begun a new episode: a truncated episode is
        # bootstrapped from it, a terminal one from zero.
        with torch.no_grad():
            _, next_value = model(env.final_observation)
        target = rewards + args.gamma * next_value * ~terminals
        policy_loss, value_loss, entropy = losses(logits, value, actions, target)
        loss = (policy_loss + args.value_coef * value_loss - coef * entropy) / args.update_every
        loss.backward()
        sums[:4] += torch.stack([policy_loss, value_loss, entropy, value.mean()]).detach() / args.update_every
        clock.mark("time/learn")


def take_step(model: nn.Module, optimizer: Optimizer, args: Args) -> Tensor:
    """An optimizer step along the gradients, clipped. Returns their norm, and leaves zeros for the next round's."""
    norm = nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)  # a recorded round adds to the same tensors
    return norm


def play(model: Agent, env: PlayedEnv, greedy: bool, seed: int) -> Policy:
    """A copy of the model as a policy for `env`: its likeliest actions, or samples from its own random stream."""
    model, generator = own_copy(model, env, seed)
    return lambda obs, starts=None: model(obs)[0].argmax(1) if greedy else sample(model(obs)[0], generator)


def load_policy(checkpoint: dict[str, Any], env: PlayedEnv, seed: int, greedy: bool = False) -> Policy:
    """The policy of a checkpoint of this script in `env`, for evaluate.py and `puffer record`."""
    model = Agent(env.layout, env.codec.num_actions)
    load_weights(model, checkpoint["model"])
    return play(model, env, greedy, seed)


def train(args: Args, run: Run) -> None:
    """One run, from its envs to its report."""
    if args.norm_adv and args.num_envs < 2:
        raise ConfigError(
            f"--num-envs {args.num_envs} leaves one advantage, which cannot be normalised: give --no-norm-adv"
        )
    (env,) = run.open_envs()
    model = run.to_device(Agent(env.layout, env.codec.num_actions, args.bf16), channels_last=True)
    if run.world.rank:
        torch.manual_seed(args.seed + run.world.rank)
    optimizer = Adam(model.parameters(), lr=args.lr, eps=1e-5)
    run.restore(LOSSES, {"model": model, "optimizer": optimizer})
    coef = torch.zeros((), device=run.device)

    # Fast and special: without these lines the results are the same except for rounding.
    if args.bf16 and env.layout.kind.is_picture:
        model.convolutions = FastConvolutions(model.convolutions)
    forward = run.compiled(model)
    losses = partial(run.compiled(td_losses), adv_floor=args.adv_floor if args.norm_adv else None)
    learn = run.recorded(partial(play_round, forward, env, losses, args, coef, run.losses.sums), args.graph_steps)
    step = run.replayed(partial(take_step, model, optimizer, args), args.cuda_graph)

    entropy_end = args.entropy_coef if args.entropy_end is None else args.entropy_end
    for _ in run.updates(args.update_every, max(1, args.log_interval // args.update_every), partial(play, model)):
        weight = linear_schedule(args.entropy_coef, entropy_end, args.entropy_steps, run.step)
        coef.fill_(weight)
        learn()
        run.world.average_gradients(model)
        run.losses.sums[4] += step()
        run.losses.count += 1
        run.clock.mark("time/learn")
        run.log({"charts/entropy_coef": weight})


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one training; bad input is one line on stderr and exit code 2."""
    return launch(train, Args, EXP_NAME, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
