"""The snapshot pool and the choice of starts: saving live envs, weights, statistics, reproducible draws."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.pool import SnapshotPool
from gbxcule_puffer.env.curriculum.progress import FLOOR, UNIT, BayesProgressTracker
from gbxcule_puffer.env.curriculum.starts import Starts, pick
from gbxcule_puffer.env.fields import EnvTensors
from gbxcule_puffer.env.randomness import RANGE, CounterRandom
from gbxcule_puffer.errors import StateError
from tests.support.envs import CODEC, STAGE, random_actions

ROM = STAGE.parent.parent / "homeward.gb"
CPU = torch.device("cpu")


def walk(emulator: Emulator, steps: int, seed: int) -> None:
    for row in random_actions(steps, emulator.num_envs, seed):
        emulator.step(torch.tensor([CODEC.to_buttons(action) for action in row], dtype=torch.uint8))


def test_live_envs_go_into_slots_and_back() -> None:
    """Envs saved into spare slots and restored into others continue as if they had never stopped."""
    emulator = Emulator(ROM, 5)
    for action in CODEC.parse(json.loads(STAGE.read_text())["start_actions"]):
        emulator.step(torch.full((5,), CODEC.to_buttons(action), dtype=torch.uint8))
    pool = SnapshotPool(emulator, [emulator.save(0), emulator.save(0)], spare=3)
    walk(emulator, 12, seed=1)
    before = emulator.state_hash()
    assert len(set(before.tolist())) == 5, "the envs differ"
    # env 0 -> slot 4, env 3 -> slot 2
    pool.save(torch.tensor([1, 0, 0, 1, 0], dtype=torch.bool), torch.tensor([4, 0, 0, 2, 0], dtype=torch.int32))
    walk(emulator, 3, seed=2)
    later = emulator.state_hash()
    # slot 4 -> envs 1 and 2, slot 2 -> env 4
    pool.reset(torch.tensor([0, 1, 1, 0, 1], dtype=torch.bool), torch.tensor([0, 4, 4, 0, 2], dtype=torch.int32))
    after = emulator.state_hash()
    assert after[1] == after[2] == before[0]
    assert after[4] == before[3]
    assert (after[[0, 3]] == later[[0, 3]]).all(), "envs outside of the mask are untouched"


def test_the_given_slots_are_not_spare() -> None:
    emulator = Emulator(ROM, 1)
    pool = SnapshotPool(emulator, [emulator.save(0)], spare=2)
    spare = pool.spare_tensors()
    assert spare["pool_state"].shape[1] == len(spare["pool_memory"]) == len(spare["pool_screen"]) == 2
    assert SnapshotPool(emulator, [emulator.save(0)]).spare_tensors() == {}
    with pytest.raises(StateError, match="at least one snapshot"):
        SnapshotPool(emulator, [])


def test_pick_follows_the_weights() -> None:
    weights = np.array([3, 0, 1, 4], np.int64) * UNIT
    cumulative = torch.from_numpy(weights.cumsum())
    values = torch.arange(0, RANGE, 1021)
    counts = np.bincount(pick(values.clone(), cumulative, torch.empty(len(values), dtype=torch.int32)), minlength=4)
    np.testing.assert_allclose(counts / len(values), weights / weights.sum(), atol=1e-3)
    last = torch.tensor([RANGE - 1])
    assert pick(last, cumulative, torch.empty(1, dtype=torch.int32)).item() == 3
    # A slot without weight is never drawn, also at the border.
    first = torch.tensor([0])
    nothing_first = torch.tensor([0, UNIT])
    assert pick(first, nothing_first, torch.empty(1, dtype=torch.int32)).item() == 1


def draws(curriculum: str, weights: list[int] | None = None, first_env: int = 0, n: int = 600) -> list[np.ndarray]:
    """Slots of 5 episodes of n envs with three starts in three stages, each with 2 waits."""
    random = CounterRandom(n, CPU, first_env)
    envs = EnvTensors(n, CPU)
    stages, distance = [0, 0, 1, 1, 2, 2], torch.zeros(6)
    starts = Starts(
        stages, distance, per_start=2, spare=0, archive_steps=None, curriculum=curriculum, random=random, envs=envs
    )
    given = starts.weights if weights is None else torch.tensor(weights)
    return [starts.sample(7, torch.full((n,), i), given).numpy().copy() for i in range(5)]


def test_curricula() -> None:
    shares = np.bincount(np.concatenate(draws("uniform")) // 2, minlength=3) / 3000
    assert (abs(shares - 1 / 3) < 0.04).all()
    assert np.concatenate(draws("first")).max() == 1
    by_env = draws("by_env")
    assert all((slots // 2 == np.arange(600) % 3).all() for slots in by_env)
    assert {0, 1} == set(by_env[0][::3].tolist()), "the waits are drawn"
    weighted = np.bincount(np.concatenate(draws("progress", [UNIT, 2 * UNIT, 0])) // 2, minlength=3) / 3000
    assert weighted[2] == 0
    assert abs(weighted[1] - 2 / 3) < 0.04


def test_draws_depend_on_the_env_s_number_only() -> None:
    whole = np.stack(draws("uniform"))
    np.testing.assert_array_equal(whole, np.stack(draws("uniform")))
    part = np.stack(draws("uniform", first_env=400, n=200))
    np.testing.assert_array_equal(part, whole[:, 400:])
    assert (whole[0] != whole[1]).any()


def test_progress_is_a_beta_posterior() -> None:
    tracker = BayesProgressTracker(["easy", "hard"], 4, CPU)
    tracker.update()
    assert tracker.weights.tolist() == [int((0.5 + FLOOR) * UNIT)] * 2, "unknown stages weigh the same"
    stage, everyone = torch.tensor([0, 0, 1, 1]), torch.ones(4, dtype=torch.bool)
    won, lost = torch.tensor([True, True, False, False]), torch.tensor([False, False, True, False])
    for _ in range(3):
        tracker.count(stage, won, lost, everyone)
    tracker.count(stage, won, lost, ~everyone)  # nobody counts
    assert tracker.counts.tolist() == [[6, 0], [0, 3]]
    expected = [1 - 7 / 8 + FLOOR, 1 - 1 / 5 + FLOOR]
    assert tracker.weights.tolist() == [int(weight * UNIT) for weight in expected]
    info = tracker.read()
    assert info["stage/easy/posterior"] == 7 / 8
    assert (info["stage/easy/success"], info["stage/easy/attempts"]) == (1, 6)
    assert info["stage/hard/weight"] == pytest.approx(expected[1] / sum(expected), abs=1e-4)
    assert "stage/hard/success" not in tracker.read(), "the interval begins anew"


def test_progress_forgets_what_is_long_ago() -> None:
    """A policy that loses what it could is noticed, however long it had succeeded."""
    tracker = BayesProgressTracker(["a", "b"], 4, CPU)
    stage, yes, no = (
        torch.zeros(4, dtype=torch.int64),
        torch.ones(4, dtype=torch.bool),
        torch.zeros(4, dtype=torch.bool),
    )
    for _ in range(2000):
        tracker.count(stage, yes, no, yes)
    assert tracker.counts.sum() <= tracker.window + 4
    for _ in range(300):
        tracker.count(stage, no, yes, yes)
    assert tracker.read()["stage/a/posterior"] < 0.2


def test_the_committed_list_of_stages_is_of_the_committed_rom() -> None:
    import hashlib

    spec = json.loads((STAGE.parent / "stages.json").read_text())
    assert spec["rom_sha256"] == hashlib.sha256(Path(ROM).read_bytes()).hexdigest()
