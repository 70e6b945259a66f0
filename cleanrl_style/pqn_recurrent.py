"""PQN for an agent with a memory, a GRU or an LSTM: Q(lambda) returns of whole sequences of a rollout.
pqn.py is PQN without a memory.

On several GPUs: torchrun --nproc_per_node=N cleanrl_style/pqn_recurrent.py ...

Gallici et al. 2024, "Simplifying Deep Temporal Difference Learning", https://arxiv.org/abs/2407.04811
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
    GraphFlags,
    ObservationLayout,
    Run,
    Stopwatch,
    World,
    flag,
    in_all,
    load_weights,
)
from gbxcule_puffer.trainers.blocks import (
    MemoryCell,
    Patches,
    RAdam,
    ReturnScale,
    layer_init,
    linear_schedule,
    object_layers,
    own_copy,
    remembering,
    rollout_memory,
    signed,
    state_size,
)
from gbxcule_puffer.trainers.launch import launch
from gbxcule_puffer.trainers.protocol import EnvLike, PlayedEnv, Policy

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

EXP_NAME = Path(__file__).stem
LOSSES = ("td_loss", "td_error", "q_values", "grad_norm")
MEMORY = 128
Network = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # a QNetwork, compiled or not
Unroll = Callable[[Tensor, Tensor, Tensor], Tensor]  # its unroll


@dataclass
class Args(GraphFlags):
    num_envs: int = flag(64, "Game Boys in parallel, of each process", gpu=4096, smoke=4, least=1)
    num_steps: int = flag(
        16, "steps of each Game Boy in a rollout; 8 with 8,192 or more Game Boys in all processes", smoke=8, least=1
    )
    recurrent: Literal["gru", "lstm"] = flag(
        "gru", "the memory after the hidden layer, of 128 numbers; its gradient goes back through --num-steps steps"
    )
    lr: float = flag(5e-4, "learning rate", least=0)
    anneal_lr: bool = flag(False, "lower the learning rate to 0 over total_env_steps", fixes=("total_env_steps",))
    gamma: float = flag(0.99, "discount factor", least=0, most=1)
    q_lambda: float = flag(
        0.65,
        "lambda of the Q(lambda) returns: 0 is one-step Q-learning, 1 the returns to the end of the rollout",
        least=0,
        most=1,
    )
    norm_returns: bool = flag(
        True, "divide the rewards by the running deviation of the returns, so that their size does not matter"
    )
    eps_start: float = flag(1.0, "share of random actions at first", least=0, most=1)
    eps_end: float = flag(0.05, "share of random actions in the end", least=0, most=1)
    eps_steps: int = flag(100_000, "steps over all environments until --eps-end", gpu=2_000_000, least=1)
    grad_clip: float = flag(10.0, "maximum norm of the gradient")
    update_epochs: int = flag(2, "passes over a rollout", least=1)
    num_minibatches: int = flag(
        8, "optimizer steps of a pass, each with all steps of its share of the Game Boys", gpu=32, smoke=4, least=1
    )
    log_interval: int = flag(4, "rollouts between two records of metrics", least=1, resumable=True)

    def defaults(self) -> dict[str, Any]:
        """Defaults by the number of Game Boys (docs/scale.md)."""
        found = super().defaults()
        return found if self.smoke or in_all(self.num_envs) < 8192 else found | {"num_steps": 8}


SWEEP = {  # ranges of `puffer sweep` (docs/sweep.md); in pairs: on a CPU and on a GPU
    "num_envs": ("16,32,64,128,256", "512,1024,2048,4096,8192"),
    "num_steps": "4,8,16,32,64",
    "lr": "1e-4:3e-3:log",
    "gamma": "0.95,0.98,0.99,0.995,0.998",
    "q_lambda": "0.5,0.65,0.8,0.9,0.95",
    "eps_end": "0.01,0.02,0.05,0.1",
    "eps_steps": ("25000,50000,100000,200000", "500000,1000000,2000000,4000000"),
    "update_epochs": "1,2,3,4",
    "num_minibatches": ("2,4,8,16", "8,16,32,64"),
    "log_interval": "1",
}


class QNetwork(nn.Module):
    """Convolutions on the pictures, a hidden layer for their features and the other vectors, a memory, and the actions'
    values; each layer is normalised before its ReLU. An episode begins with a memory (batch, state_size) of zeros.

    LayerNorm limits how far bootstrapping can move the values, so no target network is needed.
    """

    def __init__(self, layout: ObservationLayout, num_actions: int, recurrent: str) -> None:
        super().__init__()
        self.layout = layout
        self.convolutions = object_layers(layout) or nn.Sequential(
            Patches(layout.kind.most),  # 4x4 pixels as channels: 2x2 of them are 8x8 pixels, with stride 4
            layer_init(nn.Conv2d(16 * layout.picture_shape[0], 16, 2)),
            nn.GroupNorm(1, 16),  # one group: LayerNorm for pictures of any size
            nn.ReLU(),
            layer_init(nn.Conv2d(16, 32, 4, stride=2)),
            nn.GroupNorm(1, 32),
            nn.Flatten(),  # before ReLU: on a CPU, gradients in two orders of memory take it ten times as long
            nn.ReLU(),
        )
        size = self.convolutions(torch.zeros(1, *layout.picture_shape)).shape[1] + layout.vector_size
        self.hidden = nn.Sequential(layer_init(nn.Linear(size, 256)), nn.LayerNorm(256), nn.ReLU())
        self.memory = MemoryCell(recurrent, 256, MEMORY)
        self.state_size = self.memory.state_size
        self.head = layer_init(nn.Linear(MEMORY, num_actions), 0.01)

    def forward(self, obs: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Values (batch, num_actions) and the next memory, from observations (batch, *shape) and the memory before
        them."""
        output, memory = self.memory(self.features(obs), memory)
        return self.head(output), memory

    def unroll(self, obs: Tensor, memory: Tensor, ended: Tensor) -> Tensor:
        """Values (steps, batch, num_actions) of sequences of observations (steps, batch, *shape): those that `forward`
        gives step by step, from the memory before the first one, which is cleared after each step that `ended` an
        episode."""
        features = self.features(obs.flatten(0, 1)).unflatten(0, obs.shape[:2])
        return self.head(self.memory.unroll(features, memory, ended))

    def features(self, obs: Tensor) -> Tensor:
        """The memory's input (batch, 256)."""
        return self.hidden(self.layout.join(self.convolutions(self.layout.pixels(obs)), obs))


def explore(values: Tensor, epsilon: Tensor | float, generator: torch.Generator | None = None) -> Tensor:
    """The best actions, and with probability `epsilon` random ones: (batch,) of values (batch, num_actions)."""
    anything = torch.randint(values.shape[1], values.shape[:1], generator=generator, device=values.device)
    explores = torch.rand(len(values), generator=generator, device=values.device) < epsilon
    return torch.where(explores, anything, values.argmax(1))


def empty_rollout(args: Args, layout: ObservationLayout, device: torch.device) -> dict[str, Tensor]:
    """The tensors of a rollout, (num_steps, num_envs, ...) each; `values` has one step more, and `memory`
    (num_envs, state_size) is that before the first one."""
    zeros = partial(torch.zeros, (args.num_steps, args.num_envs), device=device)
    return {
        "obs": torch.zeros((args.num_steps, args.num_envs, *layout.shape), dtype=layout.kept_dtype, device=device),
        "memory": torch.zeros((args.num_envs, state_size(args.recurrent, MEMORY)), device=device),
        "actions": zeros(dtype=torch.int64),
        "values": torch.zeros((args.num_steps + 1, args.num_envs), device=device),
        "rewards": zeros(),
        "terminals": zeros(dtype=torch.bool),
        "truncations": zeros(dtype=torch.bool),
        "returns": zeros(),
    }


@torch.no_grad()
def collect(
    model: Network, env: EnvLike, rollout: Mapping[str, Tensor], memory: Tensor, epsilon: Tensor, clock: Stopwatch
) -> None:
    """Fills the rollout with num_steps steps of all envs. `memory` (num_envs, state_size): before the first step, and
    from then on before the next one. One forward per step: the values that choose an action are also the bootstrap of
    the previous step."""
    rollout["memory"].copy_(memory)
    for step in range(len(rollout["obs"])):
        rollout["obs"][step] = signed(env.observations)  # before the step, which overwrites them
        values, after = model(env.observations, memory)
        rollout["values"][step] = values.amax(1)
        actions = rollout["actions"][step] = explore(values, epsilon)
        clock.mark("time/infer")
        _, rewards, terminals, truncations, _ = env.step(actions)
        rollout["rewards"][step], rollout["terminals"][step] = rewards, terminals
        rollout["truncations"][step] = truncations
        torch.mul(after, ~(terminals | truncations)[:, None], out=memory)
        clock.mark("time/env")
    rollout["values"][-1] = model(env.observations, memory)[0].amax(1)
    clock.mark("time/infer")


def q_lambda_returns(rollout: Mapping[str, Tensor], gamma: float, q_lambda: float) -> Tensor:
    """Q(lambda) returns (num_steps, num_envs); `values` are the best values of each step's observation and of the one
    after the last step.

    After a terminal there is no next value. A truncated step has no return, because the observation to which it led is
    gone: its entry is the value of its own observation, from which the previous step bootstraps.
    """
    rewards, values, terminals = rollout["rewards"], rollout["values"], rollout["terminals"]
    returns, later = torch.empty_like(rewards), values[-1]
    for step in reversed(range(len(rewards))):
        ahead = torch.lerp(values[step + 1], later, q_lambda)
        later = rewards[step] + gamma * ahead * ~terminals[step]
        returns[step] = later = torch.where(rollout["truncations"][step], values[step], later)
    return returns


def backward(unroll: Unroll, optimizer: Optimizer, rollout: Mapping[str, Tensor], args: Args, index: Tensor) -> Tensor:
    """Computes the gradients of a minibatch: all steps of the envs `index`, in their order, so that the memory is again
    what it was when they were played; without truncated steps. Returns LOSSES but the last."""
    names = ("obs", "actions", "returns", "terminals", "truncations")
    obs, actions, returns, terminals, truncations = (rollout[name][:, index] for name in names)
    values = unroll(obs, rollout["memory"][index], terminals | truncations)
    values = values.gather(2, actions[..., None]).squeeze(2)
    errors = (returns - values) * ~truncations
    loss = 0.5 * errors.square().mean()
    optimizer.zero_grad(set_to_none=not args.cuda_graph)  # a recorded minibatch adds to the same tensors
    loss.backward()
    return torch.stack([loss, errors.abs().mean(), values.mean()]).detach()


def learn(
    model: nn.Module,
    optimizer: Optimizer,
    rollout: Mapping[str, Tensor],
    gradients: Callable[[Tensor], Tensor],
    args: Args,
    world: World,
) -> Tensor:
    """All epochs and minibatches of a rollout; `gradients` is `backward`. Returns the mean of each of LOSSES, on the
    device."""
    rollout["returns"].copy_(q_lambda_returns(rollout, args.gamma, args.q_lambda))
    device = rollout["returns"].device
    sums, count = torch.zeros(len(LOSSES), device=device), 0
    for _ in range(args.update_epochs):
        for index in torch.randperm(args.num_envs, device=device).chunk(args.num_minibatches):
            losses = gradients(index)
            world.average_gradients(model)
            norm = nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
            optimizer.step()
            sums[:-1] += losses
            sums[-1] += norm
            count += 1
    return sums / count


def play(model: QNetwork, epsilon: float, env: PlayedEnv, greedy: bool, seed: int) -> Policy:
    """A copy of the model as a policy for `env`: its best actions, with a share of `epsilon` random ones."""
    model, generator = own_copy(model, env, seed)

    def act(obs: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        values, after = model(obs, memory)
        return explore(values, 0.0 if greedy else epsilon, generator), after

    return remembering(act, env, model.state_size)


def load_policy(checkpoint: dict[str, Any], env: PlayedEnv, seed: int, greedy: bool = False) -> Policy:
    """The policy of a checkpoint of this script in `env`, for evaluate.py and `puffer record`."""
    model = QNetwork(env.layout, env.codec.num_actions, checkpoint["args"]["recurrent"])
    load_weights(model, checkpoint["model"])
    return play(model, checkpoint["args"]["eps_end"], env, greedy, seed)


def train(args: Args, run: Run) -> None:
    """One run, from its envs to its report."""
    if args.num_envs < args.num_minibatches:
        raise ConfigError(f"--num-minibatches {args.num_minibatches} share {args.num_envs} sequences: give fewer")
    network = partial(QNetwork, recurrent=args.recurrent)
    run.check_memory(rollout_memory(args, empty_rollout, network), "lower --num-envs or --num-steps")
    (env,) = run.open_envs()
    model = run.to_device(network(env.layout, env.codec.num_actions))
    torch.manual_seed(args.seed + run.world.rank)
    optimizer = RAdam(model.parameters(), lr=args.lr)
    rollout = empty_rollout(args, env.layout, env.device)
    memory = torch.zeros_like(rollout["memory"])
    scale = ReturnScale(args.num_envs, args.gamma, run.world, env.device) if args.norm_returns else None
    run.restore(LOSSES, {"model": model, "optimizer": optimizer}, return_scale=scale, memory=memory)
    epsilon = torch.zeros((), device=env.device)

    # Fast and special: without these lines the results are the same except for rounding.
    act = run.recorded(partial(collect, run.compiled(model), env, rollout, memory, epsilon), args.graph_steps)
    gradients = partial(backward, run.compiled(model.unroll), optimizer, rollout, args)
    gradients = run.replayed(gradients, args.cuda_graph)

    for update in run.updates(args.num_steps, args.log_interval, partial(play, model, args.eps_end)):
        lr = args.lr * (1 - (update - 1) / run.total_updates) if args.anneal_lr else args.lr
        optimizer.param_groups[0]["lr"] = lr
        eps = linear_schedule(args.eps_start, args.eps_end, args.eps_steps, run.step - run.steps)
        epsilon.fill_(eps)
        act()
        if scale is not None:
            scale.scale(rollout, model.head)
        run.losses.add(learn(model, optimizer, rollout, gradients, args, run.world))
        run.clock.mark("time/learn")
        run.log({"charts/epsilon": eps, "charts/learning_rate": lr})


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one training; bad input is one line on stderr and exit code 2."""
    return launch(train, Args, EXP_NAME, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
