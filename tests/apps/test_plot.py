"""`puffer plot`: what is read from the runs, which runs are seeds of one experiment, and the picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gbxcule_puffer import cli
from gbxcule_puffer.apps.plot.plot import PANELS, draw, experiments, read_run, smoothed, spread
from gbxcule_puffer.errors import StateError


def make_run(folder: Path, seed: int, lr: float = 1e-4, steps: int = 40) -> Path:
    folder.mkdir()
    config = {"env": "toy", "seed": seed, "lr": lr, "run_dir": str(folder)}
    (folder / "manifest.json").write_text(json.dumps({"config": config}))
    lines = []
    for step in range(1, steps + 1):
        lines.append({"global_step": 100 * step, **{tag: step * (seed + lr) for tag in PANELS}})
        if step % 10 == 0:
            lines.append({"global_step": 100 * step, "eval/success_rate": 0.5})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_records_become_curves(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "a", 2))
    steps, values = run.curves["charts/SPS"]
    assert list(steps[:3]) == [100, 200, 300]
    assert values[2] == pytest.approx(3 * 2.0001)
    assert set(run.curves) == set(PANELS)


def test_the_statistics_of_tasks_are_panels(tmp_path: Path) -> None:
    """Also those whose names a formula, or a control character, could be made of; of a run without any success."""
    folder = make_run(tmp_path / "a", 1)
    record = {
        "env/task/coins": 2.0,
        "env/task/$\\alpha\x1b": 1.0,
        "eval/task/coins": 3.0,
        "charts/episodic_return": 1.0,
    }
    lines = [json.dumps({"global_step": step, **record}) for step in (100, 200)]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    assert set(read_run(folder).curves) == record.keys() - {"eval/task/coins"}
    draw([folder], tmp_path / "a.png")
    many = {f"env/task/{number}": 1.0 for number in range(61)}
    (folder / "metrics.jsonl").write_text(json.dumps({"global_step": 1, **many}) + "\n")
    with pytest.raises(StateError, match="has 61 stages and statistics, at most 60 can be drawn"):
        read_run(folder)


def test_seeds_are_one_experiment(tmp_path: Path) -> None:
    runs = [read_run(make_run(tmp_path / f"{lr}{seed}", seed, lr)) for lr in (0.1, 0.2) for seed in (1, 2)]
    grouped = experiments([*runs, read_run(make_run(tmp_path / "single", 1, 0.3))])
    assert list(grouped) == ["lr 0.1 (2 seeds: median and range)", "lr 0.2 (2 seeds: median and range)", "lr 0.3"]
    assert list(experiments(runs[:1])) == ["0.11"], "a run alone has its folder's name"


def test_the_spread_of_seeds_that_end_at_different_times() -> None:
    short = np.array([0.0, 100.0]), np.array([1.0, 1.0])
    long = np.array([0.0, 200.0]), np.array([3.0, 3.0])
    steps, least, middle, greatest = spread([short, long])
    first, last = steps < 100, steps > 101
    assert (least[first] == 1).all() and (middle[first] == 2).all() and (greatest[first] == 3).all()
    assert (least[last] == 3).all() and (middle[last] == 3).all() and (greatest[last] == 3).all()


def test_smoothing_keeps_a_constant_and_the_mean_of_neighbours() -> None:
    assert smoothed(np.full(7, 2.0), 4) == pytest.approx(np.full(7, 2.0))
    assert smoothed(np.array([0.0, 3.0, 0.0, 3.0]), 3)[1] == pytest.approx(1.0)
    assert len(smoothed(np.array([1.0, 3.0]), 50)) == 2, "a curve of few records stays a curve"


def test_the_command_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(make_run(tmp_path / f"run{seed}", seed)) for seed in (1, 2)]
    out = tmp_path / "curves.png"
    assert cli.main(["plot", *runs, "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    with Image.open(out) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    blue = (pixels == (0x00, 0x72, 0xB2)).all(-1)
    height, width = blue.shape
    for row in (slice(0, height // 2), slice(height // 2, height)):
        for column in range(3):
            panel = blue[row, column * width // 3 : (column + 1) * width // 3]
            assert panel.sum() > 100, "each panel has its curve"
    assert cli.main(["plot", runs[0]]) == 0
    assert (tmp_path / "run1/curves.png").exists()


def test_each_stage_has_a_panel(tmp_path: Path) -> None:
    run, other = make_run(tmp_path / "staged", 1), make_run(tmp_path / "other", 2)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for record in records:  # `hard` is attempted later
        record |= {"env/stage/easy/success": 1.0} | ({"env/stage/hard/success": 0.5} if len(record) > 2 else {})
    (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert set(read_run(run).curves) == {*PANELS, "env/stage/easy/success", "env/stage/hard/success"}
    draw([run, other], tmp_path / "curves.png")
    draw([other], tmp_path / "plain.png")
    with Image.open(tmp_path / "curves.png") as staged, Image.open(tmp_path / "plain.png") as plain:
        assert staged.width == plain.width and staged.height > 1.4 * plain.height, "a row of panels more"


def test_what_no_run_has_gets_no_panel(tmp_path: Path) -> None:
    """The distance to a goal's picture, where a Task rewards and there is no goal."""
    run, other = make_run(tmp_path / "task", 1), make_run(tmp_path / "goal", 2)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    few = ("global_step", "charts/success_rate", "charts/episodic_return")
    records = [{tag: value for tag, value in record.items() if tag in few} for record in records]
    (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    draw([run], tmp_path / "few.png")
    draw([other], tmp_path / "all.png")
    with Image.open(tmp_path / "few.png") as few_panels, Image.open(tmp_path / "all.png") as all_panels:
        assert few_panels.height < 0.7 * all_panels.height, "a row of panels less"
    draw([run, other], tmp_path / "both.png")


def test_wrong_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", 1)
    damaged = make_run(tmp_path / "damaged", 1)
    (damaged / "metrics.jsonl").write_text("{}\n")
    empty = make_run(tmp_path / "empty", 1, steps=0)
    for arguments, message in (
        (["nowhere"], "nowhere/metrics.jsonl: cannot be read"),
        ([str(damaged)], "damaged"),
        ([str(empty)], "has no record of"),
        ([str(run), "--smooth", "0"], "--smooth 0"),
        ([str(run), "--out", str(run / "metrics.jsonl/no.png")], "cannot be written"),
        ([str(run), "--out", str(run / "curves.jpg")], "curves.jpg has an unknown format: name it .png"),
    ):
        assert cli.main(["plot", *arguments]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line
