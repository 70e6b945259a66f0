"""The machine code of the GPU's common path does not grow, nor do its kernel's registers and stack. Needs no GPU.

turn_cost.json has the figures that were measured last. Where they grow for a reason that is worth it, which a GPU shows
(`python -m benchmarks.kernel.compare_trees`), or where they fall, renew the file and commit it:

    python -m benchmarks.kernel.turn_cost --out tests/emulator/gpu/turn_cost.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import warp as wp

from benchmarks.kernel import turn_cost

REFERENCE = Path(__file__).with_name("turn_cost.json")
RENEW = f"python -m benchmarks.kernel.turn_cost --out {REFERENCE.relative_to(Path(__file__).parents[3])}"
TOLERANCE = 1.02
GUARDED = ("instructions", "integers", "clocks", "local_accesses", "registers", "stack_bytes")


def grown(now: Mapping[str, int], before: Mapping[str, int]) -> list[str]:
    """What has grown by more than the tolerance."""
    return [f"{name} {before[name]} -> {now[name]}" for name in GUARDED if now[name] > TOLERANCE * before[name]]


@pytest.mark.parametrize("model", ["dmg", pytest.param("cgb", marks=pytest.mark.long)])
def test_a_turn_costs_no_more_than_before(model: str) -> None:
    if turn_cost.disassembler() is None:
        pytest.skip(f"{turn_cost.PACKAGE} is not installed: pip install -c constraints.txt -e .[dev]")
    wp.init()
    if 90 not in wp.get_cuda_supported_archs():
        pytest.skip("this Warp was installed without its CUDA compiler")
    more = grown(turn_cost.measure(model), json.loads(REFERENCE.read_text())[model])
    assert not more, f"{model}: {', '.join(more)}. Where that is intended: {RENEW}"


def test_growth_is_found() -> None:
    before: dict[str, int] = dict.fromkeys(GUARDED, 100)
    assert grown(before, before) == []
    assert [grown({**before, name: 103}, before) for name in GUARDED] == [[f"{name} 100 -> 103"] for name in GUARDED]
    assert grown({**before, "local_accesses": 1}, {**before, "local_accesses": 0}) == ["local_accesses 0 -> 1"]


def test_the_turn_is_the_shortest_cycle_that_stores() -> None:
    code = """
        VOTE.ANY P0,P0
        @P0 BRA 0x60
        LDG.E.128.CONSTANT R4
        STG.E.U8 R1
        @P1 BRA 0x0
        EXIT
        CALL.REL.NOINC somewhere
        IADD3 R1,R1,R1,RZ
        BRA 0x20
        VOTE.ANY P0,P0
        @P0 BRA 0x20
    """
    steps = []
    for line in code.split("\n")[1:-1]:
        words = line.split()
        predicate = words.pop(0) if words[0].startswith("@") else ""
        steps.append(turn_cost.Instruction(words[0], " ".join(words[1:]), predicate, 1))
    assert [step.opcode for step in turn_cost.turn_of(steps)] == [
        "BRA",
        "LDG.E.128.CONSTANT",
        "STG.E.U8",
        "BRA",
        "VOTE.ANY",
    ]
