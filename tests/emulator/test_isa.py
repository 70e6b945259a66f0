"""The instruction table: coverage, and bus M-cycles against PyBoy's measured cycles and access times."""

import json
from pathlib import Path
from typing import Any

import pytest

from gbxcule_puffer.emulator import isa

ILLEGAL = {0xD3, 0xDB, 0xDD, 0xE3, 0xE4, 0xEB, 0xEC, 0xED, 0xF4, 0xFC, 0xFD}
PREFIX = 0xCB
# Taken with F=00 (NZ, NC) and with F=F0 (Z, C): bit 3 of a conditional opcode tells them apart.
TAKEN_FLAGS = {0: "flags_clear", 8: "flags_set"}


@pytest.fixture(scope="module")
def instructions() -> dict[int, Any]:
    return isa.expand()


@pytest.fixture(scope="module")
def access_times(shared: Path) -> dict[int, dict[str, Any]]:
    """Opcode (CB page from 0x100) to what PyBoy does."""
    measured = json.loads((shared / "conformance" / "pyboy_access_times.json").read_text())["opcodes"]
    return {0x100 + int(name[2:], 16) if len(name) == 4 else int(name, 16): entry for name, entry in measured.items()}


def test_every_legal_opcode_is_there_once(instructions: dict[int, Any]) -> None:
    base = {opcode for opcode in instructions if opcode < 0x100}
    assert base == set(range(0x100)) - ILLEGAL - {PREFIX}
    assert {opcode for opcode in instructions if opcode >= 0x100} == set(range(0x100, 0x200))


def test_m_cycles_are_those_of_the_oracle(instructions: dict[int, Any], access_times: dict[int, Any]) -> None:
    wrong = []
    for opcode, entry in access_times.items():
        row = instructions[opcode]
        for taken, case in cases_of(opcode, entry):
            m_cycles = row.m_cycles_taken if taken else row.m_cycles
            if m_cycles * 4 != case["cycles"]:
                wrong.append(
                    f"{opcode:03X} {row.mnemonic} taken={taken}: {m_cycles * 4} T-cycles, not {case['cycles']}"
                )
    assert len(access_times) == 500
    assert not wrong, "\n".join(wrong[:20])


def test_access_times_are_those_of_the_oracle(instructions: dict[int, Any], access_times: dict[int, Any]) -> None:
    wrong = []
    for opcode, entry in access_times.items():
        row = instructions[opcode]
        for taken, case in cases_of(opcode, entry):
            derived = [[a.kind, a.t_offset, a.lookahead] for a in row.accesses(taken)]
            if derived != case["access"]:
                wrong.append(f"{opcode:03X} {row.mnemonic} taken={taken}: {derived}, not {case['access']}")
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:20])


def test_cycles_follow_from_the_bus_sequence(instructions: dict[int, Any]) -> None:
    """No cycle number is typed: M-cycles = the fetches + one for each letter of the bus sequence."""
    for opcode, row in instructions.items():
        fetches = 2 if opcode >= 0x100 else 1
        assert set(row.bus) | set(row.bus_taken) <= set("RW-"), f"{opcode:03X} {row.mnemonic}"
        assert row.m_cycles == fetches + len(row.bus), f"{opcode:03X} {row.mnemonic}"
        assert row.m_cycles_taken >= row.m_cycles, f"{opcode:03X} {row.mnemonic}"
        assert 1 <= row.length <= 3, f"{opcode:03X} {row.mnemonic}"


def cases_of(opcode: int, entry: dict[str, Any]) -> list[tuple[bool, dict[str, Any]]]:
    """(taken, what PyBoy does) for each way through an instruction."""
    if "cycles" in entry:
        return [(False, entry), (True, entry)]
    taken = TAKEN_FLAGS[opcode & 8]
    return [(name == taken, case) for name, case in entry.items()]
