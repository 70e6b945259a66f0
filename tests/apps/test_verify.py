"""`puffer verify`: equal runs, the bundle of a planted fault and what --replay shows, bad input."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from benchmarks.workload import find_rom
from gbxcule_puffer.apps.verify import verify as verify_module
from gbxcule_puffer.apps.verify.bundle import around_pc, write_bundle
from gbxcule_puffer.apps.verify.command import Verify
from gbxcule_puffer.apps.verify.verify import describe, parse_region, verify
from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.cli import main
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.snapshot import Snapshot
from tests.support.roms import tiny_rom

ROOT = Path(__file__).resolve().parents[2]
ROM = str(find_rom("homeward"))
FAULTY_STEP = 7


class FaultyEmulator(Emulator):
    """After FAULTY_STEP steps a register, a byte of WRAM and a part of the picture are wrong."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.steps = 0
        super().__init__(*args, **kwargs)

    def step(self, buttons: torch.Tensor) -> None:
        super().step(buttons)
        self.steps += 1
        if self.steps == FAULTY_STEP:
            self.set_registers(0, b=self.registers(0)["b"] ^ 0x40)
            self.write_memory(0, 0xC123, b"\xa5")
            self.screen[0, 10:20, 30:50] ^= 3


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any], str]:
    """Exit code, JSON summary and what was printed for people."""
    code = main(["verify", *arguments])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else {}, err


def test_equal_runs_end_with_code_0(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, summary, text = run(ROM, "--steps", "12", "--actions", "random:3", capsys=capsys)
    assert code == 0 and summary["equal"] and summary["steps_compared"] == 12 and summary["differences"] == {}
    assert "equal: 12 steps of 24 frames" in text and "12/12 steps equal" in text
    path = tmp_path / "summary.json"
    options = ("--frames-per-step", "1", "--steps", "24", "--json", str(path), "--mem-region", "A000:C000")
    code, nothing, _ = run(ROM, *options, capsys=capsys)
    assert code == 0 and not nothing
    assert json.loads(path.read_text())["release_after_frames"] == 1


def test_a_terminal_gets_a_report_and_no_json(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["verify", ROM, "--steps", "5"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("homeward.gb as a Game Boy on cpu and in PyBoy 2.8.1: registers, memory C000:E000, VRAM")
    assert rest == ["equal: 5 steps of 24 frames"]
    for flags in (["--json"], ["--json", "-"]):
        code, summary, text = run(ROM, "--steps", "5", *flags, capsys=capsys)
        assert code == 0 and summary["equal"] and "equal: 5 steps" in text
    monkeypatch.setattr(verify_module, "Emulator", FaultyEmulator)
    assert main(["verify", ROM, "--replay", str(bundle), "--out", str(tmp_path / "again")]) == 1
    out = capsys.readouterr().out
    assert f"different after step {FAULTY_STEP}:\n" in out and "C123" in out and "repro bundle: " in out


def test_actions_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    code, summary, _ = run(ROM, "--steps", "12", "--action-codec", "NOOP,select,START,b+a", capsys=capsys)
    assert code == 0 and summary["action_codec"] == "NOOP,SELECT,START,A+B"


def test_a_pyboy_state_to_start_from_and_an_action_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    machine = PyBoyMachine(Path(ROM).read_bytes())
    machine.step(0x10)
    (tmp_path / "x.state").write_bytes(machine.state())
    machine.close()
    (tmp_path / "actions.txt").write_text("UP UP A NOOP\nSTART")
    arguments = ("--start-state", str(tmp_path / "x.state"), "--actions", str(tmp_path / "actions.txt"))
    code, summary, _ = run(ROM, *arguments, capsys=capsys)
    assert code == 0 and summary["steps_compared"] == 5 and summary["start_state"] == "x.state"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = verify(Verify(rom=ROM, steps=20, actions="random:1"), make_emulator=FaultyEmulator)
    assert not result.equal and len(result.trace) == FAULTY_STEP
    assert set(result.differences) == {"b", "C000:E000", "picture"}
    assert result.differences["C000:E000"]["at"]["C123"]["emulator"] == 0xA5
    assert result.differences["picture"] == {"pixels": 200, "lines": [10, 19], "columns": [30, 49]}
    assert f"different after step {FAULTY_STEP}" in describe(result)[0]
    folder = tmp_path_factory.mktemp("bundles") / "homeward-step7"
    assert write_bundle(result, folder) == folder
    assert write_bundle(result, folder) == folder.with_name("homeward-step7-2")
    return folder


def test_the_bundle_holds_everything_but_the_rom(bundle: Path) -> None:
    files = {path.name for path in bundle.iterdir()}
    assert files == {
        "README.txt", "actions.txt", "before.state", "diff.json", "difference.png", "disassembly.txt",
        "emulator.png", "emulator.state", "oracle.png", "oracle.state", "start.state", "summary.json",
    }  # fmt: skip
    assert len((bundle / "actions.txt").read_text().split()) == FAULTY_STEP
    diff = json.loads((bundle / "diff.json").read_text())
    assert diff["step"] == FAULTY_STEP
    assert diff["fields"]["b"]["oracle"] ^ diff["fields"]["b"]["emulator"] == 0x40
    states = {name: Snapshot.from_file(bundle / f"{name}.state") for name in ("oracle", "emulator")}
    pictures = {name: np.asarray(Image.open(bundle / f"{name}.png")) for name in states}
    for name, state in states.items():
        assert np.array_equal((255 - pictures[name]) // 85, state.screen[0])
    red = (np.asarray(Image.open(bundle / "difference.png")) == (255, 0, 0)).all(axis=2)
    assert np.array_equal(red, pictures["oracle"] != pictures["emulator"]) and red.sum() == 200
    text = (bundle / "disassembly.txt").read_text()
    for name in ("before", "oracle", "emulator"):
        assert f"{name}: PC" in text
    assert sum(line.startswith("> ") for line in text.splitlines()) == 3
    assert str(Path(ROM).parent) not in "".join((bundle / name).read_text() for name in files if "." in name
                                                and name.endswith((".json", ".txt")))  # fmt: skip


def test_replay_shows_the_same_difference_again(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verify_module, "Emulator", FaultyEmulator)
    code, summary, text = run(ROM, "--replay", str(bundle), "--out", str(tmp_path / "again"), capsys=capsys)
    assert code == 1, text
    assert summary["differences"] == json.loads((bundle / "diff.json").read_text())["differences"]
    assert summary["first_difference_step"] == FAULTY_STEP
    assert (tmp_path / "again" / "diff.json").read_bytes() == (bundle / "diff.json").read_bytes()


def test_replay_without_the_fault_is_equal(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, summary, _ = run(ROM, "--replay", str(bundle), "--steps", "3", capsys=capsys)
    assert code == 0 and summary["steps_compared"] == 3, "a flag that is given wins"


def test_replay_refuses_another_rom(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rom = bytearray(Path(ROM).read_bytes())
    rom[0x7000] ^= 1
    (tmp_path / "other.gb").write_bytes(rom)
    assert main(["verify", str(tmp_path / "other.gb"), "--replay", str(bundle)]) == 2
    assert "SHA-256" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "has version 2, not 1"),
        ({"format": "other"}, "is not a verify bundle file"),
        ({"frames_per_step": True}, "frames_per_step is missing or not of type int"),
        ({"mem_region": None}, "mem_region is missing or not of type str"),
        ({"device": "\x1b[2J"}, r"device '\x1b[2J' is not supported"),
        ({"frames_per_step": -1}, "--frames-per-step -1 must be from 1"),
    ],
)
def test_a_damaged_bundle_is_one_line(
    bundle: Path, tmp_path: Path, change: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(bundle, tmp_path / "bundle")
    summary = json.loads((bundle / "summary.json").read_text()) | change
    (tmp_path / "bundle" / "summary.json").write_text(json.dumps(summary))
    assert main(["verify", ROM, "--replay", str(tmp_path / "bundle")]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_a_clock_that_follows_the_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two looks at the clock chip in one instruction: PyBoy adds the host's time, and no two runs of it are equal."""
    code = bytes([0x3E, 0x0A, 0xEA, 0x00, 0x00, 0x31, 0x00, 0x01, 0x08, 0x00, 0x60, 0x18, 0xFB])  # ld (6000),sp
    rom = tiny_rom(tmp_path / "clock.gb", code, cartridge_type=0x0F)
    found, summary, text = run(rom, "--steps", "12", "--frames-per-step", "2", capsys=capsys)
    assert found == 0 and summary["steps_compared"] == 12, text
    assert summary["host_seconds_in_clock"] > 0 and "of the host's time" in text


def test_an_illegal_opcode_in_the_first_frame(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, summary, text = run(tiny_rom(tmp_path / "illegal.gb", b"\xd3"), capsys=capsys)
    assert code == 0 and summary["steps_compared"] == 0 and "before the first step" in text


def test_only_a_regular_file_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert main(["verify", ROM, "--json", str(tmp_path / "fifo")]) == 2
    assert "fifo is a FIFO, and only a regular file is ever replaced" in capsys.readouterr().err
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


def test_an_illegal_opcode_ends_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = bytes([0x11, 0x00, 0x40, 0x1B, 0x7A, 0xB3, 0x20, 0xFB, 0xD3, 0x00, 0x00])  # wait; illegal
    rom = tiny_rom(tmp_path / "illegal.gb", code)
    arguments = (rom, "--frames-per-step", "1", "--steps", "20")
    found, summary, text = run(*arguments, capsys=capsys)
    assert found == 0 and "illegal opcode" in summary["ended"] and "illegal opcode" in text
    assert 0 < summary["steps_compared"] < 20


def test_the_listing_is_aligned_at_pc() -> None:
    emulator = Emulator(ROM)
    lines = around_pc(emulator.save(0), emulator.cartridge)
    marked = [line for line in lines if line.startswith("> ")]
    assert len(marked) == 1 and marked[0][2:6] == f"{emulator.registers(0)['pc']:04X}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.gb"], "missing.gb: cannot be read"),
        ([ROM, "--steps", "0"], "steps 0 must be at least 1"),
        ([ROM, "--steps", "1000000000000"], "steps 1,000,000,000,000 needs 14901.2 GiB of memory"),
        ([ROM, "--actions", "random:x"], "random:SEED"),
        ([ROM, "--actions", "missing.txt"], "missing.txt"),
        ([ROM, "--mem-region", "C000"], "FIRST:END"),
        ([ROM, "--mem-region", "E000:C000"], "FIRST:END"),
        ([ROM, "--start-state", "missing.state"], "missing.state"),
        ([ROM, "--start-state", ROM], "neither a snapshot"),
        ([ROM, "--frames-per-step", "0"], "--frames-per-step 0 must be from 1"),
        ([ROM, "--device", "tpu"], "tpu"),
        ([ROM, "--rom-sha256", "00"], "SHA-256"),
        ([ROM, "--nonsense"], "nonsense"),
        ([ROM, "--action-codec", "A,JUMP"], "its buttons are NOOP"),
        ([ROM, "--action-codec", "A,NOOP:60"], "has actions with frames of their own"),
        ([ROM, "--action-codec", "multi_binary"], "has several choices in a step"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["verify", *arguments])
    except SystemExit as ended:
        code = ended.code
    out, err = capsys.readouterr()
    assert code == 2 and not out and message in err and err.count("\n") == 1, err


def test_regions() -> None:
    assert parse_region("C000:E000") == (0xC000, 0xE000)
    assert parse_region("0:10000") == (0, 0x10000)
