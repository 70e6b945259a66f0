"""The benchmark of seconds to a score: when a score counts as reached, its table, the flags of its games."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.training.seconds_to_score import GAMES, main, table, words_of
from cleanrl_style import ppo_lite
from gbxcule_puffer.trainers.curves import last_score, reached
from gbxcule_puffer.trainers.flags import read_flags

FLAGS = {"num_envs": 64, "num_steps": 32, "update_epochs": 2, "num_minibatches": 8}


def test_a_score_is_the_mean_of_a_hundred_episodes() -> None:
    """However many ended in a record: a lucky few do not count."""
    curve = [[1000, 1.0, 0.0, 60], [2000, 2.0, 90.0, 10], [3000, 3.0, 30.0, 60], [4000, 4.0, 30.0, 60]]
    assert last_score(curve[:2]) is None, "70 have ended"
    assert last_score(curve[:3]) == pytest.approx((60 * 30 + 10 * 90 + 60 * 0) / 130)
    assert reached(curve, 20) == (3000, 3.0) and reached(curve, 30) == (4000, 4.0)
    assert reached(curve, 31) is None and reached([], 1) is None


def test_the_table_has_the_median_of_the_seeds() -> None:
    """Where more than half of them have reached the score; those that have not are slower than all."""
    rows = [
        {
            "game": "orchard",
            "gpus": 1,
            "envs": 64,
            "variant": variant,
            "flags": FLAGS,
            "curve": [[steps, steps / 1000, 30.0, 200]],
            **({"start": 5.0} if variant == "new" else {}),
        }
        for variant, all_steps in (("new", (2048, 4096, 8192)), ("few", (2048,)))
        for steps in all_steps
    ]
    rows += [
        {**rows[-1], "curve": [[9000, 9.0, 1.0, 200]]},
        {"game": "orchard", "gpus": 1, "envs": 64, "error": "no memory"},
    ]
    lines = table(rows, {}).splitlines()
    assert lines[2] == "| orchard | 25 | 1 | 64 | new | 3 of 3 | 4.1 | 9.1 | 4,096 | 32 | 30 |"
    assert lines[3] == "| orchard | 25 | 1 | 64 | few | 1 of 2 |  |  |  |  | 15.5 |"
    assert table(rows, {"orchard": 40.0}).splitlines()[2] == "| orchard | 40 | 1 | 64 | new | 0 of 3 |  |  |  |  | 30 |"


@pytest.mark.parametrize("name", GAMES)
def test_the_flags_of_the_games_are_flags(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.training.seconds_to_score.find_rom", lambda game: f"{game}.gb")
    plan = Namespace(device="cpu", steps=10, seconds=1.0, script="ppo_lite", flags=[], variants={"own": ["--lr=2e-3"]})
    words = words_of((name, "own", 1, 128, 5), tmp_path / "run", plan)
    assert words[:4] == ["-m", "gbxcule_puffer", "train", "ppo_lite"]
    args = read_flags(ppo_lite.Args, "ppo_lite", None, words[4:])
    assert (args.num_envs, args.seed, args.lr, args.run_dir) == (128, 5, 2e-3, str(tmp_path / "run"))
    assert args.eval_every_steps is None, "with the trainer's own evaluations"


def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--game=nosuch", "--out=x.json"]) == 2 and main(["--game=orchard"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert "--game 'nosuch' is unknown" in first and "--out is missing" in second
