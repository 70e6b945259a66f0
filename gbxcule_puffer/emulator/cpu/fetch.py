"""Instruction fetch: opcode and immediates into c.code, one byte each from bit 0 up, followed by a mark
(loops/table.py)."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cpu import marks
from gbxcule_puffer.emulator.hw import bus, intrinsics, model, oam_dma, row
from gbxcule_puffer.emulator.hw.color import banks
from gbxcule_puffer.emulator.state import Cpu, Machine

FIRST_MARK = wp.constant(1 << 24)  # bits of Machine.code: a loop (that perhaps only waits) or a hook is here


@wp.func
def fetch_from_bus(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Fetch code outside of the ROM: only the bytes of the instruction are read, 4 T-cycles apart."""
    if c.pc >= hw.WRAM:
        marks.skip_delay_in_ram(m, c)
    in_row = (c.pc >= hw.WRAM and c.pc < hw.ECHO - 2) or (c.pc >= hw.HRAM and c.pc < hw.IE - 2)
    if model.COLOR:
        in_row = in_row and banks.is_unshifted(c, c.pc, c.pc + 2)
    if in_row and c.dma_active == 0:  # these reads have no side effects
        c.code = row.load(c, c.pc) | (row.load(c, c.pc + 1) << 8) | (row.load(c, c.pc + 2) << 16)
        return
    # A routine in HRAM that waits for an OAM DMA updates it with each fetch. If its source is not locked and does not
    # change with time, the last update copies all that the others would.
    source = c.dma_source & 0xE0
    if in_row and c.pc >= hw.HRAM and source != 0x80 and source != 0xA0 and c.dma_source < 0xFE:
        c.code = row.load(c, c.pc) | (row.load(c, c.pc + 1) << 8) | (row.load(c, c.pc + 2) << 16)
        ahead = 4 * (int(m.op_length[c.code & 0xFF]) - 1)
        oam_dma.advance(m, c, c.now, ahead, c.now + ahead)
        return
    first = bus.read(m, c, c.pc, c.now, 0)
    c.code = first
    length = int(m.op_length[first])
    if length >= 2:
        c.code = c.code | (bus.read(m, c, (c.pc + 1) & 0xFFFF, c.now, 4) << 8)
    if length == 3:
        c.code = c.code | (bus.read(m, c, (c.pc + 2) & 0xFFFF, c.now, 8) << 16)


@wp.func
def fetch_at_pc(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Fetch at PC. At 3FFE and 3FFF all bytes come from the end of the bank before the selected one, as in PyBoy."""
    if c.pc < 0x3FFE:
        c.code = intrinsics.load_word(c.words, 4 * (c.rom_low + c.pc))
        if c.code >= FIRST_MARK:
            marks.at_mark(m, c, c.rom_low + c.pc)
    elif c.rom_high + c.pc < 0:
        c.code = 0  # bank 0 at 4000: PyBoy reads what lies before the image, in practice 0
    elif c.pc < hw.VRAM - 2:
        c.code = intrinsics.load_word(c.words, 4 * (c.rom_high + c.pc))
        if c.code >= FIRST_MARK:
            marks.at_mark(m, c, c.rom_high + c.pc)
    else:
        fetch_from_bus(m, c)


@wp.func
def fetch(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """The instruction at PC."""
    fetch_at_pc(m, c)
    if model.HARDWARE == 1 and c.halted == 2:  # the byte at PC is read twice: it stands where HALT does, too
        c.halted = 0
        c.pc = (c.pc - 1) & 0xFFFF
        c.code = (c.code & 0xFF) | ((c.code << 8) & 0xFFFF00)
