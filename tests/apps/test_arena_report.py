"""The comparison of agents: its statistics are rliable's, its tables and pictures come from records."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks.pages.arena import PAGE, RECORDS, page, scoreboard
from gbxcule_puffer.apps.arena.aggregates import bootstrap, iqm, probability_of_improvement, profile
from gbxcule_puffer.apps.arena.records import SECONDS, STEPS, Record
from gbxcule_puffer.apps.arena.replays import Episodes
from gbxcule_puffer.apps.arena.report import report
from gbxcule_puffer.apps.arena.results import Results
from gbxcule_puffer.cli import main
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.games import own_games

# Five runs (rows) of four games, and what rliable 1.2.0 computes of them.
A = [[0.67, 0.53, 0.46, 0.7], [0.44, 0.95, 0.72, 0.65], [0.19, 0.1, 0.2, 0.75], [0.64, 0.15, 0.75, 0.33],
     [0.33, 1.24, 0.61, 0.7]]  # fmt: skip
B = [[0.67, 0.11, 0.55, 1.74], [0.16, 0.76, 0.81, 0.81], [0.28, 0.34, 0.17, 0.43], [1.09, 0.25, 0.06, 0.46],
     [0.82, 0.37, 1.35, 0.39]]  # fmt: skip
THRESHOLDS = np.array([0, 0.25, 0.5, 0.75, 1, 1.5])


def test_the_statistics_are_those_of_rliable() -> None:
    one, other = list(np.array(A).T), list(np.array(B).T)
    assert iqm(one) == pytest.approx(0.573) and iqm(other) == pytest.approx(0.506)
    assert probability_of_improvement(one, other) == pytest.approx(0.495)
    assert probability_of_improvement(other, one) == pytest.approx(0.505)
    assert profile(one, THRESHOLDS).tolist() == pytest.approx([1, 0.8, 0.6, 0.1, 0.05, 0])
    assert bootstrap(iqm, one) == pytest.approx([0.419, 0.679], abs=0.02), "of 50,000 samples there"
    assert bootstrap(iqm, other) == pytest.approx([0.333, 0.697], abs=0.02)
    assert bootstrap(probability_of_improvement, one, other) == pytest.approx([0.29, 0.695], abs=0.02)
    low, high = bootstrap(partial(profile, thresholds=THRESHOLDS), one)
    assert low == pytest.approx([1, 0.65, 0.4, 0, 0, 0]) and high == pytest.approx([1, 0.95, 0.8, 0.2, 0.15, 0])


def test_of_curves_each_point_has_its_own() -> None:
    curves = [np.array(A), np.array(B)]
    for point in range(4):
        assert iqm(curves)[point] == pytest.approx(iqm([each[:, point] for each in curves]))


def record(game: str, agent: str, seed: int, score: float, speed: float = 1.0) -> Record:
    """A run of ten seconds that comes to `score` in a straight line."""
    at = range(1, 11)
    curve = {"steps": [round(1e5 * speed * second) for second in at], "seconds": [float(second) for second in at]}
    curve |= {name: [score * second / 10 for second in at] for name in ("success", "return")}
    train, test = (
        Episodes(0, ["01", "1"], {"success": [value] * 2, "return": [value] * 2}, ["0" * 32, "1" * 32])
        for value in (score, score / 2)
    )
    facts = {"script": "ppo_lite", "num_envs": 64, "device": "cpu", "jobs": 1, "git_sha": "", "versions": {}}
    facts |= {"rom_sha256": "", "weights_sha256": "", "settings": {}, "curve": curve}
    evaluations = {"train": train, "test": test}
    numbers = {"seed": seed, "steps": round(1e6 * speed), "seconds": 10.0}
    return Record(game=game, agent=agent, **facts, **numbers, evaluations=evaluations)  # pyright: ignore[reportArgumentType]


@pytest.fixture(scope="module")
def results() -> Results:
    runs = [record("orchard", "ppo", seed, 1.0) for seed in (1, 2, 3)]
    runs += [record("storeroom", "ppo", seed, 0.8) for seed in (1, 2, 3)]
    runs += [record("orchard", "dqn", seed, 0.4, speed=0.5) for seed in (1, 2)]
    return Results([*runs, record("homeward", "ppo", 1, 0.2)])


def test_agents_are_compared_over_the_games_that_all_have(results: Results) -> None:
    assert results.agents == ["ppo", "dqn"] and results.common == ["orchard"]
    assert [each.tolist() for each in results.scores("ppo", ["orchard"])] == [[0.5] * 3], "on the test levels"
    assert [each.tolist() for each in results.scores("dqn", ["orchard"], "train")] == [[0.4] * 2]
    pairs = (("ppo", "dqn"), ("dqn", "ppo"))
    steps = [results.at_equal(*pair, ["orchard"], STEPS)[0].mean() for pair in pairs]
    assert steps == pytest.approx([0.5, 0.4]), "where DQN, half as fast, comes to its end"
    seconds = [results.at_equal(*pair, ["orchard"], SECONDS)[0].mean() for pair in pairs]
    assert seconds == pytest.approx([1.0, 0.4])
    assert not results.solved("ppo", "orchard") and results.beyond_random("ppo", "storeroom")
    text = report(results)
    assert "over the 1 games" in text and "| `ppo` | 3 | 1 to 3 | 0.50 (0.50, 0.50) | 10 |" in text
    assert "| `dqn` | 1 | 0.5 | 0.40 (0.40, 0.40) | 0.50 (0.50, 0.50) | 10 | 0.40 (0.40, 0.40) | 1.00 (1.00" in text
    assert "| `ppo` |  | 1.00 (1.00, 1.00) |" in text, "it beats DQN in each run"
    assert "| orchard | success | 0 | 0 | 1 | 0.98 | 0.5 | 0.2 (2) |" in text
    assert "| orchard | 1 / 0.5 | 0.4 / 0.2 |" in text and "| homeward | 0.2 / 0.1 |  |" in text
    alone = Results([each for each in results.records if each.seed == 1])
    assert "| `ppo` | 3 | 1 | 0.50 | 10 |" in report(alone), "one run has no interval"


def test_an_agent_with_few_games_is_not_compared(results: Results) -> None:
    more = Results([*results.records, record("domination", "ppo", 1, 0.5)])
    assert results.compared == ["ppo", "dqn"] and more.compared == ["ppo"]
    assert results.end("orchard", STEPS, ["ppo"]) == 1_000_000
    assert results.end("orchard", STEPS, ["ppo", "dqn"]) == 500_000


@pytest.mark.slow
def test_a_comparison_is_written(results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "records").mkdir()
    for each in results.records:
        each.write(tmp_path / f"records/{each.label}.json")
    assert main(["arena", "report", f"{tmp_path}/records", "--out", f"{tmp_path}/out.md"]) == 0
    assert (tmp_path / "out.md").read_text().startswith(report(results))
    for name in ("out.png", "out_games.png"):
        assert f"]({name})" in (tmp_path / "out.md").read_text()
        width, height = struct.unpack(">II", (tmp_path / name).read_bytes()[16:24])
        assert width > 800 and height > 200
    assert main(["arena", "report", f"{tmp_path}/records", "--out", f"{tmp_path}/out.txt"]) == 2
    assert "name it .md" in capsys.readouterr().err


def test_records_of_unknown_games_are_left_out(results: Results) -> None:
    stranger = replace(results.records[0], game="elsewhere")
    assert "Left out, because they have no scores: elsewhere." in report(Results([*results.records, stranger]))
    with pytest.raises(ConfigError, match="none of the records is of a game with"):
        report(Results([stranger]))


def test_the_scoreboard_is_what_its_records_say() -> None:
    results = scoreboard()
    text = PAGE.read_text()
    assert page(text, results) == text, "python -m benchmarks.pages.arena writes it"
    assert sorted(path.stem for path in RECORDS.glob("*")) == sorted(each.label for each in results.records)
    assert {each.game for each in results.records} <= set(own_games()) and len(results.common) > 10


@pytest.mark.slow
@pytest.mark.kernel
def test_a_record_of_an_h100_is_true_on_this_cpu() -> None:
    assert main(["arena", "verify", str(RECORDS / "homeward__ppo__2.json")]) == 0
