"""Command lines of training runs that take a second, what a run leaves, and how two of them compare."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from gbxcule_puffer.commandline import as_words

torch.set_num_threads(1)  # the nets are so small that threads which wait for each other cost ten times as much

Main = Callable[[list[str]], int]  # a trainer's script

# A run that logs, evaluates, takes pictures and saves several times.
SMALL: dict[str, Any] = {"num_envs": 8, "max_steps": 4, "k_consecutive": 1, "eval_episodes": 10, "log_interval": 8}
SMALL.update(total_env_steps=512, eval_every_steps=256, media_every=256, stop_at_success=2.0, device="cpu")
# What differs between two equal runs: how long something took.
TIMES = ("time/", "charts/SPS", "charts/updates_per_s", "charts/seconds", "charts/eval_share")


def words(flags: str) -> list[str]:
    """A command line as its parts."""
    return flags.split()


def small_run(run_dir: Path, **flags: Any) -> list[str]:
    """The command line of a short run of A2C, with `flags` in place of some of SMALL."""
    return as_words({**SMALL, "run_dir": str(run_dir), **flags})


def toy_run(run_dir: Path, **flags: Any) -> list[str]:
    """`small_run` on the toy."""
    return small_run(run_dir, **{"env": "toy", "max_steps": 16, "k_consecutive": None, **flags})


def records(run_dir: Path, times: bool = False) -> list[dict[str, Any]]:
    """metrics.jsonl, without `times` if not asked for."""
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if times or not k.startswith(TIMES)} for line in lines]


def merged(run_dir: Path) -> dict[str, Any]:
    """Each metric's last value."""
    return {name: value for record in records(run_dir, times=True) for name, value in record.items()}


def last_value(run_dir: Path, name: str) -> float:
    """The newest record of a metric."""
    return merged(run_dir)[name]


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
    """Everything but flags and seconds is equal: weights, optimizer, counters, env, random numbers, replay."""
    one, other = read(first), read(second)
    for name in one.keys() - {"args", "versions", "seconds"}:
        assert_equal(one[name], other[name], name)


def assert_refused(
    main: Main, flags: Sequence[str], run_dir: Path, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bad flags end in one line that has the message, with exit code 2 and no folder."""
    try:
        code = main([*flags, "--run-dir", str(run_dir)])
    except SystemExit as end:  # of the flags' parser
        code = end.code
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert code == 2 and message in line
    assert not run_dir.exists()


def assert_ends_where_not_finite(
    main: Main, flags: Sequence[str], run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run whose weights become infinite ends, and says where."""
    with pytest.raises(SystemExit) as end:
        main([*flags, "--run-dir", str(run_dir), "--lr", "1e30"])
    assert end.value.code == 1
    failure = json.loads((run_dir / "failure.json").read_text())
    assert failure["not_finite"] and failure["trace_id"] in capsys.readouterr().err


def assert_repeats_from(middle: int, main: Main, flags: Sequence[str], folder: Path) -> None:
    """From the third checkpoint of a run, in its middle, as after kill -9, everything repeats bit for bit."""
    whole, parts = folder / "whole", folder / "parts"
    assert main([*flags, "--run-dir", str(whole)]) == 0
    parts.mkdir()
    (parts / "checkpoint.pt").write_bytes((whole / "checkpoint.3.pt").read_bytes())
    begun = read(parts / "checkpoint.pt")["counters"]["global_step"]
    assert begun == middle
    assert main([*flags, "--run-dir", str(parts), "--resume", str(parts / "checkpoint.pt")]) == 0
    same_checkpoints(whole / "checkpoint.pt", parts / "checkpoint.pt")
    assert [record for record in records(whole) if record["global_step"] > begun] == records(parts)


def smoke(main: Main, run_dir: Path) -> dict[str, Any]:
    """The counters that a run of --smoke on the toy ends with; it has left all files of a run."""
    assert main(["--env", "toy", "--smoke", "--device", "cpu", "--run-dir", str(run_dir)]) == 0
    written = {path.name for path in run_dir.iterdir()}
    assert {"checkpoint.pt", "metrics.jsonl", "manifest.json", "media"} <= written
    return read(run_dir / "checkpoint.pt")["counters"]
