"""The registers FF4C to FF7F. Pan Docs, "CGB Registers"; as in PyBoy, with a cartridge for the Game Boy Color
(color_mode) and without."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import registers
from gbxcule_puffer.emulator.hw import counters, row
from gbxcule_puffer.emulator.hw.color import banks
from gbxcule_puffer.emulator.hw.lcd import drawing, ppu
from gbxcule_puffer.emulator.hw.sound import registers as sound_registers  # noqa: F401 (rows of registers.py)
from gbxcule_puffer.emulator.register_code import reads, writes
from gbxcule_puffer.emulator.state import Cpu, Machine

BLOCK = wp.constant(16)  # bytes that VRAM DMA copies at a time


@wp.func
def palette_offset(c: wp.ref[Cpu], index: int) -> int:
    """The offset in the memory row of the byte of the background's palettes that BCPS or OCPS selects."""
    return c.color_base + hw.COLOR_PALETTES + (index & 0x3F)


@wp.func
def read_bcpd(c: wp.ref[Cpu]) -> int:
    """BCPD."""
    return row.load(c, palette_offset(c, c.bg_index))


@wp.func
def read_ocpd(c: wp.ref[Cpu]) -> int:
    """OCPD."""
    return row.load(c, palette_offset(c, c.obj_index) + hw.OBJ_PALETTES)


@wp.func(inline=False)
@reads(registers.OF_COLOR, "color")
def read(c: wp.ref[Cpu], address: int, t: int) -> int:
    """FF4C-FF7F."""


@wp.func
def next_index(index: int) -> int:
    """BCPS or OCPS after a byte was written."""
    result = index
    if (index & 0x80) != 0:
        result = ((index + 1) & 0xFF) | 0x80
    return result


@wp.func
def count_block(c: wp.ref[Cpu]):
    """Advance the addresses and the count after a block was copied."""
    c.hdma_target = (c.hdma_target + BLOCK) & 0xFFFF
    c.hdma_source = (c.hdma_source + BLOCK) & 0xFFFF
    if c.hdma_target == 0xA000:
        c.hdma_target = 0x8000
    if c.hdma_source == 0x8000:
        c.hdma_source = 0xA000
    c.hdma1 = c.hdma_source >> 8
    c.hdma2 = c.hdma_source & 0xFF
    c.hdma3 = c.hdma_target >> 8
    c.hdma4 = c.hdma_target & 0xFF
    if c.hdma5 == 0:
        c.hdma_active = 0
        c.hdma5 = 0xFF
    else:
        c.hdma5 = c.hdma5 - 1


@wp.func
def plan_copy(c: wp.ref[Cpu], source: int, target: int, count: int, t: int, lookahead: int):
    """Plan a copy for the end of the instruction, as of time `t`."""
    c.hdma_from = source
    c.hdma_to = target
    c.hdma_pending = count
    c.hdma_time = t
    c.hdma_lookahead = lookahead
    c.hdma_length = c.hdma5


@wp.func
def plan_block(c: wp.ref[Cpu], t: int, lookahead: int):
    """Plan the copy of the next 16 bytes."""
    plan_copy(c, c.hdma_source & 0xFFF0, (c.hdma_target & 0x1FF0) | 0x8000, BLOCK, t, lookahead)
    count_block(c)


@wp.func
def start_hdma(c: wp.ref[Cpu], value: int, t: int, lookahead: int):
    """HDMA5; a copy that starts now happens at the end of the instruction (hdma.py)."""
    if c.hdma_active != 0:
        if (value & 0x80) == 0:
            c.hdma_active = 0
            c.hdma5 = 0x80
        else:
            c.hdma5 = value & 0x7F
    elif (value & 0x80) == 0:
        count = ((value & 0x7F) + 1) * BLOCK
        c.hdma5 = value
        plan_copy(c, c.hdma_source, c.hdma_target, count, t, lookahead)
        c.hdma_source = (c.hdma_source + count) & 0xFFFF
        c.hdma_target = (c.hdma_target + count) & 0xFFFF
        c.hdma5 = 0xFF
    else:
        c.hdma5 = value & 0x7F
        c.hdma_active = 1
        if (c.lcdc & hw.LCDC_ENABLE) == 0:
            plan_block(c, t, lookahead)
    c.next_event = c.now


@wp.func
def write_hdma1(c: wp.ref[Cpu], value: int):
    """HDMA1."""
    c.hdma1 = value
    c.hdma_source = (value << 8) | (c.hdma_source & 0xFF)


@wp.func
def write_hdma2(c: wp.ref[Cpu], value: int):
    """HDMA2."""
    c.hdma2 = value
    c.hdma_source = (c.hdma_source & 0xFF00) | (value & 0xF0)


@wp.func
def write_hdma3(c: wp.ref[Cpu], value: int):
    """HDMA3."""
    c.hdma3 = value
    c.hdma_target = ((value & 0x1F) << 8) | (c.hdma_target & 0xFF) | 0x8000


@wp.func
def write_hdma4(c: wp.ref[Cpu], value: int):
    """HDMA4."""
    c.hdma4 = value
    c.hdma_target = (c.hdma_target & 0xFF00) | (value & 0xF0)


@wp.func
def write_bcpd(c: wp.ref[Cpu], value: int):
    """BCPD."""
    row.store(c, palette_offset(c, c.bg_index), value)
    c.bg_index = next_index(c.bg_index)


@wp.func
def write_ocpd(c: wp.ref[Cpu], value: int):
    """OCPD."""
    row.store(c, palette_offset(c, c.obj_index) + hw.OBJ_PALETTES, value)
    c.obj_index = next_index(c.obj_index)


@wp.func
def write_vbk(m: wp.ref[Machine], c: wp.ref[Cpu], value: int):
    """VBK."""
    c.vram_bank = value & 1
    banks.map_banks(m, c)


@wp.func
def write_svbk(m: wp.ref[Machine], c: wp.ref[Cpu], value: int):
    """SVBK."""
    c.wram_bank = value & 7
    banks.map_banks(m, c)


@wp.func
def write_key1(c: wp.ref[Cpu], value: int):
    """KEY1; STOP does the switch itself (speed.py)."""
    c.key1 = value
    c.next_event = c.now


@wp.func
def must_draw(c: wp.ref[Cpu], address: int) -> bool:
    """True if lines must be drawn before a register is written, because a palette changes."""
    return drawing.is_drawing(c) and (address == hw.BCPD or (address == hw.OCPD and c.color_mode != 0))


@wp.func
def draw_before(m: wp.ref[Machine], c: wp.ref[Cpu], address: int):
    """Draw the finished lines, if a write changes what they show."""
    if must_draw(c, address):
        ppu.settle(m, c)
        drawing.draw_pending(m, c)


@wp.func
@writes(registers.OF_COLOR, "color")
def set_register(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int, lookahead: int):
    """FF4C-FF7F becomes `value`."""


@wp.func(inline=False)
def write(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int, lookahead: int):
    """FF4C-FF7F, after draw_before."""
    counters.changed(c, -1, value)
    set_register(m, c, address, value, t, lookahead)
