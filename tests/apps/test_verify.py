"""`puffer verify`: equal runs, the bundle of a planted fault and what its repro.sh shows, bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from baselines.pyboy_machine import PyBoyMachine
from benchmarks.workload import find_rom
from gbxcule_puffer.apps.verify.bundle import around_pc, write_bundle
from gbxcule_puffer.apps.verify.verify import Options, describe, parse_region, verify
from gbxcule_puffer.cli import main
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.snapshot import Snapshot

ROOT = Path(__file__).resolve().parents[2]
ROM = str(find_rom("homeward"))
FAULTY_STEP = 7
# An emulator with a fault, put into another process: Python imports this module when it starts.
PLANT = """
from gbxcule_puffer.apps.verify import verify
from tests.apps.test_verify import FaultyEmulator

verify.Emulator = FaultyEmulator
"""


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
    code, summary, text = run(ROM, "--steps", "25", "--actions", "random:3", capsys=capsys)
    assert code == 0 and summary["equal"] and summary["steps_compared"] == 25 and summary["differences"] == {}
    assert "equal: 25 steps of 24 frames" in text and "25/25 steps equal" in text
    path = tmp_path / "summary.json"
    options = ("--frames-per-step", "1", "--steps", "60", "--json", str(path), "--mem-region", "A000:C000")
    code, nothing, _ = run(ROM, *options, capsys=capsys)
    assert code == 0 and not nothing
    assert json.loads(path.read_text())["release_after_frames"] == 1


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
    result = verify(Options(rom=ROM, steps=20, actions="random:1"), make_emulator=FaultyEmulator)
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
        "emulator.png", "emulator.state", "oracle.png", "oracle.state", "repro.sh", "start.state", "summary.json",
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
                                                and name.endswith((".sh", ".json", ".txt")))  # fmt: skip


def shell(bundle: Path, rom: str, plant: Path | None) -> subprocess.CompletedProcess[str]:
    places = [str(plant)] if plant else []
    paths = os.pathsep.join([*places, str(ROOT), *sys.path])
    environment = os.environ | {"PYTHON": sys.executable, "PYTHONPATH": paths}
    command = ["sh", str(bundle / "repro.sh"), rom]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, cwd="/")


def test_repro_shows_the_same_difference_again(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(PLANT)
    again = shell(bundle, ROM, tmp_path)
    assert again.returncode == 1, again.stderr
    summary = json.loads(again.stdout)
    assert summary["differences"] == json.loads((bundle / "diff.json").read_text())["differences"]
    assert summary["first_difference_step"] == FAULTY_STEP


def test_repro_without_the_fault_is_equal(bundle: Path) -> None:
    again = shell(bundle, ROM, None)
    assert again.returncode == 0, again.stderr


def test_repro_refuses_another_rom(bundle: Path, tmp_path: Path) -> None:
    rom = bytearray(Path(ROM).read_bytes())
    rom[0x7000] ^= 1
    (tmp_path / "other.gb").write_bytes(rom)
    again = shell(bundle, str(tmp_path / "other.gb"), None)
    assert again.returncode == 2 and "SHA-256" in again.stderr


def test_an_illegal_opcode_ends_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rom = bytearray(0x8000)
    rom[0x100:0x104] = bytes([0x00, 0x18, 0x4D, 0x00])  # nop; jr 0150
    rom[0x150:0x15B] = bytes([0x11, 0x00, 0x40, 0x1B, 0x7A, 0xB3, 0x20, 0xFB, 0xD3, 0x00, 0x00])  # wait; illegal
    rom[0x14D] = -(sum(rom[0x134:0x14D]) + 25) & 0xFF
    (tmp_path / "illegal.gb").write_bytes(rom)
    arguments = (str(tmp_path / "illegal.gb"), "--frames-per-step", "1", "--steps", "20")
    code, summary, text = run(*arguments, capsys=capsys)
    assert code == 0 and "illegal opcode" in summary["ended"] and "illegal opcode" in text
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
        ([ROM, "--actions", "random:x"], "random:SEED"),
        ([ROM, "--actions", "missing.txt"], "missing.txt"),
        ([ROM, "--mem-region", "C000"], "FIRST:END"),
        ([ROM, "--mem-region", "E000:C000"], "FIRST:END"),
        ([ROM, "--start-state", "missing.state"], "missing.state"),
        ([ROM, "--start-state", ROM], "neither a snapshot"),
        ([ROM, "--frames-per-step", "0"], "frames_per_step"),
        ([ROM, "--device", "tpu"], "tpu"),
        ([ROM, "--rom-sha256", "00"], "SHA-256"),
        ([ROM, "--nonsense"], "nonsense"),
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
