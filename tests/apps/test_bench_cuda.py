"""`puffer bench` on a GPU: steps allocate nothing there, and PyBoy's workers live beside a CUDA context."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gbxcule_puffer.cli import main

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("stage", ["emulate_only", "reward_only", "obs_only", "full_step"])
def test_steps_allocate_nothing(stage: str, cuda_device: str, tmp_path: Path) -> None:
    words = ["bench", "--device", cuda_device, "--num-envs", "256", "--stage", stage, "--obs", "packed"]
    words += [
        "--warmup",
        "70",
        "--steps",
        "70",
        "--repeat",
        "2",
        "--max-mem-delta",
        "0",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(words) == 0
    (record,) = json.loads((tmp_path / "out/records.json").read_text())
    assert record["peak_device_bytes"] > 256 * 72 * 80
    assert record["distinct_pictures"] > 1


def test_beside_pyboy(cuda_device: str, tmp_path: Path) -> None:
    """Two sizes: the second time the workers start while this process has a CUDA context."""
    words = ["bench", "--vs", "pyboy_puffer_vec", "--vs-num-envs", "4", "--cores", "2", "--device", cuda_device]
    words += ["--num-envs", "4,64", "--warmup", "20", "--steps", "10", "--repeat", "2", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    ours, pyboy, *_ = json.loads((tmp_path / "out/records.json").read_text())
    assert (ours["unique_pcs"], ours["distinct_pictures"]) == (pyboy["unique_pcs"], pyboy["distinct_pictures"])
