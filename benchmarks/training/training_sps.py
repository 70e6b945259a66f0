"""Measure how much of the env's speed training keeps: env steps per second of the env alone and of streaming A2C on it.

    python -m benchmarks.training.training_sps --device cuda:0 --num-envs 8192 16384 --out training_sps.json
    torchrun --nproc_per_node=2 -m benchmarks.training.training_sps --device cuda --num-envs 8192 --out two.json

For each number of envs one record of the env alone, with random actions drawn beforehand, and one for each variant of
the trainer: groups, CUDA graph, bfloat16, torch.compile, values used twice. All in one process, with the rounds of
a2c_overlap.py; `ratio` is a variant's rate over that of the env alone in the same part of the play, the median of the
repeats, and `ms_infer`, `ms_env`, `ms_learn` are the parts of a step when nothing overlaps. The learning rate is 0
unless given, so that the policy goes on to choose at random: as it learns, the games change, and with them how long a
step takes. All launch the same shape. Under torchrun the rates are of all processes together.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from operator import truediv
from pathlib import Path
from typing import Any

import torch
from torch import nn

from cleanrl_style.a2c_overlap import Agent, Args, play_round, td_losses
from gbxcule_puffer.files import write_json
from gbxcule_puffer.provenance import device_name, git_sha, versions
from gbxcule_puffer.trainers.blocks import Adam, Group, Replayed
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.envs import make_env, task_files
from gbxcule_puffer.trainers.kernels import FastConvolutions
from gbxcule_puffer.trainers.meters import Stopwatch

WARM_UP = 5  # rounds
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"overlap": False},
    "overlap": {},
    "plain+graph": {"overlap": False, "cuda_graph": True},
    "overlap+graph": {"cuda_graph": True},
    "overlap+reuse": {"reuse_values": True},
    "plain+graph+bf16": {"overlap": False, "cuda_graph": True, "bf16": True},
    "overlap+graph+bf16": {"cuda_graph": True, "bf16": True},
    "overlap+graph+bf16+reuse": {"cuda_graph": True, "bf16": True, "reuse_values": True},
    "overlap+compile+graph+bf16+reuse": {"compile": True, "cuda_graph": True, "bf16": True, "reuse_values": True},
    "groups+graph+bf16+reuse": {"env_groups": 2, "cuda_graph": True, "bf16": True, "reuse_values": True},
}


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def rates(
    work: Callable[[], None], steps: int, plan: argparse.Namespace, device: torch.device, world: World
) -> list[float]:
    """Env steps per second of all processes, one for each repeat; `work` is `steps` env steps of this one."""
    found = []
    for repeat in range(plan.repeat + 1):  # the first one warms up
        world.gather(None)  # begin together
        wait(device)
        begin = time.perf_counter()
        for _ in range(plan.rounds):
            work()
        wait(device)
        slowest = max(world.gather(time.perf_counter() - begin) or [1.0])
        if repeat:
            found.append(plan.rounds * steps * world.size / slowest)
    return found


def env_alone(num_envs: int, groups: int, plan: Any, files: dict[str, Any], world: World) -> list[float]:
    """The same envs, on a stream each, with random actions that are there already."""
    envs = [
        make_env(plan.args, num_envs // groups, plan.args.device, files, seed, info_mode="none", autotune=False)
        for seed in range(groups)
    ]
    device = envs[0].device
    members = [Group(env, 0, overlap=groups > 1) for env in envs]
    for env in envs:
        env.reset()
    # Another row each step: an env that repeats a few actions plays less than one that a policy plays.
    shape = (WARM_UP + plan.rounds * (plan.repeat + 1), plan.args.update_every, num_envs // groups)
    rows = iter(torch.randint(envs[0].codec.num_actions, shape, device=device))

    def work() -> None:
        for row in next(rows):
            for member in members:
                member.begin_step(row)
        for member in members:
            if member.stream is not None:
                torch.cuda.current_stream(device).wait_stream(member.stream)

    for _ in range(WARM_UP):  # as of a training, which then plays the same part of the game
        work()
    return rates(work, num_envs * plan.args.update_every, plan, device, world)


def training(
    num_envs: int, flags: dict[str, Any], plan: argparse.Namespace, files: dict[str, Any], world: World
) -> Any:
    """(rates, milliseconds of the parts of a step) of the trainer's rounds with optimizer steps."""
    args = Args(**{**vars(plan.args), **flags})
    never = 2**62
    options = {"info_mode": "full", "log_interval": never, "autotune": False}
    size = num_envs // args.env_groups
    envs = [make_env(args, size, args.device, files, seed, **options) for seed in range(args.env_groups)]
    env, device = envs[0], envs[0].device
    torch.manual_seed(1)
    model = Agent(env.layout, env.codec.num_actions, bf16=args.bf16)
    model = model.to(device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    world.share_weights(model)
    optimizer = Adam(model.parameters(), lr=args.lr, eps=1e-5)
    groups = [Group(env, model.state_size, args.overlap) for env in envs]
    for group in groups:
        group.env.reset()
    sums, coef = torch.zeros(5, device=device), torch.full((), args.entropy_coef, device=device)
    if args.bf16:
        model.convolutions = FastConvolutions(model.convolutions)
    forward: Any
    forward, losses = (torch.compile(model), torch.compile(td_losses)) if args.compile else (model, td_losses)
    work = partial(play_round, forward, groups, losses, args, coef, sums)
    off = Stopwatch(device, False)
    recorded = Replayed(partial(work, off)) if args.cuda_graph else partial(work, off)

    def update(gather: Callable[[], None]) -> None:
        gather()
        world.average_gradients(model)
        nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    for _ in range(WARM_UP):  # compiles and records
        update(recorded)
    found = rates(partial(update, recorded), num_envs * args.update_every, plan, device, world)
    clock = Stopwatch(device, True)
    update(partial(work, clock))
    clock.mark("time/learn")
    parts = {name.replace("time/", "ms_"): 1000 * part / args.update_every for name, part in clock.seconds.items()}
    return found, parts


def record(
    num_envs: int, variant: str, found: list[float], plan: argparse.Namespace, extra: dict[str, Any]
) -> dict[str, Any]:
    """One record, with the fields of those of `puffer bench`."""
    device = plan.args.device
    name = device_name(device)
    sps = statistics.median(found)
    args, peak = plan.args, torch.cuda.max_memory_allocated(device) if device.startswith("cuda") else None
    return {
        "backend": args.env, "device_name": name, "num_envs": num_envs, "stage": "training", "variant": variant,
        "rom": Path(plan.files.get("rom", args.env)).stem, "action_codec": args.action_codec,
        "frames_per_step": args.frames_per_step, "stack_k": args.stack_k, "update_every": args.update_every,
        "lr": args.lr,
        "warmup_rounds": plan.rounds, "measured_rounds": plan.rounds, "repeats": len(found),
        "sps": round(sps, 1), "sps_min": round(min(found), 1), "sps_max": round(max(found), 1),
        "frames_per_second": round(sps * args.frames_per_step, 1), **extra, "peak_device_bytes": peak,
        "versions": versions(), "git_sha": git_sha(),
    }  # fmt: skip


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, cuda:0, or cuda under torchrun")
    parser.add_argument("--env", default="gbxcule", help="gbxcule, pyboy_puffer_vec or toy")
    parser.add_argument("--rom", help="Game Boy image; needs --goal-dir (default: HOMEWARD)")
    parser.add_argument("--goal-dir", help="folder of the goal (puffer goal make)")
    parser.add_argument("--start-state", help="state that --goal-dir begins at (default: power-on)")
    parser.add_argument("--lr", type=float, default=0.0, help="learning rate (default: 0)")
    parser.add_argument("--num-envs", nargs="+", type=int, default=[64], help="envs of each process")
    parser.add_argument(
        "--variants", nargs="+", choices=tuple(VARIANTS), default=list(VARIANTS), help="what to measure"
    )
    parser.add_argument("--update-every", type=int, default=4, help="env steps of a round")
    parser.add_argument("--rounds", type=int, default=10, help="rounds of a repeat")
    parser.add_argument("--repeat", type=int, default=3, help="repeats, of which the median counts")
    parser.add_argument("--run-dir", type=Path, default=Path("runs/training_sps"), help="folder for the task's files")
    parser.add_argument("--out", type=Path, help="JSON file to write the records to, after each measurement")
    plan = parser.parse_args()
    if min(*plan.num_envs, plan.update_every, plan.rounds, plan.repeat) < 1 or any(n % 2 for n in plan.num_envs):
        parser.error("--num-envs takes even numbers, --update-every, --rounds and --repeat numbers from 1")
    if plan.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error(f"--device {plan.device}: no NVIDIA GPU here; give --device cpu")
    if not plan.device.startswith("cuda"):
        plan.variants = [name for name in plan.variants if "graph" not in name]
    return plan


def main() -> None:
    plan = parse_args()
    world = World.from_environment()
    device = f"cuda:{world.local_rank}" if plan.device == "cuda" else plan.device
    world.join(device)
    torch.set_float32_matmul_precision("high")
    task = dict(env=plan.env, rom=plan.rom, start_state=plan.start_state, goal_dir=plan.goal_dir)
    plan.args = Args(**task, device=device, update_every=plan.update_every, lr=plan.lr)
    plan.files = files = task_files(plan.args, plan.run_dir, world)
    records: list[dict[str, Any]] = []

    def keep(num_envs: int, variant: str, found: list[float], **extra: Any) -> list[float]:
        row = record(num_envs, variant, found, plan, {"processes": world.size, **extra})
        records.append(row)
        if world.rank == 0:  # the others' records are of the same rates
            parts = "  ".join(f"{name} {value:.2f}" for name, value in extra.items())
            print(f"{num_envs:>7} envs  {variant:24} {row['sps']:>12,.0f} steps/s  {parts}", flush=True)
            if plan.out:
                write_json(plan.out, records)
        return found

    # A CUDA graph cannot be recorded on the default stream.
    with torch.cuda.stream(torch.cuda.Stream(device)) if device.startswith("cuda") else nullcontext():
        for num_envs in plan.num_envs:
            alone = keep(num_envs, "env alone", env_alone(num_envs, 1, plan, files, world))
            if any("groups" in name for name in plan.variants):
                keep(num_envs, "env alone, 2 groups", env_alone(num_envs, 2, plan, files, world))
            for variant in plan.variants:
                found, parts = training(num_envs, VARIANTS[variant], plan, files, world)
                ratio = statistics.median(map(truediv, found, alone))
                keep(num_envs, variant, found, ratio=ratio, **parts)
    world.leave()


if __name__ == "__main__":
    main()
