"""Comparisons between values of a PyBoy .state file: if two of them contradict each other, the file is damaged.

Only for version 29, in which PyBoy counts as it does today. `values`: by name, as pyboy_layout reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge

LINE = hw.LINE_T_CYCLES
EXTRA = range(-4, 121)  # T-cycles by which mode 3 differs from 172, or 170 on a Game Boy Color


def disagreement(values: Mapping[str, object], cartridge: Cartridge) -> str:
    """The first contradiction, in words; empty if there is none."""
    return next(_disagreements(values, cartridge), "")


def _disagreements(values: Mapping[str, Any], cartridge: Cartridge) -> Iterator[str]:
    if values["lcd_speed"] != values["double_speed"]:
        yield f"lcd_speed is {values['lcd_speed']} and double_speed {values['double_speed']}"
    for name in ("bg", "obj"):
        index = values.get(f"{name}_index", 0)
        parts = [values.get(f"{name}_{part}", 0) for part in ("increments", "color", "high")]
        if parts != [index >> 7, index >> 1 & 31, index & 1]:
            yield f"{name}_index is {index} and its parts are {parts}"
    if values.get("hdma_active") and not cartridge.is_for_color:
        yield "hdma_active is 1 with a DMG's cartridge"
    for name in ("interrupt_queued", "dma_reading"):  # set while PyBoy is in the middle of an instruction
        if values[name]:
            yield f"{name} is {values[name]}, which PyBoy never saves"
    if cartridge.mapper.low_bank_bits:
        if values["bank1"] == 0:
            yield "bank1 is 0, which MBC1 never holds"
        bank = _bank_of_mbc1(values, cartridge)
        if values["rom_bank"] % cartridge.rom_banks != bank:
            yield f"rom_bank is {values['rom_bank']}, MBC1's registers select {bank}"
    if not _fits_clock(values, cartridge):
        names = ("lcd_target", "ly", "stat", "lcd_next_mode", "lcd_transition")
        yield f"{', '.join(f'{name} is {values[name]}' for name in names)}: no line has that"


def _bank_of_mbc1(values: Mapping[str, Any], cartridge: Cartridge) -> int:
    """The bank that MBC1 selects at 4000."""
    low, high, bits = values["bank1"], values["bank2"], cartridge.mapper.low_bank_bits
    return (high << bits | low & (1 << bits) - 1) % cartridge.rom_banks


def _fits_clock(values: Mapping[str, Any], cartridge: Cartridge) -> bool:
    """True if the LCD's next change is due at the time that its line and mode determine, in T-cycles of the LCD since
    the frame began (hw/lcd/ppu.py)."""
    line, mode, target = values["ly"], values["stat"] & 3, values["lcd_target"]
    follows = values["lcd_next_mode"], values["lcd_transition"]
    if not values["lcdc"] & hw.LCDC_ENABLE:
        return line == 0
    if values["lcd_restart"]:
        return True
    is_first, is_color = bool(values["lcd_first_frame"]), cartridge.model == "cgb"
    begin = LINE * line - 4 * is_first
    if mode == 1:
        ends = (begin + LINE - 4 * is_first, hw.FRAME_T_CYCLES if line == hw.LAST_LINE else -1)
        return line > 143 and follows == (1, 0) and target in ends
    if line > 143:
        return False
    if mode == 2 or (is_first and line == 0 and mode == 0 and follows == (3, 0)):  # the first line has no mode 2
        return follows == (3, 0) and target == begin + 80
    if mode == 3:
        length = 170 if is_color and not is_first else 172
        return follows == (0, 0) and target - begin - 80 - length in EXTRA
    if is_color and not is_first:
        return target == begin + LINE and follows in ((2, 0) if line < 143 else (1, 0), (1, 3))
    if follows == (2, 2):
        return target == begin
    if line < 143:
        return target == begin + LINE - 4 and follows == (2, 1)
    return target == begin + LINE - 4 * is_first and follows == (1, 0)
