"""The curves of a run: all of its records since its start, in a few points."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from cleanrl_style import a2c_streaming
from gbxcule_puffer import env_creator
from gbxcule_puffer.trainers.wall.curves import MOST_CURVES, MOST_POINTS, Curve, Curves
from gbxcule_puffer.trainers.wall.wall import Wall
from tests.support.viewers import receive_text, viewer


def test_many_records_become_few_points() -> None:
    """Each point is the mean of its records, all records are in one, and the newest is the last."""
    for count in (1, MOST_POINTS - 1, MOST_POINTS, 12_345):
        curve, steps = Curve(), np.arange(count) * 10.0
        for step in steps:
            curve.add(step, 3 * step + 1)
        points = curve.points()
        found, values = np.array(points["steps"]), np.array(points["values"])
        assert len(found) <= MOST_POINTS + 1 and (np.diff(found) > 0).all()
        np.testing.assert_allclose(values, 3 * found + 1)
        whole = [steps[begin : begin + curve.width].mean() for begin in range(0, count, curve.width)]
        np.testing.assert_allclose(found, whole)


def line(step: int, **values: object) -> str:
    return json.dumps({"global_step": step, **values}) + "\n"


def test_records_are_read_as_they_come(tmp_path: Path) -> None:
    """Also from a line that was half written, and anew where a resumed run has replaced the file."""
    path = tmp_path / "metrics.jsonl"
    curves = Curves(path)
    assert not curves.read() and curves.points() == {}
    path.write_text(line(10, **{"charts/episodic_return": 1.5, "env/task/coins": 2, "losses/value": 3.0}))
    assert curves.read() and not curves.read()
    half = line(20, **{"charts/episodic_return": 2.5, "env/task/coins": 4})
    with path.open("a") as file:
        file.write(half[:17])
        file.flush()
        assert not curves.read()
        file.write(half[17:])
    assert curves.read()
    assert curves.points() == {
        "charts/episodic_return": {"steps": [10.0, 20.0], "values": [1.5, 2.5]},
        "env/task/coins": {"steps": [10.0, 20.0], "values": [2.0, 4.0]},
    }
    other = tmp_path / "other"
    other.write_text(line(5, **{"charts/episodic_return": 9}))
    os.replace(other, path)
    assert curves.read() and curves.points() == {"charts/episodic_return": {"steps": [5.0], "values": [9.0]}}


def test_which_curves_there_are(tmp_path: Path) -> None:
    """Success, return, length, distance and what Tasks and stages count; shares of actions are not."""
    path, tags = tmp_path / "metrics.jsonl", ["charts/success_rate", "eval/success_rate", "charts/episodic_return"]
    tags += ["charts/episodic_length", "env/dist_p50", "env/stage/door/success", "env/task/a/b"]
    tags += ["env/task/saved", "eval/task/a/b"]
    left_out = ["charts/SPS", "env/action_hist/A", "env/stage/door/weight", "env/locked", "losses/value", "eval/return"]
    left_out += ["eval/greedy_task/a/b", "eval/random_task/a/b"]
    path.write_text(line(1, **dict.fromkeys([*left_out, *reversed(tags)], 1.0)))
    curves = Curves(path)
    assert curves.read() and list(curves.points()) == tags


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1, 2]",
        "[" * 5000,
        '{"global_step": "x", "env/task/a": 1}',
        '{"global_step": NaN, "env/task/a": 1}',
        '{"global_step": 1e300, "env/task/a": 1}',
        '{"global_step": 1, "env/task/a": "nan"}',
        '{"global_step": 1, "env/task/a": true}',
        '{"global_step": 1, "env/task/a": [1]}',
        json.dumps({"global_step": 1, "env/task/a": 10**400}),
        "\x00\xff",
    ],
)
def test_a_damaged_line_is_left_out(tmp_path: Path, text: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(f"{text}\n{line(3, **{'env/task/a': 7})}", encoding="latin-1")
    curves = Curves(path)
    assert curves.read() and curves.points() == {"env/task/a": {"steps": [3.0], "values": [7.0]}}


def test_a_strangers_records_have_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(line(1, **{f"env/task/{number}": 1 for number in range(1000)}))
    curves = Curves(path)
    assert curves.read() and len(curves.points()) == MOST_CURVES
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert not Curves(pipe).read() and not Curves(tmp_path).read()


def test_whoever_comes_late_sees_the_whole_run(tmp_path: Path) -> None:
    """The curves of a training that has ended begin with its first record."""
    assert a2c_streaming.main(f"--env toy --smoke --device cpu --run-dir {tmp_path / 'run'}".split()) == 0
    records = [json.loads(text) for text in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    returns = {r["global_step"]: r["charts/episodic_return"] for r in records if "charts/episodic_return" in r}
    env = env_creator("toy")(num_envs=2, device="cpu")
    env.reset()
    with Wall(env, "late", dict, "127.0.0.1:0", records=tmp_path / "run/metrics.jsonl") as wall:
        for _ in range(2):  # the second viewer gets what the first one had
            with viewer(wall) as connection:
                found = receive_text(connection, "curves")["charts/episodic_return"]
                assert dict(zip(found["steps"], found["values"], strict=True)) == returns
    assert returns
