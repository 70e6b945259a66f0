"""PQN, parallelised Q-learning: Q(lambda) returns and LayerNorm in place of a replay and a target network. Run it with
--help to see the flags.

On several GPUs: torchrun --nproc_per_node=N cleanrl_style/pqn.py ...

Gallici et al. 2024, "Simplifying Deep Temporal Difference Learning", https://arxiv.org/abs/2407.04811
"""

from __future__ import annotations

import copy
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

from gbxcule_puffer.trainers.checkpoints import load_weights
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.evaluation import Policy
from gbxcule_puffer.trainers.flags import SMOKE, RunFlags
from gbxcule_puffer.trainers.graphs import Replayed
from gbxcule_puffer.trainers.launch import launch
from gbxcule_puffer.trainers.run import Run, Stopwatch

EXP_NAME = Path(__file__).stem
LOSSES = ("td_loss", "td_error", "value", "grad_norm")


@dataclass
class Args(RunFlags):
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
    compile: bool = False
    """torch.compile of the network"""
    cuda_graph: bool = False
    """acting and stepping of a rollout as one CUDA graph"""
    log_interval: int = 1
    """rollouts between two records of metrics"""

    on_gpu: ClassVar = {
        **dict(num_envs=4096, num_steps=32, num_minibatches=32, eps_steps=2_000_000, total_env_steps=100_000_000),
        **dict(eval_every_steps=524_288, eval_envs=50, media_every=20_000_000),
    }
    in_smoke: ClassVar = {
        **SMOKE,
        **dict(num_envs=4, num_steps=8, total_env_steps=128),
        **dict(eval_every_steps=64, checkpoint_every=64, media_every=128),
    }
    counts: ClassVar = ("num_envs", "num_steps", "update_epochs", "num_minibatches", "eps_steps", "log_interval")

    def check(self) -> None:
        super().check()
        if (steps := self.num_steps * self.num_envs) < self.num_minibatches:
            raise ConfigError(f"--num-minibatches {self.num_minibatches} is more than {steps} steps: give fewer")
        for name in ("q_lambda", "eps_start", "eps_end"):
            if not 0 <= (value := getattr(self, name)) <= 1:
                raise ConfigError(f"--{name.replace('_', '-')} {value} must be from 0 to 1")
        if self.cuda_graph and (self.device == "cpu" or self.env.startswith("pyboy")):
            raise ConfigError("--cuda-graph needs an env on a GPU: give --device cuda and --env gbxcule")

    def free_on_resume(self) -> set[str]:
        free = super().free_on_resume() | {"log_interval", "compile", "cuda_graph"}
        return free - {"total_env_steps"} if self.anneal_lr else free


def layer_init(layer: Any, std: float = 2**0.5) -> Any:
    """Orthogonal weights and no bias."""
    nn.init.orthogonal_(layer.weight, std)
    nn.init.zeros_(layer.bias)
    return layer


class QNetwork(nn.Module):
    """Two strided convolutions on shades / 3, a hidden layer, each normalised before its ReLU, and the actions' values.

    LayerNorm bounds what bootstrapping can make of the values, so that no target network is needed.
    """

    def __init__(self, shape: tuple[int, int, int], num_actions: int) -> None:
        super().__init__()
        trunk = [
            nn.PixelUnshuffle(4),  # 4x4 blocks as channels: with it 2x2 is 8x8 with stride 4, and faster
            layer_init(nn.Conv2d(16 * shape[0], 16, 2)),
            nn.GroupNorm(1, 16),  # one group of all channels: LayerNorm, of pictures of any size
            nn.ReLU(),
            layer_init(nn.Conv2d(16, 32, 4, stride=2)),
            nn.GroupNorm(1, 32),
            nn.ReLU(),
            nn.Flatten(),
        ]
        features = nn.Sequential(*trunk)(torch.zeros(1, *shape)).shape[1]
        self.trunk = nn.Sequential(*trunk, layer_init(nn.Linear(features, 256)), nn.LayerNorm(256), nn.ReLU())
        self.head = layer_init(nn.Linear(256, num_actions), 0.01)

    def forward(self, obs: Tensor) -> Tensor:
        """Values (batch, num_actions) of uint8 shades (batch, stack_k, rows, columns)."""
        return self.head(self.trunk(obs.float() / 3))


def allocate_rollout(num_steps: int, num_envs: int, shape: Sequence[int], device: torch.device) -> dict[str, Tensor]:
    """Tensors (num_steps, num_envs), obs with (stack_k, rows, columns) behind, values with one step more: all that a
    rollout holds, once."""
    kinds = {"actions": torch.int64, "rewards": torch.float32, "terminals": torch.bool, "truncations": torch.bool}
    rollout = {name: torch.zeros((num_steps, num_envs), dtype=kind, device=device) for name, kind in kinds.items()}
    rollout["obs"] = torch.zeros((num_steps, num_envs, *shape), dtype=torch.uint8, device=device)
    return rollout | {"values": torch.zeros((num_steps + 1, num_envs), device=device)}


def explore(values: Tensor, epsilon: Tensor | float, generator: torch.Generator | None = None) -> Tensor:
    """The best actions, and with probability `epsilon` random ones: (batch,) of values (batch, num_actions)."""
    anything = torch.randint(values.shape[1], values.shape[:1], generator=generator, device=values.device)
    explores = torch.rand(len(values), generator=generator, device=values.device) < epsilon
    return torch.where(explores, anything, values.argmax(1))


@torch.no_grad()
def collect(model: Any, env: Any, rollout: Mapping[str, Tensor], epsilon: Tensor, clock: Stopwatch) -> None:
    """Fills the rollout with num_steps steps of all envs. One forward a step: the values that a step acts by are what
    the step before bootstraps from."""
    steps = len(rollout["obs"])
    for step in range(steps + 1):
        values = model(env.observations)
        rollout["values"][step] = values.amax(1)
        if step == steps:
            break
        rollout["actions"][step] = explore(values, epsilon)
        rollout["obs"][step] = env.observations  # before the step, which overwrites them
        clock.mark("time/infer")
        _, *came, _ = env.step(rollout["actions"][step])
        for name, part in zip(("rewards", "terminals", "truncations"), came, strict=True):
            rollout[name][step] = part
        clock.mark("time/env")
    clock.mark("time/infer")


def q_lambda_returns(
    rewards: Tensor, values: Tensor, terminals: Tensor, truncations: Tensor, gamma: float, q_lambda: float
) -> Tensor:
    """Q(lambda) returns (num_steps, num_envs) of the same, and of the best `values` (num_steps + 1, num_envs) of each
    step's observation and of the one behind the last.

    Behind a terminal nothing is to come. A truncated step has no return, since the observation that it led to is of
    another episode: there stands the value of its own observation, from which the step before bootstraps.
    """
    returns, later = torch.empty_like(rewards), values[-1]
    for step in reversed(range(len(rewards))):
        ahead = torch.lerp(values[step + 1], later, q_lambda)
        later = torch.where(truncations[step], values[step], rewards[step] + gamma * ahead * ~terminals[step])
        returns[step] = later
    return returns


def learn(model: nn.Module, optimizer: Any, rollout: Mapping[str, Tensor], args: Args, world: World) -> Tensor:
    """All epochs and minibatches of a rollout; returns the mean of each of LOSSES, on the device."""
    names = ("rewards", "values", "terminals", "truncations")
    returns = q_lambda_returns(*(rollout[name] for name in names), gamma=args.gamma, q_lambda=args.q_lambda)
    parts = {"obs": rollout["obs"], "actions": rollout["actions"], "returns": returns}
    parts = {name: part.flatten(0, 1) for name, part in (parts | {"weights": ~rollout["truncations"]}).items()}
    means = torch.zeros(len(LOSSES), device=returns.device)
    for _ in range(args.update_epochs):
        for index in torch.randperm(len(parts["obs"]), device=means.device).chunk(args.num_minibatches):
            batch = {name: part[index] for name, part in parts.items()}
            values = model(batch["obs"]).gather(1, batch["actions"][:, None]).squeeze(1)
            errors = (batch["returns"] - values) * batch["weights"]
            loss = 0.5 * errors.square().mean()
            optimizer.zero_grad()
            loss.backward()
            world.average_gradients(model)
            norm = nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
            optimizer.step()
            means += torch.stack([loss, errors.abs().mean(), values.mean(), norm]).detach()
    return means / (args.update_epochs * args.num_minibatches)


def play(model: nn.Module, epsilon: float, env: Any, greedy: bool, seed: int) -> Policy:
    """A copy of the model as a policy for `env`: its best actions, or `epsilon` random ones among them."""
    model = copy.deepcopy(model).to(env.device)
    generator = torch.Generator(env.device).manual_seed(seed)
    return lambda obs, starts=None: explore(model(obs), 0.0 if greedy else epsilon, generator)


def load_policy(checkpoint: dict[str, Any], env: Any, seed: int, greedy: bool = False) -> Policy:
    """The policy of a checkpoint of this script in `env`, for evaluate.py and `puffer record`."""
    model = QNetwork(env.single_observation_space.shape, int(env.single_action_space.n))
    load_weights(model, checkpoint["model"])
    return play(model, checkpoint["args"]["eps_end"], env, greedy, seed)


def memory_parts(args: Any) -> dict[str, int]:
    """Estimated bytes of the rollout, and of a minibatch: its observations, the activations and their gradients."""
    shape = (args.stack_k, 20, 20) if args.env == "toy" else (args.stack_k, 72, 80)
    steps, picture = args.num_steps * args.num_envs, torch.zeros(1, *shape)
    pixels = activations = picture.numel()
    for layer in QNetwork(shape, 8).trunk:
        picture = layer(picture)
        activations += picture.numel()
    minibatch = -(-steps // args.num_minibatches) * (pixels + 2 * 4 * activations)
    # Of each step observation, reward, value, action and ends, of the step behind the last a value, and the returns.
    return {"rollout": steps * (pixels + 4 + 4 + 8 + 2 + 4) + 4 * args.num_envs, "minibatch": minibatch}


def train(args: Args, run: Run) -> None:
    """One run, from its envs to its report."""
    run.check_memory(memory_parts(args), "lower --num-envs or --num-steps")
    (env,) = run.open_envs()
    shape, device, world = env.single_observation_space.shape, env.device, run.world
    torch.manual_seed(args.seed)
    model = QNetwork(shape, int(env.single_action_space.n)).to(device)
    world.share_weights(model)
    torch.manual_seed(args.seed + world.rank)
    optimizer = torch.optim.RAdam(model.parameters(), lr=args.lr)
    forward: Any = torch.compile(model) if args.compile else model
    rollout = allocate_rollout(args.num_steps, env.num_envs, shape, device)
    run.restore(LOSSES, {"model": model, "optimizer": optimizer})

    epsilon = torch.zeros((), device=device)
    work = partial(collect, forward, env, rollout, epsilon)
    recorded = Replayed(partial(work, Stopwatch(device, False))) if args.cuda_graph else None

    for update in run.updates(args.num_steps, args.log_interval, partial(play, model, args.eps_end)):
        lr = args.lr * (1 - (update - 1) / run.total_updates) if args.anneal_lr else args.lr
        optimizer.param_groups[0]["lr"] = lr
        share = min(1.0, (run.step - run.steps) / args.eps_steps)
        epsilon.fill_(eps := args.eps_start + (args.eps_end - args.eps_start) * share)
        if recorded and not run.clock.on:
            recorded()
        else:
            work(run.clock)
        run.losses.add(learn(forward, optimizer, rollout, args, world))
        run.clock.mark("time/learn")
        run.log({"charts/epsilon": eps, "charts/learning_rate": lr})


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one training; bad input is one line on stderr and exit code 2."""
    return launch(train, Args, EXP_NAME, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
