"""`puffer show`: the pictures of states of all kinds, alone and as a contact sheet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from gbxcule_puffer import cli
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.saves.state_files import write_pyboy_state
from gbxcule_puffer.pictures import to_rgb


@pytest.fixture(scope="module")
def played() -> dict[str, Emulator]:
    """HOMEWARD a second after power-on, on both models and at both resolutions."""
    made = {
        "full": Emulator("homeward", screen="full"),
        "half": Emulator("homeward", num_envs=3),
        "cgb": Emulator("homeward", screen="full", model="cgb"),
    }
    for emulator in made.values():
        for _ in range(3):
            emulator.step(torch.zeros(emulator.num_envs, dtype=torch.uint8))
    return made


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def test_one_state_is_its_picture(played: dict[str, Emulator], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("full", "cgb"):
        emulator = played[name]
        emulator.save(0).to_file(tmp_path / "a.state")
        shown = emulator.screen if name == "full" else emulator.colors
        assert cli.main(["show", "a.state"]) == 0
        assert np.array_equal(pixels(tmp_path / "a.png"), to_rgb(shown[0].numpy(), 2))


def test_pyboy_s_states_are_shown_with_their_rom(
    played: dict[str, Emulator], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    emulator, state, out = played["full"], str(tmp_path / "a.state"), str(tmp_path / "new.png")
    write_pyboy_state(state, emulator.save(0), emulator.cartridge)
    assert cli.main(["show", state, "--out", out]) == 2
    assert "give the --rom, too" in capsys.readouterr().err
    assert cli.main(["show", state, "--out", out, "--rom", "homeward", "--scale", "1"]) == 0
    assert np.array_equal(pixels(tmp_path / "new.png"), to_rgb(emulator.screen[0].numpy()))


def test_several_are_a_contact_sheet(
    played: dict[str, Emulator], tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """All files of a folder, all Game Boys of a file, of both resolutions; their names are below, and printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "play").mkdir()
    played["full"].save(0).to_file("play/one.state")
    played["half"].save().to_file("play/three.state")
    assert cli.main(["show", "play", "--columns", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines[:4]] == ["one.state", *(f"three.state {i}" for i in range(3))]
    sheet, first = pixels(tmp_path / "states.png"), to_rgb(played["full"].screen[0].numpy(), 2)
    assert np.array_equal(sheet[2 : 2 + 288, 2 : 2 + 320], first)
    rows, columns = sheet.shape[0] // 2, sheet.shape[1] // 2
    below = sheet[2 + 288 : rows, 2 : 2 + 320]
    assert sheet.shape[:2] == (2 * rows, 2 * columns) and 20 < (below < 128).sum() < below.size / 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere.state"], "nowhere.state: cannot be read"),
        (["empty"], "folder empty has no start states"),
        (["text.state"], "not a state of this program: for save RAM and for states of PyBoy give the --rom, too"),
        (["text.state", "--rom", "homeward"], "text.state"),
        (["game.sav"], "save RAM, which holds no picture: for save RAM and for states of PyBoy give the --rom, too"),
        (["one.state", "--out", "one.jpg"], "unknown format: name it .png"),
        (["one.state", "--rom", "nowhere.gb"], "ROM nowhere.gb: cannot be read"),
        (["damaged.state"], "damaged"),
    ],
)
def test_what_is_not_a_state_is_one_line(
    words: list[str], told: str, played: dict[str, Emulator], tmp_path: Path, monkeypatch: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.state").write_text("no state")
    (tmp_path / "game.sav").write_bytes(bytes(8192))
    played["full"].save(0).to_file("one.state")
    (tmp_path / "damaged.state").write_bytes((tmp_path / "one.state").read_bytes()[:-20])
    assert cli.main(["show", *words]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1 and not list(tmp_path.glob("*.png"))
