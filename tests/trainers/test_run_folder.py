"""A run's folder: one run in it, one process at a time, found again by --resume; what cannot be written is one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cleanrl_style import a2c_streaming, dqn_nstep, evaluate, ppo_lite
from gbxcule_puffer.trainers import launch
from gbxcule_puffer.trainers.folder import RunFolder
from tests.support.training_runs import read, records, same_checkpoints, toy_run, words

MAIN = a2c_streaming.main
TINY = {"total_env_steps": 64, "eval_episodes": 1, "eval_envs": 1, "num_envs": 4}


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is through."""
    folder = tmp_path_factory.mktemp("ended")
    assert MAIN(toy_run(folder, **TINY)) == 0
    return folder


def test_a_second_run_in_the_same_folder_is_refused(ended: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in ended.iterdir() if path.is_file()}
    capsys.readouterr()
    assert MAIN(toy_run(ended, **TINY)) == 2
    assert f"run folder {ended} holds a run (checkpoint.pt): give another --run-dir, or --resume" in one_line(capsys)
    assert {path: path.read_bytes() for path in ended.iterdir() if path.is_file()} == before


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of an older and a newer run of this trainer, and the newest, of another one."""
    folder = tmp_path_factory.mktemp("runs")
    assert MAIN(toy_run(folder / "older", **TINY)) == 0
    assert MAIN(toy_run(folder / "toy", **TINY, lr=3e-4, stop_at_success=1.5)) == 0
    assert ppo_lite.main(words(f"--smoke --env toy --device cpu --run-dir {folder / 'other_trainer'}")) == 0
    return folder


@pytest.mark.parametrize("resume", ["folder", "checkpoint", "newest", "run_dir"])
def test_resume_finds_the_run_and_its_flags(
    resume: str, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is started from; of several runs the newest of this trainer."""
    monkeypatch.setattr(launch, "RUNS", tmp_path)
    folder = shutil.copytree(runs, tmp_path, dirs_exist_ok=True) / "toy"
    monkeypatch.chdir(tmp_path)
    given = {"folder": "--resume toy", "checkpoint": "--resume toy/checkpoint.pt", "newest": "--resume"}
    given["run_dir"] = "--run-dir toy --resume"
    assert MAIN([*words(given[resume]), "--total-env-steps", "128"]) == 0
    state = read(folder / "checkpoint.pt")
    assert state["counters"]["global_step"] == 128
    assert state["args"]["lr"] == 3e-4 and state["args"]["stop_at_success"] == 1.5


def test_a_run_without_a_checkpoint_begins_again_with_its_flags(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (whole, cut):
        assert MAIN(toy_run(folder, **TINY, seed=5)) == 0
    for path in cut.glob("*.pt"):
        path.unlink()
    assert MAIN(["--resume", str(cut)]) == 0
    same_checkpoints(whole / "checkpoint.pt", cut / "checkpoint.pt")
    assert records(cut) == records(whole)


def test_a_resumed_run_may_go_on_in_another_folder(ended: Path, tmp_path: Path) -> None:
    before = (ended / "checkpoint.pt").read_bytes()
    assert MAIN(["--resume", str(ended), "--run-dir", str(tmp_path / "on"), "--total-env-steps", "128"]) == 0
    assert read(tmp_path / "on/checkpoint.pt")["counters"]["global_step"] == 128
    assert (ended / "checkpoint.pt").read_bytes() == before


def test_a_run_that_has_succeeded_goes_on_only_with_another_aim(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = {**TINY, "total_env_steps": 640, "eval_every_steps": 32, "stop_at_success": 0.0}
    assert MAIN(toy_run(tmp_path / "run", **flags)) == 0
    assert read(tmp_path / "run/checkpoint.pt")["counters"] == {"global_step": 64, "passed": 2}
    capsys.readouterr()
    assert MAIN(["--resume", str(tmp_path / "run")]) == 2
    assert "has reached --stop-at-success 0.0 in two evaluations: give a higher one" in capsys.readouterr().err
    assert MAIN(["--resume", str(tmp_path / "run"), "--stop-at-success", "2", "--total-env-steps", "96"]) == 0
    assert read(tmp_path / "run/checkpoint.pt")["counters"] == {"global_step": 96, "passed": 0}


def test_another_trainer_s_run_is_refused(ended: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dqn_nstep.main(["--resume", str(ended)]) == 2
    assert "belongs to the trainer 'a2c_streaming', not to dqn_nstep" in one_line(capsys)


def test_a_folder_is_held_by_one_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "import sys; from pathlib import Path; from gbxcule_puffer.trainers.folder import RunFolder\n"
    code += "RunFolder(Path(sys.argv[1]), False); print('held', flush=True); sys.stdin.read()"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", code, str(tmp_path / "run")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        assert MAIN(toy_run(tmp_path / "run", **TINY)) == 2
        line = one_line(capsys)
        assert f"is in use by process {other.pid} on " in line and "wait for it" in line
        other.kill()
    RunFolder(tmp_path / "run", False).leave()  # the lock went with its holder
    assert not list((tmp_path / "run").iterdir())


def test_a_process_locks_itself_out(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run", False)
    with pytest.raises(Exception, match=f"in use by process {os.getpid()}"):
        RunFolder(tmp_path / "run", False)
    folder.leave(remove=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["metrics.jsonl", "checkpoint.pt", "manifest.json", "run.lock", "media", "stage"])
def test_nothing_is_written_through_a_link(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(target)
    assert MAIN(toy_run(tmp_path / "run", **TINY)) == 2
    assert "has a symbolic link in it" in one_line(capsys)
    assert target.read_text() == "mine" and [path.name for path in (tmp_path / "run").iterdir()] == [name]


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ("--run-dir {file}", 2, "run folder {file} is a file"),
        ("--run-dir {file}/run", 2, "run folder {file}/run cannot be made below a file"),
        ("--run-dir /proc/run", 1, "run folder /proc/run cannot be written"),
        ("--lr 1e39", 2, "--lr 1e+39 is out of float32's range"),
        ("--gamma nan", 2, "--gamma nan must be from 0 to 1"),
        ("--lr nan", 2, "--lr nan must be at least 0"),
        ("--resume {empty}", 2, "{empty} has no run in it"),
        ("--resume {empty}/nosuch", 2, "{empty}/nosuch: cannot be read"),
        ("--env gbxcule --stage {empty}", 2, "{empty}"),
        ("--env gbxcule --rom {empty} --goal-dir {empty}", 2, "{empty}"),
        ("--eval-every-steps 0", 2, "--eval-every-steps 0 must be at least 1"),
    ],
)
@pytest.mark.parametrize("trainer", [a2c_streaming, dqn_nstep, ppo_lite], ids=lambda module: module.EXP_NAME)
def test_bad_input_is_one_line_and_leaves_nothing(
    trainer, flags: str, code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"file": str(tmp_path / "file"), "empty": str(tmp_path / "empty")}
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    run = words(f"--env toy --device cpu --num-envs 64 --run-dir {tmp_path / 'run'}")
    assert trainer.main([*run, *words(flags.format(**names))]) == code
    assert message.format(**names) in one_line(capsys)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file"]


def test_evaluation_takes_a_folder_and_refuses_others(ended: Path, tmp_path: Path, capsys) -> None:
    assert evaluate.main([str(ended), "--episodes", "1", "--num-envs", "1", "--policy", "sampled"]) == 0
    capsys.readouterr()
    for flags, message in (
        ([str(tmp_path)], "holds no run: give one with a checkpoint.pt"),
        ([str(ended), "--json", str(tmp_path)], "is a folder, and only a regular file is ever replaced"),
    ):
        assert evaluate.main(flags) == 2
        assert message in one_line(capsys)
