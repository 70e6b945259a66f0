"""Statistics of recorded bytes over envs and time, a tensor with one number for each byte."""

from __future__ import annotations

import torch

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.scan.play import BRANCHES, FORK_LOOKS
from gbxcule_puffer.scan.recording import Recording
from gbxcule_puffer.scan.tally import DRAWN, SCENE, VALID, Tally, tally

SAMPLED = 8_000  # looks of envs from which the spread of values is taken
SCENE_LOOKS = 6
COMPARED, JUMP = 15_000, 32  # steps that are compared with those of sprites; larger ones are not compared
BIG = 0.25  # part of the picture: of a change of scene
VALUES = 256
FEW_FORKS = 4  # in which a byte changes: they say little of what it does regardless of the buttons
NAMES = list(BRANCHES)

# What `measure` returns, (bytes,) each; rates are per transition from a look to the next one, of all envs: rate:
# transitions that change the byte; rises, falls_by_one, rises_by_one, sets_bits, clears_bits, falls_to_start (or to 0,
# or to the lowest value), rises_to_one (to their most common target, `rises_to`), scene (near a change of much of the
# picture), drawn (with any change of it): parts of the changes, rises or falls that are so; rise_count, fall_count;
# distinct values,
# spread, new_spread and step_spread (bits of entropy of values, of values after changes, and of changes); same_step:
# part of the changes that are the most common one; lowest, highest; decimal: no value had a half above 9; gap: looks
# between two changes, gap_spread: their standard deviation in parts of that; envs: part of the envs in which it
# changed; agree: part of the looks of forks at which all branches have the same value; regardless: of the forks in
# which it changes and a few more, those in which it does so equally in all branches. Of forks, as parts of the
# contexts, (branches, bytes) each: higher, lower (than without buttons, at the
# end), reacts (ever differs), goes_on (differs more at the end than in the middle), one_way (steps of one sign only),
# back (equal again after the release); goes_higher, goes_lower, goes_further: the same, not beside the branch without
# buttons, but from the fork on.


def measure(recording: Recording, tally: Tally) -> dict[str, torch.Tensor]:
    """The statistics of all bytes, by name."""
    start = recording.start.long()
    changes, steps = tally.changes, tally.steps
    number = steps.sum(1)
    some = number.clamp(min=1)
    falls, rises = steps[:, :VALUES].sum(1), steps[:, VALUES + 1 :].sum(1)
    rose_to = tally.rose_to.max(1)
    index = torch.arange(VALUES, device=start.device)
    values = recording.values.flatten(0, 1)
    sample = values[:: max(1, len(values) // SAMPLED)].long()
    gap, gap_spread = _gaps(changes)
    lowest = torch.where(tally.seen, index, VALUES).amin(1)
    # A start may be late in a game: its score is above that of a game that begins again.
    fell_to_lowest = (tally.reached - tally.rose_to).gather(1, lowest.clamp(max=VALUES - 1)[:, None])[:, 0]
    return {
        "rate": number / recording.valid[1:].sum(),
        "rises": rises / some,
        "rise_count": rises,
        "fall_count": falls,
        "falls_by_one": steps[:, VALUES - 1] / falls.clamp(min=1),
        "rises_by_one": steps[:, VALUES + 1] / rises.clamp(min=1),
        "falls_to_start": torch.maximum(changes["falls_to_start"], fell_to_lowest) / falls.clamp(min=1),
        "sets_bits": changes["sets_bits"] / some,
        "clears_bits": changes["clears_bits"] / some,
        "distinct": tally.seen.sum(1),
        "spread": _entropy(_histogram(sample, VALUES)),
        "new_spread": _entropy(tally.reached),
        "step_spread": _entropy(steps),
        "same_step": steps.max(1).values / some,
        "lowest": lowest,
        "highest": torch.where(tally.seen, index, -1).amax(1),
        "scene": changes["scene"] / some,
        "drawn": changes["drawn"] / some,
        "start": start,
        "rises_to_one": rose_to.values / rises.clamp(min=1),
        "rises_to": rose_to.indices,
        "scene_rate": near_scene(recording.drawn)[1:][recording.valid[1:]].float().mean().expand(len(start)),
        "decimal": ~(tally.seen & ((index & 15 > 9) | (index > 0x99))).any(1),
        "gap": gap,
        "gap_spread": gap_spread,
        "envs": changes["envs"] / recording.values.shape[1],
        **_effects(recording, tally),
    }


def count(recording: Recording) -> Tally:
    """The counts of a recording."""
    near = [[recording.neighbour(i, side) for i in range(len(recording.where))] for side in (1, -1)]
    neighbours = torch.tensor(near, dtype=torch.int32, device=recording.values.device)
    bits = recording.valid * VALID + (recording.drawn > 0) * DRAWN + near_scene(recording.drawn) * SCENE
    return tally(recording.values, bits.to(torch.uint8), recording.start, neighbours, recording.forks)


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


def like_sprites(recording: Recording) -> dict[str, torch.Tensor]:
    """The share in which each byte changes as a sprite moves, (bytes,), by `like_x` and `like_y`: the correlation of
    its steps with those of the sprite that moves most like it along the axis."""
    addresses, values = recording.addresses.to(recording.values.device), recording.values.flatten(0, 1)
    envs = recording.values.shape[1]
    after = recording.valid[1:].flatten().nonzero()[:, 0] + envs
    after = after[torch.linspace(0, max(0, len(after) - 1), min(COMPARED, len(after)), device=values.device).long()]
    step = wrapped(values[after].short() - values[after - envs].short()).float()
    step = torch.where(step.abs() > JUMP, 0.0, step)  # what begins again elsewhere
    step = step / step.square().sum(0).sqrt().clamp(min=1e-6)
    found = {}
    for name, part in (("like_y", 0), ("like_x", 1)):
        own = (addresses >= hw.OAM) & (addresses < hw.OAM_END) & (addresses % 4 == part)
        near = (step.T @ step[:, own]).abs()
        found[name] = near.amax(1) if near.shape[1] else torch.zeros(len(addresses), device=values.device)
    return found


def _histogram(values: torch.Tensor, size: int) -> torch.Tensor:
    """Counts of each value from 0 to size-1 in each column, (columns, size); values: (rows, columns) int64."""
    columns = values.shape[1]
    shifted = values + torch.arange(columns, device=values.device) * size
    return torch.bincount(shifted.flatten(), minlength=columns * size).view(columns, size)


def _entropy(counts: torch.Tensor) -> torch.Tensor:
    """Bits of entropy of counts (bytes, values)."""
    part = counts / counts.sum(1, keepdim=True).clamp(min=1)
    return -(part * part.clamp(min=1e-12).log2()).sum(1)


def near_scene(drawn: torch.Tensor) -> torch.Tensor:
    """True where much of the picture changes within SCENE_LOOKS looks; drawn: (looks, envs)."""
    size = 2 * SCENE_LOOKS + 1
    return torch.nn.functional.max_pool1d(drawn.T[None].float(), size, 1, SCENE_LOOKS)[0].T > BIG


def _gaps(changes: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Looks from a change to the next one of the same env: mean, and standard deviation in parts of the mean."""
    number = changes["gaps"]
    mean = changes["gap_sum"].double() / number.clamp(min=1)
    squares = changes["gap_squares"].double() / number.clamp(min=1)
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


def _effects(recording: Recording, tally: Tally) -> dict[str, torch.Tensor]:
    """Statistics of forks: how each branch differs from the one without buttons."""
    contexts = len(recording.forks) * recording.values.shape[1] // len(NAMES)
    return {
        "noop_rate": tally.forks["noop_steps"] / (contexts * FORK_LOOKS),
        "agree": tally.forks["agree"] / (contexts * (FORK_LOOKS + 1)),
        "regardless": tally.forks["regardless"] / (tally.forks["moved"] + FEW_FORKS),
        **{name: counts / contexts for name, counts in tally.branches.items()},
    }
