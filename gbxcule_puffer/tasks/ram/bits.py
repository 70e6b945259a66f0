"""Set bits: per byte by torch, per row of bytes by one kernel launch."""

# Kernels: Warp's integers are types of their own.
# pyright: reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

from functools import cache

import torch
import warp as wp

from gbxcule_puffer.emulator.hw import intrinsics
from gbxcule_puffer.emulator.launch import AddressLauncher, lanes_of

# Rows begin at any address: eight bytes at a time are loaded only from aligned addresses.
_BITS = """
    const unsigned char* bytes = (const unsigned char*)address;
    int count = 0;
#if defined(__CUDA_ARCH__)
    for (int i = lane; i < length; i += lanes)
        count += __popc(bytes[i]);
#else
    int i = 0;
    for (; i + 8 <= length; i += 8) {
        unsigned long long word;
        __builtin_memcpy(&word, bytes + i, 8);
        count += __builtin_popcountll(word);
    }
    for (; i < length; ++i)
        count += __builtin_popcount(bytes[i]);
#endif
    return count;
"""


@wp.func_native(_BITS)
def bits(address: wp.uint64, length: int, lane: int, lanes: int) -> int:
    """A lane's share of the set bits in `length` bytes; on a CPU, with one lane, all of them."""
    ...


@wp.kernel(enable_backward=False)
def kernel_bits_set(values: wp.uint64, stride: int, length: int, lanes: int, out: wp.uint64):
    """Counts the set bits of rows of bytes, which are `stride` apart, into int32; dim = (rows, lanes)."""
    row, lane = wp.tid()  # pyright: ignore
    begin = values + wp.uint64(row) * wp.uint64(stride)
    total = intrinsics.sum_of_lanes(bits(begin, length, lane, lanes))
    if lane == 0:
        intrinsics.store_word(out, 4 * row, total)


@cache
def _launcher(device: torch.device, rows: int) -> AddressLauncher:
    return AddressLauncher(kernel_bits_set, (rows, lanes_of(device)), device, arguments=5)


def bit_count(values: torch.Tensor) -> torch.Tensor:
    """Set bits in each byte of `values`, uint8 of any shape."""
    pairs = values - ((values >> 1) & 0x55)
    nibbles = (pairs & 0x33) + ((pairs >> 2) & 0x33)
    return (nibbles + (nibbles >> 4)) & 0x0F


def bits_set(values: torch.Tensor) -> torch.Tensor:
    """Set bits in each row of `values` (n, length) uint8, (n,) int32, in one launch."""
    if values.stride(1) != 1:
        values = values.contiguous()
    count = torch.empty(len(values), dtype=torch.int32, device=values.device)
    launch = _launcher(values.device, len(values))
    launch(values.data_ptr(), values.stride(0), values.shape[1], lanes_of(values.device), count.data_ptr())
    return count
