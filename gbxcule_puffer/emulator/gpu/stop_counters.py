"""Counts of the data path's stops by cause, for `puffer profile` (hw/counters.py): empty unless they are on."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu import stops
from gbxcule_puffer.emulator.gpu.datapath import Fast, Turn
from gbxcule_puffer.emulator.hw import counters
from gbxcule_puffer.emulator.state import Cpu, Machine

# Causes, from counters.STOP_CAUSE on: those of stops.py, but that accesses are counted by address, preparations by KIND
# (1 to 8, gpu/descriptors.py), and what is INTERPRETed by what it is
HALT = 16
CODE_IN_RAM = 17
BANK = 18
CARTRIDGE_RAM = 19
VRAM = 20
OAM = 21
IE = 22
HIGH_RAM = 23
PREPARED = 32
REGISTER_READ = 256  # to 383: FF00-FF7F
REGISTER_WRITE = 384  # to 511
MOST = 512


@wp.func
def access_cause(i: wp.ref[Turn]) -> int:
    """The cause of a stop for a special access."""
    address = i.address
    cause = int(HIGH_RAM)
    if address < hw.VRAM:
        cause = BANK
    elif address < hw.CART_RAM:
        cause = VRAM
    elif address < hw.WRAM:
        cause = CARTRIDGE_RAM
    elif address < hw.IO:
        cause = OAM
    elif address == hw.IE:
        cause = IE
    elif address < hw.HRAM:
        cause = wp.where((i.d3 & ds.WRITE) != 0, REGISTER_WRITE, REGISTER_READ) + (address & 0x7F)
    return cause


@wp.func
def begin(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn], stop: int) -> int:
    """The cause to count, of a lane that `glance` could not help, before it acts."""
    cause = stop
    if counters.ON == 1:
        m.marks[c.env, counters.PLACE] = counters.place_of(m, c, r.pc)
        if stop >= stops.LCD_READ:
            cause = access_cause(i)
        elif stop == stops.PREPARE:
            cause = PREPARED + stops.kind_to_prepare(r, i)
        elif stop == stops.INTERPRET and (i.d2 & ds.HALT) != 0:
            cause = HALT
        elif stop == stops.INTERPRET and r.pc >= hw.VRAM:
            cause = CODE_IN_RAM
    return cause


@wp.func
def end(m: wp.ref[Machine], c: wp.ref[Cpu], cause: int, is_asleep: int):
    """Count a stop, after which the lane may have been left to the interpreter."""
    if counters.ON == 1:
        place = m.marks[c.env, counters.PLACE]
        counters.add(m, counters.STOPS, place, 1)
        counters.add(m, counters.INTERPRETED, place, is_asleep)
        counters.add(m, counters.CAUSES, counters.STOP_CAUSE + cause, 1)
        counters.add(m, counters.CAUSES, counters.STOP_CAUSE + MOST + cause, is_asleep)
