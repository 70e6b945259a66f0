"""Streaming A2C: one TD(0) loss a step, from pixels, without a rollout buffer. Run it with --help to see the flags.

With --td-lambda the targets reach over all steps of a round, whose losses are then computed at its end.

On several GPUs: torchrun --nproc_per_node=N cleanrl_style/a2c_streaming.py ...
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from gbxcule_puffer.errors import ConfigError  # before torch, whose threads it keeps from spinning

# isort: split
import torch
from torch import Tensor, nn

from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.trainers import GraphFlags, Policy, Run, blocks, load_weights
from gbxcule_puffer.trainers.launch import launch

EXP_NAME = Path(__file__).stem
LOSSES = ("policy_loss", "value_loss", "entropy", "value", "grad_norm")
MEMORY = 128


@dataclass
class Args(GraphFlags):
    num_envs: int = 64
    """Game Boys in parallel, of each process"""
    env_groups: int = 1
    """parts that the Game Boys are split into: one part's run while the others' losses are computed"""
    overlap: bool = True
    """on a GPU, run each group on a CUDA stream of its own; --no-overlap gives the same results, one after the other"""
    lr: float = 2.5e-4
    """learning rate"""
    gamma: float = 0.99
    """discount factor"""
    td_lambda: float = 0.0
    """lambda of the targets: 0 is TD(0), a loss a step; 1 all rewards to the end of a round of --update-every steps"""
    reuse_values: bool = False
    """bootstrap from the values of the forward that chooses the next action, so that a step but a round's last has one
    forward, not two; of an episode that is truncated the last step is not learned from"""
    norm_adv: bool = True
    """normalise the advantages of each loss"""
    adv_floor: float = 0.1
    """least deviation that advantages are divided by: where nobody is rewarded yet, they are noise and stay small"""
    value_coef: float = 0.5
    """weight of the value loss"""
    entropy_coef: float = 0.02
    """weight of the entropy bonus"""
    entropy_end: float | None = None
    """weight of the entropy bonus after --entropy-steps, reached in a straight line (default: it stays)"""
    entropy_steps: int = 1_000_000
    """steps over all environments until the weight is --entropy-end"""
    grad_clip: float = 0.5
    """maximum norm of the gradient"""
    update_every: int = 4
    """environment steps whose gradients are summed into one optimizer step"""
    recurrent: Literal["none", "gru"] = "none"
    """gru: a memory of 128 numbers behind the CNN; its gradient reaches back through --update-every steps"""
    bf16: bool = False
    """run the model in bfloat16 where torch.autocast does"""
    log_interval: int = 128
    """environment steps between two records of metrics"""
    total_env_steps: int = 2_000_000  # this and the next two: RunFlags says what they are
    eval_every_steps: int = 50_000
    media_every: int = 100_000

    on_gpu: ClassVar = {
        **dict(num_envs=2048, update_every=1, total_env_steps=100_000_000, log_interval=16),
        **dict(eval_every_steps=500_000, eval_envs=50, media_every=20_000_000),
    }
    in_smoke: ClassVar = dict(
        num_envs=8, total_env_steps=512, log_interval=16, eval_every_steps=256, checkpoint_every=128, media_every=256
    )
    counts: ClassVar = ("num_envs", "env_groups", "update_every", "entropy_steps", "log_interval")
    shares: ClassVar = ("gamma", "td_lambda")
    free: ClassVar = ("overlap",)

    def check(self) -> None:
        super().check()
        if self.norm_adv and self.num_envs < 2 * self.env_groups:
            raise ConfigError(f"--num-envs {self.num_envs} has nothing to normalise over: give --no-norm-adv")
        if self.adv_floor <= 0:
            raise ConfigError(f"--adv-floor {self.adv_floor} must be more than 0")
        if self.td_lambda and self.update_every == 1:
            raise ConfigError("--td-lambda looks over the steps of a round: give --update-every 16")
        if self.reuse_values and self.update_every == 1:
            raise ConfigError("--reuse-values is for rounds of several steps: give --update-every 4")


class PixelActorCriticCNN(nn.Module):
    """Convolutions on the pictures, a GRU if asked for, and a policy and a value head."""

    def __init__(self, layout: ObservationLayout, num_actions: int, gru: bool = False, bf16: bool = False) -> None:
        super().__init__()
        self.trunk = blocks.Trunk(layout)
        self.gru = nn.GRUCell(blocks.FEATURES, MEMORY) if gru else None
        self.state_size, self.bf16 = MEMORY if gru else 0, bf16
        self.policy = blocks.layer_init(nn.Linear(MEMORY if gru else blocks.FEATURES, num_actions), 0.01)
        self.value = blocks.layer_init(nn.Linear(MEMORY if gru else blocks.FEATURES, 1), 1.0)

    def forward(self, obs: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits (batch, num_actions), values (batch,) and the next state (batch, state_size) of observations
        (batch, *shape) and the state before; state_size is 0 without a GRU."""
        with torch.autocast(obs.device.type, torch.bfloat16, enabled=self.bf16):
            hidden = self.trunk(obs)
            if self.gru is not None:
                hidden = state = self.gru(hidden, state)
            return self.policy(hidden).float(), self.value(hidden).float().squeeze(1), state.float()


def td_targets(
    rewards: Tensor, next_values: Tensor, terminals: Tensor, ended: Tensor, gamma: float, td_lambda: float
) -> Tensor:
    """TD(lambda) targets of successive steps, all (steps, batch); of a single step it is the TD(0) target.

    `next_values` are of where the actions led, before any autoreset. Behind a terminal nothing is to come; behind a
    truncation, which `ended` has too, the value says what would have been to come.
    """
    targets, later = torch.empty_like(rewards), next_values[-1]
    for step in reversed(range(len(rewards))):
        ahead = torch.where(ended[step], next_values[step], torch.lerp(next_values[step], later, td_lambda))
        targets[step] = later = rewards[step] + gamma * ahead * ~terminals[step]
    return targets


def td_losses(
    logits: Tensor, value: Tensor, actions: Tensor, target: Tensor, adv_floor: float | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """(policy loss, value loss, entropy) of steps, (batch,); the advantage is the TD error, normalised if `adv_floor`,
    the least deviation to divide by, is given."""
    logprobs = logits.log_softmax(1)
    advantage = target - value.detach()
    if adv_floor is not None:
        advantage = (advantage - advantage.mean()) / advantage.std().clamp(min=adv_floor)
    policy_loss = -(advantage * logprobs.gather(1, actions[:, None]).squeeze(1)).mean()
    return policy_loss, 0.5 * (target - value).square().mean(), -(logprobs.exp() * logprobs).sum(1).mean()


def collect(
    groups: Sequence[blocks.Group], model: Any, losses: Any, args: Args, coef: Any, sums: Any, clock: Any
) -> None:
    """update_every steps of all groups and the gradients of their losses, which are added to the model's.

    The next step begins before the losses of the last one are computed, so that the Game Boys run meanwhile. All the
    model's work is in one order with the same weights: streams do not change a result. `coef` is the entropy's weight
    and `sums` the sums of LOSSES, both on the device, where they keep their place.
    """
    num_losses = len(groups) * (1 if args.td_lambda else args.update_every)
    acted: list[Any] = []  # (logits, value, actions, memory after them) of each group
    pending: list[list[Any]] = [[] for _ in groups]  # steps that have no loss yet
    through_time = torch.zeros((), device=sums.device)  # losses whose gradient the GRU carries back
    for step in range(args.update_every + 1):
        before, acted, outcomes = acted, [], []
        for number, group in enumerate(groups):
            state = group.state.clone()
            if step:
                outcomes.append(group.end_step(final=not args.reuse_values or step == args.update_every))
                state = before[number][3] * ~group.env.final_mask[:, None]
                clock.mark("time/env")
            if step == args.update_every:
                group.state.copy_(state.detach())
                continue
            # A copy: the backward pass may read it after the Game Boys have drawn over the original.
            logits, value, after = model(group.env.observations.clone(), state)
            actions = blocks.sample(logits.detach())
            acted.append((logits, value, actions, after))
            clock.mark("time/infer")
            group.begin_step(actions)
            clock.mark("time/env")
        for number, (rewards, terminals, ended, final_observation) in enumerate(outcomes):
            logits, value, actions, after = before[number]
            if args.reuse_values and step < args.update_every:
                next_value = acted[number][1].detach()  # of another episode, where this one has ended
                rewards, terminals = torch.where(ended & ~terminals, value.detach(), rewards), ended
            else:
                # Where the action led, also in envs that have begun a new episode meanwhile: a truncated episode is
                # bootstrapped from it, a terminal one from zero.
                with torch.no_grad():
                    next_value = model(final_observation, after.detach())[1]
            pending[number].append((logits, value, actions, rewards, next_value, terminals, ended))
            if args.td_lambda and step < args.update_every:
                continue
            steps = [torch.stack(parts) for parts in zip(*pending[number], strict=True)]
            pending[number].clear()
            targets = td_targets(*steps[3:], gamma=args.gamma, td_lambda=args.td_lambda)
            policy_loss, value_loss, entropy = losses(*(part.flatten(0, 1) for part in (*steps[:3], targets)))
            loss = (policy_loss + args.value_coef * value_loss - coef * entropy) / num_losses
            if args.recurrent == "none":
                loss.backward()
            else:
                through_time = through_time + loss
            sums[:4] += torch.stack([policy_loss, value_loss, entropy, value.mean()]).detach() / num_losses
        clock.mark("time/learn")
    if args.recurrent != "none":
        through_time.backward()
        clock.mark("time/learn")


def play(model: Any, env: Any, greedy: bool, seed: int) -> Policy:
    """A copy of the model as a policy in `env`: its likeliest actions, or samples from a random stream of its own."""
    model, generator = blocks.own_copy(model, env, seed)

    def act(obs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        logits, _, after = model(obs, state)
        return logits.argmax(1) if greedy else blocks.sample(logits, generator), after

    return blocks.remembering(act, env, model.state_size)


def load_policy(checkpoint: dict[str, Any], env: Any, seed: int, greedy: bool = False) -> Policy:
    """The policy of a checkpoint of this script in `env`, for evaluate.py and `puffer record`."""
    gru = checkpoint["args"]["recurrent"] == "gru"
    model = PixelActorCriticCNN(env.layout, env.codec.num_actions, gru)
    load_weights(model, checkpoint["model"])
    return play(model, env, greedy, seed)


def train(args: Args, run: Run) -> None:
    """One run, from its envs to its report."""
    envs = run.open_envs(args.env_groups)
    layout, num_actions = envs[0].layout, envs[0].codec.num_actions
    model = PixelActorCriticCNN(layout, num_actions, args.recurrent == "gru", args.bf16)
    model = run.place(model, channels_last=True)
    if run.world.rank:
        torch.manual_seed(args.seed + run.world.rank)
    optimizer = blocks.Adam(model.parameters(), lr=args.lr, eps=1e-5)
    groups = [blocks.Group(env, model.state_size, args.overlap) for env in envs]
    memories = {f"memory{number}": group.state for number, group in enumerate(groups)}
    run.restore(LOSSES, {"model": model, "optimizer": optimizer}, **memories)

    losses = partial(run.compiled(td_losses), adv_floor=args.adv_floor if args.norm_adv else None)
    entropy_end = args.entropy_coef if args.entropy_end is None else args.entropy_end
    coef = torch.zeros((), device=run.device)
    work = partial(collect, groups, run.compiled(model), losses, args, coef, run.losses.sums)
    play_round = run.recorded(work, args.cuda_graph)

    for _ in run.updates(args.update_every, max(1, args.log_interval // args.update_every), partial(play, model)):
        weight = blocks.linear_schedule(args.entropy_coef, entropy_end, args.entropy_steps, run.step)
        coef.fill_(weight)
        play_round()
        run.world.average_gradients(model)
        run.losses.sums[4] += nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
        run.losses.count += 1
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)  # a recorded round adds to the same tensors
        run.clock.mark("time/learn")
        run.log({"charts/entropy_coef": weight})


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one training; bad input is one line on stderr and exit code 2."""
    return launch(train, Args, EXP_NAME, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
