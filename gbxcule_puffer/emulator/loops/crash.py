"""A game that has crashed: it ran into bytes FF, each of which is `rst 38`, and 0038 has another one. From then on each
round pushes 0039 one word lower, through all of memory and around again.

Like any fill, it is skipped while its memory is plain. Here the ROM counts as such, too: what a mapper's register
becomes does not depend on the number of writes.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import areas, counters, intrinsics, model
from gbxcule_puffer.emulator.hw.cartridge import mbc
from gbxcule_puffer.emulator.hw.lcd import timing
from gbxcule_puffer.emulator.loops import skip, table
from gbxcule_puffer.emulator.loops.packed import Registers
from gbxcule_puffer.emulator.state import Cpu, Machine

PUSHED = wp.constant(0x0039)
REGISTER_PAGE = wp.constant(0x100)  # bytes for all of which a write to ROM is to the same register


@wp.func
def is_rom_inert(m: wp.ref[Machine], c: wp.ref[Cpu], address: int) -> bool:
    """True if writes to ROM around an address end no batch, and map no other code at 0038."""
    is_inert = (c.tima_reload | c.overrun) == 0 and (address < hw.ROM_BANK_SIZE or not mbc.maps_low_bank(m))
    if model.COLOR:
        is_inert = is_inert and not timing.is_late(c)
    if model.SOUND:
        is_inert = False
    return is_inert


@wp.func
def push(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Registers], entry: int, writes: int):
    """Skip rounds of `rst 38` at 0038 while the stack stays in its page; writes: the areas that are plain memory."""
    first = (r.sp - 1) & 0xFFFF  # the byte that is written first
    target = first - wp.where(first >= hw.ECHO and first < hw.OAM, hw.ECHO - hw.WRAM, 0)
    page = wp.where(first < hw.VRAM, REGISTER_PAGE, areas.PAGE)
    rounds = wp.min((c.next_event - 1 - r.now) // (entry & table.T_CYCLES.most), ((first & (page - 1)) + 1) // 2)
    if rounds > 0 and first < hw.VRAM and is_rom_inert(m, c, first):
        mbc.write_register(m, c, first, 0, r.now)
        mbc.write_register(m, c, first - 1, PUSHED, r.now)
    elif rounds > 0 and areas.plain_run(writes, target) > 0:
        lowest = skip.memory_at(c, target + 1 - 2 * rounds)
        intrinsics.fill_bytes(lowest, PUSHED, rounds, 2)
        intrinsics.fill_bytes(lowest + wp.uint64(1), 0, rounds, 2)
    else:
        rounds = 0
    if rounds > 0:
        r.sp = (r.sp - 2 * rounds) & 0xFFFF
        skip.passed(c, r, rounds, entry)
        counters.changed(c, -1, 0)
