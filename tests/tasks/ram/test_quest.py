"""Quests on a memory that the test writes: conditions, sums, bits, decimal digits, rises, once ever, ends."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram import Ram, Symbols
from gbxcule_puffer.tasks.ram.quest import Quest, _condition, load_quest
from gbxcule_puffer.tasks.ram.symbols import Location
from tests.support.envs import STAGE

N = 2
SYMBOLS = Symbols({"wMoney": Location(0, 0xC200), "sSave": Location(0, 0xA010)}, "game.sym")
ALL = torch.ones(N, dtype=torch.bool)
NOBODY: Any = None


@pytest.fixture(scope="module")
def ram() -> Ram:
    return Ram(Emulator(STAGE.parent.parent / "homeward.gb", N), SYMBOLS)


def start(ram: Ram, *rows: dict[str, Any]) -> Quest:
    """A quest whose episodes begin with C200 to C20F all 0."""
    quest = Quest([_condition({"name": str(i), **row}, "quest", SYMBOLS) for i, row in enumerate(rows)])
    ram.poke(0xC200, [0] * 16)
    quest.setup(ram)
    quest.reset(ram, ALL)
    return quest


def rewards(quest: Quest, ram: Ram, *values: list[int]) -> list[float]:
    """The first env's rewards after each of these was stored from C200 on, to the second env, which only waits, 0."""
    found = []
    for value in values:
        ram.poke(0xC200, value, torch.tensor([True, False]))
        reward = quest.step(ram, NOBODY, NOBODY).reward.tolist()
        found.append(reward[0])
        assert reward[1] == 0
    return found


@pytest.mark.parametrize(
    ("row", "values", "wanted"),
    [  # of C200 on
        ({"address": "wMoney", "test": ">=", "value": 3, "reward": 2.0}, [[2], [3], [4], [1], [5]], [0, 2, 0, 0, 0]),
        ({"address": "C200", "size": 2, "test": "==", "value": 0x201, "reward": 1.0}, [[1], [1, 2]], [0, 1]),
        ({"address": "C200", "size": 2, "order": "big", "test": ">=", "value": 256, "reward": 1}, [[0], [1]], [0, 1]),
        ({"address": ["C200", "wMoney+2"], "reward": 0.5}, [[3, 0, 0], [3, 9, 4], [0, 0, 8], [1]], [1.5, 2, 0.5, 0.5]),
        ({"address": "C200", "size": 3, "read": "bits", "reward": 1}, [[255, 0, 1], [0, 0, 1], [255, 2, 1]], [9, 0, 1]),
        ({"address": "C200", "size": 2, "order": "big", "read": "bcd", "reward": 1}, [[1, 0x20], [1, 0x24]], [120, 4]),
        ({"address": "C200", "mask": 0x0F, "reward": 1.0}, [[0xF2], [0x13]], [2, 1]),
        ({"address": "C200", "pays": "change", "reward": 0.5}, [[4], [1], [1], [9]], [2, -1.5, 0, 4]),
    ],
)  # fmt: skip
def test_what_is_paid(ram: Ram, row: dict[str, Any], values: list[list[int]], wanted: list[float]) -> None:
    assert rewards(start(ram, row), ram, *values) == wanted


def test_once_an_episode_and_once_ever(ram: Ram) -> None:
    row = {"address": "C200", "test": "==", "value": 1, "reward": 1.0}
    quest = start(ram, row, {**row, "once": "ever", "reward": 10.0}, {"address": "C200", "reward": 100.0})
    assert rewards(quest, ram, [1]) == [111]
    ram.poke(0xC200, 0)
    quest.reset(ram, ALL)
    assert rewards(quest, ram, [1], [0], [1]) == [101, 0, 0]
    quest.reset(ram, ALL)  # it holds already
    assert rewards(quest, ram, [0], [1]) == [0, 0]
    names = quest.step(ram, NOBODY, NOBODY).statistics
    assert {name: column.tolist() for name, column in names.items()} == {
        "0": [True, False], "1": [True, False], "2": [1, 0],
    }  # fmt: skip


def test_an_end(ram: Ram) -> None:
    quest = start(ram, {"address": "C200", "test": "==", "value": 1, "end": True}, {"address": "C201", "reward": 1.0})
    ends = []
    for value in (0, 1, 1):
        ram.poke(0xC200, value, torch.tensor([True, False]))
        terminal = quest.step(ram, NOBODY, NOBODY).terminal
        assert terminal is not None
        ends.append(terminal.tolist())
    assert ends == [[False, False], [True, False], [False, False]]
    assert start(ram, {"address": "C201"}).step(ram, NOBODY, NOBODY).terminal is None


def test_the_quest_that_ships_is_of_the_rom_that_ships(ram: Ram) -> None:
    symbols = Symbols.load(STAGE.parent.parent / "homeward.sym")
    (condition,) = load_quest(STAGE.parent / "leave_house.quest.json", ram.cartridge.sha256, symbols)
    assert (condition.places, condition.end) == ((0xC0A0,), True)


def test_a_bank_of_the_cartridge(ram: Ram) -> None:
    ram.poke((0, 0xA010), 3)
    quest = start(ram, {"address": "0:A010", "reward": 1.0}, {"address": "sSave", "reward": 10.0})
    ram.poke((0, 0xA010), 4, torch.tensor([True, False]))
    assert quest.step(ram, NOBODY, NOBODY).reward.tolist() == [11, 0]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"address": "wMony"}, "symbol 'wMony' is not in game.sym: did you mean wMoney?"),
        ({"address": "A000"}, "is not VRAM, WRAM, OAM or HRAM"),
        ({"address": 5}, "is not a hexadecimal address"),
        ({"address": []}, "is not a hexadecimal address"),
        ({"address": "C000", "value": 1}, "lacks a field ('test'): give name, address"),
        ({"address": "C000", "size": 8}, "size must be a number from 1 to 512"),
        ({"address": "C000", "size": True}, "size must be a number"),
        ({"address": "C000", "order": "middle"}, "order must be one of little, big"),
        ({"address": "C000", "read": "float"}, "read must be one of number, bits, bcd"),
        ({"address": "C000", "once": "never"}, "once must be one of episode, ever"),
        ({"address": "C000", "pays": "fall"}, "pays must be one of rise, change"),
        ({"address": "C000", "pays": "change", "test": "==", "value": 1}, "'change' has no test"),
        ({"address": "C000", "end": True}, "end must be true or false, and needs a test"),
        ({"address": "C000", "reward": "much"}, "reward must be from -1,000,000 to 1,000,000"),
        ({"address": "C000", "name": 3}, "name must be text"),
        ({"address": "C000", "places": []}, "a field too many ('places'): it has name, address, test"),
        ([], "lacks a field ('address')"),
        ({"address": "C000", "test": "<=", "valu": 1}, "a field too many ('valu')"),
    ],
)
def test_rows_that_are_refused(row: Any, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _condition({"name": "a", **row} if isinstance(row, dict) else row, "quest q.json: condition 3", SYMBOLS)
    assert str(caught.value).startswith("quest q.json: condition 3")
    assert told in str(caught.value)
