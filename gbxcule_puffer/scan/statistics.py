"""Statistics of recorded bytes over envs and time, a tensor with one number for each byte."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gbxcule_puffer.scan.play import BRANCHES, FORK_LOOKS, HELD_LOOKS
from gbxcule_puffer.scan.recording import Recording

CHUNK = {"cpu": 60_000_000, "cuda": 400_000_000}  # values that are looked at together
SAMPLED = 8_000  # looks of envs from which the spread of values is taken
SCENE_LOOKS = 6
BIG = 0.25  # part of the picture: of a change of scene
VALUES = 256
NAMES = list(BRANCHES)

# What `measure` returns, (bytes,) each; rates are per transition from a look to the next one, of all envs: rate:
# transitions that change the byte; rises, falls_by_one, rises_by_one, sets_bits, clears_bits, falls_to_start (or to
# 0), rises_to_one (to their most common target, `rises_to`), scene (near a change of much of the picture), drawn
# (with any change of it): parts of the changes, rises or falls that are so; rise_count, fall_count; distinct values,
# spread, new_spread and step_spread (bits of entropy of values, of values after changes, and of changes), lowest,
# highest; decimal: no value had a half above 9; gap: looks between two changes, gap_spread: their standard deviation
# in parts of that; envs: part of the envs in which it changed; agree: part of the looks of forks at which all
# branches have the same value; regardless: of the forks in which it changes, those in which it does so equally in all
# branches. Of forks, as parts of the contexts, (branches, bytes) each: higher, lower (than without buttons, at the
# end), reacts (ever differs), goes_on (differs more at the end than in the middle), one_way (steps of one sign only),
# back (equal again after the release); goes_higher, goes_lower, goes_further: the same, not beside the branch without
# buttons, but from the fork on.


@dataclass(frozen=True)
class Changes:
    """All changes of some bytes, (changes,) int64 each: the `look` before, the `env`, the `byte` (from 0 in this part),
    and the values before and after."""

    look: torch.Tensor
    env: torch.Tensor
    byte: torch.Tensor
    before: torch.Tensor
    after: torch.Tensor
    total: int  # bytes

    @classmethod
    def of(cls, recording: Recording, part: slice) -> Changes:
        """The changes of a part of the bytes; none where an env was restored."""
        values = recording.values[:, :, part]
        changed = (values[1:] != values[:-1]) & recording.valid[1:, :, None]
        look, env, byte = changed.nonzero().unbind(1)
        before, after = values[look, env, byte].long(), values[look + 1, env, byte].long()
        return cls(look, env, byte, before, after, values.shape[2])

    def count(self, which: torch.Tensor | None = None, weights: torch.Tensor | None = None) -> torch.Tensor:
        """The number of changes of each byte, of those in `which`, or the sum of their weights."""
        byte = self.byte if which is None else self.byte[which]
        return torch.bincount(byte, weights, minlength=self.total)

    def histogram(self, values: torch.Tensor, size: int, which: torch.Tensor | None = None) -> torch.Tensor:
        """Counts of each value from 0 to size-1 among the changes of each byte, (bytes, size)."""
        index = self.byte * size + values
        index = index if which is None else index[which]
        return torch.bincount(index, minlength=self.total * size).view(self.total, size)


def chunks(recording: Recording) -> list[slice]:
    """Parts of the bytes with at most CHUNK values each, or one byte."""
    looks, envs, total = recording.values.shape
    step = max(1, CHUNK[recording.values.device.type] // (looks * envs))
    return [slice(first, min(total, first + step)) for first in range(0, total, step)]


def measure(recording: Recording) -> dict[str, torch.Tensor]:
    """The statistics of all bytes, by name."""
    parts = [_part(recording, part) for part in chunks(recording)]
    return {name: torch.cat([part[name] for part in parts], -1) for name in parts[0]}


def rules(recording: Recording, positions: torch.Tensor) -> torch.Tensor:
    """The information that each byte has, before a fork, about whether directions will move any of the `positions`
    (their indices), in parts of all that there is, (bytes,)."""
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
    """Counts of each value from 0 to size-1 in each column, (columns, size); values: (rows, columns) int64."""
    columns = values.shape[1]
    shifted = values + torch.arange(columns, device=values.device) * size
    return torch.bincount(shifted.flatten(), minlength=columns * size).view(columns, size)


def _entropy(counts: torch.Tensor) -> torch.Tensor:
    """Bits of entropy of counts (bytes, values)."""
    part = counts / counts.sum(1, keepdim=True).clamp(min=1)
    return -(part * part.clamp(min=1e-12).log2()).sum(1)


def _part(recording: Recording, part: slice) -> dict[str, torch.Tensor]:
    """Statistics of some of the bytes."""
    start = recording.start[part].long()
    changes = Changes.of(recording, part)
    before, after = changes.before, changes.after
    step = after - before
    number = changes.count()
    some = number.clamp(min=1)
    steps = changes.histogram(step + VALUES, 2 * VALUES)
    falls, rises = steps[:, :VALUES].sum(1), steps[:, VALUES + 1 :].sum(1)
    present = changes.histogram(after, VALUES) + changes.histogram(before, VALUES) > 0
    rose_to = changes.histogram(after, VALUES, step > 0).max(1)
    drawn = recording.drawn[1:][changes.look, changes.env]
    scene = _near_scene(recording.drawn)[1:]
    index = torch.arange(VALUES, device=start.device)
    values = recording.values[:, :, part]
    stride = max(1, values.shape[0] * values.shape[1] // SAMPLED)
    sample = values.flatten(0, 1)[::stride].long()
    gap, gap_spread = _gaps(changes, recording.valid)
    envs = torch.zeros((values.shape[1], changes.total), device=start.device)
    envs[changes.env, changes.byte] = 1
    return {
        "rate": number / recording.valid[1:].sum(),
        "rises": rises / some,
        "rise_count": rises,
        "fall_count": falls,
        "falls_by_one": steps[:, VALUES - 1] / falls.clamp(min=1),
        "rises_by_one": steps[:, VALUES + 1] / rises.clamp(min=1),
        "falls_to_start": changes.count((step < 0) & ((after == start[changes.byte]) | (after == 0)))
        / falls.clamp(min=1),
        "sets_bits": changes.count(after & before == before) / some,
        "clears_bits": changes.count(after & before == after) / some,
        "distinct": present.sum(1),
        "spread": _entropy(_histogram(sample, VALUES)),
        "new_spread": _entropy(changes.histogram(after, VALUES)),
        "step_spread": _entropy(steps),
        "lowest": torch.where(present, index, VALUES).amin(1),
        "highest": torch.where(present, index, -1).amax(1),
        "scene": changes.count(scene[changes.look, changes.env]) / some,
        "drawn": changes.count(drawn > 0) / some,
        "start": start,
        "rises_to_one": rose_to.values / rises.clamp(min=1),
        "rises_to": rose_to.indices,
        "scene_rate": scene[recording.valid[1:]].float().mean().expand(changes.total),
        "decimal": ~(present & ((index & 15 > 9) | (index > 0x99))).any(1),
        "gap": gap,
        "gap_spread": gap_spread,
        "envs": envs.mean(0),
        **_effects(values, recording.forks),
    }


def _near_scene(drawn: torch.Tensor) -> torch.Tensor:
    """True where much of the picture changes within SCENE_LOOKS looks; drawn: (looks, envs)."""
    size = 2 * SCENE_LOOKS + 1
    return torch.nn.functional.max_pool1d(drawn.T[None].float(), size, 1, SCENE_LOOKS)[0].T > BIG


def _gaps(changes: Changes, valid: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Looks from a change to the next one of the same env: mean, and standard deviation in parts of the mean."""
    order = (changes.env * changes.total + changes.byte).argsort(stable=True)  # within them the looks go up
    look, env, byte = changes.look[order], changes.env[order], changes.byte[order]
    lives = (~valid).cumsum(0)[look + 1, env]  # how often the env was restored until then
    same = (env[1:] == env[:-1]) & (byte[1:] == byte[:-1]) & (lives[1:] == lives[:-1])
    gap, of = (look[1:] - look[:-1])[same].double(), byte[1:][same]
    number = torch.bincount(of, minlength=changes.total)
    mean = torch.bincount(of, gap, changes.total) / number.clamp(min=1)
    squares = torch.bincount(of, gap * gap, changes.total) / number.clamp(min=1)
    deviation = (squares - mean**2).clamp(min=0).sqrt()
    spread = torch.where(number > 1, deviation / mean.clamp(min=1e-6), 1e6)
    return torch.where(number > 0, mean, 1e6).float(), spread.float()


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
    way = held.int().cumsum(1)  # from the fork on, however often the byte wraps
    halfway, whole = way[:, HELD_LOOKS // 2 - 1], way[:, -1]
    found["goes_higher"] = (whole > 0).sum((0, 1)) / contexts
    found["goes_lower"] = (whole < 0).sum((0, 1)) / contexts
    found["goes_further"] = ((whole.abs() > halfway.abs()) & (whole * halfway >= 0)).sum((0, 1)) / contexts
    moved = (steps != 0).any(3).any(1)  # (forks, contexts, bytes)
    found["regardless"] = (moved & (apart == 0).all(3).all(1)).sum((0, 1)) / moved.sum((0, 1)).clamp(min=1)
    found["higher"] = (last > 0).sum((0, 1)) / contexts  # (branches, bytes)
    found["lower"] = (last < 0).sum((0, 1)) / contexts
    found["reacts"] = (apart != 0).any(1).sum((0, 1)) / contexts
    found["goes_on"] = ((last.abs() > middle.abs()) & (last * middle >= 0)).sum((0, 1)) / contexts
    found["one_way"] = (((held >= 0).all(1) | (held <= 0).all(1)) & (held != 0).any(1)).sum((0, 1)) / contexts
    found["stride"] = held.abs().amax(1).float().mean((0, 1))
    found["back"] = ((apart[:, 1 : HELD_LOOKS + 1] != 0).any(1) & (apart[:, -1] == 0)).sum((0, 1)) / contexts
    found["branch_rate"] = (held != 0).float().mean((0, 1, 2))
    return found
