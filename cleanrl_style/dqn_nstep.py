"""Double DQN with n-step returns from a replay on the device."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from gbxcule_puffer.trainers import ConfigError, ObservationLayout, Run, RunFlags, Stopwatch, flag, load_weights
from gbxcule_puffer.trainers.blocks import (
    Adam,
    Patches,
    Replay,
    Sequences,
    layer_init,
    linear_schedule,
    object_layers,
    own_copy,
    remembering,
)
from gbxcule_puffer.trainers.envs import layout_of
from gbxcule_puffer.trainers.launch import launch
from gbxcule_puffer.trainers.protocol import PlayedEnv, Policy

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer

EXP_NAME = Path(__file__).stem
LOSSES = ("td_loss", "td_error", "q_values", "grad_norm")
HIDDEN = 256
Loss = Callable[..., tuple[Tensor, ...]]  # of (network, target network, batch): (loss, TD errors, mean value)


@dataclass
class Args(RunFlags):
    num_envs: int = flag(32, "Game Boys in parallel", gpu=256, smoke=4, least=1)
    vec: Literal["batched", "serial"] = flag(
        "batched", "serial: act and write the replay one environment at a time, for debugging"
    )
    recurrent: Literal["none", "gru", "lstm"] = flag(
        "none", "a memory of 256 numbers after the CNN, trained on sequences"
    )
    sequence_length: int = flag(16, "steps of a sequence that are learned from, with --recurrent", least=1)
    burn_in: int = flag(8, "steps before them that only fill the memory, with --recurrent", least=0)
    lr: float = flag(5e-4, "learning rate", least=0)
    gamma: float = flag(0.99, "discount factor", least=0, most=1)
    n_step: int = flag(5, "rewards of a target", least=1)
    buffer_size: int = flag(100_000, "transitions in the replay", gpu=2_000_000, smoke=512, least=1)
    batch_size: int = flag(128, "transitions of an update", gpu=512, smoke=32, least=1)
    learning_starts: int = flag(2_000, "transitions in the replay before the first update", gpu=50_000, smoke=64)
    train_every: int = flag(4, "steps of all environments between updates", least=1)
    target_every: int = flag(50, "updates between two copies of the network into the target network", least=1)
    priority_alpha: float = flag(
        0.0, "above 0: sample transitions in proportion to their TD error to the power of this"
    )
    priority_beta: float = flag(0.6, "how much of the bias of --priority-alpha the weights of the losses correct")
    eps_start: float = flag(1.0, "share of random actions at first", least=0, most=1)
    eps_end: float = flag(0.05, "share of random actions in the end", least=0, most=1)
    eps_steps: int = flag(40_000, "steps over all environments until --eps-end", gpu=500_000, least=1)
    grad_clip: float = flag(10.0, "maximum norm of the gradient")
    keep_replay: bool = flag(
        True,
        "checkpoints contain the replay, so that --resume is exact; otherwise it fills again",
        gpu=False,
        resumable=True,
    )
    log_interval: int = flag(128, "steps between two records of metrics", smoke=16, least=1, resumable=True)
    total_env_steps: int = flag(1_000_000, gpu=20_000_000, smoke=512)
    eval_every_steps: int | None = flag(None, smoke=256)
    checkpoint_every: int | None = flag(None, smoke=256)
    media_every: int = flag(131_072, gpu=4_194_304, smoke=512)

    @property
    def steps_sampled(self) -> int:
        """Consecutive steps in an update: those of a transition, or of a sequence with burn-in and the steps after
        it."""
        return self.n_step + (1 if self.recurrent == "none" else self.burn_in + self.sequence_length)


SWEEP = {  # ranges of `puffer sweep` (docs/sweep.md); in pairs: on a CPU and on a GPU
    "num_envs": ("16,32,64,128", "64,128,256,512,1024"),
    "lr": "1e-4:2e-3:log",
    "gamma": "0.95,0.98,0.99,0.995,0.998",
    "n_step": "1,3,5,10",
    "batch_size": ("32,64,128,256", "128,256,512,1024"),
    "train_every": "1,2,4,8",
    "target_every": "10,25,50,100,200",
    "eps_end": "0.01,0.02,0.05,0.1",
    "eps_steps": ("10000,20000,40000,80000", "125000,250000,500000,1000000"),
}


class QNetwork(nn.Module):
    """Convolutions on the pictures, a hidden layer for their features and the other vectors, optionally a memory cell,
    and the actions' values. The cell's state (batch, state_size) is zeros at the start of an episode; without a cell
    its size is 0."""

    def __init__(self, layout: ObservationLayout, num_actions: int, recurrent: str) -> None:
        super().__init__()
        self.layout = layout
        self.convolutions = object_layers(layout) or nn.Sequential(
            Patches(layout.kind.most),  # 4x4 pixels as channels: 2x2 of them are 8x8 pixels, with stride 4
            layer_init(nn.Conv2d(16 * layout.picture_shape[0], 16, 2)),
            nn.ReLU(),
            layer_init(nn.Conv2d(16, 32, 4, stride=2)),
            nn.Flatten(),  # before ReLU: on a CPU, gradients in two orders of memory take it ten times as long
            nn.ReLU(),
        )
        size = self.convolutions(torch.zeros(1, *layout.picture_shape)).shape[1] + layout.vector_size
        self.hidden = nn.Sequential(layer_init(nn.Linear(size, HIDDEN)), nn.ReLU())
        self.recurrent, self.state_size = recurrent, {"none": 0, "gru": HIDDEN, "lstm": 2 * HIDDEN}[recurrent]
        self.cell = {"none": nn.Identity, "gru": nn.GRUCell, "lstm": nn.LSTMCell}[recurrent](HIDDEN, HIDDEN)
        self.head = layer_init(nn.Linear(HIDDEN, num_actions), 0.01)

    def forward(self, obs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """(values (batch, num_actions), next state) of observations (batch, *shape)."""
        hidden, state = self.remember(self.features(obs), state)
        return self.head(hidden), state

    def features(self, obs: Tensor) -> Tensor:
        """Features (batch, HIDDEN) of observations (batch, *shape), the input of the memory cell."""
        return self.hidden(self.layout.join(self.convolutions(self.layout.pixels(obs)), obs))

    def remember(self, features: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        if self.recurrent == "none":
            return features, state
        if self.recurrent == "gru":
            return (self.cell(features, state),) * 2
        both = self.cell(features, state.chunk(2, 1))
        return both[0], torch.cat(both, 1)

    def unroll(self, obs: Tensor, ended: Tensor, burn_in: int) -> Tensor:
        """Values (length, batch, num_actions) along sequences, from an empty state, which is cleared after each end.

        The first `burn_in` steps only fill the state: no gradient goes through them.
        """
        features = self.features(obs.flatten(0, 1)).unflatten(0, obs.shape[:2])
        state, outputs = features.new_zeros(obs.shape[1], self.state_size), []
        for step in range(len(obs)):
            state = state.detach() if step == burn_in else state
            hidden, state = self.remember(features[step], state)
            outputs.append(hidden)
            state = state * ~ended[step][:, None]
        return self.head(torch.stack(outputs))


def explore(values: Tensor, epsilon: Tensor | float, generator: torch.Generator | None = None) -> Tensor:
    """The best actions, and with probability `epsilon` random ones: (batch,) of values (batch, num_actions)."""
    anything = torch.randint(values.shape[1], values.shape[:1], generator=generator, device=values.device)
    explores = torch.rand(len(values), generator=generator, device=values.device) < epsilon
    return torch.where(explores, anything, values.argmax(1))


@torch.no_grad()
def act(
    model: QNetwork,
    obs: Tensor,
    state: Tensor,
    epsilon: float,
    serial: bool = False,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Epsilon-greedy (actions, next state) of all envs, by one call of the model, or by one call per env (`serial`)."""
    rows = [slice(env, env + 1) for env in range(len(obs))] if serial else [slice(None)]
    parts = [model(obs[row], state[row]) for row in rows]
    values, state = (torch.cat(part) for part in zip(*parts, strict=True)) if serial else parts[0]
    return explore(values, epsilon, generator), state


def n_step_returns(
    rewards: Tensor, terminals: Tensor, truncations: Tensor, n_step: int, gamma: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(returns, discounts, lengths) of the n-step windows in a sequence of consecutive steps.

    The sequence is (num_steps, ...). Window i begins at step i, and there are num_steps - n_step + 1 windows. The
    target is `returns + discounts * value(observation of step i + lengths)`. A terminal ends a window with discount 0.
    A truncation ends it one step earlier, at an observation of the same episode, so that no final observation has to be
    stored. A window that begins with the truncated step itself has length 0 and no target.
    """
    count = len(rewards) - n_step + 1
    returns, discounts = torch.zeros_like(rewards[:count]), torch.ones_like(rewards[:count])
    lengths = torch.zeros_like(rewards[:count], dtype=torch.int64)
    running = torch.ones_like(terminals[:count])
    for offset in range(n_step):
        window = slice(offset, offset + count)
        running = running & ~truncations[window]
        returns = returns + discounts * rewards[window] * running
        discounts = torch.where(running, discounts * gamma, discounts)
        lengths = lengths + running
        ended = running & terminals[window]
        discounts = torch.where(ended, 0.0, discounts)
        running = running & ~ended
    return returns, discounts, lengths


def sample_transitions(replay: Replay, batch: int, gamma: float, beta: float = 1.0) -> dict[str, Tensor]:
    """`batch` n-step transitions, each entry (batch, ...), with importance weights if the replay has priorities; a
    weight of 0 means that there is no target."""
    sampled = replay.sample(batch, beta)
    windows = (sampled.rewards, sampled.terminals, sampled.truncations)
    returns, discounts, lengths = (part[0] for part in n_step_returns(*windows, replay.n_step, gamma))
    targets = {"returns": returns, "discounts": discounts, "weights": sampled.weights * (lengths > 0)}
    next_obs = replay.observations_after(sampled.index, lengths)
    return {"obs": sampled.obs, "actions": sampled.actions, "next_obs": next_obs, "index": sampled.index, **targets}


def double_dqn_loss(
    values: Tensor, actions: Tensor, returns: Tensor, discounts: Tensor, following: Sequence[Tensor], weights: Tensor
) -> tuple[Tensor, Tensor]:
    """(loss, TD errors): of the `following` values, the online network's choose the next action, and the target
    network's evaluate it.

    Values are (..., num_actions), the others (...). A weight of 0 leaves a transition out of the mean.
    """
    best = following[0].argmax(-1, keepdim=True)
    target = returns + discounts * following[1].gather(-1, best).squeeze(-1)
    chosen = values.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    losses = functional.smooth_l1_loss(chosen, target.detach(), reduction="none")
    return (weights * losses).sum() / (weights > 0).sum().clamp(min=1), (target - chosen).detach()


def transition_loss(model: QNetwork, target: QNetwork, batch: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
    """(loss, TD errors, mean value) of n-step transitions."""
    empty = torch.zeros(len(batch["obs"]), 0, device=batch["obs"].device)
    values = model(batch["obs"], empty)[0]
    with torch.no_grad():
        following = model(batch["next_obs"], empty)[0], target(batch["next_obs"], empty)[0]
    parts = (batch["actions"], batch["returns"], batch["discounts"], following, batch["weights"])
    return *double_dqn_loss(values, *parts), values.detach().mean()


def sequence_loss(
    model: QNetwork, target: QNetwork, batch: Sequences, burn_in: int, n_step: int, gamma: float
) -> tuple[Tensor, ...]:
    """(loss, TD errors, mean value) of every step of the sequences between the burn-in and the last n_step."""
    ended = batch.terminals | batch.truncations
    values = model.unroll(batch.obs, ended, burn_in)
    with torch.no_grad():
        target_values = target.unroll(batch.obs, ended, burn_in)
    part = slice(burn_in, -1)
    returns, discounts, lengths = n_step_returns(
        batch.rewards[part], batch.terminals[part], batch.truncations[part], n_step, gamma
    )
    learned = slice(burn_in, burn_in + len(returns))
    later = torch.arange(burn_in, burn_in + len(returns), device=lengths.device)[:, None] + lengths
    later = later.unsqueeze(-1).expand(*later.shape, values.shape[-1])
    following = values.detach().gather(0, later), target_values.gather(0, later)
    weights = (lengths > 0).float()
    parts = (batch.actions[learned], returns, discounts, following, weights)
    return *double_dqn_loss(values[learned], *parts), values[learned].detach().mean()


def learn(
    model: QNetwork, target: QNetwork, optimizer: Optimizer, replay: Replay, args: Args, loss_of: Loss, clock: Stopwatch
) -> Tensor:
    """One update from a batch of the replay; returns LOSSES, on the device."""
    if args.recurrent == "none":
        batch: Any = sample_transitions(replay, args.batch_size, args.gamma, args.priority_beta)
    else:
        batch = replay.sample_sequences(max(1, args.batch_size // args.sequence_length), args.steps_sampled)
    clock.mark("time/sample")
    loss, errors, value = loss_of(model, target, batch)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
    optimizer.step()
    if args.priority_alpha:
        replay.update_priorities(batch["index"], errors, batch["weights"])
    clock.mark("time/learn")
    return torch.stack([loss.detach(), errors.abs().mean(), value, norm])


def play(model: QNetwork, epsilon: float, env: PlayedEnv, greedy: bool, seed: int) -> Policy:
    """A copy of the model as a policy for `env`: its best actions, with a share of `epsilon` random ones."""
    model, generator = own_copy(model, env, seed)
    chance = 0.0 if greedy else epsilon
    return remembering(lambda obs, state: act(model, obs, state, chance, False, generator), env, model.state_size)


def load_policy(checkpoint: dict[str, Any], env: PlayedEnv, seed: int, greedy: bool = False) -> Policy:
    """The policy of a checkpoint of this script in `env`, for evaluate.py and `puffer record`."""
    flags = checkpoint["args"]
    model = QNetwork(env.layout, env.codec.num_actions, flags["recurrent"])
    load_weights(model, checkpoint["model"])
    return play(model, flags["eps_end"], env, greedy, seed)


def refuse_unusable(args: Args) -> None:
    """Raises: ConfigError for flags that exclude each other."""
    if args.recurrent != "none" and args.priority_alpha:
        raise ConfigError("--priority-alpha weighs transitions, not sequences: leave --recurrent out, or give 0")
    least = max(args.learning_starts, args.num_envs * (args.steps_sampled + 2 * args.stack_k))
    if args.buffer_size < least:
        raise ConfigError(f"--buffer-size {args.buffer_size} must be at least {least} with these flags")


def train(args: Args, run: Run) -> None:
    """One run, from its envs to its report."""
    refuse_unusable(args)
    rows = args.buffer_size // args.num_envs
    size = Replay.bytes_needed(rows, args.num_envs, layout_of(args), args.priority_alpha)
    run.check_memory({"replay": size}, "lower --buffer-size")
    (env,) = run.open_envs()
    model = run.to_device(QNetwork(env.layout, env.codec.num_actions, args.recurrent))
    target = copy.deepcopy(model).requires_grad_(False)
    optimizer = Adam(model.parameters(), lr=args.lr, eps=1.5e-4)
    sizes = {"n_step": args.n_step, "alpha": args.priority_alpha, "num_actions": env.codec.num_actions}
    replay = Replay(rows, env.num_envs, env.layout, env.device, **sizes)
    obs = torch.zeros_like(env.observations)  # of the previous step: the next step overwrites the env's
    memory = torch.zeros((env.num_envs, model.state_size), device=env.device)
    run.counters["updates"] = 0
    networks = {"model": model, "target": target, "optimizer": optimizer}
    run.restore(LOSSES, networks, memory=memory, replay=replay if args.keep_replay else None)

    # Fast and special: without these lines the results are the same except for rounding.
    forward = run.compiled(model)
    sequences = partial(sequence_loss, burn_in=args.burn_in, n_step=args.n_step, gamma=args.gamma)
    loss_of: Loss = run.compiled(transition_loss if args.recurrent == "none" else sequences)

    per_log = max(1, args.log_interval // args.train_every)
    for _ in run.updates(args.train_every, per_log, partial(play, model, args.eps_end)):
        epsilon = linear_schedule(args.eps_start, args.eps_end, args.eps_steps, run.step - run.steps)
        for _ in range(args.train_every):
            obs.copy_(env.observations)
            actions, after = act(forward, obs, memory, epsilon, args.vec == "serial")
            run.clock.mark("time/infer")
            _, rewards, terminals, truncations, _ = env.step(actions)
            run.clock.mark("time/env")
            replay.add(obs, actions, rewards, terminals, truncations, serial=args.vec == "serial")
            torch.mul(after, ~(terminals | truncations)[:, None], out=memory)
            run.clock.mark("time/replay")
        if replay.count * env.num_envs >= args.learning_starts and replay.has(args.steps_sampled):
            run.losses.add(learn(model, target, optimizer, replay, args, loss_of, run.clock))
            run.counters["updates"] += 1
            if run.counters["updates"] % args.target_every == 0:
                target.load_state_dict(model.state_dict())
        run.log({"charts/epsilon": epsilon, "charts/updates": run.counters["updates"]})


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one training; bad input is one line on stderr and exit code 2."""
    return launch(train, Args, EXP_NAME, __doc__, argv, processes=False)


if __name__ == "__main__":
    sys.exit(main())
