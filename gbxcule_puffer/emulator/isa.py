"""The whole SM83 instruction set as one table of bit patterns; lengths, cycles and access times follow from it.

Operand names as in Pan Docs, "CPU Instruction Set". The letters of a row are the bus M-cycles after the opcode fetch: R
read, W write, - internal. Cycles after `|` happen only if the condition holds. An operand `[hl]` in a row with `{src}`
or `{dst}` adds its own R or W. M-cycles are 1 + len(bus), with CB prefix 2 + len(bus).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

REGISTERS = ("b", "c", "d", "e", "h", "l", "[hl]", "a")
PAIRS = ("bc", "de", "hl", "sp")
STACK_PAIRS = ("bc", "de", "hl", "af")
INDIRECTS = ("[bc]", "[de]", "[hl+]", "[hl-]")
CONDITIONS = ("nz", "z", "nc", "c")
ALU = ("add", "adc", "sub", "sbc", "and", "xor", "or", "cp")
ROTATES = ("rlc", "rrc", "rl", "rr", "sla", "sra", "swap", "srl")
ILLEGAL = (0xD3, 0xDB, 0xDD, 0xE3, 0xE4, 0xEB, 0xEC, 0xED, 0xF4, 0xFC, 0xFD)

# (bit pattern, mnemonic, family = name of the template, bus M-cycles)
BASE_ROWS = (
    ("00000000", "nop", "nop", ""),
    ("00pp0001", "ld {pair},imm16", "load16", "RR"),
    ("00mm0010", "ld {indirect},a", "load8", "W"),
    ("00mm1010", "ld a,{indirect}", "load8", "R"),
    ("00pp0011", "inc {pair}", "inc16", "-"),
    ("00pp1011", "dec {pair}", "dec16", "-"),
    ("00ddd100", "inc {reg}", "inc8", ""),
    ("00ddd101", "dec {reg}", "dec8", ""),
    ("00ddd110", "ld {dst},imm8", "load8", "R"),
    ("000yy111", "{rotate}a", "rotate_a", ""),
    ("00001000", "ld [imm16],sp", "store_sp", "RRWW"),
    ("00pp1001", "add hl,{pair}", "add16", "-"),
    ("00010000", "stop", "stop", ""),
    ("00011000", "jr imm8", "jump_relative", "R-"),
    ("001cc000", "jr {cond},imm8", "jump_relative", "R|-"),
    ("00100111", "daa", "daa", ""),
    ("00101111", "cpl", "cpl", ""),
    ("00110111", "scf", "scf", ""),
    ("00111111", "ccf", "ccf", ""),
    ("01dddsss", "ld {dst},{src}", "load8", ""),
    ("01110110", "halt", "halt", ""),
    ("10ooosss", "{alu} a,{src}", "alu8", ""),
    ("11ooo110", "{alu} a,imm8", "alu8", "R"),
    ("110cc000", "ret {cond}", "ret", "-|RR-"),
    ("11001001", "ret", "ret", "RR-"),
    ("11011001", "reti", "reti", "RR-"),
    ("110cc010", "jp {cond},imm16", "jump", "RR|-"),
    ("11000011", "jp imm16", "jump", "RR-"),
    ("110cc100", "call {cond},imm16", "call", "RR|-WW"),
    ("11001101", "call imm16", "call", "RR-WW"),
    ("11qq0101", "push {stack_pair}", "push", "-WW"),
    ("11qq0001", "pop {stack_pair}", "pop", "RR"),
    ("11nnn111", "rst {vector}", "call", "-WW"),
    ("11100000", "ldh [imm8],a", "load8", "RW"),
    ("11110000", "ldh a,[imm8]", "load8", "RR"),
    ("11100010", "ldh [c],a", "load8", "W"),
    ("11110010", "ldh a,[c]", "load8", "R"),
    ("11101010", "ld [imm16],a", "load8", "RRW"),
    ("11111010", "ld a,[imm16]", "load8", "RRR"),
    ("11101000", "add sp,imm8", "add_sp", "R--"),
    ("11111000", "ld hl,sp+imm8", "add_sp", "R-"),
    ("11111001", "ld sp,hl", "load16", "-"),
    ("11101001", "jp hl", "jump", ""),
    ("11110011", "di", "di", ""),
    ("11111011", "ei", "ei", ""),
)
CB_ROWS = (
    ("00rrrsss", "{rotate} {reg}", "rotate", ""),
    ("01bbbsss", "bit {bit},{src}", "bit", ""),
    ("10bbbsss", "res {bit},{reg}", "res", ""),
    ("11bbbsss", "set {bit},{reg}", "set", ""),
)
# Slot letter -> (operand name, values)
SLOTS = {
    "p": ("pair", PAIRS), "q": ("stack_pair", STACK_PAIRS), "m": ("indirect", INDIRECTS), "d": ("dst", REGISTERS),
    "s": ("src", REGISTERS), "o": ("alu", ALU), "r": ("rotate", ROTATES), "y": ("rotate", ROTATES[:4]),
    "c": ("cond", CONDITIONS), "b": ("bit", tuple("01234567")), "n": ("vector", tuple(str(8 * i) for i in range(8))),
}  # fmt: skip

# PyBoy does a data access at the start of its M-cycle, one M-cycle earlier than the hardware, except for the stack
# families; LD [imm16],SP writes both bytes at once; three opcodes look one M-cycle ahead.
ON_TIME_FAMILIES = ("push", "call", "ret", "reti")
LOOKAHEAD_OPCODES = (0x12, 0x1A, 0x7E)


@dataclass(frozen=True)
class Access:
    """One data access: `kind` R or W, `t_offset` T-cycles after the start, `lookahead` T-cycles for LCD and locks."""

    kind: str
    t_offset: int
    lookahead: int = 0


@dataclass(frozen=True)
class Instruction:
    """One opcode (0x100 + second byte for the CB page) with all properties of its row."""

    opcode: int
    mnemonic: str
    family: str
    operands: dict[str, str]
    bus: str
    bus_taken: str

    @property
    def is_cb(self) -> bool:
        """True if the opcode has the prefix CB."""
        return self.opcode >= 0x100

    @property
    def length(self) -> int:
        """Bytes of the instruction."""
        if self.is_cb or self.family == "stop":
            return 2
        return 3 if "imm16" in self.mnemonic else 2 if "imm8" in self.mnemonic else 1

    @property
    def m_cycles(self) -> int:
        """M-cycles if a condition does not hold, or there is none."""
        return 1 + self.is_cb + len(self.bus)

    @property
    def m_cycles_taken(self) -> int:
        """M-cycles if the condition holds."""
        return 1 + self.is_cb + len(self.bus_taken)

    def accesses(self, taken: bool = True) -> list[Access]:
        """Data accesses in order, at PyBoy's times (opcode and immediate reads left out)."""
        bus = self.bus_taken if taken else self.bus
        immediates = self.length - 1 - self.is_cb if self.family != "stop" else 0
        lookahead = 4 if self.opcode in LOOKAHEAD_OPCODES else 0
        late = 1 if self.family in ON_TIME_FAMILIES else 0
        result = []
        for index, kind in enumerate(bus):
            if kind == "-" or index < immediates:
                continue
            t_offset = 0 if self.family == "store_sp" else 4 * (index + self.is_cb + late)
            result.append(Access(kind, t_offset, lookahead))
        return result


def _expand_row(pattern: str, mnemonic: str, family: str, bus: str, page: int) -> list[Instruction]:
    """All opcodes that match one row."""
    result = []
    for byte in range(256):
        bits = f"{byte:08b}"
        if any(p in "01" and p != b for p, b in zip(pattern, bits, strict=True)):
            continue
        operands = {}
        for letter in sorted(set(pattern) - {"0", "1"}):
            name, values = SLOTS[letter]
            operands[name] = values[int("".join(b for p, b in zip(pattern, bits, strict=True) if p == letter), 2)]
        if "{reg}" in mnemonic:  # one operand that is read and written
            operands["reg"] = operands.pop("dst", None) or operands.pop("src")
        if operands.get("dst") == operands.get("src") == "[hl]":
            continue  # HALT's opcode
        extra = "R" if "[hl]" in (operands.get("src"), operands.get("reg")) else ""
        extra += "W" if "[hl]" in (operands.get("dst"), operands.get("reg")) else ""
        base, _, taken = bus.partition("|")
        text = mnemonic.format(**operands)
        result.append(Instruction(page + byte, text, family, operands, base + extra, base + extra + taken))
    return result


@cache
def expand() -> dict[int, Instruction]:
    """Opcode -> Instruction for the 244 base and 256 CB opcodes.

    Raises: ValueError if rows overlap, or leave a gap other than the CB prefix and the 11 illegal opcodes.
    """
    table: dict[int, Instruction] = {}
    for rows, page in ((BASE_ROWS, 0), (CB_ROWS, 0x100)):
        for pattern, mnemonic, family, bus in rows:
            for instruction in _expand_row(pattern, mnemonic, family, bus, page):
                if instruction.opcode in table:
                    raise ValueError(f"opcode {instruction.opcode:03X}: {mnemonic} overlaps another row")
                table[instruction.opcode] = instruction
    missing = set(range(0x200)) - set(table) - set(ILLEGAL) - {0xCB}
    if missing or len(table) != 500:
        raise ValueError(f"opcodes without a row: {sorted(missing)}")
    return table


def operand_names(mnemonic: str) -> list[str]:
    """The operands of a mnemonic in order: `ld [hl],imm8` -> ['[hl]', 'imm8']."""
    return re.split(",", mnemonic.partition(" ")[2]) if " " in mnemonic else []


@cache
def lengths() -> tuple[int, ...]:
    """Bytes of each of the 256 base opcodes (CB counts 2; illegal opcodes 1)."""
    table = expand()
    return tuple(2 if op == 0xCB else table[op].length if op in table else 1 for op in range(256))
