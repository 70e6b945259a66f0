"""The CUDA data path: one read, one ALU and one write for every common instruction, driven by a descriptor table.

Lanes that execute different instructions share this code; only what is rare branches, in two places: between two
instructions, and where an access is not to plain memory (registers, cartridge RAM, writes to ROM, echo). What neither
place knows is left untouched and handed to the interpreter, so that both are exact by construction. A lane that waits
or has finished executes an instruction without effect. codegen/descriptors.py documents the descriptor's bits.
"""

import warp as wp

from gbxcule_puffer import hardware as hw
from gbxcule_puffer.codegen import descriptors as ds
from gbxcule_puffer.hw import joypad, native, ppu, row
from gbxcule_puffer.state import Cpu, Machine

AT_ONCE = wp.constant(-(1 << 30))
FORCED = wp.constant(1)  # the interpreter executes the next instruction, whatever it is
FLAG_C = wp.constant(1 << 23)
FLAG_NZ = wp.constant(1 << 27)
FLAG_ONE = wp.constant(1 << 24)
FLAG_H = wp.constant(ds.MASK_H)
FLAG_N = wp.constant(ds.MASK_N)
IDLE_0 = wp.constant(ds.idle_words()[0])
IDLE_1 = wp.constant(ds.idle_words()[1])
IDLE_3 = wp.constant(ds.idle_words()[3])
TAKEN_ONLY = wp.constant(ds.READ | ds.WRITE | ds.STACK | ds.JUMP | ds.RETURN)
BANK_STRIDE = wp.constant(ds.BANK_STRIDE)
LATEST_READ_T = wp.constant(8)  # no instruction reads later than that after its begin, but for the stack
# Sets of 4 KiB pages
PAGES_ROM = wp.constant(0x00FF)
PAGES_VRAM = wp.constant(0x0300)
PAGES_CART_RAM = wp.constant(0x0C00)
PAGES_WRAM = wp.constant(0x3000)


@wp.struct
class Fast:
    """What the hot loop keeps in registers: packed registers, the next descriptor, addresses of the env's memory."""

    lo: wp.int32
    hi: wp.int32
    flags: wp.int32
    sp: wp.int32
    pc: wp.int32
    now: wp.int32
    previous: wp.int32
    wake: wp.int32  # when to look for what is rare: the next event, or at once
    pending: wp.int32  # FORCED, or the address of a register that the last instruction wrote; 0: nothing
    result: wp.int32  # of the last instruction
    turns: wp.int32  # times around the loop
    low: wp.int32  # table index of address 0000
    high: wp.int32  # table index of address 4000, minus 4000h
    rom_high: wp.int32
    readable: wp.int32  # bit n: the 4 KiB from n000 on are plain to read
    writable: wp.int32  # and to write
    locked: wp.int32  # those that an access with lookahead may find locked
    high_end: wp.int32  # first address after FF80 that is not plain
    d0: wp.int32
    d1: wp.int32
    d2: wp.int32
    d3: wp.int32
    table: wp.uint64
    rom: wp.uint64
    row: wp.uint64


@wp.struct
class Instruction:
    """What execute() knows of the instruction and may have to take back."""

    d1: wp.int32
    d2: wp.int32
    d3: wp.int32
    t_cycles: wp.int32
    next_pc: wp.int32
    sp: wp.int32
    y: wp.int32


@wp.func
def fetch(r: wp.ref[Fast]):
    """The descriptor of the instruction at PC."""
    base = wp.where(r.pc >= hw.ROM_BANK_SIZE, r.high, r.low)
    d = native.load_descriptor(r.table, base + wp.min(r.pc, hw.VRAM))
    r.d0 = d[0]
    r.d1 = d[1]
    r.d2 = d[2]
    r.d3 = d[3]


@wp.func
def unpack_flags(flags: int) -> int:
    """The flag word as the register F."""
    zero = wp.where((flags & FLAG_NZ) == 0, hw.FLAG_Z, 0)
    return zero | ((flags >> 14) & 0x60) | ((flags >> 19) & 0x10)


@wp.func
def pack_flags(f: int) -> int:
    """The register F as a flag word."""
    nonzero = wp.where((f & hw.FLAG_Z) == 0, FLAG_NZ, 0)
    return nonzero | ((f & 0x60) << 14) | ((f & 0x10) << 19) | FLAG_ONE


@wp.func
def is_drawing(c: wp.ref[Cpu]) -> bool:
    """Whether lines have to be drawn before VRAM changes."""
    return c.render != 0 and c.next_line < hw.SCREEN_HEIGHT


@wp.func
def is_unlocked(c: wp.ref[Cpu]) -> bool:
    """Whether VRAM is not locked before the next event."""
    return (c.lcdc & hw.LCDC_ENABLE) == 0 or c.ly >= hw.SCREEN_HEIGHT


@wp.func
def from_cpu(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast]):
    """Registers from the interpreter's struct."""
    r.lo = c.c | (c.b << 8) | (c.e << 16) | (c.d << 24)
    r.hi = c.l | (c.h << 8) | (c.a << 16)
    r.flags = pack_flags(c.f)
    r.sp = c.sp
    r.pc = c.pc
    r.now = c.now
    r.previous = c.previous
    r.rom_high = c.rom_high
    r.low = wp.where(c.rom_low == 0, 0, (m.rom_banks + 1) * BANK_STRIDE)
    bank = (c.rom_high >> 14) + 1
    r.high = wp.where(bank == 0, m.rom_banks, bank) * BANK_STRIDE - hw.ROM_BANK_SIZE
    is_ram_flat = c.ram_enabled == 1 and c.ram_offset == hw.CART_RAM - hw.ROW_BASE and m.mapper != hw.MAPPER_MBC2
    ram = wp.where(is_ram_flat and m.has_rtc == 0, PAGES_CART_RAM, 0)
    r.readable = PAGES_ROM | PAGES_VRAM | PAGES_WRAM | ram
    r.writable = wp.where(is_drawing(c), 0, PAGES_VRAM) | PAGES_WRAM | ram
    r.locked = wp.where(is_unlocked(c), 0, PAGES_VRAM)
    r.high_end = wp.where(c.dma_active == 0, hw.IE, hw.HRAM)
    # The interpreter counts EI's delay.
    r.pending = wp.where(c.ei_delay != 0, FORCED, 0)
    r.wake = wp.where(c.ei_delay != 0, AT_ONCE, c.next_event)
    fetch(r)


@wp.func
def to_cpu(c: wp.ref[Cpu], r: wp.ref[Fast]):
    """Registers into the interpreter's struct."""
    c.c = r.lo & 0xFF
    c.b = (r.lo >> 8) & 0xFF
    c.e = (r.lo >> 16) & 0xFF
    c.d = (r.lo >> 24) & 0xFF
    c.l = r.hi & 0xFF
    c.h = (r.hi >> 8) & 0xFF
    c.a = (r.hi >> 16) & 0xFF
    c.f = unpack_flags(r.flags)
    c.sp = r.sp
    c.pc = r.pc
    c.now = r.now
    c.previous = r.previous


@wp.func
def is_plain(r: wp.ref[Fast], d3: int, address: int) -> bool:
    """Whether an access is to memory without side effects and locks: ROM (read), VRAM, WRAM, HRAM, cartridge RAM. Words
    that cross a multiple of 4 KiB are not."""
    pages = wp.where((d3 & ds.WRITE) != 0, r.writable, r.readable)
    pages = wp.where((d3 & ds.LOOKAHEAD) != 0, pages & ~r.locked, pages)
    word = (d3 >> 7) & 1
    crosses = ((address + word) ^ address) & 0x1000
    in_high = address >= hw.HRAM and address + word < r.high_end
    return ((pages >> (address >> 12)) & 1) > crosses or in_high


@wp.func
def special_access(c: wp.ref[Cpu], r: wp.ref[Fast], d3: int, address: int) -> int:
    """What to do with an access that is not plain: 0 leave it to the interpreter, 1 write a register (see below), 2 go
    on, P1 is read from the row, 3 read a register of the LCD."""
    kind = int(0)
    access = d3 & (ds.READ | ds.WRITE | ds.WORD)
    is_free = c.dma_active == 0 and c.tima_reload == 0  # no device but the LCD takes notice of a write to a register
    if access == ds.WRITE and is_free and address >= hw.IO:
        is_silent = (address >= hw.NR10 and address < hw.WAVE_RAM_END) or (address > hw.WX and address < hw.HRAM)
        is_lcd = address == hw.SCY or address == hw.SCX or (address >= hw.BGP and address <= hw.WX)
        if address == hw.P1 or is_silent or (is_lcd and is_unlocked(c) and not is_drawing(c)):
            kind = 1
    if access == ds.READ and address == hw.P1 and r.high_end == hw.IE:  # no OAM DMA to look at
        kind = 2
    is_settled = c.stat_mode_hidden == 0 and c.dma_active == 0 and r.now < c.lcd_target - LATEST_READ_T
    is_lcd_register = address >= hw.LCDC and address <= hw.WX and address != hw.DMA
    if access == ds.READ and is_lcd_register and is_settled and (d3 & ds.LOOKAHEAD) == 0:
        kind = 3
    return kind


@wp.func(inline=False)
def write_quiet_register(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int):
    """Store a register that nothing else notices: P1, and while no line is drawn SCY, SCX, BGP to WX; sound registers
    and those that a DMG lacks keep nothing."""
    if address == hw.P1:
        joypad.write(c, value)
        row.store(c, hw.P1, c.p1)
    elif address == hw.SCY:
        c.scy = value
    elif address == hw.SCX:
        c.scx = value
    elif address == hw.BGP:
        c.bgp = value
    elif address == hw.OBP0:
        c.obp0 = value
    elif address == hw.OBP1:
        c.obp1 = value
    elif address == hw.WY:
        c.wy = value
    elif address == hw.WX:
        c.wx = value


@wp.func
def wait(c: wp.ref[Cpu], r: wp.ref[Fast]):
    """Let the lane do nothing for a turn; then it looks at PC again."""
    r.d0 = IDLE_0
    r.d1 = IDLE_1
    r.d2 = 0
    r.d3 = IDLE_3
    c.executed = c.executed - 1  # each turn counts


@wp.func
def stop(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast]):
    """The lane has finished: it waits at the table's last entry until its warp has, too."""
    c.executed = c.executed + r.turns
    r.low = m.descriptors.shape[0] - 1 - hw.VRAM
    r.high = r.low
    r.pc = hw.VRAM
    r.pending = 0
    r.wake = hw.NEVER
    fetch(r)


@wp.func
def is_interrupted(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast]) -> bool:
    """Finish the last instruction's write to a register; whether the interpreter has to go on."""
    if r.pending > FORCED:
        write_quiet_register(m, c, r.pending, r.result & 0xFF)
        r.pending = 0
        r.wake = c.next_event
    return r.pending == FORCED or r.now >= c.next_event


@wp.func
def is_stack_plain(r: wp.ref[Fast]) -> bool:
    """Whether a word can be popped without side effects and locks."""
    in_wram = r.sp >= hw.WRAM and r.sp < hw.ECHO and (r.sp & 0xFFF) != 0xFFF
    return in_wram or (r.sp >= hw.HRAM and r.sp < r.high_end - 1)


@wp.func
def prepare(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast]) -> bool:
    """Turn an instruction of a KIND into one that the common path does; False if the interpreter has to do it."""
    kind = (r.d2 >> ds.KIND_SHIFT) & 7
    done = kind != 0 and (is_stack_plain(r) or (kind != ds.KIND_POP_AF and kind != ds.KIND_RETI))
    if done:
        y = native.permute(r.lo, r.hi, r.d0 >> 16)
        if kind == ds.KIND_PUSH_AF:
            r.d2 = (r.d2 & ~0xFFFF) | ((r.hi >> 8) & 0xFF00) | unpack_flags(r.flags)
            r.d3 = r.d3 | ds.X_IMM
        elif kind == ds.KIND_POP_AF:
            r.hi = (r.hi & 0xFFFF) | (native.load_byte(r.row, r.sp + 1) << 16)
            r.flags = pack_flags(native.load_byte(r.row, r.sp))
            r.d3 = r.d3 & ~ds.READ
        elif kind == ds.KIND_RETI:
            c.ime = 1
            if (c.interrupt_flag & c.interrupt_enable & 0x1F) != 0:
                c.next_event = r.now
                r.wake = r.now
        elif kind == ds.KIND_SCF:
            r.flags = (r.flags & ~(FLAG_H | FLAG_N)) | FLAG_C
            r.d3 = r.d3 & ~ds.MASK_ALL
        elif kind == ds.KIND_CCF:
            r.flags = (r.flags & ~(FLAG_H | FLAG_N)) ^ FLAG_C
            r.d3 = r.d3 & ~ds.MASK_ALL
        else:  # RLC, SWAP: the result becomes the immediate
            carry = wp.where(kind == ds.KIND_RLC, (y & 0x80) << 16, 0)
            y = wp.where(kind == ds.KIND_RLC, (y << 1) | (y >> 7), (y << 4) | (y >> 4)) & 0xFF
            nonzero = wp.where(y != 0 or (r.d2 & ds.SET_NZ) != 0, FLAG_NZ, 0)
            r.flags = FLAG_ONE | carry | nonzero
            r.d0 = IDLE_0
            r.d2 = (r.d2 & ~0xFFFF) | y
            r.d3 = (r.d3 & ~ds.MASK_ALL) | ds.X_IMM
        r.d3 = r.d3 & ~ds.RARE
    return done


@wp.func
def execute(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast]):
    """One common instruction, and the fetch of the next. If its access is not plain, the interpreter does it next."""
    d0 = r.d0
    i = Instruction()
    i.d1 = r.d1
    i.d2 = r.d2
    add = native.shift_left(r.d3, 5) >> 30
    fails = ((r.flags ^ native.shift_left(d0, 8)) & d0) & (FLAG_C | FLAG_NZ)
    i.t_cycles = ((r.d2 >> 28) & 15) * 4 - wp.where(fails != 0, wp.where((r.d3 & ds.STACK) != 0, 12, 4), 0)
    d3 = wp.where(fails != 0, r.d3 & ~TAKEN_ONLY, r.d3)
    i.d3 = d3
    imm = r.d2 & 0xFFFF
    next_pc = r.pc + ((d3 >> 30) & 3)
    accesses = d3 & (ds.READ | ds.WRITE)
    # Operands
    x = native.permute(r.lo, r.hi, d0)
    y0 = native.permute(r.lo, r.hi, d0 >> 16) + wp.where((d3 & ds.X_IMM) != 0, 0, imm)
    x = wp.where((d3 & ds.X_SP) != 0, r.sp, x)
    x = wp.where((d3 & ds.X_IMM) != 0, imm, x)
    i.next_pc = next_pc
    sp = wp.where((d3 & ds.STACK) != 0, (r.sp + 2 * add) & 0xFFFF, r.sp)
    i.sp = sp
    address = wp.where((d3 & ds.STACK) != 0, wp.where(add < 0, sp, r.sp), y0)
    y = wp.where(accesses != 0, wp.where((d3 & ds.JUMP) != 0, next_pc, 0), y0)
    # Memory
    in_rom = address < hw.VRAM
    place = wp.where(in_rom, r.rom, r.row) + wp.uint64(
        wp.where(in_rom and address >= hw.ROM_BANK_SIZE, address + r.rom_high, address)
    )
    i.y = native.load_operand(place, y, d3 & ds.READ, d3 & ds.WORD)
    if accesses != 0 and not is_plain(r, d3, address):
        special = special_access(c, r, d3, address)
        if special == 0:
            wait(c, r)
            r.pending = FORCED
            r.wake = AT_ONCE
            i.d1 = r.d1
            i.d2 = r.d2
            i.d3 = r.d3
            i.t_cycles = 0
            i.next_pc = r.pc
            i.sp = r.sp
        elif special == 1:
            r.pending = address
            r.wake = AT_ONCE
            i.d3 = d3 & ~ds.WRITE
        elif special == 3:
            i.y = ppu.register(c, address)
    y = i.y
    d3 = i.d3
    pc = wp.where((d3 & ds.JUMP) != 0, y0, i.next_pc)
    pc = wp.where((d3 & ds.RETURN) != 0, y, pc)
    r.previous = r.now
    r.now = r.now + i.t_cycles
    r.pc = pc & 0xFFFF
    fetch(r)
    # ALU
    carry_add = wp.where((r.flags & i.d2 & (ds.ADD_CARRY | ds.ADD_ALWAYS)) != 0, add, 0)
    result = wp.where((d3 & ds.SUBTRACT) != 0, x - y, x + y) + carry_add
    result = wp.where((d3 & ds.AND) != 0, x & y, result)
    result = wp.where((d3 & ds.XOR) != 0, x ^ y, result)
    result = wp.where((d3 & ds.OR) != 0, x | y, result)
    carries = native.shift_left(x ^ y ^ result, d3)
    carries = wp.where((d3 & ds.SHIFT_LEFT) != 0, carries & FLAG_C, carries)
    shifted = (native.permute(y, r.flags, d0) >> 1) & 0x7FFFFFFF
    result = wp.where((d3 & ds.SHIFT_RIGHT) != 0, shifted, result)
    carries = wp.where((d3 & ds.SHIFT_RIGHT) != 0, native.shift_left(y, 23), carries)
    nonzero = wp.where((result & 0xFF) != 0, FLAG_NZ, 0)
    changed = (carries & (FLAG_C | ds.MASK_H)) | nonzero | (i.d2 & (ds.SET_H | ds.SET_N | ds.SET_NZ))
    r.flags = (d3 & changed) | (~d3 & r.flags)
    # Write back
    r.hi = wp.where((d3 & ds.ADJUST_HL) != 0, native.permute(r.hi, r.hi + add, 0x3254), r.hi)
    r.lo = native.permute(r.lo, result, i.d1)
    r.hi = native.permute(r.hi, result, i.d1 >> 16)
    r.sp = wp.where((d3 & ds.TO_SP) != 0, result & 0xFFFF, i.sp)
    r.result = result
    native.store_operand(place, result, d3 & ds.WRITE, d3 & ds.WORD)
