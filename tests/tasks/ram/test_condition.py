"""Conditions on RAM as text, on a memory that the test writes."""

from __future__ import annotations

import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram import Ram, Symbols
from gbxcule_puffer.tasks.ram.condition import Condition, all_hold, parse_condition
from gbxcule_puffer.tasks.ram.symbols import Location
from tests.support.envs import STAGE

SYMBOLS = Symbols({"wMoney": Location(0, 0xC200)}, "game.sym")


def test_what_a_text_means() -> None:
    assert parse_condition("C0A5&04!=0", "x") == Condition(0xC0A5, "!=", 0, 4)
    assert parse_condition("wMoney + 1 >= 5", "x", SYMBOLS) == Condition(0xC201, ">=", 5)
    assert parse_condition("1:A000==255", "x") == Condition((1, 0xA000), "==", 255)
    for text in ("C0A5", "C0A5==x", "C0A5&zz==1", "C0A5==256", "C0A5&100==1", "C0A5==-1", "1234==1", "wMony==1"):
        with pytest.raises(ConfigError, match="--truth: "):
            parse_condition(text, "--truth", SYMBOLS)


def test_where_conditions_hold() -> None:
    ram = Ram(Emulator(STAGE.parent.parent / "homeward.gb", 4))
    ram.poke(0xC200, torch.tensor([0, 3, 4, 255]))
    for text, wanted in (
        ("C200==3", [0, 1, 0, 0]),
        ("C200!=3", [1, 0, 1, 1]),
        ("C200>=4", [0, 0, 1, 1]),
        ("C200<=3", [1, 1, 0, 0]),
        ("C200&04!=0", [0, 0, 1, 1]),
    ):
        assert parse_condition(text, "x").holds(ram).tolist() == wanted
    both = [parse_condition(text, "x") for text in ("C200!=0", "C200&01==1")]
    assert all_hold(both, ram).tolist() == [0, 1, 0, 1]
