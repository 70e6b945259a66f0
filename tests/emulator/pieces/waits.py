"""ROMs: of loops that wait, where most rounds change nothing, and some change one thing only; and of a loop that
accesses VRAM in all modes of the LCD."""

from gbxcule_puffer.emulator.cartridge import Cartridge, load_cartridge
from tests.fuzz.generator import LOGO

START = "F3 31 F0 DF 3E 91 E0 40 AF E0 FF 01 00 00 11 00 00"  # no interrupts, LCD on, BC = DE = 0
# Counted in lines 50 to 151: `ldh a,[LY] / cp 50 / jr c`, over what changes, `cp 152 / jr c`. inc bc, inc de, inc [hl]
COUNTS = ("03", "13", "34")
# In lines 64 to 127, without A: `bit 6,[hl] / jr z`, over what changes, `bit 7,[hl] / jr z`. `inc a`; `ccf`, which
# shows after an odd number of rounds, so there are two lengths of a round
OF_A_AND_CARRY = ("3C", "3F 00 00", "3F 00 00 00")
# P1, in lines 0 to 151, while right is held: from each of two values the other one, with two lengths of a round, too
OF_P1 = ("F0 00 E6 01 CB 37 EE 30 E0 00 00", "F0 00 E6 01 CB 37 EE 30 E0 00 00 00 00")
LINE_0 = "F0 44 B7 20 FB"  # wait for it


# `ld a,[de]`, `ld a,[hl]` and `ld [de],a` notice VRAM's lock. What is read goes to B and C, and B to tile 0, which is
# seen. A round takes 68 T-cycles, so that it begins at all times of a line.
OF_VRAM = "11 00 80 21 00 80 1A A8 47 7E 81 4F 78 3C 12 1C 2C 18 F3"


def _over(code: str) -> str:
    """A jump's distance over code, and the code."""
    return f"{len(bytes.fromhex(code)):02X} {code}"


def _loop(body: str) -> str:
    """`body`, which ends with the opcode of a relative jump, to its own begin."""
    return f"{body} {(-len(bytes.fromhex(body)) - 1) & 0xFF:02X} F5 F1 {LINE_0}"  # push af, pop af


def cartridge_of_waits() -> Cartridge:
    """The ROM, whose loops run in turns."""
    loops = [f"21 00 C3 {_loop(f'F0 44 FE 32 38 {_over(each)} FE 98 38')}" for each in COUNTS]
    loops += [f"21 44 FF {_loop(f'CB 76 28 {_over(each)} CB 7E 28')}" for each in OF_A_AND_CARRY]
    loops += [_loop(f"{each} F0 44 FE 98 38") for each in OF_P1]
    return _cartridge(" ".join(loops))


def cartridge_of_vram() -> Cartridge:
    """The ROM of OF_VRAM."""
    return _cartridge(OF_VRAM)


def _cartridge(text: str) -> Cartridge:
    """Code in turns, after START."""
    start, code = bytes.fromhex(START), bytes.fromhex(text)
    rom = bytearray(0x8000)
    rom[0x100:0x104] = bytes.fromhex("00 C3 50 01")
    rom[0x104:0x134] = LOGO
    rom[0x14D] = -sum(rom[0x134:0x14D]) - 25 & 0xFF
    rom[0x150 : 0x150 + len(start) + len(code) + 3] = start + code + bytes((0xC3, 0x50 + len(start), 0x01))
    return load_cartridge(bytes(rom))
