"""Saved states of an env, checked: shape, type and range of every tensor, because kernels use them as indices."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import UnionType
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.emulator import EmulatorLike, Snapshot
from gbxcule_puffer.env.fields import FIELDS, MOST_DISTANCE
from gbxcule_puffer.env.options import first_difference
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.files import inflate
from gbxcule_puffer.provenance import usable_cores

MOST_COUNT = 2**40
MOST_SUM = 1e30
# Lowest and highest value of the tensors that are not FIELDS. A text is a number of the env's, and the value stays
# below it.
RANGES: dict[str, tuple[float, float | str]] = {
    "returns": (-MOST_SUM, MOST_SUM),
    "sums": (-MOST_SUM, MOST_SUM),
    "histogram": (0, MOST_COUNT),
    "frames": (0, MOST_COUNT),
    "observations": (0, "values"),
    "slot_counts": (0, MOST_COUNT),
    "slot_stage": (0, "stages"),
    "slot_distance": (0, MOST_DISTANCE),
    "progress_counts": (0, MOST_COUNT),
    "progress_interval": (0, MOST_COUNT),
    "progress_weights": (1, 2**17),
    "archive_coarse_keys": (-(2**63), 2**63 - 1),
    "spare_filled": (0, 1),
    "archive_forgotten": (0, MOST_COUNT),
    "milestone_held": (0, 1),
    "milestone_quiet": (0, 2**31 - 1),
    "milestone_progressed": (0, 1),
    "milestone_slot_held": (0, 1),
    "milestone_saves": (0, MOST_COUNT),
    "milestone_reached": (0, 1),
    "milestone_progress_counts": (0, MOST_COUNT),
    "milestone_progress_interval": (0, MOST_COUNT),
    "milestone_progress_weights": (1, 2**17),
    "blocked": (0, 1),
    "coverage_counts": (0, 2**31 - 1),
    "visit_table": (0, MOST_COUNT),
    "visit_coarse_table": (0, MOST_COUNT),
    "visit_totals": (0, MOST_COUNT),
    **{field.name: (field.low, field.high) for field in FIELDS if field.saved},
}
OF_A_TASK = (-MOST_SUM, MOST_SUM)  # its memory, "prefix.name", and the sums of its statistics, "prefix/name"
MACHINES = ("state", "memory", "screen")  # of a Snapshot
# SnapshotPool.check_spare checks these; name -> the axis of the archive's slots.
BY_SNAPSHOT = {"pool_state": 1, "pool_memory": 0, "pool_screen": 0}
CHUNK = 512  # slots that are copied to the host, or compressed, at once
TABLES = {"visit_table": 0, "visit_coarse_table": 0}  # 16 MiB each, mostly zeros; the axis of their rows
TURNED = "pool_memory"  # compressed with the same address of all slots side by side, which takes a third less
SPARSE = ("coverage_counts",)  # one row of mostly zeros: a saved state has the indices and the values of the others


def check_parts(state: object, **parts: type | UnionType) -> None:
    """Raises: StateError unless `state` is a saved env with these parts of these types."""
    if not isinstance(state, Mapping) or not all(
        name in state and isinstance(state[name], kind) for name, kind in parts.items()
    ):
        raise StateError("this is not a saved env state, or one of an older version: give what state_dict returned")


def check_config(state: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Raises: StateError unless `state` is a saved env with this `config`."""
    check_parts(state, tensors=Mapping, machines=object, steps=object, seed=object, config=Mapping)
    if found := first_difference(state["config"], config):
        name, was, now = found
        raise StateError(f"saved env state has {name} {was!r:.80}, not {now!r:.80}: use the same")


def packed(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies of an env's tensors for a saved state. Of the archive's snapshots it has only those of filled slots, on
    the host; the others are zeros, and may be gigabytes. Those of SPARSE are (2, numbers that are not 0) int32:
    indices and values."""
    copies = {name: tensor.clone() for name, tensor in tensors.items() if name not in (*BY_SNAPSHOT, *SPARSE)}
    for name in tensors.keys() & {*SPARSE}:
        index = tensors[name].nonzero()[:, 0]
        copies[name] = torch.stack([index.to(torch.int32), tensors[name][index]])
    if "spare_filled" in tensors:
        used = tensors["spare_filled"].nonzero()[:, 0].split(CHUNK)  # a GPU's memory has no second archive
        for name, axis in BY_SNAPSHOT.items():
            copies[name] = torch.cat([tensors[name].index_select(axis, some).cpu() for some in used], axis)
    return copies


def deflated(tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """A saved state's tensors with the archive's snapshots, of which about a tenth is left, and counts of visits
    compressed: for each CHUNK of slots or rows what zlib made of it, (bytes,) uint8. `unpacked` takes both. Uses all
    cores."""

    def one(rows: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.frombuffer(bytearray(zlib.compress(rows.numpy().tobytes(), 1)), np.uint8))

    small: dict[str, Any] = dict(tensors)
    with ThreadPoolExecutor(usable_cores()) as threads:
        for name, axis in (BY_SNAPSHOT | TABLES).items():
            if name not in tensors or not tensors[name].numel():
                continue
            parts = tensors[name].cpu().split(CHUNK, axis)
            small[name] = list(threads.map(one, (part.T if name == TURNED else part for part in parts)))
    return small


def _inflated(name: str, found: list[object], like: torch.Tensor, slots: int) -> torch.Tensor | None:
    """The tensor of `slots` slots or rows of what `deflated` made; None if that is damaged."""
    axis, parts = (BY_SNAPSHOT | TABLES)[name], []
    for data, first in zip(found, range(0, slots, CHUNK), strict=False):
        shape = list(like.shape)
        shape[axis] = min(CHUNK, slots - first)
        if name == TURNED:
            shape.reverse()
        size = like.element_size() * math.prod(shape)
        raw = inflate(data.numpy().tobytes(), size) if isinstance(data, torch.Tensor) else None
        if raw is None:
            return None
        part = torch.frombuffer(bytearray(raw), dtype=like.dtype).view(shape)
        parts.append(part.T if name == TURNED else part)
    return torch.cat(parts, axis) if len(found) == len(parts) == -(-slots // CHUNK) > 0 else None


def unpacked(saved: object, tensors: Mapping[str, torch.Tensor]) -> object:
    """A saved state's tensors with all slots of the archive and all zeros, shaped as `tensors`. Tensors that do not fit
    stay as they are; checked_tensors refuses them."""
    if not isinstance(saved, Mapping):
        return saved
    whole = dict(saved)
    for name in tensors.keys() & {*SPARSE}:
        found = saved.get(name)
        if isinstance(found, torch.Tensor) and found.dtype == torch.int32 and found.dim() == 2 and len(found) == 2:
            (index, values), size = found, len(tensors[name])
            if not len(index) or 0 <= int(index.min()) <= int(index.max()) < size:
                whole[name] = found.new_zeros(size).index_copy_(0, index.long(), values)
    for name in tensors.keys() & TABLES:
        if isinstance(found := saved.get(name), list):
            whole[name] = _inflated(name, found, tensors[name], len(tensors[name]))
    filled = saved.get("spare_filled")
    if "spare_filled" not in tensors or not isinstance(filled, torch.Tensor):
        return whole
    if filled.dtype != torch.bool or filled.dim() != 1:
        return whole
    for name, axis in BY_SNAPSHOT.items():
        found, shape = saved.get(name), list(tensors[name].shape)
        full, shape[axis] = shape[axis], int(filled.sum())
        if isinstance(found, list):
            found = _inflated(name, found, tensors[name], shape[axis])
        if len(filled) != full or not isinstance(found, torch.Tensor) or list(found.shape) != shape:
            continue
        shape[axis] = full
        whole[name] = found.new_zeros(shape).index_copy_(axis, filled.nonzero()[:, 0].to(found.device), found)
    return whole


def checked_tensors(
    tensors: Mapping[str, torch.Tensor], saved: object, numbers: Mapping[str, int]
) -> Mapping[str, torch.Tensor]:
    """`saved`, which can be copied into `tensors`; `numbers` are those that RANGES and FIELDS name.

    Raises: StateError that names the tensor that cannot.
    """
    if not isinstance(saved, Mapping):
        raise StateError("saved env state has no tensors: give what state_dict returned")
    sums = {name: torch.zeros((), dtype=torch.float64) for name in saved if "/" in str(name)}
    for name, tensor in (*tensors.items(), *sums.items()):
        found = saved.get(name)
        if not isinstance(found, torch.Tensor) or found.shape != tensor.shape or found.dtype != tensor.dtype:
            raise StateError(f"saved env state does not fit in {name}: use the num_envs and options it was saved with")
        if name in BY_SNAPSHOT or not found.numel():
            continue
        low, high = RANGES.get(name, OF_A_TASK)
        most = numbers[high] - 1 if isinstance(high, str) else high
        least, largest = (bound.item() for bound in found.detach().aminmax())
        if not low <= least <= largest <= most:  # also false for NaN
            fault = f"{name} is {least} to {largest}, not {low} to {most}"
            raise StateError(f"saved env state is damaged ({fault}): give what state_dict returned")
    if "archive_forgotten" in tensors and _forgets_too_much(saved["slot_counts"], saved["archive_forgotten"]):
        raise StateError(
            "saved env state is damaged (archive_forgotten is more than slot_counts): give what state_dict returned"
        )
    return saved


def _forgets_too_much(counts: torch.Tensor, forgotten: torch.Tensor) -> bool:
    """True if more episodes or successes of an archive's slot are forgotten than were counted."""
    return bool((forgotten > counts[: len(forgotten), -forgotten.shape[1] :]).any())


def arrays_of(snapshot: Snapshot) -> dict[str, torch.Tensor]:
    """The machines of an env's saved state."""
    return {name: torch.from_numpy(getattr(snapshot, name)) for name in MACHINES}


def saved_machines(state: Mapping[str, Any], emulator: EmulatorLike) -> Snapshot | None:
    """The machines of an env's saved state, if it has any.

    Raises: StateError if the machines or their numbers do not fit `emulator`.
    """
    machines, steps, seed = state["machines"], state["steps"], state["seed"]
    if machines is None:
        return None
    numbers = (steps, *seed) if isinstance(seed, tuple) and len(seed) == emulator.num_envs else (steps, seed)
    if not all(type(number) is int and -(2**63) <= number < 2**63 for number in numbers) or steps < 0:
        raise StateError("saved env state is damaged (steps or seed): give what state_dict returned")
    try:
        arrays = (machines[name].detach().cpu().numpy() for name in MACHINES)
        snapshot = Snapshot(emulator.cartridge.sha256, *arrays)
    except (AttributeError, KeyError, TypeError, RuntimeError):
        raise StateError("saved env state is damaged (machines): give what state_dict returned") from None
    emulator.check(snapshot)
    if snapshot.num_envs != emulator.num_envs:
        raise StateError(f"saved env state has {snapshot.num_envs} envs, not {emulator.num_envs}: use its num_envs")
    return snapshot
