"""Interrupt dispatch, HALT and the batches in which PyBoy runs instructions.

PyBoy runs instructions until the next event of any device (a batch), then updates the devices and checks for
interrupts. A batch ends early at a write to a register, at HALT, and when EI takes effect while an interrupt is
pending. The end of a batch decides when LCD changes that are close together take effect, so batches are reproduced
exactly. LCD changes that nothing can notice do not end a batch here: they are skipped, and ppu.settle reconstructs the
state after them.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import bus, counters, intrinsics, model, oam_dma, serial, timer
from gbxcule_puffer.emulator.hw.color import hdma
from gbxcule_puffer.emulator.hw.lcd import events, ppu, timing
from gbxcule_puffer.emulator.hw.sound import unit, words
from gbxcule_puffer.emulator.state import Cpu, Machine

LONGEST_T_CYCLES = wp.constant(24)  # of an instruction


@wp.func
def end_batch_of_lcd(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Bring a Game Boy Color's LCD up to date."""
    timing.look(c, c.now)
    if c.lcd_wrapped != 0:
        ppu.change(m, c, c.now)
    elif c.lcd_target <= c.now:
        ppu.settle_changes(m, c)
    c.lcd_last = c.now


@wp.func
def end_batch_of_devices(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Bring all devices but the OAM DMA up to date."""
    # First all loads, then one branch: on a GPU each branch, and each load after one, takes as long as ten additions.
    is_lcd_behind = c.lcd_last != c.now
    is_lcd_due = int(c.lcd_target <= c.now) & int(is_lcd_behind)
    if model.SOUND:
        unit.note_end(c)
    if (c.tima_reload | int(c.now >= wp.min(c.serial_end, c.timer_next))) != 0:
        serial.advance(c, c.now)
        if c.tima_reload != 0 or c.now >= c.timer_next:
            timer.advance(c, c.now)
    if model.COLOR:
        if is_lcd_behind:
            end_batch_of_lcd(m, c)
    elif is_lcd_due != 0:
        ppu.settle_changes(m, c)
    if model.SOUND:
        unit.end_batch(c, 0)
    c.settle_from = c.now


@wp.func(inline=False)
def end_batch(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Bring all devices up to date."""
    if c.dma_active != 0:
        oam_dma.advance(m, c, c.now, 0, c.now)
    end_batch_of_devices(m, c)


@wp.func
def highest(pending: int) -> int:
    """Number of the interrupt with the highest priority, the lowest bit set."""
    number = int(0)
    while ((pending >> number) & 1) == 0:
        number = number + 1
    return number


@wp.func(inline=False)
def dispatch(m: wp.ref[Machine], c: wp.ref[Cpu], end: int):
    """Push PC and jump to the handler; IE may change with the first push (mooneye, interrupts/ie_push). If a push
    writes a register, PyBoy's batch still continues to its `end`, which was set before the pushes."""
    saved_event = c.next_event
    bus.write(m, c, (c.sp - 1) & 0xFFFF, c.pc >> 8, c.now, 0)
    pending = c.interrupt_flag & c.interrupt_enable & 0x1F
    if pending == 0:
        c.pc = 0
    else:
        number = highest(pending)
        counters.add(m, counters.CAUSES, counters.DISPATCHED + number, 1)
        c.interrupt_flag = c.interrupt_flag & ~(1 << number)
        bus.write(m, c, (c.sp - 2) & 0xFFFF, c.pc & 0xFF, c.now, 0)
        c.sp = (c.sp - 2) & 0xFFFF
        c.pc = 0x40 + 8 * number
        if model.SOUND:
            c.before = c.previous
            words.store(c, words.BAIL, 0)  # a push ends no batch
        c.previous = c.now
        c.now = c.now + hw.INTERRUPT_DISPATCH_T_CYCLES
    c.ime = 0
    if c.next_event < saved_event:
        c.overrun = 1
        c.batch_end = end
        c.next_event = end
        c.settle_from = end


@wp.func
def plan_batch(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Set the end of the batch. Returns the end of PyBoy's batch, and the LCD's event that ends ours."""
    other = wp.min(c.timer_next, c.serial_end)
    lcd = timing.next_change(c)
    pending = c.interrupt_flag & c.interrupt_enable & 0x1F
    # An OAM DMA copies when it is updated. In VBlank no line needs OAM, and code in HRAM updates it at each fetch.
    is_far = int(c.ly >= hw.SCREEN_HEIGHT) & int(c.pc >= hw.HRAM)
    if model.COLOR:
        is_far = is_far & int(c.dma_source != 0xFF)  # which would copy registers at that time
    if model.DMG_SOUND:
        is_far = is_far & int(words.load(c, words.WAVE) == 0)  # batches.py
    is_calm = int(c.ei_delay == 0) & (int(pending == 0) | int(c.ime == 0))
    # Or a dispatch, or the instruction after EI, ends before the LCD's next change.
    is_calm = is_calm | int(c.now + LONGEST_T_CYCLES < c.lcd_target)
    # TIMA's reload ends during a dispatch
    is_dispatched = int(pending != 0) & int(c.ime != 0) & int(c.ei_delay == 0)
    is_reloaded = int(c.tima_reload == 0) | (int(c.tima_reload == 2) & is_dispatched)
    is_quiet = ((is_far | int(c.dma_active == 0)) & is_calm & is_reloaded) != 0
    if model.COLOR:
        if c.hdma_active != 0:
            is_quiet = False
            other = wp.min(other, hdma.end_of_batch(m, c))
    if model.SOUND:
        sleeps = c.halted != 0 and pending == 0
        is_quiet = is_quiet and not words.is_exact_batch(c, sleeps)
        if model.COLOR:  # a HALT whose stops lie between two T-cycles of channel 4's clock: see unit.py
            is_quiet = is_quiet and not (sleeps and ((lcd - c.now) & wp.where(c.double_speed != 0, 3, 1)) != 0)
    limit = other
    ours = other
    if model.SOUND:
        if model.COLOR:
            limit = wp.min(other, words.exact_from(c))
            ours = wp.where(is_quiet and c.halted == 0, limit, other)  # HALT stops only where PyBoy's does
    is_bounded = c.halted != 0 and limit != hw.NEVER
    if intrinsics.is_gpu() != 0 or not is_bounded:
        lcd = wp.where(is_quiet, events.next_event(c), lcd)
    if is_quiet and is_bounded:
        lcd = events.halt_event(c, limit)
    c.batch_end = wp.max(wp.min(ours, lcd), c.now + hw.T_CYCLES_PER_M_CYCLE)
    c.overrun = 0
    end = wp.max(wp.min(other, timing.next_change(c)), c.now + hw.T_CYCLES_PER_M_CYCLE)  # of PyBoy's batch
    c.ei_end = wp.where(c.ei_delay != 0, end, 0)
    c.next_event = c.batch_end
    if lcd == timing.next_change(c):  # exact: the LCD changes when it is updated, and at the end
        c.settle_from = c.batch_end
    return end, lcd


@wp.func(inline=False)
def begin_batch(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Set the end of the batch, and dispatch an interrupt or leave HALT; in HALT, jump to the end of the batch."""
    counters.add(m, counters.CAUSES, counters.BATCHES, 1)
    if model.COLOR:
        if hdma.is_due(c):
            hdma.pass_block(m, c)
            return
    end, lcd = plan_batch(m, c)
    halted = c.halted
    pending = c.interrupt_flag & c.interrupt_enable & 0x1F
    if pending != 0 and c.ei_delay == 0:
        if halted == 1 and c.halted_after_ei == 0:
            c.pc = (c.pc + 1) & 0xFFFF
        if halted == 1:
            halted = 0
            c.halted = 0
        c.halted_after_ei = 0
        if c.ime != 0:
            dispatch(m, c, end)
            if c.tima_reload == 2 and c.now < c.timer_next:
                timer.advance(c, c.now)
            if model.COLOR:
                if c.hdma_pending != 0:
                    hdma.copy(m, c, c.previous)
    if halted == 1:
        passed = c.batch_end - c.now
        if model.SOUND:
            unit.end_batch(c, passed)
        if model.COLOR:
            passed = passed >> c.double_speed
        counters.add(m, counters.CAUSES, counters.HALT_T_CYCLES, passed)
        c.previous = c.now
        c.now = c.batch_end
        if lcd != timing.next_change(c):
            c.previous = c.now  # PyBoy stops at each change on the way
        if model.SOUND:
            c.before = c.previous


@wp.func(inline=False)
def next_batch(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """end_batch and begin_batch on a Game Boy Color, without an OAM DMA and outside of HALT. If an interrupt has to be
    dispatched or a block of VRAM DMA is due, the next batch begins now instead."""
    end_batch_of_devices(m, c)
    is_pending = (c.interrupt_flag & c.interrupt_enable & 0x1F) != 0 and c.ei_delay == 0
    if (is_pending and c.ime != 0) or hdma.is_due(c):
        c.next_event = c.now
    else:
        counters.add(m, counters.CAUSES, counters.BATCHES, 1)
        plan_batch(m, c)
        if is_pending:
            c.halted_after_ei = 0


@wp.func
def halt(c: wp.ref[Cpu]):
    """HALT: PC stays on it until an interrupt is pending. On hardware, if one is already pending and IME is 0, the CPU
    continues at once and reads the next byte twice (halted = 2; Pan Docs, "halt bug")."""
    pending = c.interrupt_flag & c.interrupt_enable & 0x1F
    if model.HARDWARE == 1 and pending != 0 and c.ime == 0 and c.ei_delay == 0:
        c.halted = 2
    else:
        c.pc = (c.pc - 1) & 0xFFFF
        c.halted = 1
        c.halted_after_ei = wp.where(c.ei_delay == 1, 1, 0)
    c.next_event = c.now


@wp.func(inline=False)
def finish_rare(c: wp.ref[Cpu]):
    """After an instruction: leaving HRAM during an OAM DMA ends the batch (see begin_batch); EI's delay counts down. An
    interrupt that is pending when EI takes effect ends the batch; otherwise the batch continues."""
    if c.dma_active != 0 and c.pc < hw.HRAM and c.settle_from < c.now:  # not in a batch with an exact end
        c.next_event = c.now
    if c.ei_delay != 0:
        c.ei_delay = c.ei_delay - 1
        if c.ei_delay == 0:
            c.ime = 1
            if c.next_event <= c.now:
                c.overrun = 1  # from a write, if the batch continues: begin_batch clears it
            if c.ei_end != 0 and c.next_event <= c.now:  # a register was written, but PyBoy's batch continues
                c.batch_end = c.ei_end
                c.settle_from = c.ei_end
            elif c.settle_from > c.now or c.dma_active != 0:
                c.settle_from = c.batch_end
            c.next_event = c.batch_end
            if (c.interrupt_flag & c.interrupt_enable & 0x1F) != 0:
                c.next_event = c.now
                c.settle_from = c.now


@wp.func
def finish_instruction(c: wp.ref[Cpu]):
    """After an instruction."""
    c.executed = c.executed + 1
    if (c.dma_active | c.ei_delay) != 0:
        finish_rare(c)
