"""The IO registers, one row each: the value of a read, the effect of a write, and who notices it.

The device code that finds a register by its address is generated from these rows (register_code.py). So is every list
of registers: of `puffer profile`, of the PyBoy API, of loops that wait, of docs/state.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from gbxcule_puffer.emulator import hardware as hw

Model = Literal["dmg", "cgb", "color"]
"""What has a register: each console, a Game Boy Color, or that with a cartridge for it."""
Effect = Literal["batch", "picture", "none"]
"""What notices a write: a device or the CPU, so that PyBoy's batch has to end; only the picture; nothing."""


@dataclass(frozen=True)
class Register:
    """One register, at `address`.

    field: of the state, where it is kept; ones: bits that read 1; keeps: bits that a write stores, 0 for none. read,
    write: an expression and a statement of device code that replace this, in the file of its `device`, or in
    hw/memory.py and hw/bus.py. writable: the models that can write it, if not those that can read it. last: the last
    address of a row for several registers.
    """

    name: str
    address: int
    field: str = ""
    ones: int = 0
    keeps: int = 0xFF
    read: str = ""
    write: str = ""
    effect: Effect = "batch"
    device: Literal["", "lcd", "color"] = ""
    model: Model = "dmg"
    writable: Model | None = None
    last: int = 0

    @property
    def addresses(self) -> range:
        """The addresses of the row."""
        return range(self.address, max(self.address, self.last) + 1)


_lcd = partial(Register, device="lcd")
_color = partial(Register, effect="none", device="color", model="color")
_timer = partial(Register, read="timer.read(c, address, t)", write="timer.write(c, address, value, t)")
REGISTERS = (
    Register("DMA", hw.DMA, "dma_source", read="read_dma(m, c, t + lookahead)", write="write_dma(m, c, value, t)"),
    _lcd("LY", hw.LY, "ly", keeps=0),
    _lcd("STAT", hw.STAT, "stat", write="write_stat(c, value)"),
    _lcd("LCDC", hw.LCDC, "lcdc", write="write_lcdc(c, value, t)"),
    _lcd("SCY", hw.SCY, "scy", effect="picture"),
    _lcd("SCX", hw.SCX, "scx", effect="picture"),
    _lcd("LYC", hw.LYC, "lyc", write="write_lyc(c, value)"),
    _lcd("BGP", hw.BGP, "bgp", effect="picture"),
    _lcd("OBP0", hw.OBP0, "obp0", effect="picture"),
    _lcd("OBP1", hw.OBP1, "obp1", effect="picture"),
    _lcd("WY", hw.WY, "wy", effect="picture"),
    _lcd("WX", hw.WX, "wx", effect="picture"),
    Register("P1", hw.P1, "p1", write="joypad.write(c, value)", effect="none"),
    Register("IF", hw.IF, "interrupt_flag", ones=0xE0, read="ppu.requests(m, c) | 0xE0", write="write_if(m, c, value)"),
    _timer("DIV", hw.DIV),
    _timer("TIMA", hw.TIMA),
    _timer("TMA", hw.TMA, "tma"),
    _timer("TAC", hw.TAC, "tac", ones=0xF8, keeps=0x07),
    Register("SB", hw.SB, read="serial.read_data(c, t)", write="serial.write_data(c, value, t)"),
    Register(
        "SC", hw.SC, "serial_control", read="serial.read_control(c, t)", write="serial.write_control(c, value, t)"
    ),
    Register(
        "sound",
        hw.NR10,
        read="sound_registers.read(m, c, address, t)",
        write="sound_registers.write(m, c, address, value, t)",
        effect="none",
        last=hw.WAVE_RAM_END - 1,
    ),
    Register("IE", hw.IE, "interrupt_enable"),
    # Of a Game Boy Color
    _color("VBK", hw.VBK, "vram_bank", ones=0xFE, keeps=0x01, write="write_vbk(m, c, value)", model="cgb"),
    _color("BCPS", hw.BCPS, "bg_index", ones=0x40, model="cgb"),
    _color("OCPS", hw.OCPS, "obj_index", ones=0x40, model="cgb"),
    _color("undocumented", 0xFF72, "undocumented_72", model="cgb"),
    _color("undocumented", 0xFF73, "undocumented_73", model="cgb"),
    _color(
        "undocumented", 0xFF75, "undocumented_75", keeps=0x70, write="c.undocumented_75 = value | 0x8F", model="cgb"
    ),
    _color("PCM12", hw.PCM12, keeps=0, read="sound_registers.read_pcm(c, address, t)", model="cgb"),
    _color("PCM34", hw.PCM34, keeps=0, read="sound_registers.read_pcm(c, address, t)", model="cgb"),
    _color("KEY0", hw.KEY0, keeps=0, read="0xFB"),
    _color("KEY1", hw.KEY1, "key1", write="write_key1(c, value)", effect="batch", writable="cgb"),
    _color("HDMA1", hw.HDMA1, write="write_hdma1(c, value)"),
    _color("HDMA2", hw.HDMA2, write="write_hdma2(c, value)"),
    _color("HDMA3", hw.HDMA3, write="write_hdma3(c, value)"),
    _color("HDMA4", hw.HDMA4, write="write_hdma4(c, value)"),
    _color("HDMA5", hw.HDMA5, "hdma5", write="start_hdma(c, value, t, lookahead)", effect="batch"),
    _color("BCPD", hw.BCPD, read="read_bcpd(c)", write="write_bcpd(c, value)", effect="picture", writable="cgb"),
    _color("OCPD", hw.OCPD, read="read_ocpd(c)", write="write_ocpd(c, value)", effect="picture"),
    _color("OPRI", hw.OPRI, "object_priority", ones=0xFE, keeps=0x01),
    _color("SVBK", hw.SVBK, "wram_bank", ones=0xF8, keeps=0x07, write="write_svbk(m, c, value)"),
    _color("undocumented", 0xFF74, "undocumented_74"),
    _color("RP", hw.RP, keeps=0),
)
"""In the order in which an access looks for its register: frequent ones first."""

OF_DMG = tuple(row for row in REGISTERS if row.model == "dmg" and row.address != hw.IE)
OF_LCD = tuple(row for row in REGISTERS if row.device == "lcd")
OF_PICTURE = tuple(row for row in OF_LCD if row.effect == "picture")
OTHERS_OF_LCD = tuple(row for row in OF_LCD if row.effect != "picture")
OF_COLOR = tuple(row for row in REGISTERS if row.device == "color")
_LCD = ("lcd_registers.read(m, c, address, t + lookahead)", "lcd_registers.write_at(m, c, address, value, t, is_drawn)")
_FROM_OUTSIDE = {"lcd": _LCD}  # how hw/memory.py and hw/bus.py read and write all registers of a device


def read_text(row: Register, device: str) -> str:
    """The expression that reads a register, in the file of a device; empty if it reads FF."""
    if row.device != device:
        return _FROM_OUTSIDE[row.device][0]
    if row.read or not row.field:
        return row.read
    return f"c.{row.field} | 0x{row.ones:02X}" if row.ones else f"c.{row.field}"


def write_text(row: Register, device: str) -> str:
    """The statement that writes a register, in the file of a device; empty if a write does nothing."""
    if row.device != device:
        return _FROM_OUTSIDE[row.device][1]
    if row.write or not row.field or not row.keeps:
        return row.write
    return f"c.{row.field} = value" + f" & 0x{row.keeps:02X}" * (row.keeps != 0xFF)


def addresses(rows: Iterable[Register], *effects: Effect) -> set[int]:
    """The addresses of rows, or only of those rows with some effects if any are given."""
    return {address for row in rows if not effects or row.effect in effects for address in row.addresses}


def ranges(found: Iterable[int], between: Iterable[int] = ()) -> list[tuple[int, int]]:
    """[first, end) of addresses in order, in as few pieces as possible, if the pieces may include those of
    `between`."""
    pieces, known = list[tuple[int, int]](), set(between)
    for address in sorted(found):
        if pieces and known.issuperset(range(pieces[-1][1], address)):
            pieces[-1] = pieces[-1][0], address + 1
        else:
            pieces.append((address, address + 1))
    return pieces


CONSTANT = ranges(set(range(hw.IO, hw.HRAM)) - addresses(OF_DMG) | addresses(OF_DMG, "none"))
"""Ranges that read the same until the next write: no register of a DMG, or a register that only a write changes."""
SOUND = {*range(hw.NR10, hw.WAVE_RAM_END), hw.PCM12, hw.PCM34}
"""Registers that change with time where sound is emulated."""
