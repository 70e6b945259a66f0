"""How kernels are launched: the measured table, and one that this machine has measured itself."""

from pathlib import Path

import pytest

from gbxcule_puffer.apps.bench.autotune import all_shapes
from gbxcule_puffer.cli import main
from gbxcule_puffer.emulator.gpu.schedule import launch_shape
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import PACKED, PATIENCE, LaunchShape, best, save_table
from gbxcule_puffer.errors import ConfigError


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "launch_shapes.json"
    monkeypatch.setattr(launch_shape, "table_path", lambda: file)
    return file


def test_without_a_table_of_its_own_a_gpu_gets_the_measured_one() -> None:
    lanes = [best(size, "some GPU").lanes for size in (1, 1_024, 1_025, 2_049, 4_096, 4_097, 16_384, 16_385, 10**6)]
    assert lanes == [1, 1, 2, 8, 8, 16, 16, 32, 32]


def test_what_a_device_has_measured_counts_there_and_only_there() -> None:
    save_table("other GPU", {4: LaunchShape(32, 32)})
    packed = LaunchShape(16, 128, True, twins=PACKED)
    save_table("some GPU", {1_024: LaunchShape(8, 32), 4_096: packed})
    shapes = [best(size, "some GPU") for size in (1, 1_024, 1_025, 9_999)]
    assert shapes == [LaunchShape(8, 32)] * 2 + [packed] * 2
    assert best(16, "other GPU") == LaunchShape(32, 32)
    assert best(4_096, "third GPU") == LaunchShape(8, 32, True, twins=PACKED)


def test_more_calls_wait_for_fewer_turns() -> None:
    usual, often = LaunchShape(32, 32), LaunchShape(32, 32, calls=4)
    assert usual.patience == 4 * PATIENCE and often.patience == LaunchShape(8, 32).patience == PATIENCE


def test_every_shape_that_is_measured_is_kept() -> None:
    shapes = dict(enumerate(all_shapes()))
    save_table("some GPU", shapes)
    assert [best(size, "some GPU") for size in shapes] == list(shapes.values())
    assert len(set(shapes.values())) == len(shapes)


def test_a_table_of_an_earlier_version_is_read(path: Path) -> None:
    path.write_text('{"some GPU": {"4096": [16, 128, true]}}')
    assert best(4_096, "some GPU") == LaunchShape(16, 128, True)


TABLES = (
    '{"8": [7, 128]}',
    '{"8": [8, 128, 2]}',
    '{"8": [8, 128, true, 0, 0, "x"]}',
    '{"8": [8, 128, true, 4, 4]}',
    '{"8": [8, 128, true, 0, 0, "mixed", 4]}',
    '{"x": [8, 128]}',
    "3",
)


@pytest.mark.parametrize("text", ["{", "[]", *(f'{{"GPU": {table}}}' for table in TABLES)])
def test_a_damaged_table_is_refused(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"launch_shapes\.json: is .* delete it"):
        best(1, "GPU")


def test_a_cpu_has_nothing_to_tune(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--autotune", "--device", "cpu"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "puffer: --autotune chooses how a GPU's kernel is launched: give --device cuda"
    ]
