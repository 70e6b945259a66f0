"""States kept at milestones, episodes from them, the swarm, and episodes without an event in time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer import env_creator
from gbxcule_puffer.emulator import address_space
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import StepInfo, Task
from tests.games.events import EVENTS, write_events
from tests.games.standin import RED
from tests.support.envs import make_test_task

N = 12


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_events(tmp_path_factory.mktemp("events"))


def make(game: Path, num_envs: int = N, name: str = "gbxcule", **options: Any) -> Any:
    given = {"io": "torch", "info_mode": "none", "milestone_slots": 3, **options}
    return env_creator(name, game=game)(num_envs, **given)


def actions(steps: int, num_envs: int = N, seed: int = 3) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(2, size=(steps, num_envs)))


def play(env: Any, rows: torch.Tensor) -> list[tuple[torch.Tensor, ...]]:
    return [tuple(part.clone() for part in env.step(row)[:4]) for row in rows]


def kept(env: Any) -> list[tuple[int, int]]:
    """(milestone, flags in the RAM of its state) of each kept state."""
    found = env._episodes.milestones
    memory = env._episodes.curriculum.pool.spare_tensors()["pool_memory"]
    at = address_space.row_offset(env.cartridge, RED.names["wEventFlags"], 1, None)
    return [(int(slot) // found.each, int(memory[slot, at])) for slot in found.filled.nonzero()[:, 0]]


def test_the_state_of_a_milestone_is_kept_and_later_episodes_begin_there(game: Path) -> None:
    env = make(game)
    env.reset(seed=1)
    reached, began = [], 0
    for row in actions(100):
        env.step(row)
        reached.append([each["reached"] for each in env.milestones.table()])
        found = env._episodes.milestones
        from_slots = (env._episodes.envs.slots >= found.first).nonzero()[:, 0]
        began += len(from_slots)
        held = found.held.sum(0).int()
        assert torch.equal(held, bits(env)), "what an env has reached is what its flags say"
    states = kept(env)
    assert len(states) > 8 and {milestone for milestone, _ in states} == set(range(EVENTS))
    assert all(flags == 2 ** (milestone + 1) - 1 for milestone, flags in states)
    assert began > 200 and reached[-1] == [True] * EVENTS
    table = env.milestones.table()
    assert [each["name"] for each in table] == [f"event{event}" for event in range(EVENTS)]
    assert table[0]["kept"] == 3 and table[0]["won"] > table[0]["lost"]
    assert table[-1]["won"] == 0 and table[-1]["lost"] > 5, "there is no further one"
    infos = env.read_infos()
    assert infos["milestones/reached"] == infos["milestones/kept"] == infos["milestones/most"] == EVENTS
    assert 0.2 < infos["milestones/share"] < 0.9
    # Without them an episode of 12 steps has time for 12 presses at most, and comes to the fifth event by luck alone.
    plain = make(game, milestone_slots=0, milestone_steps=100)
    plain.reset(seed=1)
    play(plain, actions(100))
    assert plain.read_infos()["milestones/most"] < EVENTS


def bits(env: Any) -> torch.Tensor:
    flags = env.ram["wEventFlags"]
    return sum(flags >> event & 1 for event in range(EVENTS))  # pyright: ignore[reportReturnType]


def test_the_swarm_takes_those_behind_to_the_best_states(game: Path) -> None:
    env = make(game, milestone_share=0.0, swarm_steps=5, swarm_share=1.0, max_steps=1_000)
    env.reset(seed=1)
    rows = actions(60)
    rows[:, 1:] = 0  # only the first env plays
    for step, row in enumerate(rows, 1):
        before = bits(env)
        best = max((milestone for milestone, _ in kept(env)), default=-1) + 1
        _, _, terminals, truncations, _ = env.step(row)
        assert not terminals.any()
        if step % 5:
            assert not truncations.any()
            continue
        behind = before[1:] < best
        assert torch.equal(truncations[1:], behind) and (bits(env)[1:] >= best).all()
    assert int(bits(env)[1]) == EVENTS, "it has pressed nothing"
    half = make(game, milestone_share=0.0, swarm_steps=5, swarm_share=0.5, max_steps=1_000)
    half.reset(seed=1)
    ends = torch.stack([each[3] for each in play(half, rows)])
    moved = ends[:, 1:].any(0).float().mean()
    assert 0.5 < moved <= 1 and not ends[torch.arange(60) % 5 != 4].any()


@pytest.mark.parametrize("name", ["gbxcule", "pyboy_puffer_single"])
def test_an_episode_ends_where_no_milestone_comes_in_time(game: Path, name: str) -> None:
    env = make(game, 1, name, io="numpy", milestone_slots=0, milestone_steps=7, max_steps=100)
    env.reset(seed=1)
    ends = []
    for step in range(1, 31):
        *_, truncations, _ = env.step(np.array([step in (2, 4, 6)]).astype(np.int64))
        if truncations[0]:
            ends.append(step)
    assert ends == [13, 20, 27], "the event came in step 6"
    env.close()


@pytest.mark.parametrize("machines", [True, False])
def test_a_saved_state_goes_on_equally(game: Path, machines: bool) -> None:
    options: dict[str, Any] = {"swarm_steps": 7, "milestone_steps": 9, "archive_slots": 16, "archive_share": 0.3}
    rows = actions(120)
    env, other = make(game, **options), make(game, **options)
    env.reset(seed=1)
    play(env, rows[:70])
    state = env.state_dict(machines)
    other.load_state_dict(state)
    assert kept(other) == kept(env)
    if not machines:
        assert other.milestones.table() == env.milestones.table()
        return
    for one, two in zip(play(env, rows[70:]), play(other, rows[70:]), strict=True):
        assert all(torch.equal(part, same) for part, same in zip(one, two, strict=True))
    assert env.milestones.table() == other.milestones.table() and kept(env) == kept(other)


def test_an_archive_beside_them_knows_what_its_states_have_reached(game: Path) -> None:
    env = make(game, archive_slots=32, archive_share=0.5, visit_key="ram:wEventFlags,DF00")
    env.reset(seed=1)
    for row in actions(120):
        env.step(row)
        assert torch.equal(env._episodes.milestones.held.sum(0).int(), bits(env))
    assert env.read_infos()["archive/filled"] > 5 and len(kept(env)) > 5


def test_an_archive_prefers_states_that_have_reached_more(game: Path) -> None:
    """The chance of each state is that without archive_behind, times a half for each milestone that it lacks."""
    options: dict[str, Any] = {"archive_slots": 64, "archive_share": 0.9, "visit_key": "ram:wEventFlags:2,wXCoord:3"}
    options |= {"milestone_slots": 0, "archive_behind": 0.5}
    env, saved = make(game, **options), make(game, **options)
    env.reset(seed=1)
    rows = actions(80)
    play(env, rows[:60])
    episodes = env._episodes
    archive, found = episodes.curriculum.archive, episodes.milestones
    held = found.slot_held[:, archive.first : archive.first + archive.size].sum(0)
    assert held[archive.filled].unique().tolist() == list(range(EVENTS + 1))
    archive._milestones = None
    episodes.curriculum.sample(1)
    plain = archive.weights.clone()
    assert (plain[archive.filled] > 32).all() and not plain[~archive.filled].any()
    archive._milestones = found
    episodes.curriculum.sample(1)
    assert archive.weights.tolist() == (plain >> (EVENTS - held)).tolist()
    saved.load_state_dict(env.state_dict())
    for one, two in zip(play(env, rows[60:]), play(saved, rows[60:]), strict=True):
        assert all(torch.equal(part, same) for part, same in zip(one, two, strict=True))


@pytest.mark.parametrize(("behind", "keeps"), [(0.5, True), (1.0, False)])
def test_a_state_is_not_replaced_by_one_that_has_reached_less(game: Path, behind: float, keeps: bool) -> None:
    options: dict[str, Any] = {"action_codec": "A,RIGHT,DOWN", "visit_key": "ram:wYCoord,wXCoord,milestones"}
    env = make(game, archive_slots=4, archive_behind=behind, **options)
    env.reset(seed=1)
    archive, found, least = env._episodes.curriculum.archive, env._episodes.milestones, torch.full((4,), -1)
    fell = False
    for row in torch.from_numpy(np.random.default_rng(3).integers(3, size=(60, N))):
        env.step(row)
        heights = found.heights_of(archive.filled, archive.first)
        fell |= bool((heights < least).any())
        least = heights
    assert fell != keeps and int(least.max()) > 1


def test_milestones_may_be_part_of_a_cell(game: Path) -> None:
    env = make(game, archive_slots=64, milestone_slots=0, visit_key="ram:milestones", max_steps=40)
    env.reset(seed=1)
    play(env, actions(60))
    infos = env.read_infos()
    assert infos["visits/cells"] == EVENTS + 1 == infos["archive/filled"], "nobody walks"


def test_what_has_no_milestones_is_one_line(game: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"need milestones: give a game whose game.toml has"):
        GBxCuLEEnv(**make_test_task(tmp_path).kwargs, num_envs=2, milestone_slots=4).reset()
    with pytest.raises(ConfigError, match="swarm_steps needs states to go on from: give milestone_slots"):
        make(game, milestone_slots=0, swarm_steps=4)
    with pytest.raises(ConfigError, match="archive_behind is about saved states: give archive_slots"):
        make(game, archive_behind=0.5)
    with pytest.raises(ConfigError, match=r"archive_behind need milestones: give a game whose game.toml has"):
        GBxCuLEEnv(**make_test_task(tmp_path).kwargs, num_envs=2, archive_slots=4, archive_behind=0.5).reset()
    with pytest.raises(ConfigError, match=r"milestone_slots -1 must be from 0 to 1,024"):
        make(game, milestone_slots=-1)


@pytest.mark.gpu
def test_a_gpu_does_the_same(game: Path) -> None:
    options: dict[str, Any] = {"swarm_steps": 7, "milestone_steps": 9, "archive_slots": 16, "archive_share": 0.3}
    options |= {"archive_behind": 0.5, "visit_key": "ram:wEventFlags,milestones"}
    rows = actions(120)
    own, other = make(game, **options), make(game, device="cuda", **options)
    for env in (own, other):
        env.reset(seed=1)
    for one, two in zip(play(own, rows), play(other, rows.cuda()), strict=True):
        assert all(torch.equal(part, same.cpu()) for part, same in zip(one, two, strict=True))
    assert own.milestones.table() == other.milestones.table()


@pytest.mark.gpu
def test_a_recorded_step_does_the_same(game: Path) -> None:
    """A CUDA graph of the step, with a swarm."""
    rows = actions(60).cuda()
    plain, graphed = (make(game, device="cuda", swarm_steps=7, milestone_steps=9) for _ in range(2))
    for env in (plain, graphed):
        env.reset(seed=1)
        play(env, rows[:3])
    given, graph = rows[3].clone(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = graphed.step(given)[:4]
    for row in rows[3:]:
        given.copy_(row)
        graph.replay()
        for one, two in zip(plain.step(row)[:4], found, strict=True):
            assert torch.equal(one, two)


class Walk(Task):
    """Milestones in Python: steps to the right and down of where the game begins; `found` is what `holds` gives."""

    milestones = ("right", "down")
    found: Any = None

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        return torch.zeros(ram.num_envs)

    def holds(self, ram: Ram) -> torch.Tensor:
        return torch.stack([ram["wXCoord"] > 3, ram["wYCoord"] > 3]) if self.found is None else self.found


def test_a_task_in_python_has_milestones(game: Path) -> None:
    env = make(game, 2, task=Walk, action_codec="NOOP,RIGHT,DOWN")
    env.reset(seed=1)
    for action in (0, 1, 0):
        env.step(torch.tensor([action, 0]))
    assert env.milestones.held.tolist() == [[True, False], [False, False]]
    assert [row["kept"] for row in env.milestones.table()] == [1, 0]
    for wrong, fault in (
        (torch.zeros(2, 2), "holds gave (2, 2) of torch.float32 on cpu: give"),
        (7, "holds gave a int"),
    ):
        task = Walk()
        task.found = wrong
        with pytest.raises(ConfigError, match=re.escape(f"task Walk: {fault}")):
            make(game, 2, task=task).reset(seed=1)
    with pytest.raises(ConfigError, match="has milestones and no holds: write one that says which of them hold"):
        make(game, 2, task=type("Bare", (Walk,), {"holds": Task.holds})).reset(seed=1)
