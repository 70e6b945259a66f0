"""The sound unit (hw/sound/) beside PyBoy's source, without a kernel; tests/conformance/test_sound.py runs programs."""

from __future__ import annotations

import random

import pytest

from gbxcule_puffer.emulator.hw.sound import lfsr
from tests.support.sound_unit import compare


@pytest.mark.parametrize("is_color", [False, True], ids=["dmg", "cgb"])
@pytest.mark.parametrize("seed", range(3))
def test_random_accesses_find_what_pyboy_has(seed: int, is_color: bool) -> None:
    assert compare(seed, is_color, 400 if is_color else 100) == []  # PyBoy's source steps a DMG's noise one by one


def one_by_one(register: int, steps: int, is_short: bool) -> int:
    """The shift register after some steps, as Pan Docs describe it."""
    for _ in range(steps):
        bit = (register ^ register >> 1) & 1
        register = register >> 1 & 0x3FFF | bit << 14
        if is_short:
            register = register & ~0x40 | bit << 6
    return register


@pytest.mark.parametrize("width", [15, 7])
def test_many_steps_of_the_shift_register_are_those_one_by_one(width: int) -> None:
    chance = random.Random(width)
    for steps in (0, 1, 2, 6, 7, 8, 9, 14, 15, 16, 127, 128, 1000, 32767, 40_000):
        register = chance.randrange(0x8000)
        found = lfsr.after(register, steps, lfsr.SHORT if width == 7 else 0)
        assert found == one_by_one(register, steps, width == 7), (register, steps)
