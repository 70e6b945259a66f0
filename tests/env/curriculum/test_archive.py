"""The archive's slots: whom an episode counts for, and which of them are saved."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.saved_state import BY_SNAPSHOT
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.trainers.envs import env_state
from tests.support.cells import coarse_cell
from tests.support.envs import make_test_task, random_actions

N, SLOTS = 24, 24


@pytest.mark.parametrize("saved", [False, True])
def test_an_episode_counts_for_the_state_it_began_in_or_for_none(tmp_path: Path, saved: bool) -> None:
    """Its slot may have been given to another state while it was played; so, too, in an env that goes on."""
    kwargs: dict[str, Any] = {**make_test_task(tmp_path).kwargs, "num_envs": N, "max_steps": 5}
    kwargs |= {"archive_slots": SLOTS, "archive_share": 0.8, "visit_key": "pixels"}
    env = GBxCuLEEnv(**kwargs)
    env.reset(seed=1)
    given = env._episodes.curriculum.starts.given
    counted, kept, began, late = np.zeros((2, SLOTS), int), np.zeros(SLOTS, int), np.zeros(N, int), 0
    before = np.zeros(N, int)
    for number, row in enumerate(random_actions(60, N, seed=2)):
        if saved and number == 43:
            state, env = env.state_dict(), GBxCuLEEnv(**kwargs)
            assert state["tensors"]["replaced"].any(), "an episode is under way whose slot was given away"
            env.load_state_dict(state)
        env.step(row)
        t, archive = env._episodes.envs, env._episodes.curriculum.archive
        assert archive is not None
        ended = t.ended.numpy()
        for i in np.flatnonzero(ended & (before >= given)):
            slot = before[i] - given
            if kept[slot] == began[i]:
                counted[:, slot] += [1, t.length[i]]
            else:
                late += 1
        pictures = archive.pool.spare_tensors()["pool_screen"].numpy()
        now = np.array([hash(picture.tobytes()) for picture in pictures])  # a cell is a picture
        counted[:, now != kept] = 0
        kept, before = now.copy(), t.slots.numpy().copy()
        fresh = ended & (before >= given)
        began[fresh] = kept[before[fresh] - given]
        counts = env._episodes.curriculum.starts.counts[[0, 2], given:]
        assert torch.equal(counts, torch.from_numpy(counted)), f"step {number}"
    assert late > 10 and counted[0].sum() > 10


def test_a_saved_state_holds_the_slots_that_are_filled_only(tmp_path: Path) -> None:
    """32,768 slots take 2 GB, of which a small game fills a fortieth."""
    kwargs: dict[str, Any] = {**make_test_task(tmp_path).kwargs, "num_envs": 4, "archive_slots": 64}
    env, other = GBxCuLEEnv(**kwargs), GBxCuLEEnv(**kwargs)
    env.reset(seed=1)
    for row in random_actions(20, 4, seed=2):
        env.step(row)
    state = env.state_dict()
    archive, tensors = env._episodes.curriculum.archive, state["tensors"]
    assert archive is not None
    filled = int(archive.filled.sum())
    assert 2 < filled < 64
    assert tensors["pool_state"].shape[1] == len(tensors["pool_memory"]) == len(tensors["pool_screen"]) == filled
    other.reset(seed=9)
    other.load_state_dict(state)
    spare = env._episodes.curriculum.pool.spare_tensors()
    for name, tensor in other._episodes.curriculum.pool.spare_tensors().items():
        assert torch.equal(tensor, spare[name]), name
    for name in ("pool_state", "pool_memory", "pool_screen"):
        for part in (tensors[name][:1], tensors[name].float(), None):
            with pytest.raises(StateError, match=f"does not fit in {name}"):
                other.load_state_dict({**state, "tensors": {**tensors, name: part}})
    for part in (torch.ones(3, dtype=torch.bool), torch.ones(64), torch.ones(64, dtype=torch.bool), None):
        with pytest.raises(StateError, match="saved env state does not fit in"):
            other.load_state_dict({**state, "tensors": {**tensors, "spare_filled": part}})


def test_the_archive_of_a_checkpoint_is_compressed(tmp_path: Path) -> None:
    """A tenth of the bytes for a game with RAM that stands still; the same states come back, damaged ones do not."""
    kwargs: dict[str, Any] = {**make_test_task(tmp_path).kwargs, "num_envs": 4, "archive_slots": 1_024}
    kwargs |= {"visit_key": "pixels", "archive_share": 0.0}
    env, other = GBxCuLEEnv(**kwargs), GBxCuLEEnv(**kwargs)
    env.reset(seed=1)
    curriculum = env._episodes.curriculum
    spare, order = curriculum.pool.spare_tensors(), np.random.default_rng(1).permutation(1_024)[:516]
    curriculum.filled[order] = True
    pool = torch.from_numpy(order.astype(np.int32))
    for first in range(0, 516, 4):
        env.step(np.full(4, first % 7))
        mask, slots = torch.ones(4, dtype=torch.bool), pool[first : first + 4] + curriculum.starts.given
        curriculum.pool.save(mask, slots)
    plain, small = env.state_dict(machines=False), env_state(env)
    size = {name: sum(part.nbytes for part in small["tensors"][name]) for name in BY_SNAPSHOT}
    assert sum(part.nbytes for part in small["tensors"]["visit_table"]) < 2e5 < plain["tensors"]["visit_table"].nbytes
    assert sum(size.values()) < 0.15 * sum(plain["tensors"][name].nbytes for name in BY_SNAPSHOT)
    other.reset(seed=9)
    own = {name: part for name, part in small["tensors"].items() if name in plain["tensors"]}
    other.load_state_dict({**small, "machines": None, "tensors": own})
    for name, tensor in other._episodes.curriculum.pool.spare_tensors().items():
        assert torch.equal(tensor, spare[name]), name
    assert torch.equal(other.state_dict(machines=False)["tensors"]["visit_table"], plain["tensors"]["visit_table"])
    with pytest.raises(StateError, match="does not fit in visit_table"):
        other.load_state_dict({**small, "machines": None, "tensors": {**own, "visit_table": [torch.zeros(9)]}})
    for name in BY_SNAPSHOT:
        first, second = own[name]
        flipped = torch.cat([first[:40], ~first[40:41], first[41:]])
        for parts in ([first], [second, first], [first, second, second], [first, None], [flipped, second], []):
            with pytest.raises(StateError, match=f"does not fit in {name}"):
                other.load_state_dict({**small, "machines": None, "tensors": {**own, name: parts}})


def test_episodes_from_the_archive_can_be_shorter(tmp_path: Path) -> None:
    """archive_steps: at most so many steps from there, as many as ever from the start."""
    kwargs: dict[str, Any] = {
        **make_test_task(tmp_path).kwargs,
        "num_envs": 24,
        "max_steps": 7,
        "archive_slots": 64,
        "archive_share": 0.5,
    }
    env = GBxCuLEEnv(**kwargs, archive_steps=3)
    env.reset(seed=1)
    lengths: dict[bool, set[int]] = {True: set(), False: set()}
    for row in random_actions(60, 24):
        _, _, _, truncations, _ = env.step(row)
        envs = env._episodes.envs
        for from_start, length in zip(envs.from_start[truncations], envs.length[truncations], strict=True):
            lengths[bool(from_start)].add(int(length))
    assert lengths == {True: {7}, False: {3}}
    with pytest.raises(ConfigError, match="archive_steps"):
        GBxCuLEEnv(**kwargs, archive_steps=0)


def test_an_archive_of_pixels_weighs_slots_by_their_coarse_cells(tmp_path: Path) -> None:
    kwargs: dict[str, Any] = {
        **make_test_task(tmp_path).kwargs,
        "num_envs": 24,
        "max_steps": 6,
        "archive_slots": 512,
        "visit_key": "pixels",
    }
    env = GBxCuLEEnv(**kwargs)
    env.reset(seed=1)
    coarse = Counter[bytes]()
    for row in random_actions(40, 24):
        env.step(row)
        coarse.update(coarse_cell(picture) for picture in env.final_observation.reshape(24, 72, 80))
    archive = env._episodes.curriculum.archive
    assert archive is not None
    slots = archive.filled.nonzero().flatten()
    archive.sample(1, env._episodes.envs.episode, env._episodes.envs.sampled_slot)
    pictures = env._episodes.curriculum.pool.spare_tensors()["pool_screen"].reshape(-1, 72, 80)
    shown = pictures[slots].numpy()
    visits = [coarse[coarse_cell(picture)] for picture in shown]
    assert archive.occupant_visits[slots].tolist() == visits
    assert max(visits) > 20 > min(visits)
    assert archive.weights[slots].tolist() == [int(65536 / count**0.5) for count in visits]
