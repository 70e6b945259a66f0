"""VRAM DMA: all at once, or 16 bytes in each HBlank. Pan Docs, "CGB Registers", HDMA1-HDMA5. As in PyBoy, the first
takes no time, and a block of the second 206 T-cycles; at double speed several blocks are in one HBlank."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import bus, model
from gbxcule_puffer.emulator.hw.color import registers
from gbxcule_puffer.emulator.hw.lcd import mode3
from gbxcule_puffer.emulator.hw.sound import unit
from gbxcule_puffer.emulator.state import Cpu, Machine

BLOCK_T_CYCLES = wp.constant(206)


@wp.func(inline=False)
def copy(m: wp.ref[Machine], c: wp.ref[Cpu], begin: int):
    """Do the planned copy, as the CPU would in the instruction that began at time `begin`."""
    now = c.now
    c.now = begin
    count = c.hdma_pending
    c.hdma_pending = 0
    after = c.hdma5
    source = c.hdma_source
    target = c.hdma_target
    first = c.hdma_from
    to = c.hdma_to
    time = c.hdma_time
    lookahead = c.hdma_lookahead
    c.hdma5 = c.hdma_length  # a transfer may read them, and write to them
    for i in range(count):
        value = bus.read(m, c, (first + i) & 0xFFFF, time, lookahead)
        bus.write(m, c, (to + i) & 0xFFFF, value, time, lookahead)
        nested = c.hdma_pending  # HDMA1 to HDMA4 were written before HDMA5: the target is in VRAM
        c.hdma_pending = 0
        for j in range(nested):
            value = bus.read(m, c, (c.hdma_from + j) & 0xFFFF, time, lookahead)
            bus.write(m, c, (c.hdma_to + j) & 0xFFFF, value, time, lookahead)
    c.hdma5 = after
    c.hdma_source = source
    c.hdma_target = target
    c.now = now


@wp.func
def is_due(c: wp.ref[Cpu]) -> bool:
    """True if a block is copied instead of instructions."""
    in_hblank = (c.lcdc & hw.LCDC_ENABLE) != 0 and (c.stat & hw.STAT_MODE) == 0
    return c.hdma_active != 0 and c.halted == 0 and in_hblank


@wp.func(inline=False)
def pass_block(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """A batch that copies a block."""
    c.overrun = 0
    if model.SOUND:
        unit.end_batch(c, BLOCK_T_CYCLES)
    registers.plan_block(c, c.now, 0)
    copy(m, c, c.now)
    c.previous = c.now
    c.now = c.now + BLOCK_T_CYCLES
    c.batch_end = c.now
    c.next_event = c.now
    c.settle_from = c.now


@wp.func(inline=False)
def end_of_batch(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
    """Time at which PyBoy ends a batch because of the next HBlank; PyBoy counts to it in the LCD's T-cycles."""
    mode = c.stat & hw.STAT_MODE
    left = (c.lcd_target - c.now) >> c.double_speed
    if mode == 0 or c.lcd_wrapped != 0:
        left = 0
    elif mode == 2:  # mode 3 begins first
        left = hw.NEVER - c.now
    elif mode == 1:
        left = left + hw.LINE_T_CYCLES * (hw.LAST_LINE - c.ly) + 80 + 170 + mode3.extra(m, c, 0)
    return c.now + left
