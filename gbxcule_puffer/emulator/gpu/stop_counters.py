"""Counts of the data path's stops by cause, for `puffer profile` (hw/counters.py). Without counters, no code."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu import slow_path
from gbxcule_puffer.emulator.gpu.datapath import Fast, Turn
from gbxcule_puffer.emulator.hw import counters
from gbxcule_puffer.emulator.state import Cpu, Machine

# Causes, from counters.STOP_CAUSE on; KIND is 1 to 7 (gpu/descriptors.py)
EVENT = 1
AFTER_EI = 2
EI = 3
HALT = 4
LOOP = 5
RARE = 6
BANK = 7
CARTRIDGE_RAM = 8
VRAM = 9
OAM = 10
IE = 11
HIGH_RAM = 12
CODE_IN_RAM = 13
PREPARED = 16  # to 23: by KIND
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
def cause(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn], attention: bool) -> int:
    """The cause of a lane's stop; 0 if it does not stop."""
    found = int(0)
    if counters.ON == 1 and attention:
        m.marks[c.env, counters.COLUMN] = counters.column_of(m, c, r.pc)
        kind = slow_path.kind_to_prepare(r, i)
        if r.now >= c.next_event:
            found = EVENT
        elif c.ei_delay != 0 or c.overrun != 0:
            found = AFTER_EI
        elif kind != 0:
            found = PREPARED + kind
        elif (i.d2 & ds.LOOP) != 0 and i.special == 0:
            found = LOOP
        elif (i.d3 & ds.RARE) != 0 and (i.d2 & ds.LOOP) == 0:
            found = RARE
            if (i.d2 & ds.EI) != 0:
                found = EI
            elif (i.d2 & ds.HALT) != 0:
                found = HALT
            elif r.pc >= hw.VRAM:
                found = CODE_IN_RAM
        else:
            found = access_cause(i)
    return found


@wp.func
def count(m: wp.ref[Machine], c: wp.ref[Cpu], cause: int, is_asleep: int):
    """Count a stop that `glance` could not avoid, and whether the interpreter got it."""
    if counters.ON == 1 and cause != 0:
        column = m.marks[c.env, counters.COLUMN]
        counters.add(m, counters.STOPS, column, 1)
        counters.add(m, counters.INTERPRETED, column, is_asleep)
        counters.add(m, counters.CAUSES, counters.STOP_CAUSE + cause, 1)
        counters.add(m, counters.CAUSES, counters.STOP_CAUSE + MOST + cause, is_asleep)
