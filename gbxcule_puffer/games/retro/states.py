"""Save states of Gambatte, the core that stable-retro plays Game Boys with: a gzip file of labelled blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.hw import timer
from gbxcule_puffer.emulator.hw.cartridge import mbc
from gbxcule_puffer.emulator.hw.lcd import ppu
from gbxcule_puffer.emulator.saves.one_env import one_env
from gbxcule_puffer.emulator.saves.state_files import STATE_FILE
from gbxcule_puffer.emulator.snapshot import Snapshot, power_on
from gbxcule_puffer.emulator.state import INDEX, row_size
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.files import StrPath, read_bytes
from gbxcule_puffer.games.retro.unzip import gunzip

LARGEST, LARGEST_FILE = 2**21, 2**20  # bytes of a state, and of its file
LONGEST_LABEL = 16
SIZES = {"pc": 2, "sp": 2, "vram": 0x4000, "wram": 0x2000, "hram": 0x200, "vcycles": 4, "cc": 4, "ldivup": 4}
COLOR_SIZES = {"wram": 0x8000, "bgp": 0x40, "objp": 0x40}
REGISTERS = ("a", "b", "c", "d", "e", "h", "l")
ONE_BYTE = (*REGISTERS, "f", "ime", "halt", "skip", "sramon", "rambmod", "rambank")
IO = 0x100  # of FF00 in the block hram, which begins at FE00
LCD_ADDRESSES = {
    "lcdc": 0x40, "scy": 0x42, "scx": 0x43, "lyc": 0x45, "dma_source": 0x46, "bgp": 0x47, "obp0": 0x48, "obp1": 0x49,
    "wy": 0x4A, "wx": 0x4B, "tima": 0x05, "tma": 0x06,
}  # fmt: skip
COLOR_ADDRESSES = {
    "key1": 0x4D, "hdma1": 0x51, "hdma2": 0x52, "hdma3": 0x53, "hdma4": 0x54, "bg_index": 0x68, "obj_index": 0x6A,
}  # fmt: skip
LINE, FIRST_VBLANK_LINE, LINES = 456, 144, 154  # T-cycles, lines
LCD_OFF = {
    "ly": 0, "lcd_next_mode": 1, "lcd_transition": 0, "lcd_first_frame": 0, "lcd_zero": 0, "lcd_last": 0,
    "lcd_target": LINE * LINES,
}  # fmt: skip


def load_retro_state(path: StrPath, cartridge: Cartridge) -> tuple[Snapshot, list[str]]:
    """The machine of a state file, and what of it was not taken over.

    Raises: StateError for a file that is damaged, of another console, or taken in the middle of a picture.
    """
    blocks = _blocks(gunzip(read_bytes(path, STATE_FILE, LARGEST_FILE), LARGEST), path)
    is_color = cartridge.model == "cgb"
    if is_color != (len(blocks.get("wram", b"")) == COLOR_SIZES["wram"]):
        raise StateError(f"is not a state of the ROM's Game Boy, of which the model is {cartridge.model}")
    sizes = SIZES | COLOR_SIZES if is_color else SIZES
    for name in (*ONE_BYTE, *sizes):
        if len(blocks.get(name, b"")) != sizes.get(name, 1):
            raise StateError(f"is not a state of Gambatte, block {name} is missing or has another size")
    number = {name: int.from_bytes(block, "big") for name, block in blocks.items() if len(block) <= 4}
    lcd_is_on = bool(blocks["hram"][IO + 0x40] & 0x80)
    line = number["vcycles"] // LINE
    if lcd_is_on and not FIRST_VBLANK_LINE <= line < LINES:
        raise StateError(f"was saved while line {line} was drawn, not between two pictures")
    snapshot = replace(power_on(cartridge), source="the state")
    _fill_memory(snapshot, cartridge, blocks)
    _fill_state(snapshot, cartridge, blocks, number)
    double_speed = is_color and blocks["hram"][IO + 0x4D] >> 7
    fields = _lcd(number["vcycles"], double_speed) if lcd_is_on else LCD_OFF
    for name, value in fields.items():
        snapshot.state[INDEX[name], 0] = value
    snapshot.check(cartridge)
    lost = ["times within the LCD's line and the timer's count may differ by a few machine cycles"]
    if cartridge.has_rtc:
        lost.append("the clock chip begins at 0")
    return _end_of_frame(snapshot, cartridge), lost


def _lcd(dots: int, double_speed: int) -> dict[str, int]:
    """Fields of the LCD in VBlank, `dots` after the frame's begin (hw/lcd/clock.py)."""
    line = dots // LINE
    return {
        "ly": line, "lcd_next_mode": 1, "lcd_transition": 0, "lcd_first_frame": 0, "lcd_last": 0,
        "lcd_zero": -(dots << double_speed), "lcd_target": (line + 1) * LINE - dots << double_speed,
    }  # fmt: skip


def _blocks(data: bytes, path: StrPath) -> Mapping[str, bytes]:
    """The labelled blocks: version, picture, then label, 0, three bytes of size, content."""
    if len(data) < 8 or data[0] > 1:
        raise StateError("is not a state of Gambatte")
    at, found = 5 + int.from_bytes(data[2:5], "big"), {}
    while at < len(data):
        end = data.find(b"\0", at, at + LONGEST_LABEL)
        if end < 0 or end + 4 > len(data):
            break  # padding after the last block
        size = int.from_bytes(data[end + 1 : end + 4], "big")
        label = data[at:end].decode("latin-1")
        at = end + 4 + size
        if not label or at > len(data):
            break
        found[label] = data[end + 4 : at]
    return found


def _end_of_frame(snapshot: Snapshot, cartridge: Cartridge) -> Snapshot:
    """The machine where its picture is complete, with no button pressed: the moment between two steps. stable-retro
    plays a frame without buttons after a state, too."""
    emulator = Emulator(cartridge, frames_per_step=1, release_after_frames=1, screen="full")
    try:
        emulator.load(snapshot)
        emulator.step(torch.zeros(1, dtype=torch.uint8))
        return emulator.save(0)
    finally:
        emulator.close()


def _fill_memory(snapshot: Snapshot, cartridge: Cartridge, blocks: Mapping[str, bytes]) -> None:
    row, high = snapshot.memory[0], np.frombuffer(blocks["hram"], np.uint8)

    def fill(address: int, data: np.ndarray) -> None:
        row[address - hw.ROW_BASE :][: len(data)] = data

    fill(hw.VRAM, np.frombuffer(blocks["vram"], np.uint8)[:0x2000])
    fill(hw.WRAM, np.frombuffer(blocks["wram"], np.uint8)[:0x2000])
    fill(hw.OAM, high[:0x100])
    fill(hw.HRAM, high[0x180:0x1FF])
    saved = np.frombuffer(blocks.get("sram", b""), np.uint8)[: cartridge.ram_banks * hw.RAM_BANK_SIZE]
    fill(hw.CART_RAM, saved[: hw.RAM_BANK_SIZE])
    others = saved[hw.RAM_BANK_SIZE :]
    start = row_size(cartridge.ram_banks)
    row[hw.ROW_SIZE : start][: len(others)] = others
    if cartridge.model == "cgb":  # as pyboy_color.fill_row
        color = blocks["vram"][0x2000:] + blocks["wram"][0x2000:] + blocks["bgp"] + blocks["objp"]
        row[start:][: len(color)] = np.frombuffer(color, np.uint8)


def _fill_state(
    snapshot: Snapshot, cartridge: Cartridge, blocks: Mapping[str, bytes], number: Mapping[str, int]
) -> None:
    high, fields = blocks["hram"], snapshot.fields()
    fields |= {name: number[name] for name in (*REGISTERS, "pc", "sp", "ime")}
    fields["f"] = number["f"] & 0xF0
    fields["halted"] = number["halt"] & 1
    if fields["halted"]:
        fields["pc"] = number["pc"] - 1 & 0xFFFF  # here it stays at the HALT
    fields |= {name: high[IO + address] for name, address in LCD_ADDRESSES.items()}
    fields |= {"interrupt_flag": high[IO + 0x0F] & 0x1F, "interrupt_enable": high[0x1FF]}
    is_on = fields["lcdc"] >> 7
    line = number["vcycles"] // LINE if is_on else 0
    fields["stat"] = high[IO + 0x41] & 0x78 | 0x80 | (fields["lyc"] == line) << 2 | is_on
    fields |= {"tac": high[IO + 0x07] & 7, "tima_reload": 0, "tima_reload_count": 0, "timer_last": 0}
    divider = high[IO + 0x04] << 8 | number["cc"] - number["ldivup"] & 0xFF
    fields |= {"div_zero": -divider, "p1": high[IO] | 0xCF, "serial_control": high[IO + 0x02]}
    fields |= {"serial_end": hw.NEVER, "dma_active": 0, "ei_delay": 0, "halted_after_ei": 0, "locked": 0}
    fields |= {"window_hit": 0, "window_line": -1, "window_first": 0, "buttons": 0}
    if cartridge.model == "cgb":
        fields |= {name: high[IO + address] for name, address in COLOR_ADDRESSES.items()}
        fields |= {"vram_bank": high[IO + 0x4F] & 1, "wram_bank": high[IO + 0x70] & 7, "hdma5": 0xFF, "hdma_active": 0}
        fields["double_speed"] = fields["key1"] >> 7
    fields["ram_enabled"] = number["sramon"] & 1
    machine, cpu = one_env(cartridge, fields)
    bank = int.from_bytes(blocks.get("rombank", b"\0\1"), "big")
    cpu.banking_mode = fields["banking_mode"] = number["rambmod"] & 1 if cartridge.mapper.name == "MBC1" else 0
    cpu.bank2 = fields["bank2"] = bank >> 5 & 3 if cartridge.mapper.name == "MBC1" else 0
    if not bank & (0x1F if cartridge.mapper.name == "MBC1" else 0xFFFF) and cartridge.mapper.name != "MBC5":
        bank |= 1  # the register's value is in the file, and 0 selects the next bank
    mbc.restore(machine, cpu, 1 if bank == 0xFFFF else bank, number["rambank"])
    timer.schedule(cpu)
    ppu.update_stat_line(cpu)
    names = ("rom_low", "rom_high", "ram_bank", "ram_offset", "bank1", "timer_next", "stat_line")
    fields |= {name: getattr(cpu, name) for name in names}
    for name, value in fields.items():
        snapshot.state[INDEX[name], 0] = value
