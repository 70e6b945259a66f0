"""The sprites that a line shows, and their order, from OAM. Pan Docs, "OAM", Selection priority and Drawing priority.

Sets of sprites are words of 64 bits; bit i is sprite i of OAM. Machine instructions that Warp does not have are native,
each with a plain version for the CPU.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model, row
from gbxcule_puffer.emulator.state import Cpu

MOST_ON_LINE = wp.constant(10)
NONE = wp.constant(wp.uint64(0))
ONE = wp.constant(wp.uint64(1))

# On a GPU, four sprites at a time, one per byte of a word: bottom - Y, and which of these differences are below the
# height. Byte i of a word is the sprite 8 * i later, so bit 7 of each byte only has to be shifted. A product collects
# the bits of the last eight sprites. On a CPU, eight at a time: a sprite's Y is the low byte of its word in OAM. The
# low byte of a difference is enough: bottom is at least 16, so bottom - Y + 256 is at least 17.
_SPRITES = """
#if defined(__CUDA_ARCH__)
    const unsigned high = 0x80808080u, low = 0x7F7F7F7Fu;
    const unsigned x = (unsigned)bottom * 0x01010101u;
    const unsigned outside = height == 16 ? 0xF0F0F0F0u : 0xF8F8F8F8u;
    const auto hits = [=](unsigned y) {
        const unsigned difference = ((x | high) - (y & low)) ^ ((x ^ ~y) & high);
        const unsigned t = difference & outside;
        return ~(((t & low) + low) | t | low);
    };
    const auto gathered = [](unsigned found) { return ((found >> 7) * 0x10204080u) >> 28; };
    const uint4* words = (const uint4*)oam;
    __builtin_assume(__isGlobal(words));
    const auto gather = [](unsigned a, unsigned b, unsigned c, unsigned d) {
        return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
    };
    unsigned found = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const uint4 a = words[i], b = words[i + 2], c = words[i + 4], d = words[i + 6];
        found |= hits(gather(a.x, b.x, c.x, d.x)) >> (7 - 4 * i);
        found |= hits(gather(a.y, b.y, c.y, d.y)) >> (6 - 4 * i);
        found |= hits(gather(a.z, b.z, c.z, d.z)) >> (5 - 4 * i);
        found |= hits(gather(a.w, b.w, c.w, d.w)) >> (4 - 4 * i);
    }
    const uint4 a = words[8], b = words[9];
    const unsigned last = gathered(hits(gather(a.x, a.y, a.z, a.w))) | gathered(hits(gather(b.x, b.y, b.z, b.w))) << 4;
    return found | (unsigned long long)last << 32;
#else
    typedef int Eight __attribute__((vector_size(32), aligned(16)));
    typedef float Floats __attribute__((vector_size(32)));
    const Eight* words = (const Eight*)oam;
    unsigned long long found = 0;
    for (int i = 0; i < 5; ++i) {
        const Eight hits = ((bottom - words[i]) & (256 - height)) == 0;
#if defined(__AVX__)
        const int bits = __builtin_ia32_movmskps256((Floats)hits);
#else
        const int bits = __builtin_reduce_or(hits & (Eight){1, 2, 4, 8, 16, 32, 64, 128});
#endif
        found |= (unsigned long long)bits << (8 * i);
    }
    return found;
#endif
"""

_EQUAL_BYTES = """
    const unsigned difference = (unsigned)word ^ ((unsigned)byte * 0x01010101u);
    return (int)((difference - 0x01010101u) & ~difference & 0x80808080u);
"""

_COUNT = """
#if defined(__CUDA_ARCH__)
    return __popcll(bits);
#else
    return __builtin_popcountll(bits);
#endif
"""

_FIRST_BIT = """
#if defined(__CUDA_ARCH__)
    return __ffsll((long long)bits) - 1;
#else
    return __builtin_ctzll(bits);
#endif
"""


@wp.func_native(_SPRITES)
def on_line(oam: wp.uint64, bottom: int, height: int) -> wp.uint64:
    """Bit i: the Y of sprite i is from bottom - height + 1 to bottom; the address of OAM is a multiple of 16."""
    ...


@wp.func_native(_EQUAL_BYTES)
def equal_bytes(word: int, byte: int) -> int:
    """Not 0 if one of the four bytes of `word` is `byte`."""
    ...


@wp.func_native(_FIRST_BIT)
def first_bit(bits: wp.uint64) -> int:
    """The lowest set bit of `bits`, which is not 0."""
    ...


@wp.func_native(_COUNT)
def count(bits: wp.uint64) -> int:
    """The number of set bits."""
    ...


@wp.func
def height(c: wp.ref[Cpu]) -> int:
    """Lines per sprite: 8 or 16."""
    return wp.where((c.lcdc & hw.LCDC_OBJ_SIZE) != 0, 16, 8)


@wp.func
def first_ten(c: wp.ref[Cpu], line: int) -> wp.uint64:
    """The sprites that a line shows: the first ten in OAM of those on the line."""
    found = on_line(c.row + wp.uint64(hw.OAM), line + 16, height(c))
    if count(found) > MOST_ON_LINE:
        beyond = found
        for _ in range(MOST_ON_LINE):
            beyond = beyond & (beyond - ONE)
        found = found ^ beyond
    return found


@wp.func
def rank(c: wp.ref[Cpu], x: int, index: int) -> int:
    """The order of drawing, from high to low: by X, then by OAM index; for Game Boy Color games only by index."""
    if model.COLOR:
        x = wp.where(c.color_mode != 0, 0, x)
    return (x << 8) | index


@wp.func
def first_drawn(c: wp.ref[Cpu], found: wp.uint64) -> int:
    """OAM index of the first sprite of a set to draw; the others cover it."""
    highest = int(-1)
    while found != NONE:
        index = first_bit(found)
        found = found & (found - ONE)
        highest = wp.max(highest, rank(c, row.load(c, hw.OAM + 1 + 4 * index), index))
    return highest & 0xFF
