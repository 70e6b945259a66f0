"""The operations of the common path that Warp has no name for, each with a plain version for the CPU."""

import warp as wp

_PERMUTE = """
#if defined(__CUDA_ARCH__)
    unsigned r;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(selector));
    return (int)r;
#else
    unsigned long long bytes = ((unsigned long long)(unsigned)b << 32) | (unsigned)a;
    unsigned r = 0;
    for (int i = 0; i < 4; ++i) {
        unsigned nibble = (unsigned)selector >> (4 * i);
        unsigned byte = (unsigned)(bytes >> (8 * (nibble & 7))) & 0xFF;
        if (nibble & 8) byte = (byte & 0x80) ? 0xFF : 0;
        r |= byte << (8 * i);
    }
    return (int)r;
#endif
"""

_SHIFT_LEFT = """
#if defined(__CUDA_ARCH__)
    return (int)__funnelshift_l(0u, (unsigned)value, (unsigned)count);
#else
    return (int)((unsigned)value << (count & 31));
#endif
"""

_ROTATE_RIGHT = """
#if defined(__CUDA_ARCH__)
    return (int)__funnelshift_r((unsigned)value, (unsigned)value, (unsigned)count);
#else
    return (int)((unsigned)value >> (count & 31) | (unsigned)value << (-count & 31));
#endif
"""

_LOAD_DESCRIPTOR = """
#if defined(__CUDA_ARCH__)
    int4 d = __ldg((const int4*)table + index);
    return wp::vec_t<4, int>(d.x, d.y, d.z, d.w);
#else
    const int* d = (const int*)table + 4 * index;
    return wp::vec_t<4, int>(d[0], d[1], d[2], d[3]);
#endif
"""

_LOAD_BYTE = """
    const unsigned char* p = (const unsigned char*)(table + (unsigned)index);
#if defined(__CUDA_ARCH__)
    return __ldg(p);
#else
    return *p;
#endif
"""

_LOAD_OPERAND = """
    const unsigned char* p = (const unsigned char*)address;
#if defined(__CUDA_ARCH__)
    __builtin_assume(__isGlobal(p));
#endif
    if (is_read) value = p[0];
    if (is_word) value |= p[1] << 8;
    return value;
"""

_STORE_OPERAND = """
    unsigned char* p = (unsigned char*)address;
#if defined(__CUDA_ARCH__)
    __builtin_assume(__isGlobal(p));
#endif
    if (is_write) p[0] = (unsigned char)value;
    if (is_word) p[1] = (unsigned char)(value >> 8);
"""

# Not Warp's atomic addition: in a loop with one, the compiler makes the lanes yield in every turn, because another lane
# of the warp might hold a lock.
_COUNT_ONE = """
    unsigned* p = (unsigned*)((char*)array.data + (size_t)row * array.strides[0]) + column;
#if defined(__CUDA_ARCH__)
    asm volatile("red.global.add.u32 [%0], 1;" :: "l"(p) : "memory");
#else
    *p += 1;
#endif
"""


@wp.func_native(_PERMUTE)
def permute(a: int, b: int, selector: int) -> int:
    """PRMT: byte i of the result is byte selector[i] of b:a; selectors 8 to F replicate that byte's sign bit."""
    ...


@wp.func_native(_SHIFT_LEFT)
def shift_left(value: int, count: int) -> int:
    """value << (count & 31)."""
    ...


@wp.func_native("return (int)((unsigned)value >> count);")
def shift_right(value: int, count: int) -> int:
    """value >> count without a sign; count: 0 to 31."""
    ...


@wp.func_native(_ROTATE_RIGHT)
def rotate_right(value: int, count: int) -> int:
    """value rotated by count & 31."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    int r;
    asm("mul.lo.s32 %0, %1, %2;" : "=r"(r) : "r"(value), "r"(factor));
    return r;
#else
    return (int)((unsigned)value * (unsigned)factor);
#endif
""")
def multiply(value: int, factor: int) -> int:
    """The low 32 bits of the product. With a power of two it is a shift that does not use the pipe of other shifts. It
    is in assembly, because the compiler would turn it into shifts and masks."""
    ...


@wp.func_native(_LOAD_DESCRIPTOR)
def load_descriptor(table: wp.uint64, index: int) -> wp.vec4i:
    """Entry `index` of a descriptor table, 16 bytes in one read-only load."""
    ...


@wp.func_native(_LOAD_OPERAND)
def load_operand(address: wp.uint64, value: int, is_read: int, is_word: int) -> int:
    """The byte or little-endian word at an address, or `value` if nothing is to be read."""
    ...


@wp.func_native(_STORE_OPERAND)
def store_operand(address: wp.uint64, value: int, is_write: int, is_word: int):
    """Store a byte if `is_write` is set, and the next byte, too, if `is_word` is set."""
    ...


@wp.func_native(_COUNT_ONE)
def count_one(array: wp.array2d(dtype=wp.int32), row: int, column: int):
    """Add 1 to an element without waiting for its old value."""
    ...


@wp.func_native("return base + (unsigned)offset;")
def address(base: wp.uint64, offset: int) -> wp.uint64:
    """base + offset; offset is at least 0."""
    ...


@wp.func_native(_LOAD_BYTE)
def load_byte(table: wp.uint64, index: int) -> int:
    """Byte `index`, at least 0, of a constant table."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __viaddmin_s32(a, b, most);
#else
    return a + b < most ? a + b : most;
#endif
""")
def add_min(a: int, b: int, most: int) -> int:
    """min(a + b, most)."""
    ...
