"""The position of the player: by the option, the task, or the manifest of our own ROMs; other texts are one line."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import ROMS
from gbxcule_puffer.tasks.ram import Symbols
from gbxcule_puffer.tasks.ram.position import find_position
from gbxcule_puffer.tasks.ram.symbols import Location
from gbxcule_puffer.tasks.task import Task


class Walk(Task):
    position = ("player_map", "player_y", "player_x")


class Other(Task):
    pass


def test_the_first_that_names_one() -> None:
    sha256, symbols = load_cartridge(ROMS / "homeward.gb").sha256, Symbols.load(ROMS / "homeward.sym")
    own = (0xC0A0, 0xC0A2, 0xC0A1)
    assert find_position("C000, 1:A001,FF80", Walk(), sha256, None) == (0xC000, (1, 0xA001), 0xFF80)
    assert find_position("player_y,player_x", None, sha256, symbols) == own[1:]
    assert find_position(None, Walk(), sha256, symbols) == Walk.position
    assert find_position(None, Other(), sha256, None) == find_position(None, None, sha256, None) == own
    assert find_position(None, Other(), "0" * 64, None) is None
    assert tuple(symbols.find(name).address for name in ("player_map", "player_y", "player_x")) == own


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("C000", "position 'C000' has 1 parts: give MAP,ROW,COLUMN or ROW,COLUMN"),
        ("C000,C001,C002,C003", "has 4 parts"),
        ("C000,here", "'here' is not a hexadecimal address"),
        (
            "C000:2,C002",
            "position 'C000:2,C002': 'C000:2' has 2 bytes, but map, row and column have one each",
        ),
        ("C000,0100", "0100 is not VRAM, WRAM, OAM or HRAM"),
    ],
)
def test_other_texts(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        find_position(text, None, "", None)


@pytest.mark.parametrize(
    ("position", "message"),
    [
        (("player_y",), r"task Lost: position \('player_y',\) is not \(map, row, column\) or \(row, column\) of RAM"),
        (5, "task Lost: position 5 is no"),
        (("player_y:2", "player_x"), "task Lost: position: 'player_y:2' has 2 bytes, but map, row and column have one"),
        (
            ("player_y", 1.5),
            r"task Lost: position: 1.5 is not a byte of RAM: give an address, a symbol or",
        ),
        (("player_y", ["player_x"]), r"position: \['player_x'\] is not a byte of RAM"),
        (("player_y", "player_z"), "task Lost: position: symbol 'player_z' is not in .*: did you mean"),
        ("player_y,player_z", "task Lost: position 'player_y,player_z': symbol 'player_z' is not in"),
    ],
)
def test_a_task_that_names_another_thing(position: Any, message: str) -> None:
    lost = type("Lost", (Task,), {"position": position})
    with pytest.raises(ConfigError, match=message):
        find_position(None, lost(), "", Symbols.load(ROMS / "homeward.sym"))


def test_a_tasks_place_as_text_or_of_one_task_alone() -> None:
    symbols, task = Symbols.load(ROMS / "homeward.sym"), Other()
    task.position = "player_y,C0A1"
    assert find_position(None, task, "", symbols) == (0xC0A2, 0xC0A1)
    assert find_position(None, Other(), "", symbols) is None


def test_a_symbol_that_may_have_two_bytes_is_told() -> None:
    symbols, task = Symbols({"x": Location(0, 0xC000), "y": Location(0, 0xC002), "z": Location(0, 0xC003)}), Other()
    for position, source in (("y,x", "position 'y,x'"), (("y", "x"), "task Other: position")):
        task.position = position
        with pytest.warns(UserWarning) as told:
            find_position(None, task, "", symbols)
        (warning,) = told
        assert f"{source}: x may have two bytes, and only the first counts: give x:1" in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_position("y:1,x:1", None, "", symbols) == (0xC002, 0xC000)
        assert find_position("x+1,y,C000", None, "", symbols) == (0xC001, 0xC002, 0xC000)
        task.position = ("y", "x:1", (1, 0xA000))
        assert find_position(None, task, "", symbols) == ("y", "x", (1, 0xA000))
