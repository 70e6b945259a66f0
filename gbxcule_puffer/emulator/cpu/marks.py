"""The interpreter at a mark in Machine.code, or at a delay in RAM: skip a loop, or count for a hook.

A loop is skipped on packed registers (loops/skip.py): packing and unpacking take less time than one of its rounds.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import areas, intrinsics, model, row
from gbxcule_puffer.emulator.hw.color import banks
from gbxcule_puffer.emulator.hw.lcd import ppu
from gbxcule_puffer.emulator.loops import crash, lcd_polls, packed, skip, table
from gbxcule_puffer.emulator.loops.packed import Registers
from gbxcule_puffer.emulator.state import Cpu, Machine

DEC_A, DEC_B, DEC_C = 0x3D, 0x05, 0x0D


@wp.func(inline=False)
def skip_delay(c: wp.ref[Cpu], entry: int):
    """A delay in RAM. Not inlined: that would cost the main loop registers."""
    r = packed.pack(c)
    skip.delay(c, r, entry, False)
    packed.unpack(c, r)


@wp.func
def skip_delay_in_ram(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """`wait: dec r / jr nz,wait` in WRAM or HRAM: games wait with it for the end of an OAM DMA."""
    in_row = c.pc < hw.ECHO or (c.pc >= hw.HRAM and c.pc < hw.IE - 3)
    # A transfer from VRAM meets VRAM's lock in the fetches that look ahead, not in the others.
    in_row = in_row and (c.dma_active == 0 or (c.dma_source & 0xE0) != 0x80)
    if model.COLOR:
        in_row = in_row and banks.is_unshifted(c, c.pc, c.pc + 2) and (c.dma_active == 0 or c.dma_source != 0xFF)
    if c.ei_delay == 0 and in_row and row.load(c, c.pc + 1) == 0x20:
        opcode = row.load(c, c.pc)
        if row.load(c, c.pc + 2) == 0xFD and (opcode == DEC_A or opcode == DEC_B or opcode == DEC_C):
            counter = opcode >> 3  # as table.COUNTER counts: b 0, c 1
            if opcode == DEC_A:
                counter = table.COUNTER_A
            skip_delay(c, skip.DELAY_ROUND | (counter << table.KIND.shift))


@wp.func
def goes_on_in_mode3(c: wp.ref[Cpu], r: wp.ref[Registers], mask: int, entry: int) -> bool:
    """True if a poll of STAT waits in mode 2 for an end of mode 3, and a round fits before the next event: the next one
    finds mode 3, whose end is further away than a round."""
    is_next = c.lcd_next_mode == 3 and (c.stat & hw.STAT_MODE) == 2 and (c.stat & mask) != 0 and (mask & 3) != 0
    return is_next and c.next_event - 1 - r.now >= (entry & table.T_CYCLES.most)


@wp.func
def skip_stat_poll(m: wp.ref[Machine], c: wp.ref[Cpu], opcode: int, tail: int, last: int):
    """`wait: ldh a,[STAT] / and n / jr cc,wait`, also with `and a` before the jump, or with `bit 1,a` instead of `and
    n`. `tail` has the three bytes after `opcode`, `last` the next one."""
    mask = tail & 0xFF
    jump = (tail >> 8) & 0xFFFF
    back = 0xFA00
    entry = int(lcd_polls.ROUND)
    if opcode == lcd_polls.AND_N and (jump & 0xFF) == lcd_polls.AND_A:
        jump = (tail >> 16) | (last << 8)
        back = 0xF900
        entry = lcd_polls.LONG_ROUND
    is_bit = opcode == lcd_polls.PREFIX and mask == lcd_polls.BIT_1_A
    is_loop = (jump & 0xFFF7) == (back | 0x20) and (opcode == lcd_polls.AND_N or is_bit)
    if model.COLOR:
        is_loop = is_loop and c.lcd_wrapped == 0
    if is_loop and c.ei_delay == 0 and c.dma_active == 0 and c.stat_mode_hidden == 0:
        ppu.settle(m, c)
        mask = wp.where(is_bit, 2, mask)
        if ((c.stat & mask) == 0) == ((jump & 8) != 0):
            r = packed.pack(c)
            if lcd_polls.poll_stat(c, r, c.now + lcd_polls.READ_T, entry) > 0:
                if intrinsics.is_gpu() == 0 and goes_on_in_mode3(c, r, mask, entry):
                    c.now = r.now
                    c.previous = r.previous
                    ppu.advance(m, c, r.now + lcd_polls.READ_T)
                    lcd_polls.poll_stat(c, r, r.now + lcd_polls.READ_T, entry)
                packed.set_a(r, wp.where(is_bit, c.stat, c.stat & mask))
                carry = wp.where(is_bit, r.flags & packed.C, 0)
                nonzero = wp.where((c.stat & mask) != 0, packed.NZ, 0)
                r.flags = packed.ONE | packed.H | carry | nonzero
                packed.unpack(c, r)


@wp.func(inline=False)
def skip_lcd_poll(m: wp.ref[Machine], c: wp.ref[Cpu], index: int):
    """Skip a loop that polls LY or STAT, if there is one at `index` of the ROM. Not inlined: it runs often, and the
    rest of at_mark would cost it registers."""
    tail = intrinsics.load_word(c.words, 4 * (index + 3))
    if (c.code & 0xFFFFFF) == (lcd_polls.LDH_A_LY | (lcd_polls.CP_N << 16)):
        r = packed.pack(c)
        if lcd_polls.poll_ly(c, r, tail) > 0:
            packed.unpack(c, r)
    elif (c.code & 0xFFFF) == lcd_polls.LDH_A_STAT:
        skip_stat_poll(m, c, (c.code >> 16) & 0xFF, tail, intrinsics.load_word(c.words, 4 * (index + 6)) & 0xFF)


@wp.func
def skip_counted(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Registers], entry: int):
    """A loop that copies, fills, adds or multiplies, or a crash."""
    kind = skip.kind_of(entry)
    if kind == table.CRASH:
        is_locked = wp.where(model.HARDWARE == 1, ~areas.unlocked(c), 0)  # a push notices the lock on hardware only
        crash.push(m, c, r, entry, areas.writable(m, c) & ~is_locked)
    elif kind == table.MULTIPLY:
        rounds = skip.multiply(c, r, False)
        while rounds > 0:
            rounds = skip.multiply(c, r, False)
    elif kind >= table.ADD_BC:
        skip.add(c, r, entry)
    else:
        unlocked = areas.unlocked(c)
        if model.COLOR:
            unlocked = wp.where(c.lcd_wrapped != 0, unlocked & ~(1 << areas.VRAM), unlocked)
        skip.move(c, r, entry, areas.readable(m, c) & unlocked, areas.writable(m, c) & unlocked)


@wp.func(inline=False)
def at_mark(m: wp.ref[Machine], c: wp.ref[Cpu], index: int):
    """Skip the loop that begins at PC (`index` of the ROM), or count for the hook there."""
    number = c.code >> table.MARK_SHIFT
    if number == table.LCD_POLL:
        skip_lcd_poll(m, c, index)
        return
    entry = m.waits[number - 1]
    kind = skip.kind_of(entry)
    if kind == table.HOOK:
        hook = entry & table.HOOK_NUMBER.mask
        m.hooks[hook, c.env] = m.hooks[hook, c.env] + 1
        return
    if c.ei_delay == 0 and c.dma_active == 0 and skip.has_scanned_address(c.pc, index):
        r = packed.pack(c)
        if kind < table.HOOK:
            skip.wait(m, c, r, entry, False)
        elif intrinsics.is_gpu() == 0:  # on a GPU the data path skips them; here they would cost registers
            skip_counted(m, c, r, entry)
        if r.now != c.now:
            packed.unpack(c, r)
