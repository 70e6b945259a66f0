"""What the trainers' tests share: small runs on the toy env, and reading their records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from cleanrl_style.a2c_streaming import Args

torch.set_num_threads(1)  # the nets are so small that threads which wait for each other cost ten times as much

# A run of a second that logs, evaluates, takes pictures and saves several times.
SMALL: dict[str, Any] = {"num_envs": 8, "max_steps": 4, "k_consecutive": 1, "eval_episodes": 10, "log_interval": 8}
SMALL.update(total_env_steps=512, eval_every_steps=256, stop_at_success=2.0, device="cpu")


def arguments(run_dir: Path, task: Mapping[str, Any], **changes: Any) -> Args:
    options: dict[str, Any] = {**SMALL, **task, **changes}
    return Args(run_dir=str(run_dir), **options)


def toy_arguments(run_dir: Path, **changes: Any) -> Args:
    return arguments(run_dir, {"env": "toy"}, **{"max_steps": 16, **changes})


def command_line(args: Args) -> list[str]:
    """The flags of `args` that are not None."""
    flags = []
    for name, value in vars(args).items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            flags.append(f"--{flag}" if value else f"--no-{flag}")
        elif value not in (None, ()):
            flags += [f"--{flag}", str(value)]
    return flags


def records(run_dir: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def steady(run_dir: Path) -> list[dict[str, float]]:
    """The records without what depends on the clock."""
    clock = ("time/", "charts/SPS")
    return [{name: value for name, value in r.items() if not name.startswith(clock)} for r in records(run_dir)]


def merged(run_dir: Path) -> dict[str, float]:
    """Each metric's last value."""
    return {name: value for record in records(run_dir) for name, value in record.items()}
