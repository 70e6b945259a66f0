"""What options of the environment add to the time of a step.

    python -m benchmarks.training.option_cost --device cuda --num-envs 16384 --out option_cost.json

plays HOMEWARD from anywhere with random actions in one env after the other, the plain one first and last, and writes
milliseconds a step and the share that each option adds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from gbxcule_puffer.device import resolve_device
from gbxcule_puffer.errors import GBxCuLEError
from gbxcule_puffer.files import check_target, write_json
from gbxcule_puffer.provenance import device_name, git_sha, versions
from gbxcule_puffer.registry import env_creator
from gbxcule_puffer.trainers.blocks import Replayed

GRAPH = "a step as a CUDA graph"
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},  # shades, one picture, torch, no infos
    "info_mode=full": {"info_mode": "full"},
    "info_mode=full, log_interval=1": {"info_mode": "full", "log_interval": 1},
    "obs=packed": {"obs": "packed"},
    "obs=averaged": {"obs": "averaged"},
    "obs=grey": {"obs": "grey"},
    "obs=full": {"obs": "full"},
    "stack_k=4": {"stack_k": 4},
    "ram_obs of 256 bytes": {"ram_obs": "C100:256"},
    "io=numpy": {"io": "numpy"},
    "visit_bonus": {"visit_bonus": 0.1},
    "visit_bonus, archive_slots=8192": {"visit_bonus": 0.1, "archive_slots": 8192},
    GRAPH: {},
    "plain, again": {},
}


def milliseconds(env: Any, steps: int, rounds: int, graph: bool) -> float:
    """Median over `rounds` of the time of a step, after a round of warm-up."""
    generator = torch.Generator(env.device).manual_seed(1)
    rows: Any = torch.randint(env.codec.num_actions, (steps, env.num_envs), generator=generator, device=env.device)
    pressed = rows[0].clone()
    recorded = Replayed(lambda: env.step(pressed))
    if env.options.io == "numpy":
        rows = rows.cpu().numpy()
    env.reset(seed=1)
    results = []
    for number in range(rounds + 1):
        _wait(env.device)
        start = time.perf_counter()
        for row in rows:
            if graph:
                pressed.copy_(row)
                recorded()
            else:
                env.step(row)
        _wait(env.device)
        if number:
            results.append((time.perf_counter() - start) / steps * 1e3)
    return statistics.median(results)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main() -> int:
    parser = argparse.ArgumentParser(prog="option_cost", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--num-envs", type=int, default=256)
    parser.add_argument("--steps", type=int, default=40, help="steps of one measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements, of which the median counts")
    parser.add_argument("--out", type=Path, required=True, help="JSON file for the record")
    args = parser.parse_args()
    try:
        device = resolve_device(args.device)
        check_target(args.out)
    except GBxCuLEError as error:
        parser.error(str(error))
    on_gpu = device.startswith("cuda")
    facts = {"device_name": device_name(device), "num_envs": args.num_envs, "rom": "homeward", "steps": args.steps}
    facts |= {"rounds": args.rounds, "git_sha": git_sha(), "versions": versions()}
    found: list[dict[str, Any]] = []
    with torch.cuda.stream(torch.cuda.Stream()) if on_gpu else nullcontext():
        for name, options in VARIANTS.items():
            if name == GRAPH and not on_gpu:
                continue
            options = {"io": "torch", "info_mode": "none", "autotune": False, **options}
            env = env_creator("gbxcule_homeward")(args.num_envs, device, **options)
            cost = milliseconds(env, args.steps, args.rounds, name == GRAPH)
            env.close()
            found.append({"variant": name, "ms_per_step": round(cost, 3)})
            found[-1]["added"] = round(cost / found[0]["ms_per_step"] - 1, 4)
            print(f"{name:34} {cost:8.3f} ms a step  {100 * found[-1]['added']:+6.1f} %", flush=True)
            write_json(args.out, {"option_cost": found, **facts})  # what a time limit cuts off is only the rest
    return 0


if __name__ == "__main__":
    sys.exit(main())
