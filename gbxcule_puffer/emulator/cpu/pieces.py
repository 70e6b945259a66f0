"""The call of a ROM's native code (pieces/), which is compiled by itself, and known by its address."""

import warp as wp

from gbxcule_puffer.emulator.state import Cpu

MARK = -(1 << 31)  # of Machine.code: a piece begins there, whose number the other bits are

_RUN = """
#if !defined(__CUDA_ARCH__)
    const long long* numbers = (const long long*)native;
    ((void (*)(void*, const long long*))numbers[0])(&c, numbers + 1);
#endif
"""


@wp.func_native(_RUN)
def run(c: wp.ref[Cpu], native: wp.uint64):
    """Run the pieces from the one at PC on, whose word is in c.code. Afterwards c.code is the instruction at PC that
    the interpreter executes next, or negative where it has to fetch it."""
    ...
