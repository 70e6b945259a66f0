"""What TensorBoard and Weights & Biases get of a run."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from cleanrl_style import a2c_streaming
from gbxcule_puffer import env_creator
from gbxcule_puffer.trainers.boards.tensorboard import RESULTS, TensorBoard
from gbxcule_puffer.trainers.media import both_ends
from tests.support.training_runs import records, toy_run

MAIN = a2c_streaming.main


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> EventAccumulator:
    folder = tmp_path_factory.mktemp("board") / "run"
    assert MAIN(toy_run(folder, total_env_steps=256, eval_every_steps=128, media_every=128)) == 0
    found = EventAccumulator(str(folder), size_guidance={"images": 0, "scalars": 0, "histograms": 0})
    found.Reload()
    return found


def test_actions_are_one_histogram(events: EventAccumulator) -> None:
    """Its bars are the shares of metrics.jsonl; no chart for each action is left."""
    tags = events.Tags()
    assert tags["histograms"] == ["env/action_hist"]
    assert not [tag for tag in tags["scalars"] if tag.startswith("env/action_hist")]
    assert {"charts/success_rate", "charts/SPS", *RESULTS} <= set(tags["scalars"])
    shares = [[v for k, v in r.items() if k.startswith("env/action_hist/")] for r in records(Path(events.path))]
    bars = [event.histogram_value for event in events.Histograms("env/action_hist")]
    for bar, share in zip(bars, [share for share in shares if share], strict=True):
        assert list(bar.bucket) == pytest.approx(share) and list(bar.bucket_limit) == [n + 0.5 for n in range(8)]


def test_flags_are_text_and_hparams(events: EventAccumulator) -> None:
    tags = events.Tags()
    (text,) = events.Tensors("config/text_summary")
    assert "|num_envs|8|" in text.tensor_proto.string_val[0].decode()
    assert "custom_scalars__config__" in tags["tensors"]
    assert events.summary_metadata["_hparams_/experiment"].plugin_data.plugin_name == "hparams"
    assert b"num_envs" in events.summary_metadata["_hparams_/session_start_info"].plugin_data.content


def test_films_of_a_success_and_a_failure(events: EventAccumulator) -> None:
    tags = set(events.Tags()["images"])
    assert "media/envs" in tags and tags & {"media/success", "media/failure"}
    for tag in tags - {"media/envs"}:
        with Image.open(io.BytesIO(events.Images(tag)[-1].encoded_image_string)) as film:
            assert film.format == "GIF" and film.size[0] >= 320


def test_both_ends_are_whole_episodes() -> None:
    """Which of the first episodes succeed is what random buttons do; a film ends with its episode's last picture."""
    env = env_creator("toy")(num_envs=12, device="cpu", max_steps=6, seed=3)
    generator = torch.Generator().manual_seed(1)
    found = both_ends(lambda *_: torch.randint(8, (12,), generator=generator), env, seed=3).found()
    assert set(found) == {"success", "failure"}
    assert len(found["failure"]) == 7 and 2 <= len(found["success"]) <= 7
    assert not np.array_equal(found["failure"][0], found["success"][0])
    still = both_ends(lambda *_: torch.zeros(12, dtype=torch.int64), env, seed=3).found()
    assert set(still) == {"failure"}


def test_a_resumed_board_writes_its_flags_once(tmp_path: Path) -> None:
    for resumed_at in (None, 10):
        board = TensorBoard(tmp_path, {"lr": 0.1, "stages": None, "rom": "a|b"}, resumed_at)
        board.add((resumed_at or 0) + 5, {"charts/SPS": 1.0})
        board.close()
    found = EventAccumulator(str(tmp_path))
    found.Reload()
    assert len(found.Tensors("config/text_summary")) == 1
    steps = [event.step for event in found.Scalars("charts/SPS")]  # two files of one second may be read in any order
    assert sorted(steps) == [5, 15]


def test_tracking_needs_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "wandb" else find(name))
    assert MAIN([*toy_run(tmp_path / "run"), "--track"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--track needs Weights & Biases: pip install wandb" in line and not (tmp_path / "run").exists()


def test_tracking_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """All records and films are in the file that `wandb sync` sends; no account is needed."""
    pytest.importorskip("wandb", reason="needs Weights & Biases: pip install wandb")
    for name, value in (("WANDB_MODE", "offline"), ("WANDB_DIR", str(tmp_path)), ("HOME", str(tmp_path))):
        monkeypatch.setenv(name, value)
    folder = tmp_path / "run"
    assert MAIN([*toy_run(folder, total_env_steps=256, media_every=256), "--track"]) == 0
    assert "tracked        offline" in capsys.readouterr().out
    (saved,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    data = saved.read_bytes()
    for text in (b"losses/policy_loss", b"eval/success_rate", b"media/envs", b"total_env_steps"):
        assert text in data
