"""Checkpoints: written whole or not at all, the last few kept, damaged ones found and passed over."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch

from gbxcule_puffer.errors import StateError, StorageError
from gbxcule_puffer.trainers.manifest import versions


def older(path: Path, age: int) -> Path:
    """checkpoint.pt, checkpoint.1.pt, checkpoint.2.pt, ...: `age` checkpoints before the newest."""
    return path.with_name(f"{path.stem}.{age}{path.suffix}") if age else path


def save_checkpoint(path: Path, state: Mapping[str, Any], args: Any, keep: int = 1) -> None:
    """Writes `state`, the flags and the versions to `path`; `keep` checkpoints remain, the ones before it as `older`.

    Whenever the process dies, a reader of `path` sees the checkpoint before or the new one, never a part.

    Raises: StorageError when the disk is full or cannot be written; what was there stays.
    """
    part = path.with_suffix(".part")
    try:
        with part.open("wb") as file:
            torch.save({**state, "args": asdict(args), "versions": versions()}, file)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            for age in range(keep - 1, 1, -1):
                if older(path, age - 1).exists():
                    older(path, age - 1).replace(older(path, age))
            if keep > 1:
                older(path, 1).unlink(missing_ok=True)
                os.link(path, older(path, 1))
        part.replace(path)
        _sync_folder(path.parent)
    except (OSError, RuntimeError) as error:  # torch.save wraps the operating system's error in a RuntimeError
        part.unlink(missing_ok=True)
        cause = error if isinstance(error, OSError) else error.__context__
        reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(error).splitlines()[0]
        left = "; the one before it is whole" if path.exists() else ""
        message = f"checkpoint {path} cannot be written ({reason}): make room and go on with --resume{left}"
        raise StorageError(message) from None


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """Reads one checkpoint file.

    Raises: StateError for a missing or damaged file.
    """
    try:
        # torch.load does not look at the archive's checksums: a flipped bit in a weight would go unnoticed.
        with zipfile.ZipFile(path) as archive:
            if bad := archive.testzip():
                raise ValueError(f"checksum of {bad} does not match")
        state = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(state["args"], dict):
            raise ValueError("no flags in it")
    except Exception as error:  # neither zipfile nor torch.load has a common type for what a damaged file raises
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StateError(f"checkpoint {path} cannot be read ({reason}): give another") from None
    return state


def load_checkpoint(path: str | Path, args: Any, free: Collection[str]) -> dict[str, Any]:
    """Reads a checkpoint made with the same flags as `args`, except for those in `free`. A damaged one is passed over
    for the one before it, with a line on stderr that says so.

    Raises: StateError when none can be read, or naming the flag that differs.
    """
    path = Path(path)
    ages = (file.suffixes[-2][1:] for file in path.parent.glob(f"{path.stem}.*{path.suffix}"))
    candidates = [older(path, age) for age in sorted({0, *(int(age) for age in ages if age.isdigit())})]
    state, failures = None, []
    for candidate in candidates:
        try:
            state = read_checkpoint(candidate)
            break
        except StateError as error:
            failures.append(str(error))
    if state is None:
        raise StateError(failures[0])
    if failures:
        reasons = "; ".join(failure.removesuffix(": give another") for failure in failures)
        print(f"{reasons}: going on from the one before, {candidates[len(failures)]}", file=sys.stderr)
    for field in fields(args):
        # A flag that is newer than the checkpoint: its default is what the run was made with.
        value, saved = getattr(args, field.name), state["args"].get(field.name, field.default)
        if field.name not in free and saved != value:
            flag = "--" + field.name.replace("_", "-")
            raise StateError(f"checkpoint {path} was made with {flag} {saved}, not {value}: give the same")
    return state


def load_weights(part: Any, saved: Mapping[str, Any]) -> None:
    """Gives a model its weights, or an optimizer its state, from a checkpoint.

    Raises: StateError where they are another network's, as those of an older version.
    """
    try:
        part.load_state_dict(saved)
    except (RuntimeError, ValueError):
        raise StateError(
            "the checkpoint's network is not this version's: train again, or use its own version"
        ) from None


def to_host(state: Any) -> Any:
    """The same dicts and lists with every tensor on the CPU, so that another process or machine can read them."""
    if isinstance(state, torch.Tensor):
        return state.cpu()
    if isinstance(state, dict):
        return {name: to_host(value) for name, value in state.items()}
    return [to_host(value) for value in state] if isinstance(state, list) else state


def rng_state(device: torch.device) -> dict[str, Any]:
    """The state of torch's generators, for a checkpoint."""
    cuda = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def set_rng_state(state: Mapping[str, Any], device: torch.device) -> None:
    """Puts torch's generators where `rng_state` found them."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and state["cuda"] is not None:
        torch.cuda.set_rng_state(state["cuda"], device)


def _sync_folder(folder: Path) -> None:
    """A renamed file survives a power cut only when its folder has reached the disk too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
