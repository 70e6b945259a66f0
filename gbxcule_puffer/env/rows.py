"""Rows of tensors copied by a mask: one launch, which moves few bytes if few rows are in the mask."""

# Kernels: Warp's integers are types of their own.
# pyright: reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

from functools import cache

import torch
import warp as wp

from gbxcule_puffer.emulator.hw import intrinsics
from gbxcule_puffer.emulator.launch import AddressLauncher, lanes_of


@wp.kernel(enable_backward=False)
def kernel_copy_rows(source: wp.uint64, stride: int, target: wp.uint64, size: int, mask: wp.uint64, lanes: int):
    """Copy rows of `size` bytes, `stride` apart in the source, where a byte of the mask is 1; dim = (rows, lanes)."""
    row, lane = wp.tid()  # pyright: ignore
    if intrinsics.load_byte(mask, row) != 0:
        begin = source + wp.uint64(row) * wp.uint64(stride)
        end = target + wp.uint64(row) * wp.uint64(size)
        for index in range(lane, size, lanes):
            intrinsics.store_byte(end, index, intrinsics.load_byte(begin, index))


@cache
def _launcher(device: torch.device, rows: int) -> AddressLauncher:
    return AddressLauncher(kernel_copy_rows, (rows, lanes_of(device)), device, arguments=6)


def copy_rows(source: torch.Tensor, target: torch.Tensor, which: torch.Tensor) -> None:
    """Copies the rows of `which` (n,) bool; both are of one shape (n, ...), dtype and device, the target contiguous."""
    shares = source.untyped_storage().data_ptr() == target.untyped_storage().data_ptr()
    if shares or not source[0].is_contiguous():
        source = source.clone(memory_format=torch.contiguous_format)
    size, stride = target[0].numel() * target.element_size(), source.stride(0) * source.element_size()
    launch = _launcher(target.device, len(target))
    launch(source.data_ptr(), stride, target.data_ptr(), size, which.data_ptr(), lanes_of(target.device))
