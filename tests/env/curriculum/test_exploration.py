"""Visit counts, reward scale and blocked actions, against plain Python."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete

from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.curriculum.visits import VisitCounter
from gbxcule_puffer.errors import ConfigError
from tests.support.cells import coarse_cell
from tests.support.envs import CODEC, NUM_ACTIONS, Task, make_test_task, random_actions

CPU = torch.device("cpu")
MAP, COLUMN, ROW = 0xC0A0, 0xC0A1, 0xC0A2  # docs/homeward.md


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return make_test_task(tmp_path_factory.mktemp("stage"))


@pytest.mark.parametrize("shape", [(72, 80), (144, 160)])
@pytest.mark.parametrize("kind", ["picture", "pixels"])
def test_visits_equal_a_dictionary_s(kind: str, shape: tuple[int, int]) -> None:
    """Also where many envs come to the same cell in one step: all of them are counted before any is paid."""
    random = np.random.default_rng(3)
    palette = random.integers(0, 4, (12, *shape), dtype=np.uint8)
    palette[0], palette[1] = 3, 0
    screen = torch.zeros((40, *shape), dtype=torch.uint8)
    counter = VisitCounter(screen, kind)
    known: Counter[bytes] = Counter()
    firsts = 0
    for _ in range(6):
        pictures = palette[random.integers(0, 12, 40)]
        screen.copy_(torch.from_numpy(pictures))
        counter.visit()
        cells = [coarse_cell(picture) if kind == "picture" else picture.tobytes() for picture in pictures]
        new = [cell not in known for cell in cells]
        known.update(cells)
        counts = np.array([known[cell] for cell in cells])
        firsts += sum(new)
        assert counter.visits.tolist() == counts.tolist()
        assert counter.first.tolist() == new
        np.testing.assert_array_equal(counter.bonus, (1 / np.sqrt(counts)).astype(np.float32))
    info = counter.read()
    assert info["visits/cells"] == len(known) == 12
    assert info["visits/first_share"] == firsts / 240
    assert counter.read()["visits/first_share"] == 0, "the interval begins anew"


def test_a_cell_is_coarse_but_not_blind() -> None:
    screen = torch.zeros((3, 72, 80), dtype=torch.uint8)
    screen[1, 3, 3] = 3  # one pixel of 64
    screen[2, 0:4, 0:8] = 3  # half a block
    counter = VisitCounter(screen)
    counter.visit()
    assert counter.visits.tolist() == [2, 2, 1]


def test_pixels_tell_what_a_mean_does_not() -> None:
    """Two mirrored sprites have the same mean shade; every pixel counts, and its place and shade."""
    screen = torch.zeros((7, 72, 80), dtype=torch.uint8)
    screen[1, 8:16, 8:10] = 3
    screen[2, 8:16, 14:16] = 3  # in the same block
    screen[3, 71, 79] = 1
    screen[4, 71, 79] = 2
    screen[5, 0, 0] = 1
    screen[6, 8:16, 8:10] = 3
    for kind, visits in (("picture", [4, 3, 3, 4, 4, 4, 3]), ("pixels", [1, 2, 1, 1, 1, 1, 2])):
        counter = VisitCounter(screen, kind)
        counter.visit()
        assert counter.visits.tolist() == visits


def test_an_archive_of_pixels_counts_coarse_cells_too() -> None:
    """Each picture is new, and all but the last are of one coarse cell."""
    screen = torch.zeros((4, 72, 80), dtype=torch.uint8)
    for env in range(3):
        screen[env, 3, 3 + env] = 1
    screen[3, 0:8, 0:8] = 3
    counter = VisitCounter(screen, "pixels", archive=True)
    for times in (1, 2):
        counter.visit()
        assert counter.first.all() == (times == 1)
        assert counter.visits.tolist() == [times] * 4
        assert counter.coarse.visits.tolist() == [3 * times, 3 * times, 3 * times, times]
    for other in (VisitCounter(screen, "pixels"), VisitCounter(screen, archive=True)):
        assert other.coarse is other


def test_full_and_half_pictures_of_large_blocks_are_one_cell() -> None:
    half = torch.from_numpy(np.random.default_rng(0).integers(0, 4, (4, 9, 10), dtype=np.uint8)).repeat_interleave(8, 1)
    half = half.repeat_interleave(8, 2)
    full = half.repeat_interleave(2, 1).repeat_interleave(2, 2)
    counters = [VisitCounter(screen.contiguous()) for screen in (half, full)]
    for counter in counters:
        counter.visit()
    assert torch.equal(counters[0].key, counters[1].key)


def test_the_bonus_is_part_of_the_reward(task: Task) -> None:
    """RAM as the key: the bonus is that of a dictionary over (map, column, row)."""
    kwargs = {**task.kwargs, "num_envs": 8, "max_steps": 9}
    plain = GBxCuLEEnv(**kwargs)
    env = GBxCuLEEnv(**kwargs, visit_bonus=0.5, visit_key="ram:C0A0,C0A1,c0a2")
    plain.reset(seed=1)
    env.reset(seed=1)
    known: Counter[tuple[int, ...]] = Counter()
    limit_reached = 0
    for step, row in enumerate(random_actions(20, 8, seed=2), 1):
        expected = plain.step(row)[1].copy()
        rewards = env.step(row)[1]
        if step % 9:  # the last picture of an episode is gone after its autoreset
            cells = [tuple(env.emulator.read_memory(i, MAP, 3).tolist()) for i in range(8)]
        else:
            limit_reached += 1
            assert (rewards > expected).all()
            known.update(end_cells(plain, task, step, row))
            continue
        known.update(cells)
        bonus = np.array([0.5 / np.sqrt(known[cell]) for cell in cells])
        np.testing.assert_allclose(rewards - expected, bonus, atol=1e-5)
    assert limit_reached == 2


def end_cells(plain: GBxCuLEEnv, task: Task, step: int, row: np.ndarray) -> list[tuple[int, ...]]:
    """The cells in which the episodes ended: those of an env that plays them again without a limit."""
    again = GBxCuLEEnv(task.kwargs["rom"], start_state=task.kwargs["start_state"], num_envs=8, max_steps=1000)
    again.reset(seed=1)
    for past in random_actions(20, 8, seed=2)[step - 9 : step]:
        again.step(past)
    return [tuple(again.emulator.read_memory(i, MAP, 3).tolist()) for i in range(8)]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("sound", "visit_key 'sound' is unknown"),
        ("ram:", "'' is not a hexadecimal address"),
        ("ram:C0A0:0", "'C0A0:0' has 0 bytes: give from 1 to 999"),
        ("ram:C0A0,xyz", r"symbol 'xyz' is not in .*homeward\.sym: give one of its names"),
        ("ram:4000", "is not VRAM, WRAM, OAM or HRAM"),
        ("ram:FF44", "is not VRAM, WRAM, OAM or HRAM"),
    ],
)
def test_visit_keys_that_are_refused(task: Task, key: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GBxCuLEEnv(task.kwargs["rom"], visit_bonus=1.0, visit_key=key)


def test_a_visit_key_may_be_of_symbols(task: Task) -> None:
    symbols = Path(task.kwargs["rom"]).with_suffix(".sym")
    keys = []
    for key in ("ram:C0A0,C0A1,C0A2", "ram:player_map, player_x,player_y", "ram:player_map:3", "ram:C0A0, C0A1:2"):
        env = GBxCuLEEnv(**task.kwargs, num_envs=8, visit_bonus=1.0, visit_key=key, symbols=symbols)
        env.reset(seed=1)
        rewards = [env.step(past)[1].copy() for past in random_actions(20, 8, seed=2)]
        keys.append(np.stack(rewards))
    for other in keys[1:]:
        np.testing.assert_array_equal(keys[0], other)
    with pytest.raises(ConfigError, match="did you mean player_map"):
        GBxCuLEEnv(**task.kwargs, visit_bonus=1.0, visit_key="ram:player_mop", symbols=symbols)


# -- the other wrappers --


def test_the_reward_is_scaled_as_a_whole(task: Task) -> None:
    kwargs = {**task.kwargs, "num_envs": 4, "visit_bonus": 0.3}
    plain, scaled = GBxCuLEEnv(**kwargs), GBxCuLEEnv(**kwargs, reward_scale=0.25)
    plain.reset()
    scaled.reset()
    for row in random_actions(8, 4):
        np.testing.assert_allclose(scaled.step(row)[1], plain.step(row)[1] * 0.25, rtol=1e-6)


def test_blocked_actions_press_nothing(task: Task) -> None:
    blocked = ("START", "RIGHT")
    env = GBxCuLEEnv(**task.kwargs, num_envs=2, blocked_actions=blocked)
    free = GBxCuLEEnv(**task.kwargs, num_envs=2)
    assert env.action_mask.tolist() == [name not in blocked for name in CODEC.actions]
    assert env.single_action_space == Discrete(NUM_ACTIONS)
    env.reset()
    free.reset()
    names = ["RIGHT", "DOWN", "START", "RIGHT", "LEFT", "A"]
    for name in names:
        env.step(np.array(CODEC.parse([name, name])))
        free.step(np.array(CODEC.parse(["NOOP" if name in blocked else name] * 2)))
    assert (env.emulator.state_hash() == free.emulator.state_hash()).all()
    for wrong, message in ((("SELECT",), "'SELECT'"), (CODEC.actions, "every action")):
        with pytest.raises(ConfigError, match=message):
            GBxCuLEEnv(task.kwargs["rom"], blocked_actions=wrong)


def test_part_of_a_batch_plays_as_the_whole(task: Task) -> None:
    """first_env: what an env draws depends on its number in the whole batch."""
    kwargs: dict[str, Any] = {"rom": task.kwargs["rom"], "start_waits": 5, "sticky_actions": 0.3, "max_steps": 6}
    actions = random_actions(20, 8, seed=1)
    whole, part = GBxCuLEEnv(**kwargs, num_envs=8), GBxCuLEEnv(**kwargs, num_envs=3, first_env=5)
    np.testing.assert_array_equal(part.reset(seed=4)[0], whole.reset(seed=4)[0][5:])
    for row in actions:
        theirs, mine = whole.step(row), part.step(row[5:])
        np.testing.assert_array_equal(mine[0], theirs[0][5:])
        np.testing.assert_array_equal(part.taken_actions, whole.taken_actions[5:])
    assert (part.emulator.state_hash() == whole.emulator.state_hash()[5:]).all()


def test_pyboy_counts_cells(task: Task) -> None:
    kwargs = {**task.kwargs, "num_envs": 2, "visit_bonus": 0.5, "reward_scale": 2.0, "blocked_actions": ("START",)}
    kwargs |= {"visit_key": "ram:C0A1,C0A2"}
    actions = random_actions(10, 2)
    pyboy, own = PyBoyPufferSingle(**kwargs), GBxCuLEEnv(**kwargs)
    pyboy.reset()
    own.reset()
    for row in actions:
        np.testing.assert_array_equal(pyboy.step(row)[1], own.step(row)[1])
    pyboy.close()
    env = PyBoyPufferSingle(task.kwargs["rom"], archive_slots=4)
    with pytest.raises(ConfigError, match="cannot save live envs"):
        env.reset()
    env.close()


def test_one_start_and_an_archive_share_the_episodes(task: Task) -> None:
    env = GBxCuLEEnv(**{**task.kwargs, "num_envs": 24, "max_steps": 3, "archive_slots": 64, "archive_share": 0.5})
    env.reset(seed=1)
    begun = []
    for row in random_actions(60, 24):
        env.step(row)
        begun += env._episodes.envs.from_start.tolist()[-24:]
    assert 0.35 < np.mean(begun[len(begun) // 2 :]) < 0.65


def test_progress_weighs_the_archive_of_a_single_stage(task: Task) -> None:
    """Slots by how often their episodes succeed, beside the formula in fractions; else by their visits alone."""
    kwargs = {**task.kwargs, "max_steps": 4, "num_envs": 32, "archive_slots": 64, "archive_share": 0.8}
    for curriculum in ("uniform", "progress"):
        env = GBxCuLEEnv(**kwargs, curriculum=curriculum)
        env.reset(seed=1)
        for row in random_actions(80, 32):
            env.step(row)
        part = env._episodes.curriculum
        archive, counts, envs = part.archive, part.starts.counts[:2, part.starts.given :], env._episodes.envs
        assert archive is not None and (counts[0] > 1).sum() > 4
        archive.sample(1, envs.episode, envs.sampled_slot)
        expected = []
        recent = (counts - archive.forgotten).T.tolist()
        for (episodes, won), visits, filled in zip(
            recent, archive.occupant_visits.tolist(), archive.filled, strict=True
        ):
            p = Fraction(2 * won + 1, 2 * episodes + 2)
            chance = Fraction(1, 256) + (4 * p * (1 - p)) ** 2 if curriculum == "progress" else 1
            expected.append(65536 / max(visits, 1) ** 0.5 * float(chance) if filled else 0)
        np.testing.assert_allclose(archive.weights, expected, rtol=0.02, atol=2)
