"""The timer, brought up to date at once, is where it is after T-cycle by T-cycle."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.emulator.hw import timer
from gbxcule_puffer.emulator.saves.one_env import one_env
from tests.fuzz.generator import make_rom

FIELDS = ("tima", "tima_reload", "tima_reload_count", "timer_last", "interrupt_flag")
PERIODS = (1024, 16, 64, 256)


def increase(c: Any) -> None:
    c.tima += 1
    if c.tima > 0xFF:
        c.tima, c.tima_reload, c.tima_reload_count = c.tma, 1, 4


def tick(c: Any) -> None:
    """One T-cycle."""
    if c.tima_reload:
        c.tima_reload_count -= 1
        if c.tima_reload_count == 0:
            c.interrupt_flag |= hw.INT_TIMER if c.tima_reload == 1 else 0
            c.tima_reload, c.tima_reload_count = (2, 4) if c.tima_reload == 1 else (0, 0)
    c.timer_last += 1
    if c.tac & 4 and (c.timer_last - c.div_zero) % PERIODS[c.tac & 3] == 0:
        increase(c)


@pytest.mark.parametrize("tac", range(8))
def test_at_once_and_t_cycle_by_t_cycle(tac: int) -> None:
    cartridge = load_cartridge(make_rom(0).data)
    draw = random.Random(tac).randrange
    overflows = 0
    for _ in range(400):
        reload = draw(3)
        fields = {"tac": tac, "tima": draw(0x100) if draw(2) else 0xFF, "tma": draw(0x100) if draw(2) else 0xFF}
        fields |= {"tima_reload": reload, "tima_reload_count": 1 + draw(4) if reload else 0}
        fields |= {"timer_last": -draw(40), "div_zero": -40 - draw(5000), "interrupt_flag": 0}
        _, cpu = one_env(cartridge, fields)
        expected = SimpleNamespace(**fields)
        t = draw(100)
        while expected.timer_last < t:
            tick(expected)
        overflows += expected.interrupt_flag != 0
        timer.advance(cpu, t)
        assert [getattr(cpu, name) for name in FIELDS] == [getattr(expected, name) for name in FIELDS], fields
    assert overflows > 50
