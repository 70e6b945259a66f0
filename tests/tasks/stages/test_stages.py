"""Lists of stages and envs that play several of them: files, own goals, chains, curriculum, archive, resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.curriculum.archive import CHUNK
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.tasks.stages.list import (
    StageFiles,
    has_recipes,
    is_stage_list,
    load_stages,
    make_stages,
    write_stages,
)
from tests.support.envs import CODEC, STAGE, assert_same, host, make_test_stages, play, random_actions, solution

NAMES = ["leave_house", "cross_village", "bring_parcel"]


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return make_test_stages(tmp_path_factory.mktemp("stages"))


def parts(stages: dict[str, Any]) -> list[dict[str, Any]]:
    """Each stage as the arguments of an env of its own."""
    sha = json.loads(Path(stages["stages"]).read_text())["rom_sha256"]
    return [
        {"rom": stages["rom"], "start_state": str(s.start_state), "goal_dir": str(s.goal_dir), "max_steps": s.max_steps}
        for s in load_stages(stages["stages"], sha)
    ]


def short(stages: dict[str, Any], folder: Path, limit: int = 12) -> dict[str, Any]:
    """The same stages with a short limit."""
    source = Path(stages["stages"])
    spec = json.loads(source.read_text())
    for row in spec["stages"]:
        row["max_steps"] = limit
        row["start_state"], row["goal_dir"] = (str(source.parent / row[name]) for name in ("start_state", "goal_dir"))
    (folder / "short.json").write_text(json.dumps(spec))
    return {"rom": stages["rom"], "stages": str(folder / "short.json")}


# -- files --


def test_the_recipes_become_a_list(stages: dict[str, Any]) -> None:
    path = Path(stages["stages"])
    assert is_stage_list(path)
    assert has_recipes(STAGE.parent / "stages.json")
    assert not has_recipes(path)
    spec = json.loads(path.read_text())
    assert [row["name"] for row in spec["stages"]] == NAMES
    assert not any(Path(row["start_state"]).is_absolute() for row in spec["stages"]), "the folder can be moved"
    for stage in load_stages(path, spec["rom_sha256"]):
        assert stage.start_state.is_file()
        assert stage.goal_dir.is_dir()
    with pytest.raises(ConfigError, match="is made already"):
        make_stages(path, path.parent / "again")


def test_a_recipe_says_how_to_make_it() -> None:
    source = STAGE.parent / "stages.json"
    sha = json.loads(source.read_text())["rom_sha256"]
    with pytest.raises(ConfigError, match="only a recipe: make it with `puffer stage"):
        load_stages(source, sha)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, "cannot be read"),
        ("{", "is damaged"),
        ([1], "is not a stages file"),
        ({"format": "gbxcule-trace"}, "is not a stages file"),
        ({"version": 0}, "has version 0, not 1"),
        ({"rom_sha256": "ab" * 32}, "are of ROM abababababab"),
        ({"rom_sha256": 5}, "lacks rom_sha256"),
        ({"stages": []}, "lacks rom_sha256 or stages"),
        ({"stages": [{"name": "a"}]}, "stage 1 must have name"),
        ({"stages": [{"name": "a", "start_state": "s", "goal_dir": "g", "max_steps": 0}]}, "stage 1 must have"),
        ({"stages": [{"name": "a", "start_state": "s", "goal_dir": "g", "max_steps": 2**31}]}, "at most 2,147,483,647"),
        ({"stages": [{"name": "a", "start_state": 3, "goal_dir": "g", "max_steps": 9}]}, "stage 1 must have"),
        ({"stages": [{"name": "a", "start_state": "s", "goal_dir": "g", "max_steps": 9}] * 2}, "two stages are called"),
    ],
)
def test_lists_that_are_refused(stages: dict[str, Any], tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "stages.json"
    spec = json.loads(Path(stages["stages"]).read_text())
    if change is not None:
        path.write_text(
            change
            if isinstance(change, str)
            else json.dumps({**spec, **change} if isinstance(change, dict) else change)
        )
    with pytest.raises(ConfigError, match=message) as error:
        GBxCuLEEnv(stages["rom"], stages=str(path))
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_other_json_is_no_list(tmp_path: Path) -> None:
    assert not is_stage_list(STAGE)
    assert not is_stage_list(tmp_path / "nothing.json")
    with pytest.raises(ConfigError, match="is not a stages file"):
        has_recipes(STAGE)


def test_writing_a_wrong_list_leaves_no_file(tmp_path: Path) -> None:
    stage = StageFiles("a", tmp_path / "s", tmp_path / "g", 8)
    with pytest.raises(ConfigError, match="two stages are called 'a'"):
        write_stages(tmp_path / "stages.json", "00", [stage, stage])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start_state": "x"}, "leave start_state and goal_dir out"),
        ({"goal_dir": "x"}, "leave start_state and goal_dir out"),
        ({"stages": None, "curriculum": "progress"}, "needs several stages or an archive"),
        ({"stages": None, "curriculum": "first", "archive_slots": 4}, "needs several stages: "),
    ],
)
def test_options_that_do_not_go_together(stages: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GBxCuLEEnv(**{**stages, **options})


# -- playing several stages at once --


def test_each_env_has_the_goal_of_its_stage(stages: dict[str, Any]) -> None:
    """Three envs that solve one stage each do it exactly as three envs that know only their own stage."""
    ways = [solution(stage) for stage in (1, 2, 3)]
    length = max(len(way) for way in ways)
    actions = np.zeros((length, 3), np.int32)
    for column, way in enumerate(ways):
        actions[: len(way), column] = way
    together = play(GBxCuLEEnv(**stages, num_envs=3, curriculum="by_env"), actions)
    for column, kwargs in enumerate(parts(stages)):
        alone = play(GBxCuLEEnv(**kwargs), actions[:, [column]])
        assert_same([[part[[column]] for part in step] for step in together], alone)
        assert sum(step[2][0] for step in alone[1:]) == 1, f"stage {column + 1} is solved"


def test_limits_are_those_of_the_stages(stages: dict[str, Any]) -> None:
    limits = [kwargs["max_steps"] for kwargs in parts(stages)]
    env = GBxCuLEEnv(**stages, num_envs=3, curriculum="by_env")
    env.reset()
    assert env.max_steps == max(limits)
    ends: list[int | None] = [None] * 3
    for step in range(1, max(limits) + 1):
        env.step(np.zeros(3, int))
        ends = [end or (step if over else None) for end, over in zip(ends, env.truncations, strict=True)]
    assert ends == limits
    rows = env.slot_statistics()
    assert [row["stage"] for row in rows] == NAMES
    assert [row["episodes"] for row in rows] == [max(limits) // limit for limit in limits]


def test_a_limit_that_is_given_holds_for_every_stage(stages: dict[str, Any]) -> None:
    assert [stage.max_steps for stage in GBxCuLEEnv(**stages, max_steps=5).stages] == [5, 5, 5]
    assert GBxCuLEEnv(**stages, max_steps=5, chain=True).max_steps == 15


def test_limits_of_a_chain_that_no_counter_can_reach(stages: dict[str, Any]) -> None:
    env = GBxCuLEEnv(**stages, chain=True, io="torch", max_steps=2**31 - 1)
    assert env._episodes.score.members["limits"].tolist() == [2**31 - 1] * len(env.stages)
    env.close()


def test_a_chain_leads_through_all_stages(stages: dict[str, Any]) -> None:
    """One episode: every goal pays, the last one ends it, and progress counts three attempts."""
    env = GBxCuLEEnv(**stages, num_envs=2, curriculum="first", chain=True, log_interval=1, alpha=0)
    single = [kwargs["max_steps"] for kwargs in parts(stages)]
    assert env.max_steps == sum(single)
    first = env.reset()[0].copy()
    way = CODEC.parse(json.loads((STAGE.parent / "whole.json").read_text())["solve_actions"]) + [0] * 8
    seen, attempts, bonuses = [], dict.fromkeys(NAMES, 0), 0
    for action in way:
        observations, rewards, terminals, truncations, infos = env.step(np.array([action, 0]))
        seen.append(int(env.stage[0]))
        bonuses += rewards[0] > 4
        attempts = {name: attempts[name] + infos[0][f"stage/{name}/attempts"] for name in NAMES}
        if terminals[0]:
            break
        assert not truncations.any()
    assert terminals.tolist() == [True, False]
    assert sorted(set(seen)) == [0, 1, 2]
    assert bonuses == 3
    assert attempts == dict.fromkeys(NAMES, 1)
    assert infos[0]["episode_length"] == len(seen)
    np.testing.assert_array_equal(observations[0], first[0])
    assert env.stage.tolist() == [0, 0]
    assert env.slot_statistics()[0] == {"stage": NAMES[0], "episodes": 1, "successes": 1, "steps": len(seen)}


def test_the_curriculum_turns_to_what_fails(stages: dict[str, Any], tmp_path: Path) -> None:
    """An env that solves stage 1 and fails the others comes to begin less often at stage 1."""
    env = GBxCuLEEnv(**short(stages, tmp_path, 16), num_envs=16, curriculum="progress", log_interval=1)
    env.reset()
    way = np.array(solution(1))
    ages, info = np.zeros(16, int), {}
    for _ in range(120):
        actions = np.where(env.stage == 0, way[np.minimum(ages, len(way) - 1)], 0)
        _, _, terminals, truncations, (info,) = env.step(actions)
        ages = np.where(terminals | truncations, 0, ages + 1)
    assert info["stage/leave_house/posterior"] > 0.9
    assert info["stage/leave_house/weight"] < 0.1
    rows = env.slot_statistics()
    assert rows[0]["successes"] == rows[0]["episodes"] > 8
    assert rows[0]["episodes"] < rows[1]["episodes"]
    assert rows[1]["successes"] == rows[2]["successes"] == 0


# -- the archive, and saved states --

ALL = {
    "num_envs": 24, "curriculum": "progress", "chain": True, "archive_slots": 64, "archive_share": 0.5,
    "visit_bonus": 0.2, "sticky_actions": 0.2, "start_waits": 2, "reward_scale": 0.5,
}  # fmt: skip


def test_pyboy_plays_the_same_stages(stages: dict[str, Any], tmp_path: Path) -> None:
    kwargs: dict[str, Any] = {**short(stages, tmp_path, 6), "num_envs": 4, "curriculum": "progress", "chain": True}
    kwargs |= {"visit_bonus": 0.2, "start_waits": 1, "log_interval": 4}
    own, pyboy = GBxCuLEEnv(**kwargs), PyBoyPufferSingle(**kwargs)
    own.reset(seed=2)
    pyboy.reset(seed=2)
    for row in random_actions(16, 4, seed=1):
        expected, step = own.step(row), pyboy.step(row)
        assert_same([[host(part) for part in step[:4]]], [[host(part) for part in expected[:4]]])
        assert step[4] == expected[4]
    assert pyboy.slot_statistics() == own.slot_statistics()
    pyboy.close()


def test_the_archive_keeps_new_cells_and_begins_there(stages: dict[str, Any], tmp_path: Path) -> None:
    env = GBxCuLEEnv(**short(stages, tmp_path), **{**ALL, "sticky_actions": 0.0, "chain": False}, log_interval=60)
    observations, _ = env.reset(seed=1)
    shown = {row.tobytes() for row in observations}
    begun_in_archive = 0
    for row in random_actions(60, 24, seed=4):
        observations, *_, infos = env.step(row)
        shown |= {picture.tobytes() for picture in env.final_observation}
        slots = env._episodes.envs.slots.numpy()
        fresh = env.final_mask & (slots >= 9)  # 3 stages with 2 waits
        begun_in_archive += int(fresh.sum())
        for index in np.flatnonzero(fresh):
            assert observations[index].tobytes() in shown, "an archived state shows what an env has shown before"
    (info,) = infos
    assert begun_in_archive > 10
    assert 10 < info["archive/filled"] <= 64
    assert 0.2 < info["archive/share"] < 0.8
    attempts = sum(info[f"stage/{name}/attempts"] for name in NAMES)
    assert attempts < info["episodes"], "episodes from the archive tell nothing about a stage's start"


@pytest.mark.parametrize("curriculum", ["progress", "uniform"])
def test_the_archive_prefers_what_is_being_learned(stages: dict[str, Any], tmp_path: Path, curriculum: str) -> None:
    env = GBxCuLEEnv(**short(stages, tmp_path), **{**ALL, "curriculum": curriculum, "archive_slots": 3 * CHUNK + 1})
    play(env, random_actions(20, 24, seed=4))
    whole = env._episodes.curriculum
    archive, counts = whole.archive, whole.starts.counts
    assert archive is not None
    slots = archive.filled.nonzero().flatten()[:5]
    place = whole.starts.given + slots
    archive.forgotten.zero_()

    def weights(episodes: list[int], successes: list[int]) -> torch.Tensor:
        counts[0, place], counts[1, place] = torch.tensor(episodes), torch.tensor(successes)
        archive.sample(0, torch.zeros(24, dtype=torch.int64), torch.zeros(24, dtype=torch.int32))
        return archive.weights[slots] * archive.occupant_visits[slots].clamp(min=1).sqrt() / 2**16

    def expected(episodes: list[int], successes: list[int]) -> torch.Tensor:
        rate = (0.5 + torch.tensor(successes)) / (1 + torch.tensor(episodes))
        return 1 / 256 + (4 * rate * (1 - rate)) ** 2 if curriculum == "progress" else torch.ones(5)

    for found, wanted in (
        (weights([0, 16, 16, 16, 0], [0, 0, 8, 16, 0]), expected([0, 16, 16, 16, 0], [0, 0, 8, 16, 0])),
        # One more, and half of them are forgotten, but where all failed; what comes later counts in full.
        (weights([0, 17, 17, 17, 0], [0, 0, 8, 17, 0]), expected([0, 17, 9, 9, 0], [0, 0, 4, 9, 0])),
        (weights([0, 22, 22, 22, 0], [0, 5, 8, 22, 0]), expected([0, 11, 14, 14, 0], [0, 3, 4, 14, 0])),
    ):
        torch.testing.assert_close(found, wanted.to(found), rtol=5e-3, atol=0)
    assert torch.equal(archive.cumulative, archive.weights.cumsum(0))
    assert not archive.weights[~archive.filled].any()


@pytest.mark.parametrize("io", ["numpy", "torch"])
def test_a_saved_state_continues_exactly(stages: dict[str, Any], tmp_path: Path, io: str) -> None:
    kwargs = {**short(stages, tmp_path), **ALL, "io": io, "log_interval": 4, "visit_key": "ram:C0A0,C0A1,C0A2"}
    actions = random_actions(80, 24, seed=6)
    env, other = GBxCuLEEnv(**kwargs), GBxCuLEEnv(**kwargs)
    convert = torch.from_numpy if io == "torch" else np.asarray
    env.reset(seed=9)
    for row in actions[:40]:
        env.step(convert(row))
    torch.save(env.state_dict(), tmp_path / "env.pt")
    other.load_state_dict(torch.load(tmp_path / "env.pt", weights_only=True))
    for row in actions[40:]:
        mine, theirs = env.step(convert(row)), other.step(convert(row))
        assert_same([[host(part) for part in mine[:4]]], [[host(part) for part in theirs[:4]]])
        assert mine[4] == theirs[4]
    assert (env.emulator.state_hash() == other.emulator.state_hash()).all()
    assert env.slot_statistics() == other.slot_statistics()
    with pytest.raises(StateError, match="fit in slot_counts"):
        GBxCuLEEnv(**{**kwargs, "archive_slots": 32}).load_state_dict(env.state_dict())


def test_a_state_without_machines_keeps_what_was_learned(stages: dict[str, Any], tmp_path: Path) -> None:
    kwargs = {**short(stages, tmp_path), **ALL, "log_interval": 1}
    env, other = GBxCuLEEnv(**kwargs), GBxCuLEEnv(**{**kwargs, "num_envs": 8})
    env.reset(seed=2)
    for row in random_actions(40, 24, seed=3):
        infos = env.step(row)[4]
    state = env.state_dict(machines=False)
    assert "observations" not in state["tensors"]
    other.reset(seed=5)
    other.load_state_dict(state)
    again = other.step(np.zeros(8, int))[4]
    assert again[0]["visits/cells"] >= infos[0]["visits/cells"] > 20
    assert again[0]["archive/filled"] >= infos[0]["archive/filled"] > 10
    assert other.slot_statistics()[:9] == env.slot_statistics()[:9]


def test_the_same_seed_gives_the_same_run(stages: dict[str, Any], tmp_path: Path) -> None:
    kwargs = {**short(stages, tmp_path), **ALL}
    actions = random_actions(30, 24, seed=8)
    env = GBxCuLEEnv(**kwargs)
    first = play(env, actions)
    assert_same(play(env, actions), first)
    assert_same(play(GBxCuLEEnv(**kwargs, num_threads=1), actions), first)
