"""A2C that keeps up with the fastest games: the Game Boys take the next step while the losses of the last one are
computed. Targets may use all steps of a round (--td-lambda), and the agent may have a memory (--recurrent gru).
a2c_streaming.py is the algorithm alone.

On several GPUs: torchrun --nproc_per_node=N cleanrl_style/a2c_overlap.py ...
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from gbxcule_puffer.trainers import ConfigError, ObservationLayout, Run, SpeedFlags, Stopwatch, flag, load_weights
from gbxcule_puffer.trainers.blocks import (
    Adam,
    Group,
    Patches,
    layer_init,
    linear_schedule,
    object_layers,
    own_copy,
    remembering,
)
from gbxcule_puffer.trainers.kernels import FastConvolutions
from gbxcule_puffer.trainers.launch import launch
from gbxcule_puffer.trainers.protocol import PlayedEnv, Policy, RecurrentActorCritic

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

EXP_NAME = Path(__file__).stem
LOSSES = ("policy_loss", "value_loss", "entropy", "value", "grad_norm")
MEMORY = 128
Losses = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


@dataclass
class Args(SpeedFlags):
    num_envs: int = flag(64, "Game Boys in parallel, of each process", gpu=2048, smoke=8, least=1)
    update_every: int = flag(4, "steps whose gradients are summed into one optimizer step", gpu=1, least=1)
    env_groups: int = flag(
        1, "groups of Game Boys: one group runs while the losses of the others are computed", least=1
    )
    overlap: bool = flag(
        True,
        "on a GPU, run each group on its own CUDA stream; --no-overlap gives the same results, one by one",
        resumable=True,
    )
    lr: float = flag(2.5e-4, "learning rate", least=0)
    gamma: float = flag(0.99, "discount factor", least=0, most=1)
    td_lambda: float = flag(
        0.0,
        "lambda of the targets: 0 is TD(0), a loss a step; 1 all rewards to the end of a round of --update-every steps",
        least=0,
        most=1,
    )
    reuse_values: bool = flag(
        False,
        "bootstrap from the forward pass that chooses the next action: one forward per step, not two, except in the "
        "last step of a round; the last step of a truncated episode is not learned from",
    )
    recurrent: Literal["none", "gru"] = flag(
        "none",
        "gru: a memory of 128 numbers after the CNN; its gradient goes back through --update-every steps",
    )
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
    "td_lambda": "0,0.5,0.8,0.9,0.95",
}


class Agent(nn.Module):
    """Convolutions on the pictures, a hidden layer for their features and the other vectors, optionally a GRU, a policy
    and a value head. An episode begins with a memory (batch, state_size) of zeros; state_size is 0 without a GRU."""

    def __init__(self, layout: ObservationLayout, num_actions: int, gru: bool = False, bf16: bool = False) -> None:
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
        self.gru = nn.GRUCell(256, MEMORY) if gru else None
        self.state_size = MEMORY if gru else 0
        self.policy = layer_init(nn.Linear(self.state_size or 256, num_actions), 0.01)
        self.value = layer_init(nn.Linear(self.state_size or 256, 1), 1.0)

    def forward(self, obs: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits (batch, num_actions), values (batch,) and the next memory, from observations (batch, *shape) and the
        previous memory."""
        with torch.autocast(obs.device.type, torch.bfloat16, enabled=self.bf16):
            features = self.convolutions(self.layout.pixels(obs))
            hidden = self.hidden(self.layout.join(features, obs))
            if self.gru is not None:
                hidden = memory = self.gru(hidden, memory)
        hidden = hidden.float()
        return self.policy(hidden), self.value(hidden).squeeze(1), memory.float()


def sample(logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """One action per row by the Gumbel trick: no host synchronisation, and no probabilities that could be invalid."""
    return (logits - torch.empty_like(logits).exponential_(generator=generator).log()).argmax(1)


def td_targets(
    rewards: Tensor, next_values: Tensor, terminals: Tensor, ended: Tensor, gamma: float, td_lambda: float
) -> Tensor:
    """TD(lambda) targets of successive steps, all (steps, batch); for a single step it is the TD(0) target.

    `next_values` are those of the observations to which the actions led, before any autoreset. After a terminal the
    target has no next value. After a truncation, which is also in `ended`, it has.
    """
    targets, later = torch.empty_like(rewards), next_values[-1]
    for step in reversed(range(len(rewards))):
        ahead = torch.where(ended[step], next_values[step], torch.lerp(next_values[step], later, td_lambda))
        targets[step] = later = rewards[step] + gamma * ahead * ~terminals[step]
    return targets


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


class Choice(NamedTuple):
    """A step of a group before its outcome, (batch, ...) each; `memory` is the memory after it."""

    logits: Tensor
    value: Tensor
    actions: Tensor
    memory: Tensor


class Transition(NamedTuple):
    """A step of a group with its outcome, (batch, ...) each."""

    logits: Tensor
    value: Tensor
    actions: Tensor
    rewards: Tensor
    next_value: Tensor
    terminals: Tensor
    ended: Tensor


def begin_step(model: RecurrentActorCritic, group: Group, memory: Tensor, clock: Stopwatch) -> Choice:
    """Chooses the group's actions and starts its Game Boys with them."""
    # A copy: the backward pass may read it after the step has overwritten the original.
    logits, value, after = model(group.env.observations.clone(), memory)
    choice = Choice(logits, value, sample(logits.detach()), after)
    clock.mark("time/infer")
    group.begin_step(choice.actions)
    clock.mark("time/env")
    return choice


def transition(
    model: RecurrentActorCritic, chosen: Choice, outcome: tuple[Tensor, ...], following: Choice | None
) -> Transition:
    """A step with its outcome, and the value of the observation to which it led: that of the choice `following` it, if
    given."""
    rewards, terminals, ended, final_observation = outcome
    if following is not None:
        next_value = following.value.detach()  # where this episode has ended, it is another one's
        rewards, terminals = torch.where(ended & ~terminals, chosen.value.detach(), rewards), ended
    else:
        # Where the action led, also in envs that have already begun a new episode: a truncated episode is
        # bootstrapped from it, a terminal one from zero.
        with torch.no_grad():
            next_value = model(final_observation, chosen.memory.detach())[1]
    return Transition(chosen.logits, chosen.value, chosen.actions, rewards, next_value, terminals, ended)


def loss_of(steps: Sequence[Transition], losses: Losses, args: Args, coef: Tensor) -> tuple[Tensor, list[Tensor]]:
    """(loss, LOSSES but the last) of successive steps of a group."""
    logits, value, actions, *outcomes = (torch.stack(parts) for parts in zip(*steps, strict=True))
    targets = td_targets(*outcomes, gamma=args.gamma, td_lambda=args.td_lambda)
    flat = (part.flatten(0, 1) for part in (logits, value, actions, targets))
    policy_loss, value_loss, entropy = losses(*flat)
    loss = policy_loss + args.value_coef * value_loss - coef * entropy
    return loss, [policy_loss, value_loss, entropy, steps[-1].value.mean()]


def play_round(
    model: RecurrentActorCritic,
    groups: Sequence[Group],
    losses: Losses,
    args: Args,
    coef: Tensor,
    sums: Tensor,
    clock: Stopwatch,
) -> None:
    """--update-every steps of all groups; adds the gradients of their losses to the model's, and LOSSES but the last to
    `sums`. `coef` is the entropy's weight.

    The next step begins before the losses of the last one are computed, so that the Game Boys run meanwhile. The
    model's work is always in the same order with the same weights: streams do not change a result.
    """
    num_losses = len(groups) * (1 if args.td_lambda else args.update_every)
    through_time = torch.zeros((), device=sums.device)  # losses whose gradients go back through the GRU
    pending: list[list[Transition]] = [[] for _ in groups]  # steps of each group that have no loss yet
    chosen = [begin_step(model, group, group.memory.clone(), clock) for group in groups]
    for step in range(1, args.update_every + 1):
        last = step == args.update_every
        outcomes, following = [], []
        for group, choice in zip(groups, chosen, strict=True):
            outcomes.append(group.end_step(final=last or not args.reuse_values))
            memory = choice.memory * ~group.env.final_mask[:, None]
            clock.mark("time/env")
            if last:
                group.memory.copy_(memory.detach())
            else:
                following.append(begin_step(model, group, memory, clock))
        for number, (choice, outcome) in enumerate(zip(chosen, outcomes, strict=True)):
            reused = following[number] if args.reuse_values and not last else None
            pending[number].append(transition(model, choice, outcome, reused))
            if args.td_lambda and not last:
                continue
            loss, figures = loss_of(pending[number], losses, args, coef)
            pending[number].clear()
            if args.recurrent == "none":
                (loss / num_losses).backward()
            else:
                through_time = through_time + loss / num_losses
            sums[:4] += torch.stack(figures).detach() / num_losses
        chosen = following
        clock.mark("time/learn")
    if args.recurrent != "none":
        through_time.backward()
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

    def act(obs: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        logits, _, after = model(obs, memory)
        return logits.argmax(1) if greedy else sample(logits, generator), after

    return remembering(act, env, model.state_size)


def load_policy(checkpoint: dict[str, Any], env: PlayedEnv, seed: int, greedy: bool = False) -> Policy:
    """The policy of a checkpoint of this script in `env`, for evaluate.py and `puffer record`."""
    model = Agent(env.layout, env.codec.num_actions, checkpoint["args"]["recurrent"] == "gru")
    load_weights(model, checkpoint["model"])
    return play(model, env, greedy, seed)


def refuse_unusable(args: Args) -> None:
    """Raises: ConfigError for flags that exclude each other."""
    if args.norm_adv and args.num_envs < 2 * args.env_groups:
        raise ConfigError(
            f"--num-envs {args.num_envs} leaves one advantage, which cannot be normalised: give --no-norm-adv"
        )
    if args.td_lambda and args.update_every == 1:
        raise ConfigError("--td-lambda looks over the steps of a round: give --update-every 16")
    if args.reuse_values and args.update_every == 1:
        raise ConfigError("--reuse-values is for rounds of several steps: give --update-every 4")


def train(args: Args, run: Run) -> None:
    """One run, from its envs to its report."""
    refuse_unusable(args)
    envs = run.open_envs(args.env_groups)
    layout, num_actions = envs[0].layout, envs[0].codec.num_actions
    model = run.to_device(Agent(layout, num_actions, args.recurrent == "gru", args.bf16), channels_last=True)
    if run.world.rank:
        torch.manual_seed(args.seed + run.world.rank)
    optimizer = Adam(model.parameters(), lr=args.lr, eps=1e-5)
    groups = [Group(env, model.state_size, args.overlap) for env in envs]
    memories = {f"memory{number}": group.memory for number, group in enumerate(groups)}
    run.restore(LOSSES, {"model": model, "optimizer": optimizer}, **memories)
    coef = torch.zeros((), device=run.device)

    # Fast and special: without these lines the results are the same except for rounding.
    if args.bf16 and layout.kind.is_picture:
        model.convolutions = FastConvolutions(model.convolutions)
    forward = run.compiled(model)
    losses = partial(run.compiled(td_losses), adv_floor=args.adv_floor if args.norm_adv else None)
    learn = run.recorded(partial(play_round, forward, groups, losses, args, coef, run.losses.sums), args.graph_steps)
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
