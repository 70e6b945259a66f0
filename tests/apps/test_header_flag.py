"""--header pyboy: everything runs a ROM that a strict check of the header refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gbxcule_puffer.apps.play.session import PlaySession
from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.cli import main
from gbxcule_puffer.env import GBxCuLEEnv
from tests.emulator.test_header import image

LENIENT = ("--header", "pyboy")


@pytest.fixture
def rom(tmp_path: Path) -> Path:
    path = tmp_path / "half.gb"
    path.write_bytes(image(0x00, 0x4000))
    return path


def test_environments(rom: Path) -> None:
    envs = [kind(rom, 2, header="pyboy") for kind in (GBxCuLEEnv, PyBoyPufferSingle)]
    for env in envs:
        env.reset(seed=1)
    for _ in range(3):
        first, second = (env.step(np.array([1, 5]))[0].copy() for env in envs)
        np.testing.assert_array_equal(first, second)
    for env in envs:
        env.close()


def test_commands(rom: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verify = ["verify", str(rom), "--steps", "3", "--json", str(tmp_path / "v.json")]
    record = ["record", str(rom), "--out", str(tmp_path / "film.gif"), "--steps", "2"]
    for command in (verify, record):
        assert main(command) == 2
        assert "--header pyboy, runs it as PyBoy does" in capsys.readouterr().err
        assert main([*command, *LENIENT]) == 0
    PlaySession(rom, tmp_path, header="pyboy").press("A")
    assert main(["record", str(rom), "--out", str(tmp_path / "film.gif"), "--header", "lax"]) == 2
    assert "header 'lax' is unknown: give one of strict, pyboy" in capsys.readouterr().err
