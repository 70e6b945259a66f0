"""The descriptor of each instruction, worked out from isa.py, and a table of them for each byte of a ROM.

gpu/descriptors.py documents their bits.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import isa
from gbxcule_puffer.emulator.cpu.loop_codes import first_loops, stat_polls
from gbxcule_puffer.emulator.cpu.waits import find_loops
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu import fusion
from gbxcule_puffer.emulator.isa import Instruction

# How the immediate is made from the bytes after the opcode
IMM_NONE, IMM_8, IMM_16, IMM_FF00, IMM_RELATIVE, IMM_SIGNED = range(6)

BYTE = {"c": 0, "b": 1, "e": 2, "d": 3, "l": 4, "h": 5, "a": 6}
PAIR_SELECTOR = {"bc": 0x7710, "de": 0x7732, "hl": 0x7754}
# The word that is rotated: its bytes 0, 1 and 3 (0 the operand, 1 zero, 6 has the carry in bit 7, 8 and E bit 7 of the
# operand and the carry in all bits), and how far to the right. Then bit 23 is the carry.
SHIFTS = {
    "rrc": (0x0100, 1),
    "rr": (0x01E0, 1),
    "sra": (0x0180, 1),
    "srl": (0x0110, 1),
    "rlc": (0x8100, 7),
    "rl": (0x8106, 7),
    "sla": (0x8101, 7),
    "swap": (0x1100, 4),
}


class _Descriptor:
    """One descriptor under construction."""

    def __init__(self, instruction: Instruction) -> None:
        self.x, self.y = ds.NOTHING, ds.NOTHING
        self.write_lo, self.write_hi = 0x3210, 0x3210
        self.constants, self.flags, self.shift, self.add = 0, 0, ds.SHIFT_NONE, 0
        self.imm_kind, self.imm, self.kind = IMM_NONE, 0, 0  # imm: of X with X_IMM, else of Y
        self.selectors_extra = 0  # of a condition
        self.m_cycles, self.length = instruction.m_cycles_taken, instruction.length

    def result_to(self, operand: str) -> None:
        """Write the result to a register or pair."""
        if operand == "sp":
            self.flags |= ds.TO_SP
            return
        first, value, mask = (BYTE[operand], 4, 0xF) if operand in BYTE else (BYTE[operand[1]], 0x54, 0xFF)
        place = 4 * (first & 3)
        if first < 4:
            self.write_lo = (self.write_lo & ~(mask << place)) | (value << place)
        else:
            self.write_hi = (self.write_hi & ~(mask << place)) | (value << place)

    def condition(self, name: str) -> None:
        """Make a jump, call or return conditional."""
        bit, wanted, value = {"nz": (27, 19, 1), "z": (27, 19, 0), "c": (23, 15, 1), "nc": (23, 15, 0)}[name]
        self.selectors_extra = (1 << bit) | (value << wanted)

    def words(self) -> tuple[int, int, int, int]:
        """d0 to d3 without the immediate of a place in the ROM."""
        imm_x, imm_y = (self.imm, 0) if self.flags & ds.X_IMM else (self.x, self.imm)
        d0 = imm_x | (self.y << 16) | self.selectors_extra
        d0 = d0 & ~(7 << ds.KIND_SHIFT) | (7 - self.kind) << ds.KIND_SHIFT if self.kind != 0 else d0
        d1 = self.write_lo | (self.write_hi << 16)
        d2 = imm_y | self.constants | (self.length << ds.LENGTH_SHIFT)
        rare = ds.RARE if self.kind != 0 else 0
        d3 = self.shift | self.flags | rare | ((self.add & 3) << ds.ADD_SHIFT)
        d3 |= (self.m_cycles - ds.flow_m_cycles(self.flags)) << ds.TIME_SHIFT
        return d0, d1, d2, d3


def _selector(register: str) -> int:
    """PRMT selector that reads one register."""
    return 0x7770 | BYTE[register]


def _set_address(d: _Descriptor, operand: str) -> None:
    """Y becomes the address of a memory operand."""
    if operand in ("[bc]", "[de]", "[hl]", "[hl+]", "[hl-]"):
        d.y = PAIR_SELECTOR[operand[1:3]]
        if operand[3] in "+-":
            d.flags |= ds.ADJUST_HL
            d.add = 1 if operand[3] == "+" else -1
    elif operand == "[c]":
        d.y, d.imm = _selector("c"), 0xFF00
    else:
        d.imm_kind = IMM_FF00 if operand == "[imm8]" else IMM_16


def _load8(d: _Descriptor, target: str, source: str) -> None:
    """LD between registers, memory and immediates."""
    if target in BYTE:
        d.result_to(target)
        if source in BYTE:
            d.y = _selector(source)
        elif source == "imm8":
            d.imm_kind = IMM_8
        else:
            d.flags |= ds.READ
            _set_address(d, source)
        return
    d.flags |= ds.WRITE
    _set_address(d, target)
    if source == "imm8":
        d.imm_kind = IMM_8
        d.flags |= ds.X_IMM
    else:
        d.x = _selector(source)


def _read_operand(d: _Descriptor, source: str) -> None:
    """Y becomes an 8-bit operand."""
    if source == "imm8":
        d.imm_kind = IMM_8
    elif source == "[hl]":
        d.flags |= ds.READ
        d.y = PAIR_SELECTOR["hl"]
    else:
        d.y = _selector(source)


def _alu8(d: _Descriptor, operation: str, source: str) -> None:
    """ADD to CP."""
    _read_operand(d, source)
    d.x = _selector("a")
    d.flags |= ds.MASK_ALL
    if operation != "cp":
        d.result_to("a")
    if operation in ("and", "xor", "or"):
        d.flags |= {"and": ds.AND, "xor": ds.XOR, "or": ds.OR}[operation]
        d.constants |= ds.SET_H if operation == "and" else 0
        return
    d.shift = ds.SHIFT_8
    if operation in ("sub", "sbc", "cp"):
        d.flags |= ds.SUBTRACT
        d.constants |= ds.SET_N
    if operation in ("adc", "sbc"):
        d.constants |= ds.ADD_CARRY
        d.add = 1 if operation == "adc" else -1


def _step8(d: _Descriptor, target: str, add: int) -> None:
    """INC and DEC of a byte."""
    d.add, d.shift = add, ds.SHIFT_8
    d.constants |= ds.ADD_ALWAYS | (ds.SET_N if add < 0 else 0)
    d.flags |= ds.MASK_H | ds.MASK_N | ds.MASK_NZ
    if target == "[hl]":
        d.flags |= ds.READ | ds.WRITE
        d.y = PAIR_SELECTOR["hl"]
    else:
        d.y = _selector(target)
        d.result_to(target)


def _rotate(d: _Descriptor, operation: str, target: str) -> None:
    """Rotates and shifts."""
    d.x, d.shift = SHIFTS[operation]
    d.flags |= ds.SHIFT | ds.MASK_ALL
    if target == "[hl]":
        d.flags |= ds.READ | ds.WRITE
        d.y = PAIR_SELECTOR["hl"]
    else:
        d.y = _selector(target)
        d.result_to(target)


def _bit(d: _Descriptor, family: str, bit: int, target: str) -> None:
    """BIT, RES and SET: AND or OR with an immediate."""
    if target == "[hl]":
        d.y = PAIR_SELECTOR["hl"]
        d.flags |= ds.X_IMM | ds.READ | (0 if family == "bit" else ds.WRITE)
    else:
        d.x = _selector(target)
        if family != "bit":
            d.result_to(target)
    d.imm = (~(1 << bit)) & 0xFF if family == "res" else 1 << bit
    d.flags |= ds.OR if family == "set" else ds.AND
    if family == "bit":
        d.constants |= ds.SET_H
        d.flags |= ds.MASK_H | ds.MASK_N | ds.MASK_NZ


def _word(d: _Descriptor, family: str, names: list[str]) -> None:
    """16-bit loads and arithmetic."""
    if family == "load16":
        d.result_to(names[0])
        if names[1] == "imm16":
            d.imm_kind = IMM_16
        else:
            d.y = PAIR_SELECTOR[names[1]]
    elif family in ("inc16", "dec16"):
        d.add = 1 if family == "inc16" else -1
        d.constants |= ds.ADD_ALWAYS
        d.result_to(names[0])
        if names[0] == "sp":
            d.flags |= ds.X_SP
        else:
            d.y = PAIR_SELECTOR[names[0]]
    elif family == "add16":
        d.y = PAIR_SELECTOR["hl"]
        if names[1] == "sp":
            d.flags |= ds.X_SP
        else:
            d.x = PAIR_SELECTOR[names[1]]
        d.flags |= ds.MASK_H | ds.MASK_N | ds.MASK_C
        d.shift = ds.SHIFT_16
        d.result_to("hl")
    elif family == "add_sp":
        d.imm_kind, d.shift = IMM_SIGNED, ds.SHIFT_8
        d.flags |= ds.X_SP | ds.MASK_ALL
        d.constants |= ds.SET_NZ
        d.result_to(names[0])
    else:  # store_sp
        d.imm_kind = IMM_16
        d.flags |= ds.WRITE | ds.WRITE_WORD | ds.X_SP


def _stack(d: _Descriptor, family: str, pair: str) -> None:
    """PUSH and POP."""
    d.flags |= ds.STACK | (ds.WRITE | ds.WRITE_WORD if family == "push" else ds.READ | ds.READ_WORD)
    d.add = -1 if family == "push" else 1
    if family == "push":
        d.x = PAIR_SELECTOR[pair] if pair != "af" else 0x7767
        d.kind = ds.KIND_PUSH_AF if pair == "af" else 0
    elif pair == "af":
        d.kind = ds.KIND_POP_AF
    else:
        d.result_to(pair)


def _flow(d: _Descriptor, family: str, instruction: Instruction) -> None:
    """Jumps, calls and returns."""
    names = isa.operand_names(instruction.mnemonic)
    if "cond" in instruction.operands:
        d.condition(instruction.operands["cond"])
    if family in ("ret", "reti"):
        d.kind = ds.KIND_IME if family == "reti" else 0
        d.flags |= ds.STACK | ds.READ | ds.READ_WORD | ds.JUMP
        d.add = 1
        return
    d.flags |= ds.JUMP
    if family == "call":
        d.flags |= ds.STACK | ds.WRITE | ds.WRITE_WORD | ds.X_SP
        d.add = -1
    if "vector" in instruction.operands:
        d.imm = int(instruction.operands["vector"])
    elif names[-1] == "hl":
        d.y = PAIR_SELECTOR["hl"]
    else:
        d.imm_kind = IMM_RELATIVE if family == "jump_relative" else IMM_16


def describe(instruction: Instruction) -> tuple[tuple[int, int, int, int], int]:
    """d0 to d3 of an instruction without its immediate, and how the immediate is made."""
    d, family = _Descriptor(instruction), instruction.family
    names = isa.operand_names(instruction.mnemonic)
    done = True
    if family == "load8":
        _load8(d, *names)
    elif family == "alu8":
        _alu8(d, instruction.operands["alu"], names[1])
    elif family in ("inc8", "dec8"):
        _step8(d, names[0], 1 if family == "inc8" else -1)
    elif family in ("rotate", "rotate_a"):
        operation = instruction.operands["rotate"]
        _rotate(d, operation, "a" if family == "rotate_a" else names[0])
        d.constants |= ds.SET_NZ if family == "rotate_a" else 0
    elif family in ("bit", "res", "set"):
        _bit(d, family, int(instruction.operands["bit"]), names[1])
    elif family in ("load16", "inc16", "dec16", "add16", "add_sp", "store_sp"):
        _word(d, family, names)
    elif family == "cpl":
        d.x, d.imm = _selector("a"), 0xFF
        d.flags |= ds.XOR | ds.MASK_H | ds.MASK_N
        d.constants |= ds.SET_H | ds.SET_N
        d.result_to("a")
    elif family == "scf":  # 10000h and 0, whose carries are those of an AND: all bits of both
        d.imm, d.shift = 0x100, ds.SHIFT_16
        d.flags |= ds.AND | ds.X_IMM | ds.MASK_H | ds.MASK_N | ds.MASK_C
    elif family == "ccf":
        d.kind = ds.KIND_CCF
        d.flags |= ds.MASK_H | ds.MASK_N | ds.MASK_C
    elif family == "daa":
        d.kind = ds.KIND_DAA
        d.flags |= ds.MASK_ALL
        d.result_to("a")
    elif family in ("di", "ei"):
        d.kind = ds.KIND_IME
        d.constants |= ds.EI if family == "ei" else 0
    elif family in ("push", "pop"):
        _stack(d, family, names[0])
    elif family in ("jump", "jump_relative", "call", "ret", "reti"):
        _flow(d, family, instruction)
    else:
        done = family == "nop"  # halt, stop, and a family that stands only in isa.py and cpu/templates.py
    if instruction.opcode in isa.LOOKAHEAD_OPCODES:
        d.flags |= ds.LOOKAHEAD
    if not done:
        return ds.rare_words(ds.HALT if family == "halt" else 0), IMM_NONE
    return d.words(), d.imm_kind


@cache
def opcode_table() -> np.ndarray:
    """Descriptors of the 512 opcodes (CB page from 256), shape (512, 5), int64: d0 to d3 and the immediate's kind."""
    table = isa.expand()
    rows = []
    for opcode in range(512):
        words, kind = describe(table[opcode]) if opcode in table else (ds.rare_words(), IMM_NONE)
        rows.append((*words, kind))
    return np.array(rows, np.int64)


def rom_table(data: bytes) -> np.ndarray:
    """Descriptors of all places of a ROM, shape (2 * entries, 4), int32: with groups of instructions (fusion.py), then
    the same without.

    Bank b begins at b * BANK_STRIDE, banks 1 and up as seen at 4000. Then bank 0 as seen at 4000, then a bank of which
    every place is RARE (for what lies at 0000 instead of bank 0), then one idle entry. Each bank's last entry and the
    two places before are RARE.
    """
    rom = np.frombuffer(data, np.uint8).astype(np.int64)
    banks = len(data) // hw.ROM_BANK_SIZE
    parts = [_describe_bank(rom, bank, 0 if bank == 0 else hw.ROM_BANK_SIZE) for bank in range(banks)]
    for loop in (loop for loop in find_loops(data) if loop.only_waits):
        words = parts[loop.place // hw.ROM_BANK_SIZE][loop.place % hw.ROM_BANK_SIZE]
        if not words[3] & ds.RARE:
            words[2:] |= ds.LOOP | ds.WAIT, ds.RARE
    parts.append(_describe_bank(rom, 0, hw.ROM_BANK_SIZE))
    parts.append(np.tile(np.array(ds.rare_words(), np.int64), (ds.BANK_STRIDE, 1)))
    parts.append(np.array([ds.idle_words()], np.int64))
    joined = [fusion.fuse(part, 0 if bank == 0 else hw.ROM_BANK_SIZE) for bank, part in enumerate(parts)]
    table = np.concatenate(joined + parts)
    return table.astype(np.uint32).view(np.int32)


def _describe_bank(rom: np.ndarray, bank: int, address: int) -> np.ndarray:
    """Descriptors of one bank as seen from `address` on, shape (BANK_STRIDE, 4)."""
    size = hw.ROM_BANK_SIZE
    code = np.concatenate([rom, np.zeros(2, np.int64)])[bank * size : bank * size + size + 2]
    first, second, third = code[:-2], code[1:-1], code[2:]
    rows = opcode_table()[np.where(first == 0xCB, 0x100 | second, first)]
    kind = rows[:, 4]
    signed = (second ^ 0x80) - 0x80
    pc = address + np.arange(size)
    choices = [0 * second, second, second | (third << 8), 0xFF00 | second, (pc + 2 + signed) & 0xFFFF, signed & 0xFFFF]
    words = rows[:, :4].copy()
    words[np.arange(size), np.where(words[:, 3] & ds.X_IMM, 0, 2)] |= np.choose(kind, choices)
    text = first.astype(np.uint8).tobytes()
    for loop in first_loops():
        at = -1
        while (at := text.find(loop.code, at + 1, size - 3)) >= 0:
            words[at, 2:] |= ds.LOOP, ds.RARE
    for place in stat_polls(text, 0, size - 3):
        words[place, 2] |= ds.LOOP
    words[size - 2 :] = ds.rare_words()
    return np.concatenate([words, np.array([ds.rare_words()], np.int64)])
