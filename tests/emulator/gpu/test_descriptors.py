"""The table of descriptors: what the data path leaves to the interpreter."""

from __future__ import annotations

from dataclasses import replace

from gbxcule_puffer.emulator import isa
from gbxcule_puffer.emulator.gpu.descriptor_table import describe
from gbxcule_puffer.emulator.gpu.descriptors import RARE


def test_an_instruction_of_a_new_family_is_the_interpreters() -> None:
    """So that an instruction is added by its row and its template alone."""
    nop = isa.expand()[0x00]
    assert not describe(nop)[0][3] & RARE
    assert describe(replace(nop, family="neg"))[0][3] & RARE
    rare = {each.family for each in isa.expand().values() if describe(each)[0][3] & RARE}
    assert {"daa", "halt", "stop"} <= rare
