"""Everything a PyBoy save state (version 29) holds, as one dictionary that an Emulator's state can be compared with.

Times are T-cycles from the moment of saving. Reading a save state has no side effects; bus reads do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.oracle import CPU_AT, LCD_REGISTERS_AT, OAM_AT, OAM_DMA_AT, VRAM_AT

SGB_SIZE = 7 + 4 + 0x2000 + 0x800 + 0x80
SERIAL_SIZE = 4 + 4 * 8
INTERACTION_SIZE = 2
TIMER_SIZE = 9 + 2 * 8
RAM_SIZES = (0x2000, 0x60, 0x4C, 0x7F)
RTC_SIZE = 8 + 9 + 8 + 8
RAM_BANK = 0x2000
LCD_FLAGS_AT = LCD_REGISTERS_AT + 12 + 144 * 5
LCD_FLAGS_SIZE = 32


def _word(state: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(state[at : at + size], "little")


def _parse_color(state: bytes, values: dict[str, Any]) -> bytes:
    """The values of a Game Boy Color, but for its WRAM; returns the state without them."""
    values["key1"], values["double_speed"] = state[3], state[4]
    names = ("hdma1", "hdma2", "hdma3", "hdma4", "hdma5", "hdma_active")
    values |= dict(zip(names, state[CPU_AT:], strict=False))
    values["hdma_source"], values["hdma_target"] = (_word(state, CPU_AT + at, 2) for at in (6, 8))
    state = state[:CPU_AT] + state[CPU_AT + 10 :]
    values["object_priority"] = state[LCD_REGISTERS_AT + 11]
    at = LCD_FLAGS_AT + LCD_FLAGS_SIZE
    if not state[LCD_FLAGS_AT]:  # without a cartridge for it
        return state
    values["VRAM bank 1"] = np.frombuffer(state, np.uint8, 0x2000, at)
    at += 0x2000
    values["vram_bank"], values["bg_index"], values["obj_index"] = state[at], state[at + 1], state[at + 69]
    palettes = state[at + 5 : at + 69] + state[at + 73 : at + 137]
    values["palettes"] = np.frombuffer(palettes, np.uint8)
    return state[: LCD_FLAGS_AT + LCD_FLAGS_SIZE] + state[at + 137 :]


def parse(state: bytes, ram_banks: int, has_rtc: bool, mapper_bytes: int, is_color: bool = False) -> dict[str, Any]:
    """A save state as names of gbxcule_puffer.emulator.state fields (and memory arrays) -> values.

    mapper_bytes: what the mapper adds after the RAM: MBC1 2, MBC5 1 or 2 (with rumble), else 0.
    """
    values: dict[str, Any] = {}
    if is_color:
        state = _parse_color(state, values)
    cycles = values["cycles"] = _word(state, CPU_AT + 19)
    values.update(zip("afbcde", state[CPU_AT : CPU_AT + 6], strict=True))
    hl, values["sp"], values["pc"] = (_word(state, CPU_AT + at, 2) for at in (6, 8, 10))
    values["h"], values["l"] = hl >> 8, hl & 0xFF
    values["ime"], values["ei_delay"], values["halted"] = state[CPU_AT + 12 : CPU_AT + 15]
    values["interrupt_enable"], values["interrupt_flag"] = state[CPU_AT + 16], state[CPU_AT + 18]
    values["dma_active"], values["dma_source"] = state[OAM_DMA_AT], state[OAM_DMA_AT + 2]
    if values["dma_active"]:
        values["dma_index"] = state[OAM_DMA_AT + 3]
        values["dma_start"] = _word(state, OAM_DMA_AT + 4) - cycles
    values["VRAM"] = np.frombuffer(state, np.uint8, 0x2000, VRAM_AT)
    values["OAM"] = np.frombuffer(state, np.uint8, 0xA0, OAM_AT)
    names = ("lcdc", "bgp", "obp0", "obp1", "stat", "ly", "lyc", "scy", "scx", "wy", "wx")
    values.update(zip(names, state[LCD_REGISTERS_AT:], strict=False))
    values["lcd_first_frame"], values["lcd_restart"] = state[LCD_FLAGS_AT + 4], state[LCD_FLAGS_AT + 5]
    last, clock, target = (_word(state, LCD_FLAGS_AT + 6 + 8 * index) for index in range(3))
    values["lcd_zero"] = last - cycles - (clock << state[LCD_FLAGS_AT + 2])
    values["lcd_target"] = values["lcd_zero"] + (target << state[LCD_FLAGS_AT + 2])
    values["lcd_next_mode"], values["lcd_transition"] = state[LCD_FLAGS_AT + 30], state[LCD_FLAGS_AT + 31]
    _parse_tail(state, values, cycles, ram_banks, has_rtc, mapper_bytes, is_color)
    return values


def _parse_tail(
    state: bytes, values: dict[str, Any], cycles: int, ram_banks: int, has_rtc: bool, mapper_bytes: int, is_color: bool
) -> None:
    """What follows the sound state, whose length varies: read from the end."""
    at = len(state) - SGB_SIZE - SERIAL_SIZE
    values["serial_control"] = state[at + 1]
    transferring = state[at + 2] != 0
    values["serial_end"] = _word(state, at + 28) - _word(state, at + 20) if transferring else None
    at -= INTERACTION_SIZE + mapper_bytes
    if has_rtc:
        at -= RTC_SIZE
        names = ("rtc_seconds", "rtc_minutes", "rtc_hours", "rtc_day_low", "rtc_day_high", "rtc_halt", "rtc_day_carry")
        values.update(zip(names, state[at + 10 : at + 17], strict=True))
        values["rtc_t_cycles"] = _word(state, at + 17)
    at -= ram_banks * RAM_BANK
    values["cartridge RAM"] = np.frombuffer(state, np.uint8, ram_banks * RAM_BANK, at)
    at -= 4
    values["rom_bank"], values["ram_bank"], values["ram_enabled"] = state[at : at + 3]
    at -= TIMER_SIZE
    values["tima"], values["divider"] = state[at + 1], _word(state, at + 2, 2)
    values["tma"], values["tac"], values["tima_reload"] = state[at + 6 : at + 9]
    if values["tima_reload"]:
        values["tima_reload_count"] = _word(state, at + 4, 2)
    at -= 1
    sizes = RAM_SIZES
    if is_color:
        values["wram_bank"] = state[at]
        sizes = (0x8000, *RAM_SIZES[1:])
    for name, size in zip(("HRAM", "io_ports", "unusable", "WRAM"), reversed(sizes), strict=True):
        at -= size
        values[name] = np.frombuffer(state, np.uint8, size, at)
    values["p1"] = int(values.pop("io_ports")[0])
    values["window_hit"] = state[at - 1]
