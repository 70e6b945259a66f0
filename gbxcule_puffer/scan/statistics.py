"""Statistics of recorded bytes over envs and time, a tensor with one number for each byte."""

from __future__ import annotations

import torch

from gbxcule_puffer.scan.play import BRANCHES, FORK_LOOKS, HELD_LOOKS
from gbxcule_puffer.scan.recording import Recording

CHUNK = 40_000_000  # values that are looked at together
SCENE_LOOKS = 6
BIG = 0.25  # part of the picture: of a change of scene
VALUES = 256
NAMES = list(BRANCHES)


# What `measure` returns, (bytes,) each; rates are per transition from a look to the next one, of all envs:
# rate: transitions that change the byte; rises, falls_by_one, rises_by_one, sets_bits, clears_bits, falls_to_start (or
# to 0), scene (near a change of much of the picture), drawn (with any change of it): parts of the changes, rises or
# falls that are so; rise_count, fall_count; distinct values, spread and step_spread (bits of entropy of values and changes),
# lowest, highest; decimal: no value had a half above 9; gap: looks between two changes, gap_spread: their standard
# deviation in parts of that; envs: part of the envs in which it changed; agree: part of the looks of forks at which all
# branches have the same value. Of forks, as parts of the contexts, (branches, bytes) each: higher, lower (than without
# buttons, at the end), reacts (ever differs), goes_on (differs more at the end than in the middle), one_way (steps of
# one sign only), back (equal again after the release).


def chunks(total: int, size: int) -> list[slice]:
    """Slices of `total` bytes whose values fit CHUNK, where each byte has `size`."""
    step = max(1, CHUNK // max(1, size))
    return [slice(first, min(total, first + step)) for first in range(0, total, step)]


def measure(recording: Recording) -> dict[str, torch.Tensor]:
    """The statistics of all bytes, by name."""
    looks, envs, total = recording.values.shape
    parts = [_part(recording, part) for part in chunks(total, looks * envs)]
    return {name: torch.cat([part[name] for part in parts], -1) for name in parts[0]}


def rules(recording: Recording, positions: torch.Tensor) -> torch.Tensor:
    """How far each byte says, before a fork, whether directions will move any of the `positions` (their indices): the
    information about it, in parts of all that there is, (bytes,)."""
    total = recording.values.shape[2]
    if not len(positions):
        return torch.zeros(total, device=recording.values.device)
    moves = branches_of(recording.values[:, :, positions], recording.forks)[:, :, :, 1:5]
    moved = (moves != moves[:, :1]).any(4).any(3).any(1).flatten()  # (forks x contexts,)
    before = recording.values[recording.forks][:, :: len(NAMES)].flatten(0, 1).long()
    joint = torch.stack([_histogram(before[moved == side], VALUES) for side in (False, True)], 1).double()
    whole = _entropy(joint.sum(2))
    by_value = joint.transpose(1, 2)  # (bytes, values, 2)
    weight = by_value.sum(2) / by_value.sum((1, 2), keepdim=True)[..., 0].clamp(min=1)
    rest = (weight * _entropy(by_value.flatten(0, 1)).view(total, VALUES)).sum(1)
    return torch.where(whole > 0.15, 1 - rest / whole.clamp(min=1e-6), 0.0).float()


def _histogram(values: torch.Tensor, size: int) -> torch.Tensor:
    """How often each value from 0 to size-1 comes in each column, (columns, size); values: (rows, columns) int64."""
    columns = values.shape[1]
    shifted = values + torch.arange(columns, device=values.device) * size
    return torch.bincount(shifted.flatten(), minlength=columns * size).view(columns, size)


def _entropy(counts: torch.Tensor) -> torch.Tensor:
    """Bits of entropy of counts (bytes, values)."""
    part = counts / counts.sum(1, keepdim=True).clamp(min=1)
    return -(part * part.clamp(min=1e-12).log2()).sum(1)


def _part(recording: Recording, part: slice) -> dict[str, torch.Tensor]:
    """Statistics of some of the bytes."""
    values = recording.values[:, :, part]
    start = recording.start[part].long()
    valid = recording.valid[1:]
    before, after = values[:-1][valid].long(), values[1:][valid].long()  # (transitions, bytes)
    step = after - before
    count = len(step)
    steps = _histogram(step + VALUES, 2 * VALUES)
    levels = _histogram(after, VALUES)
    changes = count - steps[:, VALUES]
    some = changes.clamp(min=1)
    falls, rises = steps[:, :VALUES].sum(1), steps[:, VALUES + 1 :].sum(1)
    changed, fell = step != 0, step < 0
    steps[:, VALUES] = 0
    drawn = recording.drawn[1:][valid]
    scene = _near_scene(recording.drawn)[1:][valid]
    index = torch.arange(VALUES, device=values.device)
    present = levels > 0
    gap, gap_spread = _gaps(values, recording.valid)
    return {
        "rate": changes / count,
        "rises": rises / some,
        "rise_count": rises,
        "fall_count": falls,
        "falls_by_one": steps[:, VALUES - 1] / falls.clamp(min=1),
        "rises_by_one": steps[:, VALUES + 1] / rises.clamp(min=1),
        "falls_to_start": (fell & ((after == start) | (after == 0))).sum(0) / falls.clamp(min=1),
        "sets_bits": (changed & (after & before == before)).sum(0) / some,
        "clears_bits": (changed & (after & before == after)).sum(0) / some,
        "distinct": present.sum(1),
        "spread": _entropy(levels),
        "step_spread": _entropy(steps),
        "lowest": torch.where(present, index, VALUES).amin(1),
        "highest": torch.where(present, index, -1).amax(1),
        "scene": (changed & scene[:, None]).sum(0) / some,
        "drawn": (changed & (drawn > 0)[:, None]).sum(0) / some,
        "start": start,
        "rises_to_start": ((step > 0) & (after == start)).sum(0) / rises.clamp(min=1),
        "scene_rate": scene.float().mean().expand(len(changes)),
        "decimal": ~(present & ((index & 15 > 9) | (index > 0x99))).any(1),
        "gap": gap,
        "gap_spread": gap_spread,
        "envs": ((values[1:] != values[:-1]) & valid[:, :, None]).any(0).float().mean(0),
        **_effects(values, recording.forks),
    }


def _near_scene(drawn: torch.Tensor) -> torch.Tensor:
    """True where much of the picture changes within SCENE_LOOKS looks; drawn: (looks, envs)."""
    size = 2 * SCENE_LOOKS + 1
    return torch.nn.functional.max_pool1d(drawn.T[None].float(), size, 1, SCENE_LOOKS)[0].T > BIG


def _gaps(values: torch.Tensor, valid: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Looks from a change to the next one of the same env: mean, and standard deviation in parts of the mean."""
    age = torch.full(values.shape[1:], -1, dtype=torch.int32, device=values.device)  # -1: since the last restore
    number, total, squares = (torch.zeros(values.shape[1:], device=values.device) for _ in range(3))
    for look in range(1, len(values)):
        changed = values[look] != values[look - 1]
        age = torch.where(age >= 0, age + 1, age)
        ends = (changed & (age > 0)).float()
        number += ends
        total += ends * age
        squares += ends * age * age
        age = torch.where(changed, 0, age)
        age = torch.where(valid[look][:, None], age, -1)
    number, total, squares = (each.sum(0) for each in (number, total, squares))
    mean = total / number.clamp(min=1)
    deviation = (squares / number.clamp(min=1) - mean**2).clamp(min=0).sqrt()
    return torch.where(number > 0, mean, 1e6), torch.where(number > 1, deviation / mean.clamp(min=1e-6), 1e6)


def wrapped(difference: torch.Tensor) -> torch.Tensor:
    """A difference of bytes as the nearest number of the same lowest 8 bits, -128 to 127."""
    return (difference.short() + 128 & 255) - 128


def branches_of(values: torch.Tensor, forks: list[int]) -> torch.Tensor:
    """The bytes of forks, (forks, 1 + FORK_LOOKS, contexts, branches, bytes), from the look of the copies on."""
    envs, total = values.shape[1:]
    cut = torch.stack([values[first : first + FORK_LOOKS + 1] for first in forks])
    return cut.view(len(forks), FORK_LOOKS + 1, envs // len(NAMES), len(NAMES), total)


def _effects(values: torch.Tensor, forks: list[int]) -> dict[str, torch.Tensor]:
    """Statistics of forks: how each branch differs from the one without buttons."""
    cut = branches_of(values, forks)
    steps = wrapped(cut[:, 1:].short() - cut[:, :-1].short())  # (forks, looks, contexts, branches, bytes)
    held = steps[:, :HELD_LOOKS]
    apart = wrapped(cut.short() - cut[:, :, :, :1].short())
    found = {
        "noop_rate": (steps[:, :, :, 0] != 0).float().mean((0, 1, 2)),
        "agree": (apart == 0).all(3).float().mean((0, 1, 2)),
    }
    middle, last = apart[:, HELD_LOOKS // 2], apart[:, HELD_LOOKS]
    contexts = last.shape[0] * last.shape[1]
    found["higher"] = (last > 0).sum((0, 1)) / contexts  # (branches, bytes)
    found["lower"] = (last < 0).sum((0, 1)) / contexts
    found["reacts"] = (apart != 0).any(1).sum((0, 1)) / contexts
    found["goes_on"] = ((last.abs() > middle.abs()) & (last * middle >= 0)).sum((0, 1)) / contexts
    found["one_way"] = (((held >= 0).all(1) | (held <= 0).all(1)) & (held != 0).any(1)).sum((0, 1)) / contexts
    found["stride"] = held.abs().amax(1).float().mean((0, 1))
    found["back"] = ((apart[:, 1 : HELD_LOOKS + 1] != 0).any(1) & (apart[:, -1] == 0)).sum((0, 1)) / contexts
    found["branch_rate"] = (held != 0).float().mean((0, 1, 2))
    return found
