"""Bytes to text: one instruction or a listing, from the table in isa.py."""

from __future__ import annotations

from gbxcule_puffer.emulator import isa


def disassemble(code: bytes, pc: int) -> tuple[str, int]:
    """Text and length of the instruction at the start of `code`; `pc` is its address (for relative jumps).

    Missing bytes count as 0: `code` may end at the end of memory.
    """
    first, second, third = (*code[:3], 0, 0, 0)[:3]
    opcode = 0x100 | second if first == 0xCB else first
    instruction = isa.expand().get(opcode)
    if instruction is None:
        return f"illegal {first:02X}", 1
    text = instruction.mnemonic
    if instruction.family == "jump_relative":
        target = (pc + 2 + (second ^ 0x80) - 0x80) & 0xFFFF
        text = text.replace("imm8", f"${target:04X}")
    text = text.replace("[imm8]", f"[$FF{second:02X}]").replace("imm16", f"${third:02X}{second:02X}")
    return text.replace("imm8", f"${second:02X}"), instruction.length


def listing(memory: bytes, start: int, count: int) -> list[str]:
    """`count` lines of text; `memory` begins at address `start`."""
    lines, offset = [], 0
    for _ in range(count):
        text, length = disassemble(memory[offset : offset + 3], start + offset)
        raw = " ".join(f"{byte:02X}" for byte in memory[offset : offset + length])
        lines.append(f"{start + offset:04X}  {raw:<8}  {text}")
        offset += length
    return lines
