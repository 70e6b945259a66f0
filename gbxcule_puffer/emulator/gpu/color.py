"""The Game Boy Color's part of the data path's visits."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.gpu.datapath import Fast, Turn
from gbxcule_puffer.emulator.hw import memory
from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
def map_banks(c: wp.ref[Cpu], r: wp.ref[Fast]):
    """Take over the selected banks of VRAM and WRAM."""
    r.vram_shift = c.vram_shift
    r.wram_shift = c.wram_shift


@wp.func(inline=False)
def read_memory(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, t: int, lookahead: int) -> int:
    """bus.read below FE00 and from FF00 to FF7F, while no OAM DMA is under way."""
    if address >= hw.IO:
        return memory.read_io(m, c, address, t, lookahead)
    return memory.read(m, c, address, t, lookahead)


@wp.func
def read(m: wp.ref[Machine], c: wp.ref[Cpu], i: wp.ref[Turn], t: int, lookahead: int) -> int:
    """A read of slow_path.access; 0 if the interpreter has to do it. It does less than bus.read, so that the common
    path keeps its registers."""
    done = int(0)
    if i.address < hw.OAM or i.address >= hw.IO:
        i.y = read_memory(m, c, i.address, t, lookahead)
        done = 1
    return done
