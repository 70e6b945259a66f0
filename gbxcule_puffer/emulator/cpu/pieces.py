"""The call of a ROM's native code (pieces/), which is compiled by itself, and known by its address."""

import warp as wp

from gbxcule_puffer.emulator.cpu import marks
from gbxcule_puffer.emulator.hw import bus
from gbxcule_puffer.emulator.hw.lcd import ppu
from gbxcule_puffer.emulator.state import Cpu, Machine

MARK = -(1 << 31)  # of Machine.code: a piece begins there, whose number the other bits are

# Native code calls them for accesses that are not plain, to skip rounds of loops, and for the LCD, so they need names
# that are known here. They stand before `run` in a kernel's source, since fetches, and the dispatch of interrupts, call
# them.
READ, WRITE, AT_MARK, ADVANCE = "gbxcule_bus_read", "gbxcule_bus_write", "gbxcule_at_mark", "gbxcule_lcd_advance"
bus.read.native_func, bus.write.native_func, marks.at_mark.native_func = READ, WRITE, AT_MARK
ppu.advance.native_func = ADVANCE

_RUN = f"""
#if !defined(__CUDA_ARCH__)
    const long long* numbers = (const long long*)native;
    ((void (*)(void*, const long long*, void*, void*, void*, void*, void*))numbers[0])(
        &c, numbers + 1, &m, (void*){READ}, (void*){WRITE}, (void*){AT_MARK}, (void*){ADVANCE});
#endif
"""


@wp.func_native(_RUN)
def run(m: wp.ref[Machine], c: wp.ref[Cpu], native: wp.uint64):
    """Run the pieces from the one at PC on, whose word is in c.code. Afterwards c.code is the instruction at PC that
    the interpreter executes next, or negative where it has to fetch it."""
    ...
