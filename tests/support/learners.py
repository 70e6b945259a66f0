"""What the learners' tests share: records of a run, comparison of checkpoints, and how a run is cut short."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

# What differs between two equal runs: how long something took.
TIMES = ("time/", "charts/SPS")


def words(flags: str) -> list[str]:
    """A command line as its parts."""
    return flags.split()


def records(run_dir: Path) -> list[dict[str, Any]]:
    """metrics.jsonl without times."""
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if not name.startswith(TIMES)} for line in lines]


def last_value(run_dir: Path, name: str) -> float:
    """The newest record of a metric."""
    return next(record[name] for record in reversed(records(run_dir)) if name in record)


def read(path: Path) -> dict[str, Any]:
    return torch.load(path, weights_only=True)


def assert_equal(one: object, other: object, path: str) -> None:
    """Equal bit by bit, all the way down."""
    if isinstance(one, dict):
        assert isinstance(other, dict) and one.keys() == other.keys(), path
        for name in one:
            assert_equal(one[name], other[name], f"{path}.{name}")
    elif isinstance(one, list | tuple):
        assert isinstance(other, list | tuple) and len(one) == len(other), path
        for number, (part, another) in enumerate(zip(one, other, strict=True)):
            assert_equal(part, another, f"{path}[{number}]")
    elif isinstance(one, torch.Tensor):
        assert isinstance(other, torch.Tensor) and torch.equal(one, other), path
    else:
        assert one == other, path


def same_checkpoints(first: Path, second: Path) -> None:
    """Everything but the flags is equal: weights, optimizer, counters, env, random numbers, replay."""
    one, other = read(first), read(second)
    for name in one.keys() - {"args", "versions"}:
        assert_equal(one[name], other[name], name)
