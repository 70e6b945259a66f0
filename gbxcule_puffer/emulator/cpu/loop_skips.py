"""Loops of the ROM that copy, fill, add or multiply, many rounds at once: registers, memory, flags and time as the
plain loop leaves them.

cpu/loop_codes.py has their machine code; Machine.code marks their first instruction (cpu/waits.py). A skip stops before
the loop's last round, before the next event and before a pointer leaves its 4 KiB of plain memory, so that nothing can
tell.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cpu import arithmetic, loop_codes
from gbxcule_puffer.emulator.hw import counters, intrinsics, model
from gbxcule_puffer.emulator.hw.color import banks
from gbxcule_puffer.emulator.hw.lcd import drawing, ppu
from gbxcule_puffer.emulator.state import Cpu, Machine

COPY_FROM_HL = wp.constant(loop_codes.COPY_FROM_HL)
COPY_FROM_DE = wp.constant(loop_codes.COPY_FROM_DE)
FILL_0 = wp.constant(loop_codes.FILL_0)
FILL_D = wp.constant(loop_codes.FILL_D)
FILL_E = wp.constant(loop_codes.FILL_E)
FILL_EVERY_4TH = wp.constant(loop_codes.FILL_EVERY_4TH)
ADD_BC = wp.constant(loop_codes.ADD_BC)
ADD_DE = wp.constant(loop_codes.ADD_DE)
MULTIPLY = wp.constant(loop_codes.MULTIPLY)
INC_C = wp.constant(loop_codes.INC_C)
WIDE_BC = wp.constant(loop_codes.WIDE_BC)
PAGE = wp.constant(0x1000)
ROUND_T_CYCLES, ADDITION_T_CYCLES = wp.constant(52), wp.constant(4)  # of a multiplication, and more where it adds
ROUND_INSTRUCTIONS = wp.constant(6)
JUMP_T_CYCLES = wp.constant(12)


@wp.func
def register(c: wp.ref[Cpu], number: int) -> int:
    """Register `number` of b c d e h l a."""
    value = c.a
    if number == 0:
        value = c.b
    elif number == 1:
        value = c.c
    elif number == 2:
        value = c.d
    elif number == 3:
        value = c.e
    elif number == 4:
        value = c.h
    elif number == 5:
        value = c.l
    return value


@wp.func
def set_register(c: wp.ref[Cpu], number: int, value: int):
    """Set register `number` of b c d e h l a."""
    if number == 0:
        c.b = value
    elif number == 1:
        c.c = value
    elif number == 2:
        c.d = value
    elif number == 3:
        c.e = value
    elif number == 4:
        c.h = value
    elif number == 5:
        c.l = value
    else:
        c.a = value


@wp.func
def pair(c: wp.ref[Cpu], number: int) -> int:
    """Pair `number` of bc de hl."""
    value = (c.h << 8) | c.l
    if number == 0:
        value = (c.b << 8) | c.c
    elif number == 1:
        value = (c.d << 8) | c.e
    return value


@wp.func
def set_pair(c: wp.ref[Cpu], number: int, value: int):
    """Set pair `number` of bc de hl."""
    if number == 0:
        arithmetic.set_bc(c, value)
    elif number == 1:
        arithmetic.set_de(c, value)
    else:
        arithmetic.set_hl(c, value)


@wp.func
def rounds_left(c: wp.ref[Cpu], counter: int) -> int:
    """Rounds until the counter is 0."""
    left = ((register(c, counter) - 1) & 0xFF) + 1
    if counter == INC_C:
        left = 0x100 - c.c
    elif counter >= WIDE_BC:
        left = ((pair(c, counter - WIDE_BC) - 1) & 0xFFFF) + 1
    return left


@wp.func(inline=False)
def count_rounds(c: wp.ref[Cpu], counter: int, count: int):
    """Set the counter, and the flags, which are not those of 0, as after `count` rounds."""
    if counter == INC_C:
        c.c = arithmetic.increment(c, (c.c + count - 1) & 0xFF)
    elif counter >= WIDE_BC:
        value = (pair(c, counter - WIDE_BC) - count) & 0xFFFF
        set_pair(c, counter - WIDE_BC, value)
        c.a = (value >> 8) | (value & 0xFF)
        c.f = 0
    else:
        set_register(c, counter, arithmetic.decrement(c, (register(c, counter) - count + 1) & 0xFF))


@wp.func
def plain_bytes(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, is_write: bool) -> int:
    """Bytes from `address` to the end of its 4 KiB, 0 if accesses to them have side effects, or meet a lock, before the
    next event."""
    is_plain = address >= hw.WRAM and address < hw.ECHO
    if address < hw.VRAM:
        is_plain = not is_write and (address >= hw.ROM_BANK_SIZE or c.rom_low == 0)
    elif address < hw.CART_RAM:
        is_plain = ppu.is_vram_unlocked(c) and not (is_write and drawing.is_drawing(c))
        if model.COLOR:
            is_plain = is_plain and c.lcd_wrapped == 0
    elif address < hw.WRAM:
        is_plain = c.ram_enabled == 1 and c.ram_offset == hw.CART_RAM - hw.ROW_BASE and m.has_plain_ram == 1
    return wp.where(is_plain, PAGE - (address & (PAGE - 1)), 0)


@wp.func
def place(c: wp.ref[Cpu], address: int) -> wp.uint64:
    """The address of a byte of plain memory."""
    result = c.row + wp.uint64(address)
    if model.COLOR:
        result = c.row + wp.uint64(banks.place(c, address))
    if address < hw.VRAM:
        result = c.rom + wp.uint64(address + wp.where(address < hw.ROM_BANK_SIZE, c.rom_low, c.rom_high))
    return result


@wp.func
def skip_copy(m: wp.ref[Machine], c: wp.ref[Cpu], is_from_hl: bool, most: int) -> int:
    """Rounds of a copy from HL to DE, or back, that were skipped."""
    hl = pair(c, 2)
    de = pair(c, 1)
    source = wp.where(is_from_hl, hl, de)
    target = wp.where(is_from_hl, de, hl)
    count = wp.min(most, wp.min(plain_bytes(m, c, source, False), plain_bytes(m, c, target, True)))
    if count > 0:
        c.a = intrinsics.copy_bytes(place(c, source), place(c, target), count)
        arithmetic.set_hl(c, (hl + count) & 0xFFFF)
        arithmetic.set_de(c, (de + count) & 0xFFFF)
    return count


@wp.func
def skip_fill(m: wp.ref[Machine], c: wp.ref[Cpu], kind: int, most: int) -> int:
    """Rounds of a fill from HL on that were skipped."""
    hl = pair(c, 2)
    stride = wp.where(kind == FILL_EVERY_4TH, 4, 1)
    count = wp.min(most, plain_bytes(m, c, hl, True))
    if stride == 4:  # `inc l` stays in its 256 bytes
        count = wp.min(count, (0xFF - (hl & 0xFF)) // 4)
    if count > 0:
        if kind == FILL_0:
            c.a = 0
            c.f = 0
        elif kind == FILL_D:
            c.a = c.d
        elif kind == FILL_E:
            c.a = c.e
        intrinsics.fill_bytes(place(c, hl), c.a, count, stride)
        arithmetic.set_hl(c, (hl + count * stride) & 0xFFFF)
    return count


@wp.func
def skip_sum(c: wp.ref[Cpu], kind: int, count: int):
    """`count` rounds of `add hl,rr`."""
    hl = pair(c, 2)
    addend = pair(c, wp.where(kind == ADD_BC, 0, 1))
    before = (hl + addend * (count - 1)) & 0xFFFF  # the last addition
    if kind != ADD_BC and kind != ADD_DE:
        before = (hl << wp.min(count - 1, 16)) & 0xFFFF
        addend = before
    arithmetic.set_hl(c, (before + addend) & 0xFFFF)
    c.f = wp.where(before + addend > 0xFFFF, hw.FLAG_C, 0)


@wp.func
def skip_multiplication(c: wp.ref[Cpu]):
    """`sla e / rl d / jr nc,+1 / add hl,bc / add hl,hl / dec a / jr nz`, whose rounds are not equally long."""
    bc = pair(c, 0)
    de = pair(c, 1)
    hl = pair(c, 2)
    left = rounds_left(c, 6) - 1
    now = c.now
    instructions = int(0)
    count = int(0)
    carry = int(0)
    while count < left and now + ROUND_T_CYCLES + ADDITION_T_CYCLES < c.next_event:
        adds = de >> 15
        de = (de << 1) & 0xFFFF
        hl = 2 * ((hl + adds * bc) & 0xFFFF)
        carry = hl >> 16
        hl = hl & 0xFFFF
        now = now + ROUND_T_CYCLES + adds * ADDITION_T_CYCLES
        instructions = instructions + ROUND_INSTRUCTIONS + adds
        count = count + 1
    if count > 0:
        arithmetic.set_de(c, de)
        arithmetic.set_hl(c, hl)
        c.f = wp.where(carry != 0, hw.FLAG_C, 0)
        count_rounds(c, 6, count)
        c.now = now
        c.previous = now - JUMP_T_CYCLES
        c.executed = c.executed + instructions
        c.skipped = c.skipped + instructions


@wp.func(inline=False)
def skip(m: wp.ref[Machine], c: wp.ref[Cpu], kind: int, counter: int, most: int) -> int:
    """Rounds of a counted loop that were skipped, `most` at most before the next event: registers and memory. Time is
    the caller's, but for a multiplication, which returns 0."""
    if kind == MULTIPLY:
        skip_multiplication(c)
        return 0
    count = wp.min(rounds_left(c, counter) - 1, most)
    if count > 0:
        if kind == COPY_FROM_HL or kind == COPY_FROM_DE:
            count = skip_copy(m, c, kind == COPY_FROM_HL, count)
        elif kind < ADD_BC:
            count = skip_fill(m, c, kind, count)
        else:
            skip_sum(c, kind, count)
    if count > 0:
        count_rounds(c, counter, count)
        counters.changed(c, -1, 0)
    return wp.max(count, 0)
