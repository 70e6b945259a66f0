"""The CPU's view of memory. `t` is the time of the access; `lookahead` is the time that an opcode adds to it for LCD
and locks."""

import warp as wp

# The rows of registers.py call joypad, lcd_registers, serial, sound_registers and timer.
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import registers
from gbxcule_puffer.emulator.hw import counters, intrinsics, joypad, memory, model, oam_dma, row, serial, timer  # noqa: F401
from gbxcule_puffer.emulator.hw.cartridge import mbc
from gbxcule_puffer.emulator.hw.color import banks
from gbxcule_puffer.emulator.hw.color import registers as color_registers
from gbxcule_puffer.emulator.hw.lcd import clock, drawing, lcd_registers, ppu, timing  # noqa: F401
from gbxcule_puffer.emulator.hw.sound import registers as sound_registers  # noqa: F401
from gbxcule_puffer.emulator.hw.sound import words
from gbxcule_puffer.emulator.register_code import is_one_of, writes
from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
def read_oam(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, t: int, lookahead: int) -> int:
    """FE00-FE9F: FF while an OAM DMA runs and, for an access with lookahead, in modes 2 and 3."""
    if lookahead != 0 or model.HARDWARE == 1:
        ppu.advance(m, c, t + lookahead)
        mode = c.stat & hw.STAT_MODE
        starting = c.lcd_first_frame != 0 and c.lcd_transition == clock.START_MODE2
        if (c.lcdc & hw.LCDC_ENABLE) != 0 and (mode >= 2 or starting):
            return 0xFF
    if c.dma_active != 0:
        oam_dma.advance(m, c, t, lookahead, t + lookahead)
        if c.dma_active != 0 and t + lookahead >= c.dma_start:
            if ((c.h << 8) | c.l) == address:
                oam_dma.advance(m, c, t, lookahead, t + wp.max(lookahead, 4))
            if c.dma_active != 0:
                return 0xFF
    return row.load(c, address)


@wp.func
def read_high(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, t: int, lookahead: int) -> int:
    """FE00-FFFF."""
    if address < hw.OAM_END:
        return read_oam(m, c, address, t, lookahead)
    if address >= hw.IO:
        if c.dma_active != 0:
            oam_dma.advance(m, c, t, lookahead, t + lookahead)
        if address < hw.HRAM:
            return memory.read_io(m, c, address, t, lookahead)
        if address == hw.IE:
            return c.interrupt_enable
    return row.load(c, address)


@wp.func(inline=False)
def read_any(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, t: int, lookahead: int) -> int:
    """The byte at `address` at time `t`."""
    if address >= hw.OAM:
        return read_high(m, c, address, t, lookahead)
    return memory.read(m, c, address, t, lookahead)


@wp.func(inline=False)
def read(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, t: int, lookahead: int) -> int:
    """The byte at `address` at time `t`. Only frequent accesses to memory are here, so that a call saves no registers
    for the others."""
    if address < hw.VRAM:
        return intrinsics.load_byte(c.rom, wp.where(address < hw.ROM_BANK_SIZE, c.rom_low, c.rom_high) + address)
    if (address >= hw.WRAM and address < hw.ECHO) or (address >= hw.HRAM and address < hw.IE and c.dma_active == 0):
        if model.COLOR:
            return row.load(c, banks.row_offset(c, address))
        return row.load(c, address)
    return read_any(m, c, address, t, lookahead)


@wp.func
def write_oam(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int, lookahead: int, is_drawn: int):
    """FE00-FE9F: lost while an OAM DMA is under way and, for an access with lookahead, in modes 2 and 3."""
    ppu.settle(m, c)  # sprites determine the length and the picture of finished lines
    if is_drawn == 0:
        drawing.draw_pending(m, c)
    if lookahead != 0 or model.HARDWARE == 1:
        ppu.advance(m, c, t + lookahead)
        if (c.lcdc & hw.LCDC_ENABLE) != 0:
            mode = c.stat & hw.STAT_MODE
            left = c.lcd_target - c.lcd_last
            if model.COLOR:
                left = wp.where(c.lcd_wrapped != 0, -1, left >> c.double_speed)
            if mode == 3 or (mode == 2 and not (c.lcd_first_frame != 0 and left >= 0 and left <= 4)):
                return
    if is_drawn == 0 and c.dma_active != 0:
        oam_dma.advance(m, c, t, lookahead, t + lookahead)
    if c.dma_active == 0:
        row.store(c, address, value)


@wp.func
def write_dma(m: wp.ref[Machine], c: wp.ref[Cpu], value: int, t: int):
    """DMA starts a transfer, and PyBoy also updates the LCD."""
    ppu.advance(m, c, t)
    oam_dma.start(c, value, t)


@wp.func
def write_if(m: wp.ref[Machine], c: wp.ref[Cpu], value: int):
    """IF, after what the LCD has requested before."""
    ppu.requests(m, c)
    c.interrupt_flag = value & 0x1F


@wp.func
@writes(registers.OF_DMG)
def write_register(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int, is_drawn: int):
    """FF00-FF4B."""


@wp.func
@is_one_of(registers.addresses(registers.OF_DMG, "none"))
def is_unnoticed(address: int) -> bool:
    """True for a register whose writes nothing notices."""


@wp.func
@is_one_of(registers.addresses(registers.OF_DMG, "none", "picture"))
def is_inert(address: int) -> bool:
    """True for a register whose writes only the picture may show."""


@wp.func
def write_io(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int, is_drawn: int):
    """FF00-FF4B; each write ends the batch."""
    if not is_unnoticed(address):
        counters.changed(c, -1, value)
    write_register(m, c, address, value, t, is_drawn)
    end_write_io(c, address)


@wp.func(inline=False)
def end_write_io(c: wp.ref[Cpu], address: int):
    """End PyBoy's batch after a write to FF00-FF4B, except for LY. After writes to some registers nothing could notice
    the end, unless an earlier write did not end the batch."""
    inert = is_inert(address)
    if model.COLOR:
        inert = inert and not timing.is_late(c)
    if model.SOUND:
        inert = inert and not words.is_exact(c)
        if model.COLOR:
            inert = inert and words.exact_from(c) >= c.next_event
        if address != hw.LY:
            words.note_bail(c, c.now)
    if address != hw.LY and not (inert and (c.dma_active | c.tima_reload | c.overrun) == 0):
        c.next_event = c.now


@wp.func
def write_high(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int, lookahead: int, is_drawn: int):
    """FE00-FFFF."""
    if address < hw.OAM_END:
        write_oam(m, c, address, value, t, lookahead, is_drawn)
        return
    if address >= hw.IO:
        if is_drawn == 0 and c.dma_active != 0:
            oam_dma.advance(m, c, t, lookahead, t + lookahead)
        if address < hw.HRAM:
            if address <= hw.WX:
                write_io(m, c, address, value, t, is_drawn)
            if model.COLOR:
                if address > hw.WX:
                    if is_drawn == 0:
                        color_registers.draw_before(m, c, address)
                    color_registers.write(m, c, address, value, t, lookahead)
            return
        if address == hw.IE:
            c.interrupt_enable = value
            c.next_event = c.now
            return
    row.store(c, address, value)


@wp.func
def write_rest(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int, lookahead: int, is_drawn: int):
    """write_any; is_drawn: a constant, 1 if all finished lines are drawn and no OAM DMA is running."""
    if address >= hw.OAM:
        write_high(m, c, address, value, t, lookahead, is_drawn)
    elif address >= hw.WRAM:
        offset = hw.WRAM + (address & 0x1FFF)
        if model.COLOR:
            offset = banks.row_offset(c, offset)
        row.store(c, offset, value)
    elif address < hw.VRAM:
        mbc.write_register(m, c, address, value, t)
        if (c.dma_active | c.tima_reload | c.overrun) != 0:  # PyBoy always does; in other cases nothing could notice
            c.next_event = c.now
        if model.COLOR:
            if timing.is_late(c):
                c.next_event = c.now
        if model.SOUND:
            words.note_bail(c, c.now)
            if words.is_exact(c):
                c.next_event = c.now
    elif address >= hw.CART_RAM:
        mbc.write_ram(m, c, address, value, t)
    else:
        if lookahead != 0 or model.HARDWARE == 1:
            ppu.advance(m, c, t + lookahead)
            if (c.lcdc & hw.LCDC_ENABLE) != 0 and (c.stat & hw.STAT_MODE) == 3:
                return
        if is_drawn == 0 and c.render != 0 and c.next_line < hw.SCREEN_HEIGHT:
            ppu.settle(m, c)
            drawing.draw_pending(m, c)
        if model.COLOR:
            row.store(c, banks.row_offset(c, address), value)
            return
        row.store(c, address, value)


@wp.func(inline=False)
def write_any(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int, lookahead: int):
    """Write `value` to `address` at time `t`."""
    write_rest(m, c, address, value, t, lookahead, 0)


@wp.func(inline=False)
def write_drawn(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int, lookahead: int):
    """`write` when all finished lines are drawn and no OAM DMA is running."""
    write_rest(m, c, address, value, t, lookahead, 1)


@wp.func(inline=False)
def write(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int, lookahead: int):
    """Write `value` to `address` at time `t`; only frequent accesses, as in `read`."""
    if (address >= hw.WRAM and address < hw.ECHO) or (address >= hw.HRAM and address < hw.IE and c.dma_active == 0):
        if model.COLOR:
            row.store(c, banks.row_offset(c, address), value)
            return
        row.store(c, address, value)
    else:
        write_any(m, c, address, value, t, lookahead)
