"""kill -9 at random moments, then --resume: on the CPU the records are those of a run that was never interrupted."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cleanrl_style.a2c_overlap import main
from tests.support.training_runs import records, toy_run

ROOT = Path(__file__).parents[2]


def test_killed_runs_go_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    changes = {"total_env_steps": 1024, "eval_every_steps": 512, "checkpoint_every": 128, "eval_episodes": 4}
    changes |= {"env_groups": 2, "recurrent": "gru", "media_every": 512}
    assert main(toy_run(tmp_path / "whole", **changes)) == 0
    run_dir = tmp_path / "killed"
    flags = [*toy_run(run_dir, **changes), "--resume"]  # also where there is no run yet
    whole, draw = len(records(tmp_path / "whole")), random.Random()
    for _ in range(2):
        moment = draw.randrange(whole // 4, whole - 8)
        print(f"killed after {moment} of {whole} records")  # shown when the test fails
        killed_after(moment, run_dir, flags)
    assert main(flags) == 0
    assert records(tmp_path / "killed") == records(tmp_path / "whole")


def test_a_run_with_a_damaged_checkpoint_goes_on_from_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = {"checkpoint_every": 128, "eval_every_steps": 1024, "media_every": 1024}
    assert main(toy_run(tmp_path / "whole", total_env_steps=1024, **changes)) == 0
    assert main(toy_run(tmp_path / "parts", total_env_steps=512, **changes)) == 0
    checkpoint = tmp_path / "parts/checkpoint.pt"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    capsys.readouterr()
    assert main(toy_run(tmp_path / "parts", total_env_steps=1024, resume=str(checkpoint), **changes)) == 0
    assert f"{checkpoint}: is damaged" in capsys.readouterr().err
    assert records(tmp_path / "parts") == records(tmp_path / "whole")


def test_a_run_that_is_through_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(toy_run(tmp_path)) == 0
    capsys.readouterr()
    assert main(toy_run(tmp_path, resume=str(tmp_path / "checkpoint.pt"))) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "is at step 512: give more --total-env-steps" in line


def killed_after(moment: int, run_dir: Path, flags: list[str]) -> None:
    """Runs the trainer in a process of its own and kills it, at whatever it does then, once it has written records."""
    command = [sys.executable, "cleanrl_style/a2c_overlap.py", *flags]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}  # as training_runs.py
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    log = run_dir / "metrics.jsonl"
    while process.poll() is None:
        if log.exists() and log.read_bytes().count(b"\n") >= moment:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.001)
    _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors.decode()
