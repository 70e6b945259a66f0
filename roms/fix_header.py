"""Put a ROM together: code bank, data banks, and a header with its checksums.

    python3 fix_header.py --title HOMEWARD --output homeward.gb code.gb bank1.bin bank2.bin
    python3 fix_header.py --title MBC1 --type 03 --ram 03 --banks 64 --output mbc1_banks.gb code.gb

The code image fills bank 0, and bank 1 where it is longer; every data file fills one further
bank. The ROM is padded to a power of two, or to --banks: then each added bank starts with its
number, and its number fills every 64th byte too. Header fields: Pan Docs, "The Cartridge Header".
"""

import argparse
from pathlib import Path

BANK_SIZE = 0x4000
CARTRIDGE_TYPE_MBC3_RAM_BATTERY = 0x13
RAM_SIZE_8_KIB = 0x02
COLOR_TOO = 0x80  # for a Game Boy, and in colour on a Game Boy Color
# The bitmap that the boot ROM compares before it starts a cartridge.
LOGO = bytes.fromhex("ceed6666cc0d000b03730083000c000d0008111f8889000edccc6ee6ddddd999bbbb67636e0eecccdddc999fbbb9333e")


def numbered_bank(number):
    """A bank that tells which one it is, wherever one looks."""
    line = bytes((number & 0xFF, number >> 8)) + bytes((number * 7 + place) & 0xFF for place in range(62))
    return line * (BANK_SIZE // len(line))


def join_banks(code, data_banks, least):
    """One ROM image with at least two banks, padded with FF to a power of two, with numbered banks to `least`."""
    if any(code[BANK_SIZE:]):
        if data_banks:
            raise SystemExit("the code does not fit into bank 0")
        data_banks = [code[BANK_SIZE : 2 * BANK_SIZE]]
    banks = [code[:BANK_SIZE].ljust(BANK_SIZE, b"\xff")]
    banks += [data.ljust(BANK_SIZE, b"\xff") for data in data_banks]
    banks += [numbered_bank(number) for number in range(len(banks), least)]
    count = 2
    while count < len(banks):
        count *= 2
    banks += [b"\xff" * BANK_SIZE] * (count - len(banks))
    return bytearray(b"".join(banks))


def write_header(rom, title, cartridge_type, ram_size, color=False):
    """Fill 0104-014F in place, with both checksums."""
    limit = 15 if color else 16
    if len(title) > limit:
        raise SystemExit(f"the title {title!r} is longer than {limit} characters")
    rom[0x104:0x134] = LOGO
    rom[0x134:0x144] = title.encode("ascii").ljust(16, b"\0")
    if color:
        rom[0x143] = COLOR_TOO
    rom[0x144:0x146] = b"\0\0"  # licensee: none
    rom[0x146] = 0  # no SGB functions
    rom[0x147] = cartridge_type
    rom[0x148] = (len(rom) // 0x8000).bit_length() - 1
    rom[0x149] = ram_size
    rom[0x14A:0x14D] = b"\x01\0\0"  # outside Japan, no old licensee, version 0
    checksum = 0
    for value in rom[0x134:0x14D]:
        checksum = (checksum - value - 1) & 0xFF
    rom[0x14D] = checksum
    rom[0x14E:0x150] = b"\0\0"
    rom[0x14E:0x150] = (sum(rom) & 0xFFFF).to_bytes(2, "big")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--title", required=True)
    parser.add_argument("--output", required=True, type=Path)
    number = {"type": lambda text: int(text, 16), "metavar": "HEX"}
    parser.add_argument("--type", default=CARTRIDGE_TYPE_MBC3_RAM_BATTERY, **number)
    parser.add_argument("--ram", default=RAM_SIZE_8_KIB, **number)
    parser.add_argument("--banks", default=2, type=int)
    parser.add_argument("--color", action="store_true", help="also for a Game Boy Color")
    parser.add_argument("code", type=Path)
    parser.add_argument("data", type=Path, nargs="*")
    args = parser.parse_args()
    rom = join_banks(args.code.read_bytes(), [path.read_bytes() for path in args.data], args.banks)
    write_header(rom, args.title, args.type, args.ram, args.color)
    args.output.write_bytes(rom)


if __name__ == "__main__":
    main()
