"""PPO for an agent with a memory, a GRU or an LSTM: it learns from whole sequences of a rollout, so that it keeps what
the screen no longer shows. ppo_lite.py is PPO without a memory.

On several GPUs: torchrun --nproc_per_node=N cleanrl_style/ppo_recurrent.py ...
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from gbxcule_puffer.trainers import (
    ConfigError,
    ObservationLayout,
    Run,
    SpeedFlags,
    Stopwatch,
    World,
    flag,
    in_all,
    load_weights,
)
from gbxcule_puffer.trainers.blocks import (
    Adam,
    MemoryCell,
    Patches,
    ReturnScale,
    layer_init,
    object_layers,
    own_copy,
    remembering,
    rollout_memory,
    signed,
    state_size,
)
from gbxcule_puffer.trainers.kernels import FastConvolutions
from gbxcule_puffer.trainers.launch import launch
from gbxcule_puffer.trainers.protocol import EnvLike, PlayedEnv, Policy, RecurrentActorCritic

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

EXP_NAME = Path(__file__).stem
LOSSES = ("policy_loss", "value_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac", "grad_norm")
LOSSES += ("explained_variance",)
MOST_FACTOR = 1.5  # by which an update changes the learning rate
MEMORY = 128
Unroll = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]  # Agent.unroll, compiled or not


@dataclass
class Args(SpeedFlags):
    num_envs: int = flag(64, "Game Boys in parallel, of each process", gpu=4096, smoke=4, least=1)
    num_steps: int = flag(
        32,
        "steps of each Game Boy in a rollout; 16 with 4,096 or more Game Boys in all processes, 8 with 8,192 or more",
        smoke=8,
        least=1,
    )
    recurrent: Literal["gru", "lstm"] = flag(
        "gru", "the memory after the hidden layer, of 128 numbers; its gradient goes back through --num-steps steps"
    )
    lr: float = flag(1e-3, "learning rate; with --lr-kl, only the first one", least=0)
    lr_kl: float = flag(
        0.02,
        "mean KL divergence between a rollout's policy and its updates to aim for: the learning rate rises or falls, "
        "between a tenth of --lr and 4 times --lr; 0: constant",
        least=0,
    )
    anneal_lr: bool = flag(False, "lower the learning rate to 0 over total_env_steps", fixes=("total_env_steps",))
    gamma: float = flag(0.99, "discount factor", least=0, most=1)
    gae_lambda: float = flag(0.95, "lambda of the generalised advantage estimation", least=0, most=1)
    clip_coef: float = flag(0.2, "how far the probability ratio may move from 1 before it is clipped")
    norm_adv: bool = flag(True, "normalise the advantages of each minibatch")
    norm_returns: bool = flag(
        True, "divide the rewards by the running deviation of the returns, so that their size does not matter"
    )
    value_coef: float = flag(0.5, "weight of the value loss")
    entropy_coef: float = flag(0.01, "weight of the entropy bonus")
    grad_clip: float = flag(0.5, "maximum norm of the gradient")
    update_epochs: int = flag(2, "passes over a rollout", least=1)
    num_minibatches: int = flag(
        8,
        "optimizer steps of a pass, each with all steps of its share of the Game Boys; 16 with 256 or more",
        smoke=4,
        least=1,
    )
    log_interval: int = flag(4, "rollouts between two records of metrics", least=1, resumable=True)

    def defaults(self) -> dict[str, Any]:
        """Defaults by the number of Game Boys (docs/scale.md)."""
        found = super().defaults()
        if self.smoke:
            return found
        envs = in_all(self.num_envs)
        steps = min(32, max(8, 2 ** (17 - envs.bit_length())))
        return found | {"num_steps": steps, "num_minibatches": min(self.num_envs, 8 if envs < 256 else 16)}


SWEEP = {  # ranges of `puffer sweep` (docs/sweep.md); in pairs: on a CPU and on a GPU
    "num_envs": ("16,32,64,128,256", "512,1024,2048,4096,8192"),
    "num_steps": "8,16,32,64,128",
    "lr": "2e-4:5e-3:log",
    "gamma": "0.95,0.98,0.99,0.995,0.998",
    "gae_lambda": "0.8,0.9,0.95,0.98",
    "clip_coef": "0.1,0.2,0.3",
    "entropy_coef": "1e-3:0.1:log",
    "update_epochs": "1,2,3,4",
    "num_minibatches": "2,4,8,16,32",
    "log_interval": "1",
}


class Agent(nn.Module):
    """Convolutions on the pictures, a hidden layer for their features and the other vectors, a memory, a policy and a
    value head. An episode begins with a memory (batch, state_size) of zeros."""

    def __init__(self, layout: ObservationLayout, num_actions: int, recurrent: str, bf16: bool = False) -> None:
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
        self.memory = MemoryCell(recurrent, 256, MEMORY)
        self.state_size = self.memory.state_size
        self.policy = layer_init(nn.Linear(MEMORY, num_actions), 0.01)
        self.value = layer_init(nn.Linear(MEMORY, 1), 1.0)

    def forward(self, obs: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits (batch, num_actions), values (batch,) and the next memory, from observations (batch, *shape) and the
        memory before them."""
        with torch.autocast(obs.device.type, torch.bfloat16, enabled=self.bf16):
            output, memory = self.memory(self.features(obs), memory)
        output = output.float()
        return self.policy(output), self.value(output).squeeze(1), memory.float()

    def unroll(self, obs: Tensor, memory: Tensor, ended: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (steps * batch, num_actions) and values (steps * batch,) of sequences of observations
        (steps, batch, *shape): those that `forward` gives step by step, from the memory before the first one, which
        is cleared after each step that `ended` an episode."""
        with torch.autocast(obs.device.type, torch.bfloat16, enabled=self.bf16):
            features = self.features(obs.flatten(0, 1)).unflatten(0, obs.shape[:2])
            output = self.memory.unroll(features, memory, ended).flatten(0, 1)
        output = output.float()
        return self.policy(output), self.value(output).squeeze(1)

    def features(self, obs: Tensor) -> Tensor:
        """The memory's input (batch, 256)."""
        return self.hidden(self.layout.join(self.convolutions(self.layout.pixels(obs)), obs))


def sample(logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """One action per row by the Gumbel trick: no host synchronisation, and no probabilities that could be invalid."""
    return (logits - torch.empty_like(logits).exponential_(generator=generator).log()).argmax(1)


def empty_rollout(args: Args, layout: ObservationLayout, device: torch.device) -> dict[str, Tensor]:
    """The tensors of a rollout, (num_steps, num_envs, ...) each; `memory` (num_envs, state_size) is that before its
    first step."""
    zeros = partial(torch.zeros, (args.num_steps, args.num_envs), device=device)
    return {
        "obs": torch.zeros((args.num_steps, args.num_envs, *layout.shape), dtype=layout.kept_dtype, device=device),
        "memory": torch.zeros((args.num_envs, state_size(args.recurrent, MEMORY)), device=device),
        "actions": zeros(dtype=torch.int64),
        "logprobs": zeros(),
        "values": zeros(),
        "rewards": zeros(),
        "terminals": zeros(dtype=torch.bool),
        "truncations": zeros(dtype=torch.bool),
        "next_values": zeros(),
        "advantages": zeros(),
        "returns": zeros(),
    }


@torch.no_grad()
@torch.autocast("cpu", enabled=False)  # around all steps: the weights are cast to bfloat16 once, not at each step
def collect(
    model: RecurrentActorCritic, env: EnvLike, rollout: Mapping[str, Tensor], memory: Tensor, clock: Stopwatch
) -> None:
    """Fills the rollout with num_steps steps of all envs, and its next_values of the last one. `memory`
    (num_envs, state_size): before the first step, and from then on before the next one."""
    rollout["memory"].copy_(memory)
    for step in range(len(rollout["obs"])):
        rollout["obs"][step] = signed(env.observations)  # before the step, which overwrites them
        logits, rollout["values"][step], after = model(env.observations, memory)
        actions = rollout["actions"][step] = sample(logits)
        rollout["logprobs"][step] = logits.log_softmax(1).gather(1, actions[:, None]).squeeze(1)
        clock.mark("time/infer")
        _, rewards, terminals, truncations, _ = env.step(actions)
        clock.mark("time/env")
        rollout["rewards"][step], rollout["terminals"][step] = rewards, terminals
        rollout["truncations"][step] = truncations
        if step == len(rollout["obs"]) - 1:
            # Where the action led, also in envs that have already begun a new episode: the value at a truncation.
            rollout["next_values"][step] = model(env.final_observation, after)[1]
        torch.mul(after, ~(terminals | truncations)[:, None], out=memory)
        clock.mark("time/infer")


def reuse_values(rollout: Mapping[str, Tensor], gamma: float) -> None:
    """Fills the next_values of all steps except the last with the values of the following steps. After a truncation
    that would be the value of another episode: there it is a value with which the step has no TD error."""
    values, rewards = rollout["values"], rollout["rewards"]
    cut = (rollout["truncations"] & ~rollout["terminals"])[:-1]
    without_error = (values - rewards)[:-1] / (gamma or 1.0)
    rollout["next_values"][:-1] = torch.where(cut, without_error, values[1:])


def gae(rollout: Mapping[str, Tensor], gamma: float, gae_lambda: float) -> tuple[Tensor, Tensor]:
    """(advantages, returns) by generalised advantage estimation, all (num_steps, num_envs).

    `values` are those of the observations for which the actions were chosen, `next_values` those of the observations to
    which the actions led, before any autoreset. After a terminal the next value does not count. After a truncation it
    does.
    """
    deltas = rollout["rewards"] + gamma * rollout["next_values"] * ~rollout["terminals"] - rollout["values"]
    ended = rollout["terminals"] | rollout["truncations"]
    advantages = torch.empty_like(deltas)
    later = torch.zeros_like(deltas[0])
    for step in reversed(range(len(deltas))):
        later = deltas[step] + gamma * gae_lambda * later * ~ended[step]
        advantages[step] = later
    return advantages, advantages + rollout["values"]


@torch.no_grad()
def estimate(rollout: Mapping[str, Tensor], args: Args, scale: ReturnScale | None, head: nn.Linear) -> None:
    """Fills the advantages and returns of a rollout, whose rewards and values `scale` brings to its unit before; `head`
    gives the values."""
    if scale is not None:
        scale.scale(rollout, head)
    reuse_values(rollout, args.gamma)
    advantages, returns = gae(rollout, args.gamma, args.gae_lambda)
    rollout["advantages"].copy_(advantages)
    rollout["returns"].copy_(returns)


def ppo_losses(logits: Tensor, values: Tensor, batch: Mapping[str, Tensor], clip_coef: float) -> tuple[Tensor, ...]:
    """(policy loss, value loss, entropy, old_approx_kl, approx_kl, clipfrac) of a minibatch; the last three measure how
    far the policy has moved. `batch`: actions, logprobs, advantages and returns, (batch,)."""
    logprobs = logits.log_softmax(1)
    log_ratio = logprobs.gather(1, batch["actions"][:, None]).squeeze(1) - batch["logprobs"]
    ratio, advantages = log_ratio.exp(), batch["advantages"]
    policy_loss = -torch.min(advantages * ratio, advantages * ratio.clamp(1 - clip_coef, 1 + clip_coef)).mean()
    value_loss = 0.5 * (values - batch["returns"]).square().mean()
    entropy = -(logprobs.exp() * logprobs).sum(1).mean()
    old_approx_kl, approx_kl = -log_ratio.mean(), (ratio - 1 - log_ratio).mean()  # joschu.net/blog/kl-approx.html
    clipfrac = ((ratio - 1).abs() > clip_coef).float().mean()
    return policy_loss, value_loss, entropy, old_approx_kl.detach(), approx_kl.detach(), clipfrac


def backward(unroll: Unroll, optimizer: Optimizer, rollout: Mapping[str, Tensor], args: Args, index: Tensor) -> Tensor:
    """Computes the gradients of a minibatch: all steps of the envs `index`, in their order, so that the memory is again
    what it was when they were played. Returns LOSSES but the last two."""
    ended = rollout["terminals"] | rollout["truncations"]
    logits, values = unroll(rollout["obs"][:, index], rollout["memory"][index], ended[:, index])
    names = ("actions", "logprobs", "advantages", "returns")
    batch = {name: rollout[name][:, index].flatten() for name in names}
    if args.norm_adv:
        advantages = batch["advantages"]
        batch["advantages"] = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    losses = ppo_losses(logits, values, batch, args.clip_coef)
    loss = losses[0] + args.value_coef * losses[1] - args.entropy_coef * losses[2]
    optimizer.zero_grad(set_to_none=not args.cuda_graph)  # a recorded minibatch adds to the same tensors
    loss.backward()
    return torch.stack(losses).detach()


def take_step(model: nn.Module, optimizer: Optimizer, args: Args, losses: Tensor) -> Tensor:
    """An optimizer step along the gradients, clipped. Returns their norm behind the `losses`: LOSSES but the last."""
    norm = nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
    optimizer.step()
    return torch.cat([losses, norm[None]])


def learn(
    model: nn.Module,
    rollout: Mapping[str, Tensor],
    gradients: Callable[[Tensor], Tensor],
    step: Callable[[Tensor], Tensor],
    args: Args,
    world: World,
) -> Tensor:
    """All epochs and minibatches of a rollout with its advantages and returns; `gradients` is `backward`, and `step`
    is `take_step`. Returns the mean of each of LOSSES, on the device."""
    returns = rollout["returns"]
    sums, count = torch.zeros(len(LOSSES) - 1, device=returns.device), 0
    for _ in range(args.update_epochs):
        for index in torch.randperm(args.num_envs, device=returns.device).chunk(args.num_minibatches):
            losses = gradients(index)
            world.average_gradients(model)
            sums += step(losses)
            count += 1
    # The clamp, because a loss that is not finite would end the run.
    explained = 1 - (returns - rollout["values"]).var() / returns.var().clamp(min=1e-8)
    return torch.cat([sums / count, explained[None]])


def next_lr(lr: Tensor, approx_kl: Tensor, args: Args) -> Tensor:
    """The learning rate after an update in which the policy moved by approx_kl, which grows with its square; all (),
    on the device, so that the host does not wait."""
    factor = (args.lr_kl / approx_kl.to(lr.dtype).clamp(min=1e-9)).sqrt()
    return (lr * factor.clamp(1 / MOST_FACTOR, MOST_FACTOR)).clamp(args.lr / 10, args.lr * 4)


def play(model: Agent, env: PlayedEnv, greedy: bool, seed: int) -> Policy:
    """A copy of the model as a policy for `env`: its likeliest actions, or samples from its own random stream."""
    model, generator = own_copy(model, env, seed)

    def act(obs: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        logits, _, after = model(obs, memory)
        return logits.argmax(1) if greedy else sample(logits, generator), after

    return remembering(act, env, model.state_size)


def load_policy(checkpoint: dict[str, Any], env: PlayedEnv, seed: int, greedy: bool = False) -> Policy:
    """The policy of a checkpoint of this script in `env`, for evaluate.py and `puffer record`."""
    model = Agent(env.layout, env.codec.num_actions, checkpoint["args"]["recurrent"])
    load_weights(model, checkpoint["model"])
    return play(model, env, greedy, seed)


def train(args: Args, run: Run) -> None:
    """One run, from its envs to its report."""
    if args.num_envs < args.num_minibatches:
        raise ConfigError(f"--num-minibatches {args.num_minibatches} share {args.num_envs} sequences: give fewer")
    agent = partial(Agent, recurrent=args.recurrent)
    run.check_memory(rollout_memory(args, empty_rollout, agent, least=2), "lower --num-envs or --num-steps")
    (env,) = run.open_envs()
    model = run.to_device(agent(env.layout, env.codec.num_actions, bf16=args.bf16), channels_last=True)
    torch.manual_seed(args.seed + run.world.rank)
    optimizer = Adam(model.parameters(), lr=args.lr, eps=1e-5)
    rollout = empty_rollout(args, env.layout, env.device)
    memory = torch.zeros_like(rollout["memory"])
    scale = ReturnScale(args.num_envs, args.gamma, run.world, env.device) if args.norm_returns else None
    run.restore(LOSSES, {"model": model, "optimizer": optimizer}, return_scale=scale, memory=memory)

    # Fast and special: without these lines the results are the same except for rounding.
    if args.bf16 and env.layout.kind.is_picture:
        model.convolutions = FastConvolutions(model.convolutions)
    act = run.recorded(partial(collect, run.compiled(model), env, rollout, memory), args.graph_steps)
    gradients = partial(backward, run.compiled(model.unroll), optimizer, rollout, args)
    gradients = run.replayed(gradients, args.cuda_graph)
    step = run.replayed(partial(take_step, model, optimizer, args), args.cuda_graph)
    prepare = partial(estimate, rollout, args, scale, model.value)
    prepare = run.replayed(prepare, args.cuda_graph and run.world.size == 1)  # several share the unit of the rewards

    lr = optimizer.param_groups[0]["lr"]  # a tensor: a recorded step reads it
    for update in run.updates(args.num_steps, args.log_interval, partial(play, model)):
        if args.anneal_lr:
            lr.fill_(args.lr * (1 - (update - 1) / run.total_updates))
        charts = {"charts/learning_rate": lr.clone()}
        act()
        prepare()
        losses = learn(model, rollout, gradients, step, args, run.world)
        run.losses.add(losses)
        if args.lr_kl and not args.anneal_lr:
            run.world.average(approx_kl := losses[LOSSES.index("approx_kl")].clone())
            lr.copy_(next_lr(lr, approx_kl, args))
        run.clock.mark("time/learn")
        run.log(charts)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one training; bad input is one line on stderr and exit code 2."""
    return launch(train, Args, EXP_NAME, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
