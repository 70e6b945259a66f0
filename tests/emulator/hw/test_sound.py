"""The sound unit (hw/sound/) beside PyBoy's source, without a kernel; tests/conformance/test_sound.py runs programs."""

from __future__ import annotations

import random

import pytest

from gbxcule_puffer.emulator.build.instantiate import Edit
from gbxcule_puffer.emulator.hw.sound import lfsr
from tests.support.sound_unit import compare


@pytest.mark.parametrize("is_color", [False, True], ids=["dmg", "cgb"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_random_accesses_find_what_pyboy_has(seed: int, is_color: bool) -> None:
    assert compare(seed, is_color, 100 if is_color else 60) == []  # PyBoy's source steps a DMG's noise one by one


UNIT, CHANNELS, SWEEP, WRITES = (f"hw.sound.{name}" for name in ("unit", "channels", "sweep", "writes"))
FAULTS = {
    "lengths count at even steps": Edit(UNIT, "tick_sequencer", "(step & 1) == 1", "(step & 1) == 0"),
    "a length ends at 1": Edit(CHANNELS, "tick_length", "length == 1", "length == 2"),
    "DIV makes no edge": Edit(UNIT, "write_div", "16 << _", "0"),
    "no edge is passed over": Edit(WRITES, "switch_on", "is_near and is_high", "False"),
    "adding after a subtraction goes on": Edit(SWEEP, "sweep", "store(c, words.SWEEP_NEGATED, 1)", "pass"),
    "a new duty cycle is heard at once": Edit(WRITES, "write_duty", "load(c, channel) != 0", "False"),
    "channel 1 is not aligned": Edit(WRITES, "write_channel", "align_sweep(c)", "pass"),
    "NR43 leaves the divider": Edit(WRITES, "write_noise", "change_divider(c, before, value)", "pass"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (number > 1)) for number, name in enumerate(FAULTS)]
)
def test_a_planted_fault_is_found(name: str) -> None:
    """By one of twelve seeds. The last ones differ early; the first take up to a second each."""
    assert any(compare(seed, True, 200, (FAULTS[name],)) for seed in reversed(range(12)))


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
