"""PPO: rollouts of all envs on the device, clipped updates over minibatches. Run it with --help to see the flags.

On several GPUs: torchrun --nproc_per_node=N cleanrl_style/ppo_lite.py ...
"""

from __future__ import annotations

import copy
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

# Before torch: its idle threads must not spin on the cores that the emulator uses; on a busy machine that costs 10x.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from torch import Tensor, nn

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.trainers import flags
from gbxcule_puffer.trainers.checkpoints import load_weights, rng_state, save_checkpoint, set_rng_state, to_host
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.evaluation import Policy, assess, evaluate, lowest_success, random_policy
from gbxcule_puffer.trainers.media import record_media
from gbxcule_puffer.trainers.memory import describe_memory
from gbxcule_puffer.trainers.returns import gae
from gbxcule_puffer.trainers.run import Stopwatch, env_state, exit_code, open_run, report
from gbxcule_puffer.trainers.runlog import RunLog, merge_infos

EXP_NAME = Path(__file__).stem
# None in Args means: by device.
CPU = {"num_envs": 32, "total_env_steps": 1_000_000, "log_interval": 1}
CPU |= {"eval_every_steps": 16_384, "media_every": 131_072}
GPU = {"num_envs": 256, "total_env_steps": 20_000_000, "log_interval": 8}
GPU |= {"eval_every_steps": 524_288, "media_every": 4_194_304}
SMOKE = {"num_envs": 4, "num_steps": 8, "max_steps": 16, "total_env_steps": 128, "log_interval": 1}
SMOKE |= {"eval_every_steps": 64, "eval_envs": 2, "eval_episodes": 2, "checkpoint_every": 64, "media_every": 128}
LOSSES = ("policy_loss", "value_loss", "entropy", "approx_kl", "clipfrac", "grad_norm")
EVERY = ("eval_every_steps", "checkpoint_every", "media_every")
# What a resumed run may change; everything else has to be as in the checkpoint.
FREE_ON_RESUME = (*flags.FREE_ON_RESUME, *EVERY, "log_interval", "compile")


@dataclass
class Args(flags.TaskFlags):
    action_codec: str = "pokemonred_puffer_v0"
    """action set: pokemonred_puffer_v0 or pokemonred_puffer_v1 (with NOOP)"""
    stack_k: int = 4
    """pictures in an observation"""
    num_envs: int | None = None
    """Game Boys in parallel, of each process (default: 32 on the CPU, 256 on a GPU)"""
    num_steps: int = 128
    """steps of each env in a rollout"""
    lr: float = 2.5e-4
    """learning rate"""
    anneal_lr: bool = True
    """lower the learning rate to 0 over total_env_steps"""
    gamma: float = 0.99
    """discount factor"""
    gae_lambda: float = 0.95
    """lambda of the generalised advantage estimation"""
    clip_coef: float = 0.1
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
    num_minibatches: int = 4
    """optimizer steps of a pass"""
    compile: bool = False
    """torch.compile of the model"""
    total_env_steps: int | None = None
    """steps over all environments and processes, at most (default: 1e6 on the CPU, 2e7 on a GPU)"""
    log_interval: int | None = None
    """rollouts between two records of metrics (default: 1 on the CPU, 8 on a GPU)"""
    eval_every_steps: int | None = None
    """steps between two evaluations (default: 16,384 on the CPU, 524,288 on a GPU)"""
    checkpoint_every: int | None = None
    """steps between two checkpoints (default: as --eval-every-steps)"""
    media_every: int | None = None
    """steps between two sheets of pictures and GIFs of an episode (default: 131,072 on the CPU, 4,194,304 on a GPU)"""


def layer_init(layer: Any, std: float = 2**0.5) -> Any:
    """Orthogonal weights and no bias."""
    nn.init.orthogonal_(layer.weight, std)
    nn.init.zeros_(layer.bias)
    return layer


class Agent(nn.Module):
    """Two strided convolutions on shades / 3, a hidden layer, and a policy and a value head."""

    def __init__(self, shape: tuple[int, int, int], num_actions: int) -> None:
        super().__init__()
        trunk = [
            nn.PixelUnshuffle(4),  # 4x4 blocks as channels: with it 2x2 is 8x8 with stride 4, and faster
            layer_init(nn.Conv2d(16 * shape[0], 16, 2)),
            nn.ReLU(),
            layer_init(nn.Conv2d(16, 32, 4, stride=2)),
            nn.ReLU(),
            nn.Flatten(),
        ]
        features = nn.Sequential(*trunk)(torch.zeros(1, *shape)).shape[1]
        self.trunk = nn.Sequential(*trunk, layer_init(nn.Linear(features, 256)), nn.ReLU())
        self.policy = layer_init(nn.Linear(256, num_actions), 0.01)
        self.value = layer_init(nn.Linear(256, 1), 1.0)

    def forward(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (batch, num_actions) and values (batch,) of uint8 shades (batch, stack_k, rows, columns)."""
        hidden = self.trunk(obs.float() / 3)
        return self.policy(hidden), self.value(hidden).squeeze(1)


def allocate_rollout(num_steps: int, num_envs: int, shape: Sequence[int], device: torch.device) -> dict[str, Tensor]:
    """Tensors (num_steps, num_envs), obs with (stack_k, rows, columns) behind: all that a rollout holds, once."""
    kinds = dict.fromkeys(("logprobs", "values", "rewards", "next_values"), torch.float32)
    kinds |= {"actions": torch.int64, "terminals": torch.bool, "truncations": torch.bool}
    obs = torch.zeros((num_steps, num_envs, *shape), dtype=torch.uint8, device=device)
    return {"obs": obs, **{name: torch.zeros(obs.shape[:2], dtype=kind, device=device) for name, kind in kinds.items()}}


def sample(logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Actions drawn by the Gumbel trick: no host synchronisation, and no probabilities that could be invalid."""
    return (logits - torch.empty_like(logits).exponential_(generator=generator).log()).argmax(1)


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
def collect(model: Any, env: Any, rollout: Mapping[str, Tensor], clock: Stopwatch) -> list[dict[str, float]]:
    """Fills the rollout with num_steps steps of all envs; returns the env's infos."""
    infos: list[dict[str, float]] = []
    for step in range(len(rollout["obs"])):
        logits, value = model(env.observations)
        actions = sample(logits)
        logprobs = logits.log_softmax(1).gather(1, actions[:, None]).squeeze(1)
        chosen = {"obs": env.observations, "actions": actions, "values": value, "logprobs": logprobs}
        for name, part in chosen.items():  # before the step, which overwrites the observations
            rollout[name][step] = part
        clock.mark("time/infer")
        _, rewards, terminals, truncations, step_infos = env.step(actions)
        infos += step_infos
        clock.mark("time/env")
        # Where the action led, also in envs that have begun a new episode meanwhile: what a truncation is worth.
        next_values = model(env.final_observation)[1]
        came = {"rewards": rewards, "terminals": terminals, "truncations": truncations, "next_values": next_values}
        for name, part in came.items():
            rollout[name][step] = part
        clock.mark("time/infer")
    return infos


def learn(model: nn.Module, optimizer: Any, rollout: Mapping[str, Tensor], args: Args, world: World) -> Tensor:
    """All epochs and minibatches of a rollout; returns the mean of each of LOSSES, on the device."""
    names = ("rewards", "values", "next_values", "terminals", "truncations")
    parts = {name: rollout[name] for name in names}
    advantages, returns = gae(**parts, gamma=args.gamma, gae_lambda=args.gae_lambda)
    kept = {name: rollout[name] for name in ("obs", "actions", "logprobs", "values")}
    kept = {name: part.flatten(0, 1) for name, part in (kept | {"advantages": advantages, "returns": returns}).items()}
    means = torch.zeros(len(LOSSES), device=advantages.device)
    for _ in range(args.update_epochs):
        for index in torch.randperm(len(kept["obs"]), device=means.device).chunk(args.num_minibatches):
            batch = {name: part[index] for name, part in kept.items()}
            if args.norm_adv:
                advantage = batch["advantages"]
                batch["advantages"] = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            logits, values = model(batch["obs"])
            losses = ppo_losses(logits, values, batch, args.clip_coef, args.value_clip)
            loss = losses[0] + args.value_coef * losses[1] - args.entropy_coef * losses[2]
            optimizer.zero_grad()
            loss.backward()
            world.average_gradients(model)
            norm = nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
            optimizer.step()
            means += torch.stack([*losses, norm]).detach()
    return means / (args.update_epochs * args.num_minibatches)


def play(model: nn.Module, env: Any, greedy: bool, seed: int) -> Policy:
    """A copy of the model as a policy for `env`: its likeliest actions, or samples from its own random stream."""
    model = copy.deepcopy(model).to(env.device)
    generator = torch.Generator(env.device).manual_seed(seed)
    return lambda obs, starts=None: model(obs)[0].argmax(1) if greedy else sample(model(obs)[0], generator)


def load_policy(checkpoint: dict[str, Any], env: Any, seed: int, greedy: bool = False) -> Policy:
    """The policy of a checkpoint of this script in `env`, for evaluate.py and `puffer record`."""
    model = Agent(env.single_observation_space.shape, int(env.single_action_space.n))
    load_weights(model, checkpoint["model"])
    return play(model, env, greedy, seed)


def memory_parts(args: Any) -> dict[str, int]:
    """Estimated bytes of the rollout, and of a minibatch: its observations, the activations and their gradients."""
    shape = (args.stack_k, 20, 20) if args.env == "toy" else (args.stack_k, 72, 80)
    steps, picture = args.num_steps * args.num_envs, torch.zeros(1, *shape)
    pixels = activations = picture.numel()
    for layer in Agent(shape, 8).trunk:
        picture = layer(picture)
        activations += picture.numel()
    minibatch = -(-steps // args.num_minibatches) * (pixels + 2 * 4 * activations)
    return {"rollout": steps * (pixels + 4 * 4 + 8 + 2 + 2 * 4), "minibatch": minibatch}


def settle(args: Any, world: World) -> None:
    """Fills in and checks the flags. Raises: ConfigError or DeviceError."""
    flags.settle_flags(args, {"cpu": CPU, "cuda": GPU}, world, SMOKE)
    if args.checkpoint_every is None:
        args.checkpoint_every = args.eval_every_steps
    counts = ("num_envs", "num_steps", "update_epochs", "num_minibatches", "total_env_steps", "log_interval")
    flags.check_at_least_one(args, (*counts, *EVERY))
    steps = args.num_steps * args.num_envs
    if steps < 2 * args.num_minibatches:
        raise ConfigError(f"--num-minibatches {args.num_minibatches} leaves minibatches of under 2 of {steps} steps")


def train(args: Any, world: World) -> None:
    """One run, from the flags to its report."""
    free = FREE_ON_RESUME if args.anneal_lr else (*FREE_ON_RESUME, "total_env_steps")
    interval = args.num_steps * args.log_interval
    run = open_run(args, EXP_NAME, world, free, info_mode="full", log_interval=interval)
    env, first = run.envs[0], world.rank == 0
    device, shape = env.device, env.single_observation_space.shape
    torch.manual_seed(args.seed)
    model = Agent(shape, int(env.single_action_space.n))
    model = model.to(device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    world.share_weights(model)
    torch.manual_seed(args.seed + world.rank)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, eps=1e-5)
    forward: Any = torch.compile(model) if args.compile else model
    rollout = allocate_rollout(args.num_steps, env.num_envs, shape, device)
    counters = dict.fromkeys(("global_step", "logged", "passed"), 0)
    env.reset(seed=env.seed)
    if run.resumed:
        counters = run.resumed["counters"]
        load_weights(model, run.resumed["model"])
        optimizer.load_state_dict(run.resumed["optimizer"])
        own = run.resumed["processes"][world.rank]
        env.load_state_dict(own["env"])
        set_rng_state(own["rng"], device)
    resumed_at = counters["global_step"] if run.resumed else None
    log = RunLog(run.run_dir, args, processes=world.size, resumed_at=resumed_at) if first else None

    steps = args.num_steps * env.num_envs * world.size
    rollouts, begun = -(-args.total_env_steps // steps), counters["global_step"] // steps
    if begun >= rollouts:
        raise ConfigError(f"checkpoint {args.resume} has all its --total-env-steps {args.total_env_steps}: start anew")
    start = logged_at = time.time()
    for iteration in range(begun + 1, rollouts + 1):
        step = iteration * steps
        counters["global_step"] = step
        clock = Stopwatch(device, iteration % args.log_interval == 0)
        lr = args.lr * (1 - (iteration - 1) / rollouts) if args.anneal_lr else args.lr
        optimizer.param_groups[0]["lr"] = lr
        infos = collect(forward, env, rollout, clock)
        losses = learn(forward, optimizer, rollout, args, world)
        clock.mark("time/learn")
        if clock.on:
            world.average(losses)
            everyone = [info for infos in world.gather(infos) for info in infos]
            if log:
                metrics = {f"losses/{name}": mean for name, mean in zip(LOSSES, losses.tolist(), strict=True)}
                metrics["charts/SPS"] = (step - counters["logged"]) / (time.time() - logged_at)
                log.record(step, metrics | {"charts/learning_rate": lr} | merge_infos(everyone) | clock.seconds)
            counters["logged"], logged_at = step, time.time()
        if log:
            log.progress(step, rollouts * steps, time.time() - start)

        began, last, seed = time.time(), iteration == rollouts, args.seed + step
        due = {name for name in EVERY if step // getattr(args, name) > (step - steps) // getattr(args, name)}
        if last or "eval_every_steps" in due:
            result = {}
            if log:
                sampled, greedy = (play(model, run.eval_env, greedy, seed) for greedy in (False, True))
                result = assess(sampled, greedy, run.eval_env, args.eval_episodes, seed)
                log.record(step, result)
            result = world.tell(result)
            counters["passed"] = counters["passed"] + 1 if lowest_success(result) >= args.stop_at_success else 0
            last = last or counters["passed"] == 2
        if log and (last or "media_every" in due):
            record_media(log, step, env.observations, play(model, run.eval_env, False, seed), run.eval_env, seed)
        if last or "checkpoint_every" in due:
            processes = world.gather(to_host({"env": env_state(env), "rng": rng_state(device)}))
            if log:
                log.check_weights(step, model)
                state = {"exp_name": EXP_NAME, "counters": counters, "env_config": env.config, "processes": processes}
                state |= {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                save_checkpoint(run.run_dir / "checkpoint.pt", state, args, args.keep_checkpoints)
        logged_at += time.time() - began  # SPS is the training's
        if last:
            break
    if log:
        log.progress(step, rollouts * steps, time.time() - start, last=True)
        seconds, policy = time.time() - start, random_policy(run.eval_env, args.seed)
        random = evaluate(policy, run.eval_env, args.eval_episodes, args.seed)["success_rate"]
        log.record(step, {"eval/random_success_rate": random})
        log.close()
        report(run.run_dir, step, result, random, seconds)


def start(args: Args) -> None:
    """Settles the flags, meets the other processes and trains."""
    world = World.from_environment()
    settle(args, world)
    estimate = describe_memory(memory_parts(args), torch.device(args.device), "lower --num-envs or --num-steps")
    if world.rank == 0:
        print(estimate)
        print("preparing (the first start compiles the emulator, which takes up to a minute)", flush=True)
    torch.set_float32_matmul_precision("high")  # TF32 on a GPU
    world.join(args.device)
    train(args, world)
    world.leave()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one training; bad input is one line on stderr and exit code 2."""
    args = flags.parse_flags(Args, EXP_NAME, __doc__, argv)
    return exit_code(EXP_NAME, partial(start, args))


if __name__ == "__main__":
    sys.exit(main())
