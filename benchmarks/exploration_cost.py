"""What stages, curriculum, visit counts and the archive add to the time of a step.

    python benchmarks/exploration_cost.py --device cuda --num-envs 16384

plays HOMEWARD's stages with random actions in one env after the other, and prints milliseconds a step and the share
that each addition costs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.tasks.stage_list import make_stages

STAGES = Path(__file__).parents[1] / "roms/homeward/stages.json"
BONUS = {"curriculum": "progress", "visit_bonus": 0.1}
VARIANTS: dict[str, dict[str, Any]] = {
    "stages, each equally often": {},
    "curriculum by progress": {"curriculum": "progress"},
    "and visit counts": BONUS,
    "and an archive of 1,024 states": {**BONUS, "archive_slots": 1024},
}


def milliseconds(env: GBxCuLEEnv, steps: int, rounds: int = 5) -> float:
    """Median over `rounds` of the time of a step."""
    generator = torch.Generator(env.device).manual_seed(1)
    shape = (steps, env.num_envs)
    actions = torch.randint(env.codec.num_actions, shape, generator=generator, device=env.device)
    env.reset(seed=1)
    results = []
    for number in range(rounds + 1):  # the first is the warm-up
        _wait(env.device)
        start = time.perf_counter()
        for row in actions:
            env.step(row)
        _wait(env.device)
        if number:
            results.append((time.perf_counter() - start) / steps * 1e3)
    return statistics.median(results)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--num-envs", type=int, default=256)
    parser.add_argument("--steps", type=int, default=40, help="steps of one measurement")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rom, path = make_stages(STAGES, folder, device=args.device)
        base = None
        for name, options in VARIANTS.items():
            env = GBxCuLEEnv(rom, args.num_envs, args.device, io="torch", info_mode="none", stages=path, **options)
            cost = milliseconds(env, args.steps)
            base = base or cost
            print(f"{name:32} {cost:8.3f} ms a step  {100 * (cost / base - 1):+6.2f} %", flush=True)
            env.close()


if __name__ == "__main__":
    main()
