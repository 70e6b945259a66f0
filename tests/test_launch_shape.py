"""How kernels are launched: the measured table, and one that this machine has measured itself."""

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.workload import ROOT, random_buttons
from gbxcule_puffer.cli import main
from gbxcule_puffer.codegen import interpreter, launch_shape
from gbxcule_puffer.codegen.launch_shape import REGISTERS, LaunchShape, best, save_table
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.errors import ConfigError


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "launch_shapes.json"
    monkeypatch.setattr(launch_shape, "table_path", lambda: file)
    return file


def test_without_a_table_of_its_own_a_gpu_gets_the_measured_one() -> None:
    lanes = [best(size, "some GPU").lanes for size in (1, 8_192, 8_193, 32_768, 32_769, 1_000_000)]
    assert lanes == [8, 8, 16, 16, 32, 32]


def test_what_a_device_has_measured_counts_there_and_only_there() -> None:
    save_table("other GPU", {4: LaunchShape(32, 32)})
    save_table("some GPU", {1_024: LaunchShape(8, 64), 4_096: LaunchShape(16, 256)})
    shapes = [best(size, "some GPU") for size in (1, 1_024, 1_025, 9_999)]
    assert shapes == [LaunchShape(8, 64), LaunchShape(8, 64), LaunchShape(16, 256), LaunchShape(16, 256)]
    assert best(16, "other GPU") == LaunchShape(32, 32)
    assert best(16, "third GPU") == LaunchShape(8, 128)


@pytest.mark.parametrize("text", ["{", "[]", '{"GPU": {"8": [7, 128]}}', '{"GPU": {"x": [8, 128]}}', '{"GPU": 3}'])
def test_a_damaged_table_is_refused(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"launch_shapes\.json is damaged .* delete it"):
        best(1, "GPU")


def test_a_cpu_has_nothing_to_tune(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--autotune", "--device", "cpu"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "puffer: --autotune chooses how a GPU's kernel is launched: give --device cuda"
    ]


def test_the_kernel_with_few_registers_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its calls by address work on a CPU, too, where nothing else uses it."""
    rom, buttons = ROOT / "roms" / "homeward.gb", torch.from_numpy(random_buttons(1, 20, 3))
    emulators = [Emulator(rom, 3, kernel=kernel, num_threads=1) for kernel in ("interpreter", "datapath")]
    kernel = interpreter.module("datapath", registers=REGISTERS[-1]).kernel_step
    monkeypatch.setattr(emulators[1], "_kernel", lambda: kernel)
    for row in buttons:
        for emulator in emulators:
            emulator.step(row)
    assert np.array_equal(emulators[0].state_hash(), emulators[1].state_hash())
