"""Where PPO's time on one CPU core goes: CPU seconds of the env, of acting and of learning, in float32 and bfloat16 by
turns; and how near its matrix products come to what the core can do.

    python -m benchmarks.training.cpu_parts --out benchmarks/results/cpu/ppo_parts.json

CPU seconds of the process, not wall time, so that other work on the machine disturbs little; the median of --repeats
rollouts of the defaults (64 Game Boys, 32 steps, two passes of eight minibatches).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from cleanrl_style import ppo_lite
from gbxcule_puffer.provenance import git_sha
from gbxcule_puffer.registry import env_creator
from gbxcule_puffer.trainers.blocks import Adam
from gbxcule_puffer.trainers.distributed import World

MATRIX = 1_024  # rows of the product that says what the core can do
PARTS = {"env": "time/env", "act": "time/infer"}


class Seconds:
    """A Stopwatch of CPU seconds."""

    def __init__(self) -> None:
        self.of, self._last = dict[str, float](), time.process_time()

    def mark(self, part: str) -> None:
        """Adds what has passed since the last mark to the part."""
        now = time.process_time()
        self.of[part], self._last = self.of.get(part, 0.0) + now - self._last, now


def products(model: Any, size: int) -> float:
    """Floating-point operations of a forward and a backward pass of the network's layers over `size` observations."""
    total, first = 0.0, True

    def count(layer: torch.nn.Module, inputs: Any, output: torch.Tensor) -> None:
        nonlocal total, first
        weights = layer.weight.numel() if isinstance(layer, torch.nn.Linear | torch.nn.Conv2d) else 0
        cells = output.shape[2] * output.shape[3] if output.ndim == 4 else 1
        total += 2 * weights * cells * size * (2 if first else 3)  # the first layer's input has no gradient
        first = False

    layers = [each for each in model.modules() if isinstance(each, torch.nn.Linear | torch.nn.Conv2d)]
    hooks = [each.register_forward_hook(count) for each in layers]
    model(torch.zeros(1, *model.layout.shape, dtype=model.layout.kept_dtype))
    for hook in hooks:
        hook.remove()
    return total


def best(work: Callable[[], Any], repeats: int = 20) -> float:
    """The fewest CPU seconds."""
    found = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


def measure(game: str, repeats: int) -> dict[str, Any]:
    """One record."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    args = ppo_lite.Args()
    env = env_creator(f"gbxcule_{game}")(num_envs=args.num_envs, io="torch", num_threads=1, native=False)
    env.reset(seed=1)
    kinds: dict[str, Any] = {}
    for name in ("float32", "bfloat16"):
        model = ppo_lite.Agent(env.layout, env.codec.num_actions, name == "bfloat16")
        model = model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        optimizer = Adam(model.parameters(), lr=args.lr, eps=1e-5)
        rollout = ppo_lite.empty_rollout(args, env.layout, env.device)
        gradients = partial(ppo_lite.backward, model, optimizer, rollout, args)
        kinds[name] = model, rollout, gradients, partial(ppo_lite.take_step, model, optimizer, args)
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in kinds}
    for repeat in range(repeats + 1):  # the first is warm-up
        for name, (model, rollout, gradients, step) in kinds.items():
            clock = Seconds()
            ppo_lite.collect(model, env, rollout, clock, args.reuse_values)  # pyright: ignore[reportArgumentType]
            ppo_lite.estimate(rollout, args, None, model.value)
            ppo_lite.learn(model, rollout, gradients, step, args, World())
            clock.mark("learn")
            if repeat:
                rows[name].append({part: clock.of[tag] for part, tag in (PARTS | {"learn": "learn"}).items()})
    steps = args.num_envs * args.num_steps
    a, b = torch.rand(2, MATRIX, MATRIX)
    peak = 2 * MATRIX**3 / best(lambda: a @ b)
    work = products(kinds["float32"][0], steps * args.update_epochs)
    micro = {
        name: {part: round(1e6 * statistics.median(row[part] for row in found) / steps, 1) for part in found[0]}
        for name, found in rows.items()
    }
    return {
        "git_sha": git_sha(), "game": game, "microseconds_a_step": micro, "core_gflops": round(peak / 1e9),
        "learn_at_that_speed": round(1e6 * work / peak / steps, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="orchard", help="a game of the suite (default: orchard)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    text = json.dumps(measure(chosen.game, chosen.repeats), indent=1)
    print(text)
    if chosen.out:
        chosen.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
