"""Checkpoints: written completely or not at all; the last few are kept, and damaged ones are skipped."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.files import Kind, new_file, read_object, read_tensors
from gbxcule_puffer.provenance import versions
from gbxcule_puffer.trainers.folder import CHECKPOINT, MANIFEST, NOTE, RUN, newest_run

Saved = TypeVar("Saved")
KIND = Kind("checkpoint", StateError, "give another")
LIMIT = 2**40  # bytes: nothing in the file is compressed, so its size on disk is its size in memory
PARTS = {"exp_name": str, "args": dict, "counters": dict, "env_config": dict, "processes": list, "model": dict}


@dataclass(frozen=True)
class Resumed:
    """A run to continue: its flags and their file, the state of its checkpoint, None before the first one, and the note
    of its Task (known_tasks)."""

    path: Path
    flags: dict[str, Any]
    state: dict[str, Any] | None
    note: object = None


def older(path: Path, age: int) -> Path:
    """checkpoint.pt, checkpoint.1.pt, checkpoint.2.pt, ...: `age` checkpoints before the newest."""
    return path.with_name(f"{path.stem}.{age}{path.suffix}") if age else path


def save_checkpoint(path: Path, state: Mapping[str, Any], keep: int = 1) -> None:
    """Writes `state` and the versions to `path`; `keep` checkpoints remain, the previous ones as `older`.

    Whenever the process dies, a reader of `path` sees the previous checkpoint or the new one, never a part.

    Raises: StorageError when the disk is full or not writable; existing checkpoints stay.
    """
    left = "; the one before it is whole" if path.exists() else ""
    with new_file(path, f"make room and continue with --resume{left}") as file:
        torch.save({**state, "versions": versions()}, file)
        file.flush()
        os.fsync(file.fileno())
        if path.exists():
            free = next(age for age in itertools.count(1) if not older(path, age).exists())
            for age in range(min(free, keep - 1), 1, -1):
                older(path, age - 1).replace(older(path, age))
            if keep > 1:
                older(path, 1).unlink(missing_ok=True)
                os.link(path, older(path, 1))


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """Reads one checkpoint file.

    Raises: StateError for a missing or damaged file, or one that no trainer wrote.
    """
    state = read_tensors(path, KIND, LIMIT)
    for name, kind in PARTS.items():
        if not isinstance(state, dict) or not isinstance(state.get(name), kind):
            raise KIND.bad(path, f"is not a trainer's ({name} is missing)")
    counts = (state["counters"].get("global_step"), *state["counters"].values())
    if not all(type(count) is int and 0 <= count < 2**62 for count in counts):
        raise KIND.bad(path, "is damaged (a counter is not a number of steps)")
    if not isinstance(seconds := state.setdefault("seconds", 0.0), float) or not 0 <= seconds < 2**62:
        raise KIND.bad(path, "is damaged (seconds of training)")
    return state


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Reads a checkpoint. If it is damaged, the one before it is read, and a line on stderr says so.

    Raises: StateError when none can be read.
    """
    ages = (file.suffixes[-2][1:] for file in path.parent.glob(f"{path.stem}.*{path.suffix}"))
    candidates = [older(path, age) for age in sorted({0, *(int(age) for age in ages if age.isdigit())})]
    failures = []
    for candidate in candidates:
        try:
            state = read_checkpoint(candidate)
        except StateError as error:
            failures.append(str(error))
            continue
        if failures:
            reasons = "; ".join(failure.removesuffix(f": {KIND.remedy}") for failure in failures)
            print(f"{reasons}: going on from the one before, {candidate}", file=sys.stderr)
        return state
    raise StateError(failures[0])


def find_resumed(resume: str, run_dir: str | None, runs: Path, exp_name: str) -> Resumed | None:
    """The run that --resume names: its folder or checkpoint; if empty, that in `run_dir`, None where that has no run
    yet; without `run_dir` the newest run of the trainer in `runs`.

    Raises: ConfigError if there is none; StateError if it cannot be read or is another trainer's.
    """
    path = Path(resume or run_dir or newest_run(runs, exp_name))
    if not resume and run_dir and not (path.is_file() or (path / MANIFEST).exists() or _checkpoints(path)):
        return None
    state = None
    if path.is_dir() and not _checkpoints(path):  # ended before its first checkpoint
        path = path / MANIFEST
        if not path.is_file():
            raise ConfigError(f"--resume: {path.parent} has no run in it: give the folder of a run, or leave it out")
        found = read_object(path, RUN)
        name, flags, note = found.get("exp_name"), found.get("config"), found.get(NOTE)
        if not isinstance(flags, dict):
            raise RUN.bad(path, "has no flags in it")
    else:
        path = path / CHECKPOINT if path.is_dir() else path
        state = load_checkpoint(path)
        name, flags, note = state["exp_name"], state["args"], state.get(NOTE)
    if name != exp_name:
        raise StateError(f"{path} belongs to the trainer {name!r:.40}, not to {exp_name}: continue with that one")
    return Resumed(path, flags, state, note)


def _checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a run's folder."""
    return list(folder.glob(f"{Path(CHECKPOINT).stem}*.pt"))


def load_weights(part: torch.nn.Module | torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """Loads a model's weights, or an optimizer's state, from a checkpoint.

    Raises: StateError if they belong to another network, such as an older version's, or are damaged.
    """
    try:
        if isinstance(part, torch.optim.Optimizer):
            _check_optimizer(part, saved)
        else:
            check_like(saved, part.state_dict(), "model")
        part.load_state_dict(saved)
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = f" ({error})" if isinstance(error, StateError) else ""
        raise StateError(
            f"the checkpoint's network is not this version's{reason}: train again, or use its own version"
        ) from None


def check_like(saved: object, own: object, name: str) -> None:
    """Raises: StateError unless the part `name` of a checkpoint has the structure of `own`: the same keys, lengths and
    types, tensors of the same shape and type, and finite numbers."""
    if isinstance(own, torch.Tensor):
        like = (
            isinstance(saved, torch.Tensor)
            and (saved.shape, saved.dtype) == (own.shape, own.dtype)
            and (not own.is_floating_point() or bool(saved.isfinite().all()))
        )
    elif isinstance(own, Mapping):
        like = isinstance(saved, Mapping) and saved.keys() == own.keys()
    elif isinstance(own, list | tuple):
        like = isinstance(saved, list | tuple) and len(saved) == len(own)
    elif isinstance(own, float):
        like = isinstance(saved, int | float) and type(saved) is not bool and abs(saved) < float("inf")
    else:
        like = type(saved) is type(own)
    if not like:
        raise StateError(f"{name} is damaged, or of another network")
    if isinstance(own, Mapping) and isinstance(saved, Mapping):
        for key, value in own.items():
            check_like(saved[key], value, f"{name} {key}")
    elif isinstance(own, list | tuple) and isinstance(saved, list | tuple):
        for number, value in enumerate(own):
            check_like(saved[number], value, f"{name} {number}")


def _check_optimizer(optimizer: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """Raises: StateError unless `saved` is a state of this kind of optimizer; torch does not check shapes."""
    own = optimizer.state_dict()
    check_like(saved, own | {"state": saved["state"]}, "optimizer")
    parameters = [torch.zeros_like(one) for group in optimizer.param_groups for one in group["params"]]
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    model: Any = type(optimizer)(parameters, **optimizer.defaults)
    model.step()
    after = model.state_dict()["state"]
    check_like(saved["state"], {key: after[key] for key in saved["state"]}, "optimizer")


def to_host(state: Saved) -> Saved:
    """The same dicts and lists with every tensor on the CPU, so that another process or machine can read them."""
    host: Any = state
    if isinstance(state, torch.Tensor):
        host = state.cpu()
    elif isinstance(state, dict):
        host = {name: to_host(value) for name, value in state.items()}
    elif isinstance(state, list):
        host = [to_host(value) for value in state]
    return host


def rng_state(device: torch.device) -> dict[str, Any]:
    """The state of torch's generators, for a checkpoint."""
    cuda = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def set_rng_state(state: Mapping[str, Any], device: torch.device) -> None:
    """Restores torch's generators from `rng_state`."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and state["cuda"] is not None:
        torch.cuda.set_rng_state(state["cuda"], device)
