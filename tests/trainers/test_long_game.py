"""The benchmark of long games: the row of a run, from the files that the run has written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.training.gateward_folder import main as make_folder
from benchmarks.training.gateward_folder import strong
from benchmarks.training.long_game import main
from benchmarks.workload import ROOT
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.games import load_game

COUNT = 200  # records


@pytest.fixture()
def run(tmp_path: Path) -> Path:
    """The folder of a run of two processes, which was cut while it wrote a record."""
    folder = tmp_path / "run"
    (folder / "media").mkdir(parents=True)
    config = {"num_envs": 32, "seed": 3, "rom": f"{ROOT}/roms/gateward.gb"}
    (folder / "manifest.json").write_text(json.dumps({"exp_name": "ppo_lite", "processes": 2, "config": config}))
    rows = [
        {"global_step": 100 * i, "charts/seconds": 60 + i, "env/milestones/most": float(i // 50), "losses/entropy": 1.5}
        for i in range(1, COUNT + 1)
    ]
    for i, row in enumerate(rows[::50]):
        row |= {"time/env": 0.5 if not i else 0.01 + i / 1000, "time/learn": 0.002}
    lines = [*map(json.dumps, rows), json.dumps({"global_step": 100 * COUNT, "eval/return": 1.0}), '{"global_st']
    (folder / "metrics.jsonl").write_text("\n".join(lines))
    milestones = [{"name": "got_letter", "number": 2, "step": 7000, "seconds": 130.5}]
    (folder / "milestones.jsonl").write_text("".join(json.dumps(line) + "\n" for line in milestones))
    for height, name in ((3, "coverage_10.png"), (2, "coverage_9.png"), (9, "sheet.png")):
        Image.new("RGB", (192, height), (height, 0, 0)).save(folder / "media" / name)
    return folder


def test_a_row_is_of_the_files_of_a_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "long.json"
    assert main(["--read", str(run), "--out", str(out)]) == 0
    (row,) = json.loads(out.read_text())["rows"]
    assert (row["envs"], row["processes"], row["steps"], row["seconds"]) == (64, 2, 20_000, 260.0)
    assert row["steps_per_second"] == 100, "without the first fifth, in which kernels are compiled"
    assert row["milestones"] == [["got_letter", 7000, 130.5]] and row["flags"]["rom"] == "roms/gateward.gb"
    assert row["milliseconds_of_a_step"] == {"env": 12.0, "learn": 2.0}, "without the first record"
    curve = row["curves"]["most"]
    assert len(curve) <= 41 and curve[0] == [100, 0.0] and curve[-1] == [20_000, 4.0] and row["curves"]["maps"] == []
    assert row["files"]["number"] == 6
    with Image.open(tmp_path / "long-run.png") as picture, Image.open(tmp_path / "long-run.gif") as film:
        assert picture.size == (192, 3), "the newest picture of coverage"
        assert film.size == (3 * 192, 3 * 3) and getattr(film, "n_frames", 1) == 2
        assert [film.convert("RGB").getpixel((0, y)) for y in (0, 8)] == [(2, 0, 0), (0, 0, 0)], "the older one first"
    line = "| run | 3 | 64 | 20,000 | 260 | 100 | 1 | got_letter, 7,000 steps, 130 s | 6, 0.0 MB |"
    assert capsys.readouterr().out.splitlines()[-1] == line


def test_a_folder_without_a_run_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--read", str(tmp_path), "--out", str(tmp_path / "out.json")]) == 2
    assert capsys.readouterr().err == (
        f"benchmarks.training.long_game: {tmp_path} has no records of a training: give a run's folder\n"
    )


def test_a_copy_of_gateward_pays_for_strength(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, own = tmp_path / "strong", load_game("gateward").terms
    assert make_folder([str(folder)]) == 0
    made = load_game(folder).terms
    assert [name for name in made.milestones if name in own.milestones] == list(own.milestones), "in their order"
    names = list(made.milestones)
    assert names[names.index("last_hazel") + 1] == "gate3" and names[-1] == "best_40"
    assert make_folder([str(folder)]) == 2 and "File exists" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="this copy is of another one"):
        strong((folder / "game.toml").read_text(), (ROOT / "roms/gateward/tables/trainers.txt").read_text())
