"""accuracy="hardware": small programs that see what differs between PyBoy and a DMG; each result also for PyBoy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from gbxcule_puffer.emulator import Emulator, sound_fields
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.emulator.snapshot import Snapshot, power_on
from gbxcule_puffer.errors import ConfigError, StateError
from tests.fuzz.generator import header

STOP_HERE = "18FE"  # jr to itself
# Name -> (program at 0150, what it leaves in A: PyBoy, hardware). Interrupts are off throughout.
PROGRAMS = {
    # IE = IF = timer; xor a; halt; inc a: the byte after HALT is read twice
    "halt bug": ("F3 3E04 E0FF E00F AF 76 3C", 1, 2),
    # ld b,0E; nop; ld a,b becomes ld b,06; ld c,00; ld a,b
    "halt bug, immediate": ("F3 3E04 E0FF E00F 76 060E 00 78", 0x0E, 0x06),
    # neither row selected, then both
    "P1, no row": ("F3 3E30 E000 F000", 0xCF, 0xFF),
    "P1, both rows": ("F3 AF E000 F000", 0xCF, 0xCF),
    "SB keeps its byte": ("F3 3E5A E001 F001", 0xFF, 0x5A),
    "NR10's unused bit": ("F3 AF E010 F010", 0x00, 0x80),
    "wave RAM": ("F3 3E77 E030 F030", 0x00, 0x77),
    "sound off clears": ("F3 AF E026 3E77 E024 F024", 0x00, 0x00),
    # wait for mode 3 (ldh a,[41]; and 3; cp 3; jr nz), then ld b,[hl] of VRAM and OAM: B only sees locks on hardware
    "VRAM lock": ("F3 210080 F041 E603 FE03 20F8 46 78", 0x00, 0xFF),
    "OAM lock": ("F3 2100FE F041 E603 FE03 20F8 46 78", 0x00, 0xFF),
    # in mode 0 or 1, with no source enabled, a write to STAT requests the interrupt: IF bit 1
    "STAT write": ("F3 F041 E603 FE01 20F8 AF E00F E041 F00F E602", 0x00, 0x02),
}


def rom_of(program: str) -> bytes:
    rom = bytearray(0x8000)
    rom[0x100:0x104] = 0x00, 0xC3, 0x50, 0x01
    code = bytes.fromhex(program + STOP_HERE)
    rom[0x150 : 0x150 + len(code)] = code
    header(rom, 0x00, 0)
    return bytes(rom)


def run(rom: bytes, accuracy: str, frames: int = 3) -> Emulator:
    emulator = Emulator(rom, 1, frames_per_step=1, release_after_frames=1, accuracy=accuracy)
    for _ in range(frames):
        emulator.step(torch.zeros(1, dtype=torch.uint8))
    return emulator


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_differs(name: str) -> None:
    program, pyboy, hardware = PROGRAMS[name]
    rom = rom_of(program)
    assert run(rom, "pyboy").registers()["a"] == pyboy
    assert run(rom, "hardware").registers()["a"] == hardware


def test_p1_follows_the_buttons_on_hardware() -> None:
    """Select the directions once, then read P1 for ever: PyBoy shows what was held when P1 was written."""
    rom = rom_of("F3 3E20 E000 F000 18FC")
    right = torch.tensor([1], dtype=torch.uint8)
    for accuracy, pressed, requests in (("pyboy", 0xCF, 0x10), ("hardware", 0xEE, 0x10)):
        emulator = run(rom, accuracy)
        emulator.set_registers(interrupt_flag=0)
        emulator.step(right)
        assert emulator.registers()["a"] == pressed
        assert emulator.registers()["interrupt_flag"] & 0x10 == requests


def test_only_a_selected_row_requests_the_interrupt_on_hardware() -> None:
    rom = rom_of("F3 3E10 E000")
    for accuracy, requests in (("pyboy", 0x10), ("hardware", 0)):
        emulator = run(rom, accuracy)
        emulator.set_registers(interrupt_flag=0)
        emulator.step(torch.tensor([1], dtype=torch.uint8))
        assert emulator.registers()["interrupt_flag"] & 0x10 == requests


def test_a_snapshot_belongs_to_one_accuracy(tmp_path: Path) -> None:
    rom = rom_of("00")
    path = tmp_path / "state"
    run(rom, "hardware").save().to_file(path)
    snapshot = Snapshot.from_file(path)
    Emulator(rom, 1, accuracy="hardware").load(snapshot)
    with pytest.raises(StateError, match="profile 'hardware'"):
        Emulator(rom, 1).load(snapshot)


def test_the_start_with_sound_on_hardware() -> None:
    """NR10 reads 80 and NR52 F1 behind a DMG's boot ROM: mooneye, boot_hwio-dmgABCmgb."""
    cartridge = load_cartridge(rom_of("00"), sound=True)
    for accuracy, sweep, plays in (("pyboy", 0x13, 0), ("hardware", 0, 1)):
        fields = sound_fields.read(power_on(cartridge, accuracy).memory[0])
        assert (fields["sweep_control"], fields["sweep_enable"]) == (sweep, plays)


@pytest.mark.long
def test_sound_on_hardware() -> None:
    """A kernel of its own: NR52 reads F1 where channel 1 plays, and the state's kind says both."""
    cartridge = load_cartridge(rom_of("F3 F026"), sound=True)
    emulator = Emulator(cartridge, accuracy="hardware")
    assert emulator.profile == "hardware-sound"
    with pytest.raises(StateError, match="profile 'pyboy-sound', this emulator has 'hardware-sound'"):
        emulator.load(Emulator(cartridge).save(0))
    emulator.step(torch.zeros(1, dtype=torch.uint8))
    assert emulator.registers()["a"] == 0xF1


def test_the_picture_at_the_start_of_a_game_boy_color_on_hardware() -> None:
    """The boot ROM has cleared the tile map, as SameSuite's reference pictures show; PyBoy's leaves its logo there."""
    cartridge = load_cartridge(rom_of("00"), model="cgb")
    for accuracy, has_logo in (("pyboy", True), ("hardware", False)):
        start = power_on(cartridge, accuracy)
        assert (start.memory[0, 0x1800:0x1C00].any(), len(np.unique(start.screen)) > 1) == (has_logo, has_logo)


def test_an_unknown_accuracy_is_refused() -> None:
    with pytest.raises(ConfigError, match="accuracy is 'sgb'"):
        Emulator(rom_of("00"), 1, accuracy="sgb")
    with pytest.raises(ConfigError, match="kernel 'interpreter' only"):
        Emulator(rom_of("00"), 1, accuracy="hardware", kernel="datapath")
