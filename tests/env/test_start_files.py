"""Starts from files: save RAM, and folders of states for different envs."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

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
    for name, data, line in (
        ("a.SAV", b"short", "has 5 bytes, HOMEWARD has 8192: give this game's"),
        ("a.SAV", bytes(2**20 + 1), ": has 1,048,577 bytes"),
        ("c.state", b"nothing", "neither a snapshot"),
        ("g.state", b"", "neither a snapshot of this program nor a PyBoy state of version 9 to 29 (it is empty)"),
        ("d.state", _state(accuracy="hardware"), "was saved with profile 'hardware'"),
        ("e.state", _state(num_envs=2), "has 2 envs, "),
        ("f.state", _state(model="cgb"), "is of model 'cgb'"),
    ):
        valid = (folder / name).read_bytes() if (folder / name).exists() else None
        (folder / name).write_bytes(data)
        for start in (folder, [folder / "b.state", folder / name]):
            with pytest.raises(StateError, match=rf"{re.escape(name)}[: ]*{re.escape(line)}") as caught:
                GBxCuLEEnv(ROM, start_state=start, io="torch")
            assert "\n" not in str(caught.value)
        if valid is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(valid)


def _state(num_envs: int = 1, **options: Any) -> bytes:
    """The file of an emulator's snapshot."""
    emulator = Emulator(ROM, num_envs, **options)
    with tempfile.NamedTemporaryFile() as file:
        emulator.save().to_file(file.name)
        return Path(file.name).read_bytes()
