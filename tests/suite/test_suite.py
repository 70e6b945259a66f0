"""The suite's games: each is solved by its player, draws its levels from seeds, and plays as on PyBoy."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from benchmarks.pages import suite_report
from benchmarks.training import objects, suite
from cleanrl_style import pqn
from gbxcule_puffer import env_creator
from gbxcule_puffer.apps.record.command import Record
from gbxcule_puffer.apps.record.record import record
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.layout import SUITE, find_rom
from gbxcule_puffer.suite import GAMES, storeroom
from gbxcule_puffer.suite.homeward import TEST
from gbxcule_puffer.trainers.evaluation import evaluate, random_policy
from gbxcule_puffer.trainers.trained import Trained
from tests.support.envs import random_actions

NAMES = [f"gbxcule_{name}" for name in GAMES]


def make(name: str, num_envs: int, **options: Any) -> Any:
    return env_creator(name)(num_envs, **{"io": "torch", "info_mode": "none", **options})


def test_the_suite_is_what_env_creator_knows() -> None:
    assert sorted(NAMES) == sorted(SUITE)


@pytest.mark.parametrize("name", NAMES)
def test_the_player_solves_levels_that_nobody_trains_on(name: str) -> None:
    game = GAMES[name.removeprefix("gbxcule_")]
    env = make(f"{name}-test", 2)
    found = evaluate(game.player(env), env, 2, seed=1)
    assert found["success_rate"] == 1.0
    assert game.normalised(found["return"]) == pytest.approx(1, abs=0.6)  # HOMEWARD asks for one to three flags
    env = make(f"{name}-test", 4, max_steps=40)
    random = evaluate(random_policy(env, 1), env, 4, seed=1)
    assert random["success_rate"] < 0.5
    assert game.normalised(random["return"]) == pytest.approx(0, abs=0.3)


@pytest.mark.parametrize("name", NAMES)
def test_levels_follow_from_the_seed_and_are_as_many_as_asked_for(name: str) -> None:
    env, other = make(f"{name}-4", 64, max_steps=4), make(f"{name}-test", 64, max_steps=4)
    noop = torch.zeros(64, dtype=torch.int64)
    pictures = {}
    for seed in (1, 2, 1):
        env.reset(seed=seed)
        levels = env.task.level.clone()
        assert sorted(set(levels.tolist())) == [0, 1, 2, 3]
        if seed in pictures:
            assert torch.equal(pictures[seed], levels)
        pictures[seed] = levels
    assert not torch.equal(pictures[1], pictures[2])
    for _ in range(3):
        env.step(noop)
    for level in range(4):  # the same level, the same picture
        same = env.observations[levels == level]
        assert (same == same[0]).all()
    env.step(noop)
    assert not torch.equal(env.task.level, levels), "another episode, another level"
    other.reset(seed=1)
    assert (other.task.level >= 0x8000).all() and len(set(other.task.level.tolist())) > 32


@pytest.mark.parametrize(
    "name, on, n, steps",
    [
        *((name, "pyboy_puffer_single", 1, 50) for name in NAMES),
        ("gbxcule_orchard", "pyboy_puffer_vec", 4, 40),
    ],
)
def test_pyboy_plays_the_same(name: str, on: str, n: int, steps: int) -> None:
    """Whole pictures, rewards and ends of random play, for episodes enough that levels change."""
    options: dict[str, Any] = {"io": "numpy", "obs": "full", "info_mode": "stats", "log_interval": steps}
    own, other = (
        make(name, n, max_steps=30, **options, **more)
        for more in ({}, {"on": on} | ({"backend": "serial"} if on.endswith("vec") else {}))
    )
    for env in (own, other):
        env.reset(seed=5)
    failures = 0
    for row in random_actions(steps, n, seed=3):
        results = [env.step(row) for env in (own, other)]
        for part, wanted in zip(results[0][:4], results[1][:4], strict=True):
            np.testing.assert_array_equal(part, wanted)
        np.testing.assert_array_equal(own.failures, other.failures)
        failures += int(own.failures.sum())
    assert results[0][4] == results[1][4]
    assert failures or name != "gbxcule_orchard", "games are lost in it"
    other.close()


def test_a_homeward_level_begins_at_the_position_and_state_of_its_save() -> None:
    env = make("gbxcule_homeward-test", 8)
    play = GAMES["homeward"].player(env)
    env.reset(seed=3)
    wanted = env.task.test[(env.task.level - TEST) % len(env.task.test)]
    assert not set(map(tuple, wanted.tolist())) & set(map(tuple, env.task.train.tolist())), (
        "train and test levels differ"
    )
    found = torch.full_like(wanted, -1)
    for _ in range(12):
        env.step(play(env.observations))
        now = env.ram[["quest_flags", "player_map", "player_x", "player_y"]].long()
        arrived = (env.ram["map_width"] > 0) & (found[:, 0] < 0)
        found = torch.where(arrived[:, None], now, found)
    assert (found[:, :2] == wanted[:, :2]).all()
    assert (found - wanted).abs().sum(1).max() <= 1, "at most a step away"
    assert len(set(env.ram["rng"].tolist())) > 1


@pytest.mark.parametrize("choice, new", [(["A"], False), (["DOWN", "A"], True)])
def test_a_new_game_in_homeward_is_no_way_around_the_level(choice: list[str], new: bool) -> None:
    env = make("gbxcule_homeward-test", 32)
    env.reset(seed=1)
    state, number, *_ = env.task.saved()
    other = (state != 0) | (number != 0)  # than where a new game begins
    failed = torch.zeros(32, dtype=torch.bool)
    for name in ("NOOP", "NOOP", "START", "NOOP", *choice):
        env.step(torch.full((32,), env.codec.actions.index(name)))
        failed |= env.failures
    assert failed.equal(other if new else torch.zeros_like(other)) and other.any() and not other.all()


def test_each_room_can_be_solved_and_begins_with_two_boxes_to_store() -> None:
    env = make("gbxcule_storeroom-test", 64)
    env.reset(seed=2)
    env.step(torch.zeros(64, dtype=torch.int64))
    rooms = env.ram[storeroom.ROOM : storeroom.ROOM + storeroom.SIZE].tolist()
    for room, keeper in zip(rooms, env.ram["keeper"].tolist(), strict=True):
        kinds = Counter(room)
        assert kinds[storeroom.BOX] == kinds[storeroom.MARK] == 2 and kinds[storeroom.STORED] == 0
        assert len(storeroom.solve(room, keeper)) > 2
    assert len({tuple(room) for room in rooms}) == len(set(env.task.level.tolist()))


def test_a_lost_game_is_a_terminal_and_no_success() -> None:
    env = make("gbxcule_orchard", 4, info_mode="stats", log_interval=10**6)
    env.reset(seed=1)
    ends = 0
    for _ in range(100):
        _, _, terminals, truncations, _ = env.step(torch.zeros(4, dtype=torch.int64))
        assert torch.equal(terminals, env.failures) and not truncations.any()
        ends += int(terminals.sum())
    infos = env.read_infos()
    assert infos["episodes"] == ends > 0 and infos["success"] == 0 and infos["trunc_rate"] == 0
    assert evaluate(lambda obs, starts=None: torch.zeros(4, dtype=torch.int64), env, 4, 1)["success_rate"] == 0


@pytest.mark.parametrize("name", ["gbxcule_chess", "gbxcule_orchard-0", "gbxcule_orchard-16385", "gbxcule_orchard-x"])
def test_unknown_games_and_levels_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown"):
        env_creator(name)


def test_a_trainer_plays_a_game_for_the_time_given_and_its_checkpoint_others_levels(tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = (
        f"--env gbxcule_storeroom-2 --smoke --total-env-steps 1000000 --max-seconds 0.01 --device cpu --run-dir {run}"
    )
    assert pqn.main(words.split()) == 0
    found = suite.read_run(run)
    assert 0 < found["steps"] < 1000 and found["flags"]["env"] == "gbxcule_storeroom-2"
    trained = Trained(run)
    env: Any = trained.open_env(2, "cpu", 1, env="gbxcule_storeroom-test", max_steps=4)
    result = evaluate(trained.policy(env, 1, greedy=True), env, 2, seed=1)
    assert result["episodes"] == 2 and (env.task.level >= 0x8000).all()
    film = record(
        Record(
            rom=str(find_rom("storeroom")),
            out=str(tmp_path / "film.gif"),
            policy=str(run),
            num_envs=2,
            steps=3,
            max_steps=2,
        )
    )
    assert film.path.is_file() and film.episodes == 2
    with pytest.raises(StateError, match="another ROM"):
        record(Record(rom=str(find_rom("orchard")), out=str(tmp_path / "film.gif"), policy=str(run), steps=2))


@pytest.mark.parametrize(
    "words, named",
    [
        ("--env gbxcule_orchard --rom homeward", "--rom is not for --env gbxcule_orchard"),
        ("--env gbxcule_orchard-0", "levels '0' are unknown"),
        ("--env toy --max-seconds 0", "--max-seconds 0.0 must be at least 1e-06"),
    ],
)
def test_a_trainer_refuses(words: str, named: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert pqn.main([*words.split(), "--device", "cpu", "--run-dir", str(tmp_path / "run")]) == 2
    assert named in capfd.readouterr().err


@pytest.mark.parametrize("words", ["--game chess", "--script sarsa", "--seeds one", "--jobs 0"])
def test_the_benchmark_refuses(words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert suite.main([*words.split(), "--out", str(tmp_path / "out.json")]) == 2
    assert words.split()[0] in capfd.readouterr().err


def test_the_record_is_there_after_each_row(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert suite.main(["--game", "orchard", "--script", "random", "--episodes", "2", "--out", str(out)]) == 0
    (row,) = json.loads(out.read_text())["suite"]
    assert row["script"] == "random" and row["test"]["sampled"]["episodes"] == 2
    record = suite.Record(suite.parse(["--jobs", "2", "--out", str(out)]))
    for seed in (1, 2):
        record.add({"seed": seed})
        found = json.loads(out.read_text())
        assert [row["seed"] for row in found["suite"]] == list(range(1, seed + 1)) and found["jobs"] == 2


def test_gymnasium_knows_the_games() -> None:
    env: Any = gymnasium.make("gbxcule_puffer.integrations.gym:GBxCuLE/StoreroomTest-v0", max_steps=3)
    first, _ = env.reset(seed=1)
    second, reward, terminated, truncated, _ = env.step(0)
    assert first.shape == second.shape == (1, 72, 80) and (first != second).any()
    assert (reward, terminated, truncated) == (0, False, False)


def test_the_report_tells_each_group_of_seeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(seed: int, score: float) -> dict[str, Any]:
        result = {"score": score, "return": 2 * score, "success_rate": score}
        both = {"sampled": result, "greedy": result}
        facts = {"game": "storeroom", "script": "pqn", "levels": 64, "seed": seed, "seconds": 60, "steps": 1000 * seed}
        return facts | {"curve": [[500, 0.5, 0.1, 0.0], [1000, 1.0, 2 * score, score]], "train": both, "test": both}

    players = {"game": "storeroom", "script": "random", "test": {}}
    broken = {"game": "storeroom", "script": "pqn", "levels": 64, "seed": 3, "error": "out of memory"}
    (tmp_path / "suite.json").write_text(json.dumps({"suite": [players, run(1, 0.25), run(2, 0.75), broken]}))
    assert suite_report.main([str(tmp_path / "suite.json"), "--curves", str(tmp_path / "curves.png")]) == 0
    (line,) = capsys.readouterr().out.splitlines()[2:]
    wanted = "| STOREROOM | `pqn` | 64 | 2 | 60 | 1,500 | 0.50 (0.25 to 0.75) | "
    assert line.startswith(wanted)
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_table_of_objects_is_that_of_its_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = Path(__file__).parents[2] / "benchmarks/results/cpu/objects.json"
    page = (record.parents[3] / "docs/lab/learning.md").read_text()
    assert objects.main(["--table", str(record)]) == 0
    assert (table := capsys.readouterr().out) in page and table.count("ORCHARD") == 3
    rows = json.loads(record.read_text())["objects"]
    worse = {"sampled": {"score": 0.0}, "greedy": {"score": 0.0}}
    rows = [
        *rows,
        {**rows[0], "seed": 2, "test": worse},
        {**rows[0], "seed": 3, "error": "out of memory", "test": worse},
    ]
    assert "| ORCHARD | `shades` | 2 | 65,536 | 76 | 0.12 (0.00 to 0.24) | 0.22 (0.00 to 0.44) |" in objects.table(rows)
