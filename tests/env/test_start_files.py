"""Starts from files: save RAM, and folders of states for different envs."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import StateError
from tests.support.envs import STAGE, assert_same, make_test_task, play

ROM = STAGE.parent.parent / "homeward.gb"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """HOMEWARD beside the bed, and save RAM of noise."""
    folder = tmp_path / "starts"
    folder.mkdir()
    shutil.copy(make_test_task(tmp_path).kwargs["start_state"], folder / "b.state")
    size = len(Emulator(ROM).save_ram())
    (folder / "a.SAV").write_bytes(np.random.default_rng(1).integers(0, 256, size, np.uint8).tobytes())
    (folder / "notes.txt").write_text("no start")
    return folder


def test_each_env_begins_at_a_file_of_its_own(folder: Path) -> None:
    env = GBxCuLEEnv(ROM, num_envs=3, start_state=folder, curriculum="by_env", max_steps=3)
    rows = np.zeros((4, 3), np.int32)
    history = play(env, rows)
    alone = [
        play(GBxCuLEEnv(ROM, start_state=folder / name, max_steps=3), rows[:, :1]) for name in ("a.SAV", "b.state")
    ]
    for step, parts in enumerate(history):
        for i, expected in enumerate((alone[0], alone[1], alone[0])):
            np.testing.assert_array_equal(parts[0][i], expected[step][0][0])
    assert not np.array_equal(history[0][0][0], history[0][0][1])


def test_save_ram_is_in_the_cartridge_when_it_is_switched_on(folder: Path) -> None:
    env, pyboy = GBxCuLEEnv(ROM, start_state=folder / "a.SAV"), PyBoyPufferSingle(ROM, start_state=folder / "a.SAV")
    rows = np.array(env.codec.parse([*["NOOP"] * 4, "START", "NOOP", "DOWN", "A", "NOOP", "NOOP"]), np.int32)[:, None]
    env.reset()
    assert isinstance(env.emulator, Emulator)
    assert env.emulator.save_ram() == (folder / "a.SAV").read_bytes()
    assert_same(play(env, rows), play(pyboy, rows))
    np.testing.assert_array_equal(env.emulator.read_memory(0, 0xC000, 0x2000), pyboy.read_memory(0, 0xC000, 0x2000))
    pyboy.close()


def test_what_is_no_start(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(StateError, match=r"folder .*empty has no start states: give one with \.state or \.sav files"):
        GBxCuLEEnv(ROM, start_state=tmp_path / "empty")
    (folder / "a.SAV").write_bytes(b"short")
    with pytest.raises(StateError, match="the save RAM has 5 bytes, HOMEWARD has 8192: give this game's"):
        GBxCuLEEnv(ROM, start_state=folder)
    (folder / "a.SAV").write_bytes(bytes(2**20))
    with pytest.raises(StateError, match=r"a\.SAV"):
        GBxCuLEEnv(ROM, start_state=folder)
