"""Machine instructions that Warp has no name for, each with a plain version for the CPU.

Addresses are uint64 pointers, so that an access costs one add and no strides.
"""

import warp as wp

# Bits H 19, N 20, C 23 and not-Z 27 move to bits 5, 6, 4 and 7, which no other part of the product and no carry reach.
_FLAGS_BYTE = """
    const unsigned long long product = (unsigned long long)((unsigned)flags & 0x08980000u) * 0x43000u;
    return ((int)(product >> 32) & 0xF0) ^ 0x80;
"""

_ANY_LANE = """
#if defined(__CUDA_ARCH__)
    return __any_sync(0xffffffffu, flag);
#else
    return flag;
#endif
"""

_CLOCK = """
#if defined(__CUDA_ARCH__)
    return (int)(clock64() >> 10);
#else
    return 0;
#endif
"""

_IS_GPU = """
#if defined(__CUDA_ARCH__)
    return 1;
#else
    return 0;
#endif
"""

_LEAST = """
#if !defined(__CUDA_ARCH__)
    return value;
#elif __CUDA_ARCH__ >= 800
    return __reduce_min_sync(0xffffffffu, value);
#else
    for (int distance = 16; distance > 0; distance >>= 1)
        value = min(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
#endif
"""

_SUM_OF_LANES = """
#if !defined(__CUDA_ARCH__)
    return value;
#elif __CUDA_ARCH__ >= 800
    return __reduce_add_sync(0xffffffffu, value);
#else
    for (int distance = 16; distance > 0; distance >>= 1)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
#endif
"""

_BYTE_DIFFERENCES = """
#if defined(__CUDA_ARCH__)
    return (int)__vsadu4((unsigned)a, (unsigned)b);
#else
    int sum = 0;
    for (int shift = 0; shift < 32; shift += 8) {
        int difference = (int)(((unsigned)a >> shift) & 255) - (int)(((unsigned)b >> shift) & 255);
        sum += difference < 0 ? -difference : difference;
    }
    return sum;
#endif
"""

_CONVERGE = """
#if defined(__CUDA_ARCH__)
    __syncwarp();
#endif
"""

# Each part is loaded before it is stored, if the stores cannot change the loads.
_COPY_BYTES = """
    const unsigned char* from = (const unsigned char*)source;
    unsigned char* to = (unsigned char*)target;
#if defined(__CUDA_ARCH__)
    __builtin_assume(__isGlobal(from));
    __builtin_assume(__isGlobal(to));
#endif
    int i = 0;
    if (from + count <= to || to + count <= from)
        for (; i + 8 <= count; i += 8) {
            unsigned char part[8];
            for (int j = 0; j < 8; ++j) part[j] = from[i + j];
            for (int j = 0; j < 8; ++j) to[i + j] = part[j];
        }
    for (; i < count; ++i) to[i] = from[i];
    return to[count - 1];
"""

# Each part is loaded before it is stored; the last part overlaps the one before it.
_COPY_WORDS = """
    const auto from = [=](int i) {
        const int* p = (const int*)source + i;
#if defined(__CUDA_ARCH__)
        __builtin_assume(__isGlobal(p));
#endif
        return *p;
    };
    const auto store = [=](int i, int word) {
        int* p = (int*)target + i;
#if defined(__CUDA_ARCH__)
        __builtin_assume(__isGlobal(p));
#endif
        *p = word;
    };
#pragma unroll 1
    for (int i = 0; i < count; i += 8) {
        if (count < 8) {
#pragma unroll 1
            for (; i < count; ++i) store(i, from(i));
        } else {
            i = i < count - 8 ? i : count - 8;
            int part[8];
#pragma unroll
            for (int j = 0; j < 8; ++j) part[j] = from(i + j);
#pragma unroll
            for (int j = 0; j < 8; ++j) store(i + j, part[j]);
        }
    }
"""

_FILL_BYTES = """
    unsigned char* to = (unsigned char*)target;
#if defined(__CUDA_ARCH__)
    __builtin_assume(__isGlobal(to));
#endif
    for (int i = 0; i < count; ++i) to[i * stride] = (unsigned char)value;
"""

# With a pointer that is known to be global, the compiler uses the plain load.
_LOAD_BYTE = """
    const unsigned char* p = (const unsigned char*)base + offset;
#if defined(__CUDA_ARCH__)
    __builtin_assume(__isGlobal(p));
#endif
    return *p;
"""

_LOAD_HALF = """
    const unsigned short* p = (const unsigned short*)((const unsigned char*)base + offset);
#if defined(__CUDA_ARCH__)
    __builtin_assume(__isGlobal(p));
#endif
    return *p;
"""

_LOAD_WORD = """
    const int* p = (const int*)((const unsigned char*)base + offset);
#if defined(__CUDA_ARCH__)
    __builtin_assume(__isGlobal(p));
#endif
    return *p;
"""

_STORE_BYTE = """
    unsigned char* p = (unsigned char*)base + offset;
#if defined(__CUDA_ARCH__)
    __builtin_assume(__isGlobal(p));
#endif
    *p = (unsigned char)value;
"""

_STORE_WORD = """
    int* p = (int*)((unsigned char*)base + offset);
#if defined(__CUDA_ARCH__)
    __builtin_assume(__isGlobal(p));
#endif
    *p = value;
"""


@wp.func_native(_FLAGS_BYTE)
def flags_byte(flags: int) -> int:
    """The data path's flag word as the register F."""
    ...


@wp.func_native(_ANY_LANE)
def any_lane(flag: bool) -> bool:
    """True if `flag` is true in any lane of the warp; all lanes must be here."""
    ...


@wp.func_native(_CLOCK)
def clock() -> int:
    """The multiprocessor's clock, in units of 1,024 ticks; 0 on a CPU."""
    ...


@wp.func_native(_IS_GPU)
def is_gpu() -> int:
    """1 on a GPU, else 0; a constant for the compiler."""
    ...


@wp.func_native(_LEAST)
def least(value: int) -> int:
    """The smallest `value` of the warp's lanes; all lanes must be here."""
    ...


@wp.func_native(_SUM_OF_LANES)
def sum_of_lanes(value: int) -> int:
    """The sum of `value` over the warp's lanes; all lanes must be here. On a CPU, with one lane, `value`."""
    ...


@wp.func_native(_BYTE_DIFFERENCES)
def byte_differences(a: int, b: int) -> int:
    """The sum of the absolute differences of the four bytes of two words."""
    ...


@wp.func_native(_CONVERGE)
def converge():
    """Wait until all lanes of the warp are here, so that they continue together."""
    ...


@wp.func_native("return (unsigned long long)array.data;")
def address_of_words(array: wp.array(dtype=wp.vec4i)) -> wp.uint64:
    """Address of a descriptor table."""
    ...


@wp.func_native("return (unsigned long long)array.data;")
def address_of_bytes(array: wp.array(dtype=wp.uint8)) -> wp.uint64:
    """Address of an array of bytes."""
    ...


@wp.func_native("return (unsigned long long)array.data;")
def address_of_integers(array: wp.array(dtype=wp.int32)) -> wp.uint64:
    """Address of an array of 32-bit integers."""
    ...


@wp.func_native("return (unsigned long long)array.data + (unsigned long long)row * (unsigned)array.strides[0];")
def address_of_row(array: wp.array2d(dtype=wp.uint8), row: int) -> wp.uint64:
    """Address of a row of bytes."""
    ...


@wp.func_native("return (unsigned long long)array.data + (unsigned long long)row * (unsigned)array.strides[0];")
def address_of_picture(array: wp.array3d(dtype=wp.uint8), row: int) -> wp.uint64:
    """Address of an env's picture."""
    ...


@wp.func_native(_LOAD_BYTE)
def load_byte(base: wp.uint64, offset: int) -> int:
    """The byte at base + offset."""
    ...


@wp.func_native(_LOAD_HALF)
def load_half(base: wp.uint64, offset: int) -> int:
    """The 16-bit word at base + offset, a multiple of 2."""
    ...


@wp.func_native(_LOAD_WORD)
def load_word(base: wp.uint64, offset: int) -> int:
    """The 32-bit word at base + offset, a multiple of 4."""
    ...


@wp.func_native(_COPY_BYTES)
def copy_bytes(source: wp.uint64, target: wp.uint64, count: int) -> int:
    """Copy `count` > 0 bytes in order, as a loop over bytes would; returns the last byte."""
    ...


@wp.func_native(_COPY_WORDS)
def copy_words(source: wp.uint64, target: wp.uint64, count: int):
    """Copy `count` words of 32 bits to a range that does not overlap; both addresses are multiples of 4."""
    ...


@wp.func_native(_FILL_BYTES)
def fill_bytes(target: wp.uint64, value: int, count: int, stride: int):
    """Store a byte `count` times, `stride` bytes apart."""
    ...


@wp.func_native(_STORE_WORD)
def store_word(base: wp.uint64, offset: int, value: int):
    """Store 32 bits at base + offset, a multiple of 4."""
    ...


@wp.func_native(_STORE_BYTE)
def store_byte(base: wp.uint64, offset: int, value: int):
    """Store the low byte of `value` at base + offset."""
    ...
