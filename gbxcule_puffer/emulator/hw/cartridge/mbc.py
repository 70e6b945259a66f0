"""The mappers of mappers.py: their registers, and the banks and RAM that they select. Pan Docs, "MBCs"; details as in
PyBoy."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import mappers
from gbxcule_puffer.emulator.hw import row
from gbxcule_puffer.emulator.hw.cartridge import rtc
from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
def select_rom(m: wp.ref[Machine], c: wp.ref[Cpu], bank: int):
    """Map a 16 KiB bank at 4000-7FFF; bank numbers wrap at the size of the ROM."""
    c.rom_high = (bank % m.rom_banks) * hw.ROM_BANK_SIZE - hw.ROM_BANK_SIZE


@wp.func
def select_ram(m: wp.ref[Machine], c: wp.ref[Cpu], bank: int):
    """Map an 8 KiB RAM bank at A000-BFFF. Bank 0 is inside the flat row, the others are after it."""
    c.ram_bank = bank
    c.ram_offset = hw.CART_RAM - hw.ROW_BASE
    if bank > 0:
        c.ram_offset = hw.ROW_SIZE + (bank - 1) * hw.RAM_BANK_SIZE
    if bank >= m.ram_banks:
        c.ram_offset = -1


@wp.func
def map_mbc1(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """In banking mode 1 the second register selects the bank at 0000 and the RAM bank."""
    shift = 5
    if m.mapper == mappers.MBC1_MULTICART:
        shift = 4
    c.rom_low = 0
    bank = 0
    if c.banking_mode == 1:
        c.rom_low = ((c.bank2 << shift) % m.rom_banks) * hw.ROM_BANK_SIZE
        bank = c.bank2 % m.ram_banks
    select_ram(m, c, bank)


@wp.func
def write_mbc1(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int):
    """MBC1; a multicart has 4 bits less of the low bank register."""
    if address < 0x2000:
        c.ram_enabled = wp.where((value & 0x0F) == 0x0A, 1, 0)
    elif address < 0x4000:
        c.bank1 = wp.max(value & 0x1F, 1)
    elif address < 0x6000:
        c.bank2 = value & 3
    else:
        c.banking_mode = value & 1
    if m.mapper == mappers.MBC1_MULTICART:
        select_rom(m, c, (c.bank2 << 4) | (c.bank1 & 0x0F))
    else:
        select_rom(m, c, (c.bank2 << 5) | c.bank1)
    map_mbc1(m, c)


@wp.func
def select_mbc3_ram(m: wp.ref[Machine], c: wp.ref[Cpu], bank: int):
    """Select a RAM bank or an RTC register; no MBC30 has a bank above 7."""
    select_ram(m, c, bank)
    if bank > 7:
        c.ram_offset = -1


@wp.func
def write_mbc3(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int):
    """MBC3 and MBC30 (8 bits of ROM bank)."""
    if address < 0x2000:
        c.ram_enabled = wp.where((value & 0x0F) == 0x0A, 1, 0)
    elif address < 0x4000:
        bank = value
        if m.mapper == mappers.MBC3:
            bank = value & 0x7F
        select_rom(m, c, wp.max(bank, 1))
    elif address < 0x6000:
        if value >= 0x08 and value <= 0x0C:
            select_mbc3_ram(m, c, value)
        else:
            select_mbc3_ram(m, c, value % m.ram_banks)
    elif m.has_rtc == 1:
        rtc.advance(m, c, t)
        rtc.latch(m, c, value)


@wp.func
def write_mbc5(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int):
    """MBC5: 9 bits of ROM bank, 0 allowed."""
    if address < 0x2000:
        c.ram_enabled = wp.where(value == 0x0A, 1, 0)
    elif address < 0x3000:
        c.bank1 = ((c.bank1 & 0x100) | value) % m.rom_banks
        select_rom(m, c, c.bank1)
    elif address < 0x4000:
        c.bank1 = (((value & 1) << 8) | (c.bank1 & 0xFF)) % m.rom_banks
        select_rom(m, c, c.bank1)
    elif address < 0x6000:
        select_ram(m, c, (value & 0x0F) % m.ram_banks)


@wp.func(inline=False)
def write_register(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int):
    """A write to 0000-7FFF."""
    mapper = m.mapper
    if mapper == mappers.NONE:
        if address >= 0x2000 and address < 0x4000:
            bank = 1
            if value != 0:
                bank = value & 1
            select_rom(m, c, bank)
    elif mapper == mappers.MBC1 or mapper == mappers.MBC1_MULTICART:
        write_mbc1(m, c, address, value)
    elif mapper == mappers.MBC2:
        if address < 0x4000:
            if (address & 0x100) == 0:
                c.ram_enabled = wp.where((value & 0x0F) == 0x0A, 1, 0)
            else:
                select_rom(m, c, wp.max(value & 0x0F, 1))
    elif mapper == mappers.MBC3 or mapper == mappers.MBC30:
        write_mbc3(m, c, address, value, t)
    elif mapper == mappers.MBC5:
        write_mbc5(m, c, address, value)


@wp.func
def maps_low_bank(m: wp.ref[Machine]) -> bool:
    """True if the mapper can map another bank than 0 at 0000-3FFF."""
    return m.mapper == mappers.MBC1 or m.mapper == mappers.MBC1_MULTICART


@wp.func
def only_selects_rom(m: wp.ref[Machine], address: int) -> bool:
    """True if a write selects the ROM bank at 4000 and does nothing else: 2000-3FFF, except on MBC2."""
    return address >= 0x2000 and address < 0x4000 and m.mapper != mappers.MBC2


@wp.func
def select_rom_at_once(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int):
    """write_register for a write to 2000-3FFF, with one rule for MBC1, MBC3, MBC30 and MBC5 with a power of two of
    banks; m.bank_mask is then not 0."""
    both = wp.where(address >= 0x3000, ((value & 1) << 8) | (c.bank1 & 0xFF), (c.bank1 & 0x100) | value) & m.bank_mask
    low = wp.max(value & wp.where(m.mapper == mappers.MBC1, 0x1F, wp.where(m.mapper == mappers.MBC3, 0x7F, 0xFF)), 1)
    bank = wp.where(m.mapper == mappers.MBC5, both, low)
    has_register = m.mapper == mappers.MBC1 or m.mapper == mappers.MBC5
    c.bank1 = wp.where(has_register, bank, c.bank1)
    bank = bank | wp.where(m.mapper == mappers.MBC1, c.bank2 << 5, 0)
    c.rom_high = (bank & m.bank_mask) * hw.ROM_BANK_SIZE - hw.ROM_BANK_SIZE


@wp.func
def restore(m: wp.ref[Machine], c: wp.ref[Cpu], rom_bank: int, ram_bank: int):
    """Map the banks that the registers of a state select; the ROM bank at 4000 and the RAM bank are given. MBC1
    computes the RAM bank from its other registers. No kernel calls it: saves/pyboy_state.py does, in Python."""
    select_rom(m, c, rom_bank)
    if m.mapper == mappers.MBC1 or m.mapper == mappers.MBC1_MULTICART:
        map_mbc1(m, c)
    elif m.mapper == mappers.MBC3 or m.mapper == mappers.MBC30:
        select_mbc3_ram(m, c, ram_bank)
    else:
        select_ram(m, c, ram_bank)
    if m.mapper == mappers.MBC5:
        c.bank1 = rom_bank


@wp.func
def is_rtc_selected(m: wp.ref[Machine], c: wp.ref[Cpu]) -> bool:
    """True if A000-BFFF shows an RTC register."""
    return m.has_rtc == 1 and c.ram_bank >= 0x08 and c.ram_bank <= 0x0C


@wp.func(inline=False)
def read_ram(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, t: int) -> int:
    """A read of A000-BFFF: RAM, an RTC register, or FF if disabled."""
    if is_rtc_selected(m, c):
        rtc.advance(m, c, t)
        if c.ram_enabled == 0:
            return 0xFF
        return rtc.read(m, c)
    if c.ram_enabled == 0:
        return 0xFF
    if m.mapper == mappers.MBC2:  # 512 half bytes, mirrored
        return row.load(c, hw.CART_RAM + (address & 0x1FF)) | 0xF0
    if c.ram_offset < 0:
        return 0  # a bank that does not exist
    return row.load(c, hw.ROW_BASE + c.ram_offset + (address & 0x1FFF))


@wp.func(inline=False)
def write_ram(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int):
    """A write to A000-BFFF."""
    if is_rtc_selected(m, c):
        rtc.advance(m, c, t)
        if c.ram_enabled == 1:
            rtc.write(m, c, value)
    elif m.mapper == mappers.MBC2:
        if c.ram_enabled == 1:
            row.store(c, hw.CART_RAM + (address & 0x1FF), value | 0xF0)
    elif c.ram_enabled == 1 and c.ram_offset >= 0:
        row.store(c, hw.ROW_BASE + c.ram_offset + (address & 0x1FFF), value)
