"""PyBoy's files in which values disagree are refused; all that PyBoy and ours save are read."""

from __future__ import annotations

import pytest
import torch

from benchmarks.workload import ROOT
from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.emulator import Cartridge, Emulator
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.emulator.saves import pyboy_layout, pyboy_state
from gbxcule_puffer.emulator.state import INDEX
from gbxcule_puffer.errors import ConfigError, StateError
from tests.conformance.test_game_boy_color import picture_rom
from tests.emulator.saves.test_pyboy_state import with_value
from tests.fuzz.generator import make_rom, model_of
from tests.fuzz.lockstep import random_buttons

BANKS = load_cartridge(ROOT / "roms/micro/mbc1_banks.gb")
COLOR = load_cartridge(picture_rom(1, 0xC0), model="cgb")
COMPATIBLE = load_cartridge(picture_rom(1, 0x00), model="cgb")


def saved(cartridge: Cartridge, steps: int = 3) -> bytes:
    emulator = Emulator(cartridge, screen="full")
    for _ in range(steps):
        emulator.step(torch.zeros(1, dtype=torch.uint8))
    return pyboy_state.to_bytes(emulator.save(0), cartridge)


@pytest.mark.parametrize(
    ("cartridge", "name", "value", "message"),
    [
        (BANKS, "lcd_speed", 1, "lcd_speed is 1 and double_speed 0"),
        (COLOR, "double_speed", 1, "lcd_speed is 0 and double_speed 1"),
        (COLOR, "bg_color", 3, "bg_index is .* and its parts are"),
        (COLOR, "obj_index", 0x85, "obj_index is 133 and its parts are"),
        (COMPATIBLE, "hdma_active", 1, "hdma_active is 1 with a DMG's cartridge"),
        (BANKS, "interrupt_queued", 1, "interrupt_queued is 1"),
        (COLOR, "dma_reading", 1, "dma_reading is 1"),
        (BANKS, "rom_bank", 3, "rom_bank is 3, MBC1's registers select"),
        (BANKS, "bank1", 0, "bank1 is 0, which MBC1 never holds"),
        (BANKS, "bank1", 2, "rom_bank is .*, MBC1's registers select"),
        (BANKS, "ly", 7, "ly is 7.*: no line has that"),
        (COLOR, "ly", 7, "ly is 7.*: no line has that"),
        (COLOR, "lcd_target", 1104, "lcd_target is 1104.*: no line has that"),
        (COMPATIBLE, "lcd_transition", 1, "lcd_transition is 1: no line has that"),
        (COLOR, "lcd_next_mode", 0, "lcd_next_mode is 0.*: no line has that"),
        (BANKS, "ei_delay", 2, "ei_delay is 2 and at most 1"),
        (BANKS, "f", 0x69, "f of env 0 is 105"),
    ],
)  # fmt: skip
def test_values_that_disagree(cartridge: Cartridge, name: str, value: int, message: str) -> None:
    data = saved(cartridge)
    assert pyboy_state.from_bytes(data, cartridge).num_envs == 1
    with pytest.raises(StateError, match=f"x.state.*damaged.*{message}") as caught:
        pyboy_state.from_bytes(with_value(data, cartridge, name, value), cartridge, "x.state")
    assert str(caught.value).isprintable()


def test_the_lower_bits_of_f_are_0() -> None:
    emulator = Emulator(BANKS, screen="full")
    snapshot = emulator.save()
    snapshot.state[INDEX["f"]] = 0x81
    with pytest.raises(StateError, match="f of env 0 is 129"):
        emulator.load(snapshot)
    with pytest.raises(ConfigError, match="f of env 0 is 1"):
        emulator.set_registers(0, f=1)


@pytest.mark.parametrize("kind", ["color", "color-scenes", "io-stack", "banks", None])
@pytest.mark.parametrize("seed", [2, pytest.param(3, marks=pytest.mark.long)])
def test_what_is_saved_is_read(kind: str | None, seed: int) -> None:
    """After each frame of random programs."""
    rom = make_rom(seed, kind).data
    cartridge, files = load_cartridge(rom, model=model_of(rom)), []
    emulator = Emulator(cartridge, screen="full", frames_per_step=1, release_after_frames=1)
    buttons = random_buttons(seed, 16, 1)
    for row in buttons:
        emulator.step(torch.from_numpy(row))
        assert not emulator.locked.any(), "PyBoy would not come back"
        if not emulator.registers().get("lcd_wrapped"):
            files.append(pyboy_state.to_bytes(emulator.save(0), cartridge))
    machine, count = PyBoyMachine(rom, 1, 1, model=cartridge.model), len(files)
    for row in buttons[: count - 1, 0]:
        machine.step(int(row))
        files.append(machine.state())
    machine.close()
    assert count > 2 and len(files) >= 2 * count - 1
    for data in files:
        assert pyboy_layout.read(data, cartridge, "x")["version"] == pyboy_layout.VERSION


def test_older_files_are_not_held_against_each_other() -> None:
    """Their releases counted in other ways."""
    data = bytearray(with_value(saved(BANKS), BANKS, "ly", 7))
    data[0] = 28
    assert pyboy_state.from_bytes(bytes(data), BANKS).fields()["ly"] == 7
