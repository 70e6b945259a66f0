"""Counts over a recording equal those of plain loops over its values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gbxcule_puffer.scan.play import BRANCHES, FORK_LOOKS, HELD_LOOKS
from gbxcule_puffer.scan.statistics import count, measure
from gbxcule_puffer.scan.tally import DRAWN, SCENE, VALID, Tally, tally

pytestmark = pytest.mark.kernel
LOOKS, CONTEXTS, BYTES, FORKS = 40, 2, 5, [0, 20]
ENVS = CONTEXTS * len(BRANCHES)
NEIGHBOURS = np.array([[1, 2, 3, 4, -1], [-1, 0, 1, 2, 3]])


def recording() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values that change in a third of the looks, by small and by large steps, and all copies equal at a fork."""
    numbers = np.random.default_rng(1)
    steps = numbers.choice([1, 2, 255, 120, 200], (LOOKS, ENVS, BYTES)) * (numbers.random((LOOKS, ENVS, BYTES)) < 0.3)
    values = steps.cumsum(0).astype(np.uint8)
    for fork in FORKS:
        values[fork] = values[fork, :: len(BRANCHES)].repeat(len(BRANCHES), 0)
    bits = numbers.integers(0, 8, (LOOKS, ENVS)) | int(VALID) * (numbers.random((LOOKS, ENVS)) < 0.9)
    return values, bits.astype(np.uint8), values[0, 0].copy()


@pytest.fixture(scope="module")
def counted() -> Tally:
    values, bits, start = (torch.from_numpy(each) for each in recording())
    return tally(values, bits, start, torch.from_numpy(NEIGHBOURS.astype(np.int32)), FORKS)


def near(difference: int) -> int:
    return (difference + 128) % 256 - 128


def changes(byte: int) -> Iterator[tuple[int, int, int, int, int]]:
    """(look, env, before, after, bits) of each change that counts."""
    values, bits, _ = recording()
    for env in range(ENVS):
        for look in range(1, LOOKS):
            before, after = int(values[look - 1, env, byte]), int(values[look, env, byte])
            if before != after and bits[look, env] & VALID:
                yield look, env, before, after, int(bits[look, env])


def gaps(byte: int) -> list[int]:
    """Looks between two changes of an env that was not restored between them."""
    _, bits, _ = recording()
    several, found = list(changes(byte)), []
    for (look, env, *_), (later, other, *_) in pairwise(several):
        if env == other and all(bits[i, env] & VALID for i in range(look, later + 1)):
            found.append(later - look)
    return found


@pytest.mark.parametrize("byte", range(BYTES))
def test_changes_are_counted(counted: Tally, byte: int) -> None:
    _, _, start = recording()
    several = list(changes(byte))
    expected = {
        "scene": sum(bool(bits & SCENE) for *_, bits in several),
        "drawn": sum(bool(bits & DRAWN) for *_, bits in several),
        "gaps": len(gaps(byte)), "gap_sum": sum(gaps(byte)), "gap_squares": sum(gap**2 for gap in gaps(byte)),
        "envs": len({env for _, env, *_ in several}),
        "falls_to_start": sum(after < before and after in (0, start[byte]) for _, _, before, after, _ in several),
        "sets_bits": sum(after & before == before for _, _, before, after, _ in several),
        "clears_bits": sum(after & before == after for _, _, before, after, _ in several),
    }  # fmt: skip
    assert {name: int(of[byte]) for name, of in counted.changes.items()} == expected
    steps = np.bincount([after - before + 256 for _, _, before, after, _ in several], minlength=512)
    reached = np.bincount([after for *_, after, _ in several], minlength=256)
    rose_to = np.bincount([after for _, _, before, after, _ in several if after > before], minlength=256)
    assert np.array_equal(counted.steps[byte], steps) and np.array_equal(counted.reached[byte], reached)
    assert np.array_equal(counted.rose_to[byte], rose_to)
    seen = {value for _, _, before, after, _ in several for value in (before, after)}
    assert set(counted.seen[byte].nonzero()[:, 0].tolist()) == seen


def test_a_fall_to_the_lowest_value_begins_a_game_again() -> None:
    """Also where the recording's start is late in a game, at a score of 2."""
    score = (
        torch.tensor([2, 3, 1, 2, 3, 4, 1, 2] * 4, dtype=torch.uint8)[:, None, None].expand(-1, ENVS, 1).contiguous()
    )
    looks = score.shape[:2]
    recording = SimpleNamespace(
        values=score, valid=torch.ones(looks, dtype=torch.bool), drawn=torch.zeros(looks), start=score[0, 0], forks=[0],
        where=[0xC100], neighbour=lambda index, side: -1,
    )  # fmt: skip
    stats = measure(recording, count(recording))  # pyright: ignore[reportArgumentType]
    assert float(stats["falls_to_start"][0]) == 1 and int(stats["lowest"][0]) == 1


@pytest.mark.parametrize("side", [0, 1], ids=["above", "below"])
@pytest.mark.parametrize("byte", range(BYTES))
def test_carries_are_counted(counted: Tally, byte: int, side: int) -> None:
    values, _, _ = recording()
    expected, other = dict.fromkeys(counted.carries[side], 0), NEIGHBOURS[side, byte]
    for look, env, before, after, _ in changes(byte):
        step = after - before
        its = near(int(values[look, env, other]) - int(values[look - 1, env, other]))
        if other < 0 or (step < 0 and its < 0):
            continue
        expected["fell"] += step < 0
        expected["rose"] += step < 0 and 0 < its < 10
        expected["wide"] += abs(step) >= 128
        expected["made_good"] += abs(step) >= 128 and abs(its) == 1 and its * step < 0
    assert {name: int(of[byte]) for name, of in counted.carries[side].items()} == expected


@pytest.mark.parametrize("byte", range(BYTES))
def test_forks_are_counted(counted: Tally, byte: int) -> None:
    values, _, _ = recording()
    branches = {name: [0] * len(BRANCHES) for name in counted.branches}
    forks = dict.fromkeys(counted.forks, 0)
    for first in FORKS:
        for context in range(CONTEXTS):
            envs = range(context * len(BRANCHES), (context + 1) * len(BRANCHES))
            cut = [[int(values[first + look, env, byte]) for look in range(FORK_LOOKS + 1)] for env in envs]
            steps = [[near(b - a) for a, b in pairwise(own)] for own in cut]
            apart = [[near(a - b) for a, b in zip(own, cut[0], strict=True)] for own in cut]
            moved = any(step for own in steps for step in own)
            forks["noop_steps"] += sum(step != 0 for step in steps[0])
            forks["agree"] += sum(not any(column) for column in zip(*apart, strict=True))
            forks["moved"] += moved
            forks["regardless"] += moved and not any(any(own) for own in apart)
            for branch, (step, own) in enumerate(zip(steps, apart, strict=True)):
                held, middle, last = step[:HELD_LOOKS], own[HELD_LOOKS // 2], own[HELD_LOOKS]
                half, whole = sum(held[: HELD_LOOKS // 2]), sum(held)
                for name, holds in {
                    "higher": last > 0, "lower": last < 0, "reacts": any(own),
                    "goes_on": abs(last) > abs(middle) and last * middle >= 0,
                    "one_way": any(held) and (min(held) >= 0 or max(held) <= 0),
                    "back": any(own[: HELD_LOOKS + 1]) and not own[-1],
                    "goes_higher": whole > 0, "goes_lower": whole < 0,
                    "goes_further": abs(whole) > abs(half) and whole * half >= 0,
                }.items():  # fmt: skip
                    branches[name][branch] += holds
    assert {name: int(of[byte]) for name, of in counted.forks.items()} == forks
    assert {name: of[:, byte].tolist() for name, of in counted.branches.items()} == branches


@pytest.mark.gpu
def test_a_gpu_counts_the_same(counted: Tally) -> None:
    values, bits, start = (torch.from_numpy(each).cuda() for each in recording())
    found = tally(values, bits, start, torch.from_numpy(NEIGHBOURS.astype(np.int32)).cuda(), FORKS)
    for own, other in (
        (found.changes, counted.changes),
        (found.forks, counted.forks),
        (found.branches, counted.branches),
    ):
        assert all(torch.equal(own[name].cpu(), other[name]) for name in other)
    for name in ("steps", "reached", "rose_to", "seen"):
        assert torch.equal(getattr(found, name).cpu(), getattr(counted, name))
