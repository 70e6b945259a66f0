"""PufferLib's own trainer on our environment: training, watching, exporting, and one line for bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gbxcule_puffer import cli
from gbxcule_puffer.integrations.pufferl import has_trainer
from tests.support.envs import random_actions

FULL = has_trainer()
needs_pufferl = pytest.mark.skipif(not FULL, reason="only pufferlib-core is installed: `make puffer` runs this")
ROOT = Path(__file__).parents[3]


def puffer(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """`python -m gbxcule_puffer ...` as a user types it, in `folder`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "gbxcule_puffer", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `puffer train gbxcule` has run for some 20 seconds."""
    folder = tmp_path_factory.mktemp("pufferl")
    options = ["--train.total-timesteps", 25000, "--env.num-envs", 16]
    result = puffer(folder, "train", "gbxcule", *options)
    assert result.returncode == 0, result.stderr
    assert "TensorBoard" in result.stdout
    return folder


@needs_pufferl
def test_pufferl_learns_to_leave_the_house(trained: Path) -> None:
    """PuffeRL's last metrics are those of 32 rollouts after the training; random buttons succeed far less often."""
    from gbxcule_puffer.integrations.pufferl.env import make_env

    (path,) = trained.glob("runs/pufferl/*/metrics.jsonl")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert any(path.parent.glob("events.out.tfevents.*"))
    env = make_env(num_envs=16, io="numpy", log_interval=512)
    env.reset(seed=1)
    for row in random_actions(512, 16):
        infos = env.step(row)[4]
    (info,) = infos
    assert info["episodes"] >= 64
    assert records[-1]["environment/success"] > info["success"] + 0.3


@needs_pufferl
def test_eval_saves_what_the_policy_plays(trained: Path) -> None:
    from PIL import Image

    options = ["--load-model-path", "latest", "--save-frames", 12, "--gif-path", "eval.gif"]
    result = puffer(trained, "eval", "gbxcule", *options)
    assert result.returncode == 0, result.stderr
    with Image.open(trained / "eval.gif") as gif:
        assert gif.size == (320, 288)
        levels = set(np.unique(np.asarray(gif.convert("L"))))
    assert levels <= {0, 85, 153, 255}


@needs_pufferl
def test_export_writes_all_weights(trained: Path) -> None:
    result = puffer(trained, "export", "gbxcule", "--load-model-path", "latest")
    assert result.returncode == 0, result.stderr
    weights = np.fromfile(trained / "gbxcule_weights.bin", np.float32)
    assert len(weights) > 100_000
    assert np.isfinite(weights).all()


@needs_pufferl
def test_lstm_trains(tmp_path: Path) -> None:
    options = ["--rnn-name", "PixelLSTM", "--train.total-timesteps", 500, "--env.num-envs", 2, "--env.obs", "packed"]
    result = puffer(tmp_path, "train", "gbxcule", *options)
    assert result.returncode == 0, result.stderr
    config = json.loads(next(tmp_path.glob("runs/pufferl/*/config.json")).read_text())
    assert config["use_rnn"] is True


@needs_pufferl
def test_sweep_needs_no_server(tmp_path: Path) -> None:
    """Each run has its folder, with what was drawn for it and its metrics."""
    space = ["--sweep.train.total-timesteps.min", 100, "--sweep.train.total-timesteps.max", 300]
    options = ["--max-runs", 2, "--env.num-envs", 2, "--sweep.train.total-timesteps.mean", 200, *space]
    result = puffer(tmp_path, "sweep", "gbxcule", *options)
    assert result.returncode == 0, result.stderr
    configs = [json.loads(path.read_text()) for path in tmp_path.glob("runs/pufferl/*/config.json")]
    assert len(configs) == len(list(tmp_path.glob("runs/pufferl/*/metrics.jsonl"))) == 2
    assert all(100 <= config["train"]["total_timesteps"] <= 300 for config in configs)


@needs_pufferl
@pytest.mark.parametrize(
    "arguments, message",
    [
        (["train", "gbxcule", "--bogus", "3"], "unrecognized arguments: --bogus 3"),
        (["train", "gbxcule", "--env.rom", "missing.gb", "--env.goal-dir", "g"], "missing.gb: cannot be read"),
        (["train", "gbxcule", "--env.num-envs", "x"], "--env.num-envs: invalid"),
        (["train", "gbxcule", "--train.device", "tpu"], "device 'tpu' is not supported"),
        (["train", "gbxcule", "--rnn-name", "Foo"], "policy 'Foo' is unknown"),
        (["train", "gbxcule", "--vec.backend", "Foo"], "Invalid backend: Foo"),
        (["train", "gbxcule", "--train.minibatch-size", "1000"], "minibatch_size 1000 must be divisible"),
        (["train", "gbxcule", "--rnn-name", "PixelLSTM", "--rnn.input-size", "9"], "--rnn.input-size"),
        (["train", "gbxcule", "--train.data-dir", "/proc/none", "--env.num-envs", "1"], "/proc/none cannot be written"),
        (["train", "nonesuch"], "No config for env_name nonesuch"),
        (["eval", "gbxcule", "--load-model-path", "none.pt"], "none.pt is not a file"),
        (["eval", "gbxcule", "--load-model-path", "latest"], "no model in runs/pufferl"),
        (["eval", "gbxcule", "--render-mode", "ansi", "--save-frames", "3"], "--save-frames needs pictures"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1, error
    assert message in error[0]


@pytest.mark.skipif(FULL, reason="all of PufferLib is installed")
@pytest.mark.parametrize("mode", ["train", "eval", "sweep", "autotune", "export"])
def test_without_pufferl_the_modes_say_how_to_get_it(mode: str, capsys: pytest.CaptureFixture) -> None:
    assert cli.main([mode, "gbxcule", "--help"]) == 2
    error = capsys.readouterr().err
    assert "make puffer" in error
    assert "pip install 'gbxcule-puffer[puffer]'" in error
    assert len(error.splitlines()) == 1
