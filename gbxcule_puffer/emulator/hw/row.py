"""An env's memory row, by address: c.row points to the byte of address 0000, if there were one (hardware.py, "memory
row"). Cartridge RAM banks from 1 follow FFFF."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import counters, intrinsics
from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
def load(c: wp.ref[Cpu], address: int) -> int:
    """The byte at `address`."""
    return intrinsics.load_byte(c.row, address)


@wp.func
def store(c: wp.ref[Cpu], address: int, value: int):
    """Store the low byte of `value`."""
    if counters.ON == 1 and address != hw.P1:
        counters.changed(c, load(c, address), value)
    intrinsics.store_byte(c.row, address, value)


@wp.func
def load_half(c: wp.ref[Cpu], address: int) -> int:
    """The two bytes at `address`, a multiple of 2; the first one in bits 7-0."""
    return intrinsics.load_half(c.row, address)


@wp.func
def load_word(c: wp.ref[Cpu], address: int) -> int:
    """The four bytes at `address`, a multiple of 4; the first one in bits 7-0."""
    return intrinsics.load_word(c.row, address)


@wp.func
def copy_words(c: wp.ref[Cpu], source: int, target: int, count: int):
    """Copy `count` words of four bytes; both addresses are multiples of 4, and the ranges do not overlap."""
    intrinsics.copy_words(c.row + wp.uint64(source), c.row + wp.uint64(target), count)


@wp.func
def color_base(m: wp.ref[Machine]) -> int:
    """The start of the Game Boy Color's part of the row."""
    return hw.ROW_BASE + hw.ROW_SIZE + wp.max(0, m.ram_banks - 1) * hw.RAM_BANK_SIZE
