"""Checkpoints: the last few kept, damage found, a full disk survived; and the records that a resumed run keeps."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from cleanrl_style.a2c_streaming import main
from gbxcule_puffer.errors import ConfigError, StateError, StorageError
from gbxcule_puffer.trainers.checkpoints import load_checkpoint, older, read_checkpoint, save_checkpoint
from gbxcule_puffer.trainers.flags import RunFlags, flags_of, flags_to_save, resumed_flags
from gbxcule_puffer.trainers.runlog import RunLog, merge_infos
from tests.support.training_runs import records, toy_run

STATE: dict[str, Any] = {"exp_name": "ppo_lite", "args": {}, "counters": {"global_step": 0}, "env_config": {}}
STATE |= {"model": {}, "processes": []}


def save(path: Path, number: int, keep: int = 3, size: int = 100) -> None:
    save_checkpoint(path, {**STATE, "number": number, "weights": torch.full((size,), float(number))}, keep)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Writing beyond `size` bytes fails, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_the_last_checkpoints_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    for number in range(5):
        save(path, number)
    assert [read_checkpoint(older(path, age))["number"] for age in range(3)] == [4, 3, 2]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["checkpoint.1.pt", "checkpoint.2.pt", "checkpoint.pt"]
    save_checkpoint(path, {"number": 5}, keep=10**20)  # all of them: the loop is over those that are there
    assert len(list(tmp_path.iterdir())) == 4


def test_one_checkpoint_is_kept_when_one_is_asked_for(tmp_path: Path) -> None:
    for number in range(3):
        save(tmp_path / "checkpoint.pt", number, keep=1)
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.pt"]


@pytest.mark.parametrize("damage", ["truncated", "empty", "one bit", "missing", "text"])
def test_a_damaged_checkpoint_is_passed_over(damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "checkpoint.pt"
    for number in range(3):
        save(path, number, size=1000)
    data = bytearray(path.read_bytes())
    data[data.index(torch.full((8,), 2.0).numpy().tobytes()) + 5] ^= 1  # inside the weights: still a loadable file
    contents = {"truncated": data[: len(data) // 2], "empty": b"", "one bit": data, "text": b"weights\n" * 100}
    path.unlink()
    if damage != "missing":
        path.write_bytes(contents[damage])
    assert load_checkpoint(path)["number"] == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line
    assert f"going on from the one before, {older(path, 1)}" in line


def test_without_a_whole_checkpoint_there_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    with pytest.raises(StateError, match=r"checkpoint\.pt: cannot be read \(.*No such file"):
        load_checkpoint(path)
    for number in range(2):
        save(path, number)
    path.write_bytes(b"")
    older(path, 1).write_bytes(b"")
    with pytest.raises(StateError, match="is damaged"):
        load_checkpoint(path)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), 7, "7"])
def test_seconds_that_are_none_are_refused(seconds: object, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    save_checkpoint(path, {**STATE, "seconds": seconds})
    with pytest.raises(StateError, match=r"is damaged \(seconds of training\)"):
        load_checkpoint(path)


@dataclass
class Flags(RunFlags):
    momentum: float = 0.9


def test_other_flags_are_refused_unless_free(tmp_path: Path) -> None:
    saved = {"seed": 5, "eval_envs": 3}
    resumed = resumed_flags(RunFlags, saved, tmp_path / "checkpoint.pt", "test", ["--eval-envs", "4"])
    assert (resumed.seed, resumed.eval_envs) == (5, 4)
    with pytest.raises(ConfigError, match="--seed 6 is not what the run was started with, 5: leave it out"):
        resumed_flags(RunFlags, saved, tmp_path / "checkpoint.pt", "test", ["--seed", "6"])


def test_a_flag_newer_than_the_checkpoint_had_its_default(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    assert resumed_flags(Flags, {"seed": 5}, path, "test", []).momentum == 0.9
    with pytest.raises(ConfigError, match=r"--momentum 0\.5 is not what the run was started with, 0\.9"):
        resumed_flags(Flags, {"seed": 5}, path, "test", ["--momentum", "0.5"])


@pytest.mark.parametrize("saved", [{"nosuch": 1}, {"seed": "x"}, {"rom": ["a"]}, {"seed": {}}, {"rom": "--help"}])
def test_flags_that_no_run_can_have_are_refused(saved: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"checkpoint\.pt"):
        resumed_flags(Flags, saved, tmp_path / "checkpoint.pt", "test", [])


def test_saved_paths_are_relative_and_read_back_whole(tmp_path: Path) -> None:
    args = Flags(goal_dir=str(tmp_path / "goals/one"), run_dir=str(tmp_path / "run"))
    saved = flags_to_save(args, tmp_path / "run")
    assert saved["goal_dir"] == "../goals/one" and "run_dir" not in saved
    assert flags_of(Flags, saved, tmp_path / "run/checkpoint.pt", "test").goal_dir == args.goal_dir


@pytest.mark.parametrize("limit", [1000, 30_000])
def test_a_full_disk_leaves_the_last_checkpoint_whole(limit: int, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    save(path, 1)
    with file_size_limit(limit), pytest.raises(StorageError, match=r"cannot be written .* the one before it is whole"):
        save(path, 2, size=10_000)
    assert read_checkpoint(path)["number"] == 1
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.pt"], "no part is left behind"


def test_a_trainer_on_a_full_disk_ends_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = toy_run(tmp_path / "run", checkpoint_every=128)
    with file_size_limit(100_000):
        assert main(flags) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert "checkpoint.pt cannot be written" in line
    assert not list((tmp_path / "run").glob("*.part"))


def test_nan_leaves_the_last_good_checkpoint(tmp_path: Path) -> None:
    """The learning rate breaks the weights between two records: the checkpoint in between must not hold them."""
    with pytest.raises(SystemExit) as end:
        main(toy_run(tmp_path / "run", lr=1e30, log_interval=64, checkpoint_every=64))
    assert end.value.code == 1
    failure = json.loads((tmp_path / "run/failure.json").read_text())
    assert any(name.startswith("weights") for name in failure["not_finite"])
    assert not (tmp_path / "run/checkpoint.pt").exists()


def test_a_resumed_log_drops_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    log = RunLog(tmp_path, {})
    for step in (10, 20, 30):
        log.record(step, {"charts/SPS": step})
    log.close()
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"global_step": 40, "char')  # killed while it wrote
    log = RunLog(tmp_path, {}, resumed_at=20)
    log.record(25, {"charts/SPS": 1.0})
    log.close()
    assert [record["global_step"] for record in records(tmp_path)] == [10, 20, 25]


def test_infos_of_groups_are_those_of_one_env() -> None:
    one = {"episodes": 3.0, "success": 1.0, "done_rate": 0.1, "locked": 0.0}
    other = {"episodes": 1.0, "success": 0.0, "done_rate": 0.3, "locked": 2.0}
    idle = {"episodes": 0.0, "done_rate": 0.2, "locked": 0.0}
    metrics = merge_infos([one, other, idle])
    expected = {"env/episodes": 4.0, "charts/success_rate": 0.75, "env/done_rate": 0.2, "env/locked": 2.0}
    assert metrics == pytest.approx(expected)
