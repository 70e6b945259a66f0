"""Loops whose rounds are skipped at once, leaving registers, flags and time as the plain loop would.

A skip stops before the loop's last round and before the next event, so that nothing can tell. Loops in RAM are known by
their code when it is fetched; the others are marked in Machine.code (cpu/waits.py), those that read LY or STAT by their
first instruction. Those that do more than wait are skipped by loop_skips.py. Hooks are marked as loops are.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cpu import arithmetic, loop_skips, waits
from gbxcule_puffer.emulator.hw import intrinsics, model, row
from gbxcule_puffer.emulator.hw.color import banks
from gbxcule_puffer.emulator.hw.lcd import clock, ppu
from gbxcule_puffer.emulator.state import Cpu, Machine

INSTRUCTIONS_SHIFT = wp.constant(waits.INSTRUCTIONS_SHIFT)
JUMP_SHIFT = wp.constant(waits.JUMP_SHIFT)
KIND_SHIFT = wp.constant(waits.KIND_SHIFT)
DETAIL_SHIFT = wp.constant(waits.DETAIL_SHIFT)
POLL = wp.constant(waits.POLL)
LCD_POLL = wp.constant(waits.LCD_POLL)
DELAY_B = wp.constant(waits.DELAY_B)
DELAY_WIDE = wp.constant(waits.DELAY_WIDE)
HOOK = wp.constant(waits.HOOK)
NEST_SHIFT = wp.constant(waits.NEST_SHIFT)
FIRST_NEST = wp.constant(waits.FIRST_NEST)
NEST_PAIR_SHIFT = wp.constant(waits.NEST_PAIR_SHIFT)
NEST_LAST_SHIFT = wp.constant(waits.NEST_LAST_SHIFT)
NEST_START_SHIFT = wp.constant(waits.NEST_START_SHIFT)
NEST_T_CYCLES = wp.constant((1 << waits.NEST_PAIR_SHIFT) - 1)
NEST_INSTRUCTIONS = wp.constant((1 << waits.NEST_START_SHIFT) - 1)
POLL_WITH_CALLS = wp.constant(waits.POLL_WITH_CALLS)
STACK_BYTES = wp.constant(2 * waits.MOST_ON_STACK)
KIND_ONE = wp.constant(1 << waits.KIND_SHIFT)
DEC_A = wp.constant(0x3D)
DEC_B = wp.constant(0x05)
DEC_C = wp.constant(0x0D)
ITERATION_T_CYCLES = wp.constant(16)  # DEC r, JR NZ taken
POLL_T_CYCLES = wp.constant(32)  # LDH A,[LY], CP n, JR taken
READ_T = wp.constant(4)  # when LDH reads
LDH_A_LY = wp.constant(0x44F0)
LDH_A_STAT = wp.constant(0x41F0)
CP_N = wp.constant(0xFE)
AND_N = wp.constant(0xE6)
AND_A = wp.constant(0xA7)
PREFIX = wp.constant(0xCB)
BIT_1_A = wp.constant(0x4F)


@wp.func
def skip_wait_loop(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """`wait: dec r / jr nz,wait` in WRAM or HRAM, with which games sit out an OAM DMA."""
    in_row = c.pc < hw.ECHO or (c.pc >= hw.HRAM and c.pc < hw.IE - 3)
    # A transfer from VRAM meets its lock in the fetches that look ahead, not in the others.
    in_row = in_row and (c.dma_active == 0 or (c.dma_source & 0xE0) != 0x80)
    if model.COLOR:
        in_row = in_row and banks.is_in_place(c, c.pc, c.pc + 2) and (c.dma_active == 0 or c.dma_source != 0xFF)
    if c.ei_delay == 0 and in_row and row.load(c, c.pc + 1) == 0x20:
        opcode = row.load(c, c.pc)
        if row.load(c, c.pc + 2) == 0xFD and (opcode == DEC_A or opcode == DEC_B or opcode == DEC_C):
            value = c.a
            if opcode == DEC_B:
                value = c.b
            elif opcode == DEC_C:
                value = c.c
            left = ((value - 1) & 0xFF) + 1  # iterations
            count = wp.min(left - 1, (c.next_event - 1 - c.now) // ITERATION_T_CYCLES)
            if count > 0:
                value = arithmetic.decrement(c, (value - count + 1) & 0xFF)
                if opcode == DEC_A:
                    c.a = value
                elif opcode == DEC_B:
                    c.b = value
                else:
                    c.c = value
                c.now = c.now + count * ITERATION_T_CYCLES
                c.previous = c.now - 12
                c.executed = c.executed + 2 * count
                c.skipped = c.skipped + 2 * count


@wp.func
def ly_at(c: wp.ref[Cpu], t: int) -> int:
    """LY at time `t` of a frame without surprises (ppu.is_quiet)."""
    place = t - c.lcd_zero
    length = model.dots(c, hw.LINE_T_CYCLES)
    ly = place // length
    if ly < hw.SCREEN_HEIGHT - 1 and place - ly * length >= length - clock.EARLY_DOTS:
        ly = ly + 1
    return ly


@wp.func
def time_of_ly(c: wp.ref[Cpu], ly: int) -> int:
    """The time at which LY becomes `ly`; the end of the frame for values that it does not reach."""
    t = c.lcd_zero + model.dots(c, hw.FRAME_T_CYCLES)
    if ly < hw.SCREEN_HEIGHT:
        t = c.lcd_zero + ly * model.dots(c, hw.LINE_T_CYCLES) - clock.EARLY_DOTS
    elif ly <= hw.LAST_LINE:
        t = c.lcd_zero + ly * model.dots(c, hw.LINE_T_CYCLES)
    return t


@wp.func
def end_of_halt(c: wp.ref[Cpu]) -> int:
    """The end of HALT as far as can be told now: VBlank, the timer's overflow, or the next event. No result depends
    on it."""
    until = int(hw.NEVER)
    if (c.interrupt_enable & hw.INT_VBLANK) != 0 and (c.lcdc & hw.LCDC_ENABLE) != 0:
        until = time_of_ly(c, hw.SCREEN_HEIGHT)
        until = until + wp.where(until <= c.now, model.dots(c, hw.FRAME_T_CYCLES), 0)
    if (c.interrupt_enable & hw.INT_TIMER) != 0:
        until = wp.min(until, c.timer_next)
    is_stat_used = (c.interrupt_enable & hw.INT_STAT) != 0 and (c.stat & 0x78) != 0
    return wp.where(is_stat_used or until == hw.NEVER or until < c.now, c.next_event, until)


@wp.func
def skip_ly_poll(m: wp.ref[Machine], c: wp.ref[Cpu], tail: int):
    """`wait: ldh a,[LY] / cp n / jr cc,wait`; `tail` holds n, the jump's opcode and its offset."""
    target = tail & 0xFF
    condition = (tail >> 8) & 0xFF
    is_loop = (condition & 0xE7) == 0x20 and ((tail >> 16) & 0xFF) == 0xFA
    if is_loop and c.ei_delay == 0 and c.dma_active == 0 and ppu.is_quiet(c):
        ly = ly_at(c, c.now + READ_T)
        until = time_of_ly(c, ly + 1)  # of the first read that may end the loop
        goes_on = ly == target
        if condition == 0x20:
            goes_on = ly != target
            if target > ly:
                until = time_of_ly(c, target)
        elif condition == 0x30:
            goes_on = ly >= target
            if target != 0:
                until = c.lcd_zero + model.dots(c, hw.FRAME_T_CYCLES)
        elif condition == 0x38:
            goes_on = ly < target
            until = time_of_ly(c, target)
        reads = (until - 1 - (c.now + READ_T)) // POLL_T_CYCLES + 1
        count = wp.min(reads, (c.next_event - 1 - c.now) // POLL_T_CYCLES)
        if goes_on and count > 0:
            c.a = ly_at(c, c.now + READ_T + (count - 1) * POLL_T_CYCLES) & 0xFF
            arithmetic.alu_cp(c, target)
            c.now = c.now + count * POLL_T_CYCLES
            c.previous = c.now - 12
            c.executed = c.executed + 3 * count
            c.skipped = c.skipped + 3 * count


@wp.func
def skip_stat_poll(m: wp.ref[Machine], c: wp.ref[Cpu], opcode: int, tail: int, last: int):
    """`wait: ldh a,[STAT] / and n / jr cc,wait`, also with `and a` before the jump, or with `bit 1,a` for `and n`: the
    reads before the LCD's next change. `tail` holds the three bytes after `opcode`, `last` the one after them."""
    mask = tail & 0xFF
    jump = (tail >> 8) & 0xFFFF
    back = 0xFA00
    period = int(POLL_T_CYCLES)
    instructions = int(3)
    if opcode == AND_N and (jump & 0xFF) == AND_A:
        jump = (tail >> 16) | (last << 8)
        back = 0xF900
        period = period + 4
        instructions = 4
    is_loop = (jump & 0xFFF7) == (back | 0x20) and (opcode == AND_N or (opcode == PREFIX and mask == BIT_1_A))
    if model.COLOR:
        is_loop = is_loop and c.lcd_wrapped == 0
    if is_loop and c.ei_delay == 0 and c.dma_active == 0 and c.stat_mode_hidden == 0:
        ppu.settle(m, c)
        if opcode == PREFIX:
            mask = 2
        goes_on = ((c.stat & mask) == 0) == ((jump & 8) != 0)
        first = c.now + READ_T
        reads = (c.lcd_target - 1 - first) // period + 1
        count = wp.min(reads, (c.next_event - 1 - c.now) // period)
        if goes_on and c.lcd_target > first and count > 0:
            c.a = c.stat
            if opcode == PREFIX:
                arithmetic.test_bit(c, c.a, 1)
            else:
                arithmetic.alu_and(c, mask)
            c.lcd_last = first + (count - 1) * period
            c.now = c.now + count * period
            c.previous = c.now - 12
            c.executed = c.executed + instructions * count
            c.skipped = c.skipped + instructions * count


@wp.func(inline=False)
def skip_poll(m: wp.ref[Machine], c: wp.ref[Cpu], index: int):
    """A loop that polls LY or STAT, if there is one at place `index` of the ROM. Not inlined: it is met often, and what
    skip_marked has besides would cost it registers."""
    tail = intrinsics.load_word(c.words, 4 * (index + 3))
    if (c.code & 0xFFFFFF) == (LDH_A_LY | (CP_N << 16)):
        skip_ly_poll(m, c, tail)
    elif (c.code & 0xFFFF) == LDH_A_STAT:
        skip_stat_poll(m, c, (c.code >> 16) & 0xFF, tail, intrinsics.load_word(c.words, 4 * (index + 6)) & 0xFF)


@wp.func
def pass_rounds(c: wp.ref[Cpu], entry: int, count: int):
    """`count` rounds of a marked loop are over, perhaps none."""
    if count == 0:
        return
    instructions = count * ((entry >> INSTRUCTIONS_SHIFT) & 0x3F)
    c.now = c.now + count * (entry & 0x3FF)
    c.previous = c.now - ((entry >> JUMP_SHIFT) & 0x1F)
    c.executed = c.executed + instructions
    c.skipped = c.skipped + instructions


@wp.func
def may_call(c: wp.ref[Cpu]) -> bool:
    """True where the bytes below SP are memory, a write of P1 ends no batch, and bank 0 is seen at 0000."""
    low = c.sp - STACK_BYTES
    in_row = (low >= hw.WRAM and c.sp <= hw.ECHO) or (low >= hw.HRAM and c.sp <= hw.IE)
    if model.COLOR:
        in_row = in_row and banks.is_in_place(c, low, c.sp)
    return in_row and c.tima_reload == 0 and c.overrun == 0 and c.rom_low == 0


@wp.func
def skip_poll_of_ram(c: wp.ref[Cpu], entry: int, most: int):
    """A poll, if one round has just shown that it changes nothing: then all rounds until the next event are like it.

    That it was a round of the loop and nothing else tells its length: whatever leaves the loop and comes back takes
    longer, unless by a `jp hl`, which changes nothing either. What it wrote to the stack and to P1 the others would
    write again.
    """
    low = c.c | (c.b << 8) | (c.e << 16) | (c.d << 24)  # as the data path packs them
    high = c.l | (c.h << 8) | (c.a << 16)
    is_same = c.poll_pc == c.pc and c.poll_f == c.f and c.poll_low == low and c.poll_high == high
    if is_same and c.poll_event == c.next_event and c.now - c.poll_now == (entry & 0x3FF) and most > 0:
        pass_rounds(c, entry, most)
    c.poll_pc = c.pc
    c.poll_f = c.f
    c.poll_low = low
    c.poll_high = high
    c.poll_event = c.next_event
    c.poll_now = c.now


@wp.func
def nest_words(m: wp.ref[Machine], number: int) -> wp.vec2i:
    """The two words of a nest in Machine.waits."""
    index = FIRST_NEST + 2 * (number - 1)
    return wp.vec2i(m.waits[index], m.waits[index + 1])


@wp.func
def skip_nest(c: wp.ref[Cpu], nest: wp.vec2i, register: int):
    """Rounds of the loop around a delay that begins: all but the last, or as many as are over before the next event."""
    number = (nest[0] >> NEST_PAIR_SHIFT) & 3
    t_cycles = nest[0] & NEST_T_CYCLES
    count = wp.min(loop_skips.pair(c, number) - 1, (c.next_event - 1 - c.now) // t_cycles)
    if count > 0 and loop_skips.register(c, register) == nest[1] >> NEST_START_SHIFT:
        value = loop_skips.pair(c, number) - count
        loop_skips.set_pair(c, number, value)
        c.a = (value >> 8) | (value & 0xFF)
        c.f = 0  # not zero, since the last round is not skipped
        instructions = count * (nest[1] & NEST_INSTRUCTIONS)
        c.now = c.now + count * t_cycles
        c.previous = c.now - (nest[0] >> NEST_LAST_SHIFT)
        c.executed = c.executed + instructions
        c.skipped = c.skipped + instructions


@wp.func
def skip_delay(c: wp.ref[Cpu], entry: int, register: int, pushed: int, most: int):
    """`dec r / jr nz`, r being number `register` of b c d e h l a; pushed: 0, or the pair (bc de hl are 1 to 3) that
    each round pushed last, before it counted."""
    count = wp.min((loop_skips.register(c, register) - 1) & 0xFF, most)
    if count > 0 and (pushed == 0 or may_call(c)):
        loop_skips.count_rounds(c, register, count - 1)
        if pushed != 0:
            value = loop_skips.pair(c, pushed - 1)
            row.store(c, c.sp - 2, value)
            row.store(c, c.sp - 1, value >> 8)
        loop_skips.count_rounds(c, register, 1)
        pass_rounds(c, entry, count)


@wp.func
def skip_wide_delay(c: wp.ref[Cpu], entry: int, pair: int, most: int):
    """`dec rr / ld a,high / or low / jr nz`, rr being number `pair` of bc de hl."""
    count = wp.min((loop_skips.pair(c, pair) - 1) & 0xFFFF, most)
    if count > 0:
        value = (loop_skips.pair(c, pair) - count) & 0xFFFF
        loop_skips.set_pair(c, pair, value)
        c.a = (value >> 8) | (value & 0xFF)
        c.f = 0  # not zero, since the last round is not skipped
        pass_rounds(c, entry, count)


@wp.func(inline=False)
def skip_marked(m: wp.ref[Machine], c: wp.ref[Cpu], index: int):
    """The loop that begins at PC, place `index` of the ROM, or the hook there."""
    number = c.code >> 24
    if number == LCD_POLL:
        skip_poll(m, c, index)
        return
    entry = m.waits[number - 1]
    kind = (entry >> KIND_SHIFT) & 0x1F
    detail = entry >> DETAIL_SHIFT
    if kind == HOOK:
        hook = entry & (KIND_ONE - 1)
        m.hooks[hook, c.env] = m.hooks[hook, c.env] + 1
        return
    # An absolute jump leads to the bank as it was seen when the loop was found.
    is_in_place = (c.pc >= hw.ROM_BANK_SIZE) == (index >= hw.ROM_BANK_SIZE)
    most = (c.next_event - 1 - c.now) // (entry & 0x3FF)
    if c.ei_delay == 0 and c.dma_active == 0 and is_in_place:
        if kind == POLL or kind == POLL_WITH_CALLS:
            if kind == POLL or may_call(c):
                skip_poll_of_ram(c, entry, most)
        elif kind < DELAY_WIDE:
            if detail > 3:
                skip_nest(c, nest_words(m, detail >> 2), kind - DELAY_B)
                most = (c.next_event - 1 - c.now) // (entry & 0x3FF)
            skip_delay(c, entry, kind - DELAY_B, detail & 3, most)
        elif kind < HOOK:
            skip_wide_delay(c, entry, kind - DELAY_WIDE, most)
        elif intrinsics.is_gpu() == 0:  # gpu/loop_skips.py skips them there; here they cost the common path registers
            pass_rounds(c, entry, loop_skips.skip(m, c, kind, detail, most))
