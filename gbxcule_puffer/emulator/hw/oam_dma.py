"""OAM DMA: 160 bytes, one every 4 T-cycles; the CPU cannot access OAM meanwhile. Pan Docs, "OAM DMA Transfer".

As in PyBoy, bytes are copied when the transfer is updated: after each batch, and at each access from FE00 up.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import memory, model, row
from gbxcule_puffer.emulator.hw.lcd import drawing
from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
def start(c: wp.ref[Cpu], source: int, t: int):
    """A write to DMA: the first byte comes 16 T-cycles later, 12 if a transfer was waiting."""
    c.dma_start = t + 12
    if c.dma_active != 0 and c.dma_index == 0:
        c.dma_start = t + 8
    c.dma_active = 1
    c.dma_source = source
    c.dma_index = 0


@wp.func
def read_source(m: wp.ref[Machine], c: wp.ref[Cpu], source: int, t: int, lookahead: int) -> int:
    """A byte that a Game Boy Color copies; pages FE and FF are read like any other."""
    if source < hw.OAM:
        return memory.read(m, c, source, t, lookahead)
    if source >= hw.IO and source < hw.HRAM:
        return memory.read_io(m, c, source, t, lookahead)
    return row.load(c, source)


@wp.func(inline=False)
def advance(m: wp.ref[Machine], c: wp.ref[Cpu], t: int, lookahead: int, due_t: int):
    """Copy, at time `t`, the bytes that are due by `due_t`; sources are read with `lookahead`. Pages FE and FF read DE
    and DF."""
    due = wp.min(0xA0, (due_t - c.dma_start) >> 2)
    page = c.dma_source
    if model.COLOR:
        page = c.dma_source
    elif page >= 0xFE:
        page = page - 0x20
    if c.dma_index < due:
        drawing.draw_pending(m, c)
    while c.dma_index < due:
        source = (page << 8) | c.dma_index
        if model.COLOR:
            row.store(c, hw.OAM + c.dma_index, read_source(m, c, source, t, lookahead))
            c.dma_index = c.dma_index + 1
        elif source >= hw.WRAM and (c.dma_index & 3) == 0 and due - c.dma_index >= 4:
            words = (due - c.dma_index) >> 2
            row.copy_words(c, hw.WRAM + (source & 0x1FFF), hw.OAM + c.dma_index, words)
            c.dma_index = c.dma_index + 4 * words
        else:
            row.store(c, hw.OAM + c.dma_index, memory.read(m, c, source, t, lookahead))
            c.dma_index = c.dma_index + 1
    if c.dma_index == 0xA0:
        c.dma_active = 0
