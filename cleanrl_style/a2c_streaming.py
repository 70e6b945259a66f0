"""Streaming A2C: one TD(0) loss a step, from pixels, without a rollout buffer. Run it with --help to see the flags."""

from __future__ import annotations

import copy
import itertools
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Before torch: its idle threads must not spin on the cores that the emulator uses; on a busy machine that costs 10x.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from torch import nn

import gbxcule_puffer
from gbxcule_puffer.device import resolve_device
from gbxcule_puffer.errors import ConfigError, GBxCuLEError, StateError
from gbxcule_puffer.stages import make_stage
from gbxcule_puffer.training import (
    TAGS,
    RunLog,
    Stopwatch,
    evaluate,
    load_checkpoint,
    parse_flags,
    random_success_rate,
    rng_state,
    save_checkpoint,
    set_rng_state,
)

ROOT = Path(__file__).resolve().parents[1]
EXP_NAME = Path(__file__).stem
# None in Args means: by device.
DEVICE_DEFAULTS = {
    "cpu": {"num_envs": 64, "total_env_steps": 2_000_000, "eval_every_steps": 50_000},
    "cuda": {"num_envs": 8192, "total_env_steps": 100_000_000, "eval_every_steps": 4_000_000},
}
LOSSES = ("policy_loss", "value_loss", "entropy", "value", "grad_norm")
# What a resumed run may change; everything else has to be as in the checkpoint.
FREE_ON_RESUME = (
    *("total_env_steps", "eval_every_steps", "eval_episodes", "eval_device", "stop_at_success", "log_interval"),
    *("run_dir", "resume"),
    *("rom", "start_state", "goal_dir", "stage"),  # the env's config and state are compared instead
)


@dataclass
class Args:
    env: str = "gbxcule"
    """environment: gbxcule"""
    num_envs: int | None = None
    """Game Boys in parallel (default: 64 on the CPU, 8192 on a GPU)"""
    frames_per_step: int = 24
    """emulated frames of one step"""
    release_after_frames: int = 8
    """frames after which a step releases its button"""
    stack_k: int = 1
    """pictures in an observation"""
    action_codec: str = "pokemonred_puffer_v1"
    """action set: pokemonred_puffer_v0 or pokemonred_puffer_v1 (with NOOP)"""
    max_steps: int = 128
    """steps after which an episode is truncated"""
    step_cost: float = -0.01
    """reward of every step"""
    alpha: float = 10.0
    """reward for coming closer to the goal's picture, per unit of distance"""
    goal_bonus: float = 5.0
    """reward for reaching the goal"""
    tau: float | None = None
    """distance below which the picture counts as the goal's (default: the goal's own)"""
    k_consecutive: int = 4
    """steps in a row that the goal's picture has to show for"""
    lr: float = 1e-4
    """learning rate"""
    gamma: float = 0.99
    """discount factor"""
    value_coef: float = 0.5
    """weight of the value loss"""
    entropy_coef: float = 0.02
    """weight of the entropy bonus"""
    grad_clip: float = 0.5
    """maximum norm of the gradient"""
    update_every: int = 4
    """environment steps whose gradients are summed into one optimizer step"""
    total_env_steps: int | None = None
    """steps over all environments, at most (default: 2e6 on the CPU, 1e8 on a GPU)"""
    eval_every_steps: int | None = None
    """steps between two evaluations and checkpoints (default: 5e4 on the CPU, 4e6 on a GPU)"""
    eval_episodes: int = 50
    """episodes of an evaluation, with one environment"""
    stop_at_success: float = 0.95
    """end when two evaluations in a row succeed at least this often; above 1 never"""
    log_interval: int = 128
    """environment steps between two records of metrics"""
    seed: int = 1
    """seed of the weights, the sampled actions and the environment"""
    device: str = "auto"
    """cpu, cuda or cuda:N (default: a GPU if there is one)"""
    eval_device: str = "cpu"
    """where the evaluation plays: a CPU core runs one Game Boy faster than a GPU, to the same bits"""
    rom: str | None = None
    """Game Boy image; needs --goal-dir (default: the stage's)"""
    start_state: str | None = None
    """snapshot that episodes start from (default: the stage's, or post-boot with --rom)"""
    goal_dir: str | None = None
    """folder of the goal (default: the stage's)"""
    stage: str = str(ROOT / "roms/homeward/stage1.json")
    """stage file that the start and the goal are made from when --goal-dir is not given"""
    run_dir: str | None = None
    """folder of this run's files (default: runs/ENV__EXP__SEED__TIME)"""
    resume: str | None = None
    """checkpoint.pt to continue from"""


def layer_init(layer: Any, std: float = 2**0.5) -> Any:
    """Orthogonal weights and no bias."""
    nn.init.orthogonal_(layer.weight, std)
    nn.init.zeros_(layer.bias)
    return layer


class PixelActorCriticCNN(nn.Module):
    """Two strided convolutions on shades / 3, a hidden layer, and a policy and a value head."""

    def __init__(self, shape: tuple[int, int, int], num_actions: int) -> None:
        super().__init__()
        trunk = [
            layer_init(nn.Conv2d(shape[0], 16, 8, stride=4)),
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


def sample(logits: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
    """One action a row by the Gumbel trick: no host synchronisation, and no probabilities that could be invalid."""
    return (logits - torch.empty_like(logits).exponential_(generator=generator).log()).argmax(1)


def make_env(args: Args, num_envs: int | None, device: str, files: dict[str, Any]) -> Any:
    return gbxcule_puffer.env_creator(args.env)(
        **files,
        num_envs=num_envs,
        device=device,
        io="torch",
        stack_k=args.stack_k,
        action_codec=args.action_codec,
        frames_per_step=args.frames_per_step,
        release_after_frames=args.release_after_frames,
        max_steps=args.max_steps,
        step_cost=args.step_cost,
        alpha=args.alpha,
        goal_bonus=args.goal_bonus,
        tau=args.tau,
        k_consecutive=args.k_consecutive,
        log_interval=args.log_interval,
        info_mode="full",
        seed=args.seed,
    )


def settle(args: Args) -> Path:
    """Fills in the defaults that depend on the device and the run; returns the run's folder, not yet made.

    Raises: ConfigError or DeviceError.
    """
    if args.device == "auto":
        args.device = "cuda" if torch.cuda.is_available() else "cpu"
    args.device = resolve_device(args.device)
    for name, value in DEVICE_DEFAULTS[args.device.split(":")[0]].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    for name in ("update_every", "eval_episodes", "log_interval", "total_env_steps", "eval_every_steps"):
        if getattr(args, name) < 1:
            raise ConfigError(f"--{name.replace('_', '-')} {getattr(args, name)} must be at least 1")
    if args.rom and not args.goal_dir:
        raise ConfigError("--rom needs --goal-dir: make a goal for it with `puffer goal make`")
    if args.run_dir:
        return Path(args.run_dir)
    if args.resume:
        return Path(args.resume).resolve().parent
    return ROOT / "runs" / f"{args.env}__{EXP_NAME}__{args.seed}__{int(time.time())}"


def task_files(args: Args, run_dir: Path) -> dict[str, Any]:
    """The env's rom, start_state and goal_dir: as given, else those of the stage, made in the run's folder."""
    if args.goal_dir:
        rom = args.rom or ROOT / "roms/homeward.gb"
        return {"rom": rom, "start_state": args.start_state, "goal_dir": args.goal_dir}
    files = make_stage(
        args.stage,
        run_dir / "stage",
        stack_k=args.stack_k,
        action_codec=args.action_codec,
        frames_per_step=args.frames_per_step,
        release_after_frames=args.release_after_frames,
        k_consecutive=args.k_consecutive,
        device=args.eval_device,
    )
    return {"rom": files.rom, "start_state": args.start_state or files.start_state, "goal_dir": files.goal_dir}


def td_losses(
    logits: torch.Tensor, value: torch.Tensor, actions: torch.Tensor, target: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(policy loss, value loss, entropy) of one step; the advantage is the TD(0) error."""
    logprobs = logits.log_softmax(1)
    advantage = target - value.detach()
    policy_loss = -(advantage * logprobs.gather(1, actions[:, None]).squeeze(1)).mean()
    return policy_loss, 0.5 * (target - value).square().mean(), -(logprobs.exp() * logprobs).sum(1).mean()


def start_run(args: Args) -> tuple[Path, Any, Any, dict[str, Any] | None]:
    """(run folder, training env, evaluation env, checkpoint to resume); bad input leaves no folder behind."""
    run_dir = settle(args)
    resumed = load_checkpoint(args.resume, args, FREE_ON_RESUME) if args.resume else None
    fresh = not run_dir.exists()
    try:
        files = task_files(args, run_dir)
        env = make_env(args, args.num_envs, args.device, files)
        eval_env = make_env(args, 1, args.eval_device, files)
        for name, value in env.config.items():
            if resumed and resumed["env_config"][name] != value:
                raise StateError(f"checkpoint {args.resume} has another {name} ({resumed['env_config'][name]})")
    except GBxCuLEError:
        if fresh:
            shutil.rmtree(run_dir, ignore_errors=True)
        raise
    run_dir.mkdir(parents=True, exist_ok=True)
    return run_dir, env, eval_env, resumed


def assess(model: nn.Module, env: Any, episodes: int, seed: int) -> dict[str, float]:
    """Success of the sampled policy over `episodes`, and of the greedy one, which plays the same episode each time."""
    model = copy.deepcopy(model).to(env.device)
    generator = torch.Generator(env.device).manual_seed(seed)
    result = evaluate(lambda obs: sample(model(obs)[0], generator), env, episodes, seed)
    greedy = evaluate(lambda obs: model(obs)[0].argmax(1), env, 1, seed)
    return {**result, "greedy_success": greedy["success_rate"]}


def train(args: Args) -> None:
    print("preparing (the first start compiles the emulator, which takes up to a minute)", flush=True)
    run_dir, env, eval_env, resumed = start_run(args)
    log = RunLog(run_dir, args)
    if env.device.type == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32
    torch.manual_seed(args.seed)
    model = PixelActorCriticCNN(env.single_observation_space.shape, env.single_action_space.n).to(env.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, eps=1e-5)
    if resumed:
        counters = resumed["counters"]
        model.load_state_dict(resumed["model"])
        optimizer.load_state_dict(resumed["optimizer"])
        env.reset(seed=args.seed + counters["global_step"])
        if resumed["env"] is not None:
            env.load_state_dict(resumed["env"])
        set_rng_state(resumed["rng"], env.device)
    else:
        counters: dict[str, Any] = {"global_step": 0, "evaluations": 0, "passed": 0}
        counters["random"] = random_success_rate(env, args.eval_episodes, args.seed)
        log.record(0, {"eval/random_success_rate": counters["random"]})
        env.reset(seed=args.seed)

    obs, sums = env.observations, torch.zeros(len(LOSSES), device=env.device)
    total = args.total_env_steps or 0
    begun = logged = counters["global_step"] // env.num_envs
    start = logged_at = time.time()
    for iteration in itertools.count(begun + 1):
        step = iteration * env.num_envs
        timed = iteration % args.log_interval == 0
        clock = Stopwatch(env.device, timed)

        logits, value = model(obs)
        actions = sample(logits.detach())
        clock.mark("time/infer")
        obs, rewards, terminals, _, infos = env.step(actions)
        clock.mark("time/env")

        # final_observation is where the action led, also in envs that have begun a new episode meanwhile: a truncated
        # episode is bootstrapped from it, a terminal one from zero.
        with torch.no_grad():
            target = rewards + args.gamma * model(env.final_observation)[1] * ~terminals
        policy_loss, value_loss, entropy = td_losses(logits, value, actions, target)
        loss = policy_loss + args.value_coef * value_loss - args.entropy_coef * entropy
        (loss / args.update_every).backward()
        sums[:4] += torch.stack([policy_loss, value_loss, entropy, value.mean()]).detach()
        updated = iteration % args.update_every == 0
        if updated:
            sums[4] += nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip) * args.update_every
            optimizer.step()
            optimizer.zero_grad()
        clock.mark("time/learn")

        if timed:
            means = (sums / (iteration - logged)).tolist()
            metrics = {f"losses/{name}": mean for name, mean in zip(LOSSES, means, strict=True)}
            metrics |= {TAGS.get(name, f"env/{name}"): number for info in infos for name, number in info.items()}
            metrics["charts/SPS"] = (iteration - logged) * env.num_envs / (time.time() - logged_at)
            log.record(step, metrics | clock.seconds)
            sums.zero_()
            logged, logged_at = iteration, time.time()
        log.progress(step, total, time.time() - start)

        last = step >= total
        if updated and (last or step // args.eval_every_steps > counters["evaluations"]):
            began = time.time()
            result = assess(model, eval_env, args.eval_episodes, args.seed + step)
            passed = counters["passed"] + 1 if result["success_rate"] >= args.stop_at_success else 0
            counters |= {"global_step": step, "evaluations": step // args.eval_every_steps, "passed": passed}
            counters["result"] = result
            log.record(step, {f"eval/{name}": number for name, number in result.items()})
            save_checkpoint(run_dir / "checkpoint.pt", training_state(model, optimizer, env, counters), args)
            logged_at += time.time() - began  # SPS is the training's
            if last or passed == 2:
                break
    log.progress(step, total, time.time() - start, last=True)
    log.close()
    report(run_dir, counters, time.time() - start)


def training_state(model: nn.Module, optimizer: torch.optim.Optimizer, env: Any, counters: dict) -> dict[str, Any]:
    """What a checkpoint holds beside the flags. On a GPU the thousands of machines would make it gigabytes: there the
    env's state is left out, and a resumed run begins with new episodes."""
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "counters": counters,
        "rng": rng_state(env.device),
        "env": env.state_dict() if env.device.type == "cpu" else None,
        "env_config": env.config,
    }


def report(run_dir: Path, counters: dict[str, Any], seconds: float) -> None:
    """The run's result in words, on stdout."""
    result = counters["result"]
    median = f"{result['median_steps']:.0f}" if "median_steps" in result else "-"
    print(f"success rate   {result['success_rate']:.2f}   (median {median} steps, mean return {result['return']:.2f})")
    print(f"random policy  {counters['random']:.2f}")
    print(f"trained        {counters['global_step']:,} steps in {seconds:.0f} s")
    print(f"checkpoint     {run_dir / 'checkpoint.pt'}")
    print(f"TensorBoard    {Path(sys.executable).parent / 'tensorboard'} --logdir {run_dir}")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one training; bad input is one line on stderr and exit code 2."""
    try:
        train(parse_flags(Args, EXP_NAME, __doc__, argv))
    except GBxCuLEError as error:
        print(f"{EXP_NAME}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
