"""`puffer bench` over many games and beside an earlier run: games, tables, intervals, records on stdout, losses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.workload import ROOT
from gbxcule_puffer.apps.bench import baseline
from gbxcule_puffer.apps.bench.measure import compare
from gbxcule_puffer.apps.bench.records import interval
from gbxcule_puffer.apps.bench.suites import SHARED_VARIABLE, roms_of_suite
from gbxcule_puffer.apps.bench.summary import tables
from gbxcule_puffer.apps.bench.workload import Workload
from gbxcule_puffer.cli import main
from gbxcule_puffer.errors import ConfigError
from tests.support.roms import tiny_rom

SHORT = ["--warmup", "0", "--steps", "1", "--repeat", "2", "--device", "cpu", "--cores", "1"]
LOOP = bytes([0x18, 0xFE])  # jr to itself


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two games, a file that is none, and a text."""
    folder = tmp_path_factory.mktemp("games")
    shutil.copy(ROOT / "roms/homeward.gb", folder)
    tiny_rom(folder / "loop.gbc", LOOP)
    (folder / "broken.gb").write_bytes(b"no game")
    (folder / "readme.txt").write_text("")
    return folder


def test_a_folder_of_games(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside PyBoy without being asked, two stages, one frame a step, the records alone on stdout."""
    words = ["bench", "--suite", folder, "--vec-backend", "serial", "--vs-num-envs", 1, "--num-envs", 2, *SHORT]
    words += ["--stage", "emulate_only,obs_only", "--frames-per-step", 1, "--json", "--out", tmp_path / "out"]
    assert main([str(word) for word in words]) == 0
    out, error = capsys.readouterr()
    records = json.loads(out)
    assert records == json.loads((tmp_path / "out/records.json").read_text())
    assert [(r["rom"], r["stage"], r["backend"]) for r in records[::2]] == [
        (rom, stage, "gbxcule") for rom in ("homeward", "loop") for stage in ("emulate_only", "obs_only")
    ]
    assert {record["backend"] for record in records[1::2]} == {"pyboy_puffer_vec"}
    assert all(record["kernel"].startswith("interpreter ") for record in records[::2])
    assert all(0 < r["ratio_low"] <= r["ratio_high"] for r in records[::2])
    assert {(r["frames_per_step"], r["release_after_frames"]) for r in records} == {(1, 1)}
    assert "left out: " in error and "broken.gb" in error and error.count("geometric mean of 2") == 2
    assert (tmp_path / "out/report.md").read_text().count("| geometric mean of 2 |") == 2


def test_the_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("homebrew/a.gb", "corpus/b.gb"):
        (tmp_path / "roms" / name).parent.mkdir(parents=True, exist_ok=True)
        tiny_rom(tmp_path / "roms" / name, LOOP)
    (tmp_path / "roms/manifest.json").write_text("{}")
    monkeypatch.setenv(SHARED_VARIABLE, str(tmp_path))
    assert [path.stem for path in roms_of_suite("corpus")] == ["homeward", "a", "b"]
    monkeypatch.setenv(SHARED_VARIABLE, str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match="needs the folder of shared ROMs"):
        roms_of_suite("corpus")


def record(rom: str, sps: float, **values: Any) -> dict[str, Any]:
    same = dict.fromkeys(baseline.SAME, 1)
    return {**same, "rom": rom, "rom_sha256": rom, "backend": "gbxcule", "stage": "obs_only", "sps": sps, **values}


def test_games_are_sorted_by_ratio_and_averaged() -> None:
    values = {"reset_every": 0, "ratio_low": 1.0, "ratio_high": 4.0}
    records = [record("b", 80.0, ratio=8.0, **values), record("a", 10.0, ratio=2.0, **values)]
    other = record("a", 5.0, backend="pyboy_puffer_vec")
    ((title, rows),) = tables([*records, other], "gbxcule").items()
    assert title == "obs_only, 1 envs"
    assert [row[:4] for row in rows[:2]] == [["a", "10", "5", "2.00"], ["b", "80", "10", "8.00"]]
    assert rows[2][0] == "geometric mean of 2" and rows[2][3] == "4.00"
    assert tables(records[:1], "gbxcule") == {}


def test_contenders_take_turns_in_both_orders() -> None:
    order: list[str] = []

    class Noting:
        """A contender that notes when it runs."""

        vec_backend, num_envs, backend = "native", 1, "noted"

        def __init__(self, name: str) -> None:
            self.name = name

        def start(self) -> None: ...

        def run(self, rows: slice) -> None:
            order.append(self.name)

        def bytes_in_use(self) -> int:
            return 0

        def facts(self) -> dict[str, Any]:
            return {"device_name": "none", "cores": 1}

        def close(self) -> None: ...

    workload = Workload(ROOT / "roms/homeward.gb", warmup=0, steps=1, repeat=3)
    found = compare([Noting("a"), Noting("b")], workload, lambda turns: None)
    assert "".join(order[::2]) == "abbaab"  # each repeat begins with a step that is not timed
    assert found[0]["ratio_low"] <= found[0]["ratio_high"] and "ratio" not in found[1]


def test_interval_of_a_ratio() -> None:
    assert interval(np.full(5, 6.0), np.full(5, 3.0)) == (2.0, 2.0)
    low, high = interval(np.array([1.0, 2, 3, 4, 5]), np.ones(5))
    assert low < 3 < high


def test_losses_beside_an_earlier_run(tmp_path: Path) -> None:
    before = [record("a", 100.0), record("b", 100.0)]
    assert baseline.losses([record("a", 96.0), record("b", 300.0)], before, 0.05) == []
    (loss,) = baseline.losses([record("a", 94.0), record("b", 95.0)], before, 0.05)
    assert loss == "a obs_only, 1 envs: 94 steps/s, 6.0 % less than 100 in the baseline"
    (missing,) = baseline.losses([record("a", 100.0, device_name="another")], before, 0.05)
    assert "no such record on another" in missing
    path = tmp_path / "records.json"
    for content, message in (
        ([], "holds no records"),
        ({}, "holds no records"),
        ([1], "without 'backend'"),
        ([{**record("a", 1.0), "sps": "fast"}], "sps is 'fast'"),
    ):
        path.write_text(json.dumps(content))
        with pytest.raises(ConfigError, match=message):
            baseline.load(path)
    path.write_text(json.dumps(before))
    assert baseline.load(path) == before


def test_a_loss_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "--num-envs", "1", *SHORT, "--stage", "emulate_only"]
    assert main([*words, "--json", str(tmp_path / "now.json"), "--out", str(tmp_path / "a")]) == 0
    (found,) = json.loads((tmp_path / "now.json").read_text())
    (tmp_path / "fast.json").write_text(json.dumps([{**found, "sps": 1e12}]))
    capsys.readouterr()
    assert main([*words, "--baseline", str(tmp_path / "fast.json"), "--out", str(tmp_path / "b")]) == 1
    assert "% less than 1,000,000,000,000 in the baseline" in capsys.readouterr().err
