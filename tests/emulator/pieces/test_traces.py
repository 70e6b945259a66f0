"""Traces of a ROM: which instructions a piece runs."""

from __future__ import annotations

import numpy as np
import pytest

from gbxcule_puffer.emulator.pieces import traces as traces_module
from gbxcule_puffer.emulator.pieces.traces import Segment, Trace, Tracer

SIZE = 0x8000


def rom_of(**parts: str) -> bytes:
    """A ROM with code, in hexadecimal, at addresses: at_0150='00 00'."""
    rom = bytearray(SIZE)
    for name, text in parts.items():
        code = bytes.fromhex(text)
        begin = int(name.removeprefix("at_"), 16)
        rom[begin : begin + len(code)] = code
    return bytes(rom)


def find(
    rom: bytes,
    counts: dict[int, int],
    loops: tuple[int, ...] = (),
    polls: tuple[int, ...] = (),
    repeated: tuple[int, ...] = (),
    interrupts: int = 0,
) -> list[Trace]:
    """The traces of a ROM whose instructions were executed so often; repeated: jumps back whose rounds change
    nothing; interrupts: that were dispatched meanwhile."""
    executed, are_loops, are_polls = np.zeros(len(rom), np.int64), np.zeros(len(rom), bool), np.zeros(len(rom), bool)
    for index, count in counts.items():
        executed[index] = count
    are_loops[list(loops)], are_polls[list(polls)] = True, True
    idle = np.zeros(len(rom), np.int64)
    idle[list(repeated)] = executed.sum()
    return Tracer(rom, executed, are_loops, are_polls, idle, interrupts).find()


def pcs(trace: Trace) -> list[int]:
    """Where its instructions are."""
    return [step.pc for step in trace.steps]


def test_a_loop_leads_to_its_begin() -> None:
    """`inc a / dec b / jr nz` is a loop; its bound is the time until the jump begins."""
    rom = rom_of(at_0150="3c 05 20 fc 76")
    (trace,) = find(rom, {0x150: 90, 0x151: 90, 0x152: 90, 0x154: 9})
    assert pcs(trace) == [0x150, 0x151, 0x152] and trace.steps[-1].follows == 0x150
    assert trace.segments == [Segment(0, [0x150, 0x151, 0x152], 8)]


def test_a_long_trace_has_parts() -> None:
    """So that an event ends it soon before it, not a trace before."""
    rom = rom_of(at_0150="3c " * 10 + "76")
    (trace,) = find(rom, {0x150 + index: 9 for index in range(10)})
    assert [(part.first, len(part.indices), part.bound) for part in trace.segments] == [
        (0, 4, 12),
        (4, 4, 12),
        (8, 2, 4),
    ]


def test_parts_of_a_trace_with_many_interrupts_are_traces() -> None:
    """Their handlers return into it. A part goes on with the next one."""
    rom = rom_of(at_0150="3c " * 10 + "76")
    counts = {0x150 + index: 9 for index in range(10)}
    assert len(find(rom, counts)) == 1
    traces = find(rom, counts, interrupts=1)
    assert [pcs(trace) for trace in traces[1:]] == [[0x154, 0x155, 0x156, 0x157], [0x158, 0x159]]
    assert traces[1].steps[-1].follows == 0x158
    assert len(find(rom, counts, interrupts=1, polls=(0x154,))) == 2


def test_what_nothing_leads_to_begins_one() -> None:
    """An interrupt's handler, or where `jp hl` leads."""
    rom = rom_of(at_0040="3c 04 05 d9", at_0150="e9", at_0200="0c 0d 14 c9")
    counts = {0x150: 9, **dict.fromkeys([*range(0x40, 0x44), *range(0x200, 0x204)], 9)}
    assert {0x40, 0x150, 0x200} <= {trace.begin for trace in find(rom, counts)}


def test_the_side_that_is_executed_more_often_goes_on() -> None:
    """At `jr z`, to where it leads or to what follows."""
    rom = rom_of(at_0140="18 0e", at_0150="3c 28 04 04 05 06 07 14 15 16 17 76")
    often, seldom = {0x157: 90, 0x158: 90, 0x159: 90}, {0x153: 2, 0x154: 2, 0x155: 2}
    first = {0x140: 92, 0x150: 92, 0x151: 92}
    taken = find(rom, first | often | seldom)[0]
    assert pcs(taken)[:5] == [0x140, 0x150, 0x151, 0x157, 0x158]
    swapped = {index: 2 for index in often} | {index: 90 for index in seldom}
    assert pcs(find(rom, first | swapped)[0])[:5] == [0x140, 0x150, 0x151, 0x153, 0x154]


def test_a_call_and_its_return_are_one_trace() -> None:
    """The return leads behind the call, where the trace goes on."""
    rom = rom_of(at_0140="18 0e", at_0150="cd 00 02 3c 76", at_0200="04 c9")
    trace = find(rom, {0x140: 9, 0x150: 9, 0x153: 9, 0x200: 9, 0x201: 9})[0]
    assert pcs(trace) == [0x140, 0x150, 0x200, 0x201, 0x153]


def test_it_ends_before_what_only_the_interpreter_does() -> None:
    """HALT, EI, STOP, and loops of which rounds are skipped; after a write to a register that ends the batch."""
    counts = {0x140: 9, **{0x150 + index: 9 for index in range(4)}}
    for end in ("76", "fb", "10", "e0 55"):
        rom = rom_of(at_0140="18 0e", at_0150=f"04 05 0c {end}")
        assert pcs(find(rom, counts)[0]) == [0x140, 0x150, 0x151, 0x152], end
    rom = rom_of(at_0140="18 0e", at_0150="04 05 0c 0d 14 76")
    assert pcs(find(rom, counts, loops=(0x153,))[0]) == [0x140, 0x150, 0x151, 0x152]
    for write in ("e0 0f", "ea ff ff", "e0 40"):
        rom = rom_of(at_0140="18 0e", at_0150=f"04 05 0c {write} 14 76")
        assert pcs(find(rom, counts)[0]) == [0x140, 0x150, 0x151, 0x152, 0x153], write


def test_it_has_accesses_of_all_memory() -> None:
    """IO registers, ROM, cartridge RAM, and an interrupt's return."""
    for access in ("f0 44", "e0 43", "ea 00 20", "fa 00 a0"):
        rom = rom_of(at_0140="18 0e", at_0150=f"04 05 {access} d9")
        after = 0x152 + len(bytes.fromhex(access))
        counts = {0x140: 9, **dict.fromkeys((0x150, 0x151, 0x152, after), 9)}
        assert pcs(find(rom, counts)[0]) == [0x140, 0x150, 0x151, 0x152, after], access


def test_it_goes_through_a_poll() -> None:
    """`ldh a,[STAT] / and 2 / jr nz`: the loop's end goes on, however often it went round."""
    rom = rom_of(at_0140="18 0e", at_0150="04 f0 41 e6 02 20 fa 0c 0d 76")
    counts = {0x140: 9, 0x150: 9, **dict.fromkeys((0x151, 0x153, 0x155), 900), 0x157: 9, 0x158: 9}
    trace = find(rom, counts, polls=(0x151,))[0]
    assert pcs(trace) == [0x151, 0x153, 0x155, 0x157, 0x158]
    assert [step.pc for step in trace.steps if step.polls] == [0x155]


def test_it_ends_after_a_round_that_changes_nothing() -> None:
    """`ldh a,[P1] / inc b / cpl / and f / jr z`: a trace from its middle on ends at the jump, too."""
    rom = rom_of(at_0140="18 0f", at_0150="f0 00 04 2f e6 0f 28 f8 05 76")
    counts = {0x140: 9, **dict.fromkeys((0x150, 0x152, 0x153, 0x154, 0x156), 90), 0x158: 9}
    assert all(pcs(trace)[-1] != 0x156 for trace in find(rom, counts) if trace.begin == 0x152)
    traces = {trace.begin: trace for trace in find(rom, counts, repeated=(0x156,))}
    assert pcs(traces[0x150]) == [0x150, 0x152, 0x153, 0x154, 0x156]
    assert traces[0x150].steps[-1].idles and not traces[0x150].steps[0].idles


def test_it_goes_on_in_the_bank_that_was_executed_most() -> None:
    """At a jump from bank 0 into the switchable bank."""
    rom = rom_of(at_0140="18 0e", at_0150="04 05 c3 00 40", at_4000="0c 0d 14 76") + bytes(SIZE)
    counts = {0x140: 9, 0x150: 9, 0x151: 9, 0x152: 9, 0x4000: 9, 0x4001: 9, 0x4002: 9, 0x8000: 2, 0x8001: 2}
    (trace, *_) = find(rom, counts)
    assert [step.index for step in trace.steps] == [0x140, 0x150, 0x151, 0x152, 0x4000, 0x4001, 0x4002]


def test_their_number_and_length_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ROM that is executed everywhere still compiles in bounded time."""
    executed = np.where(np.arange(SIZE) < 8_000, 5, 0)
    tracer = Tracer(bytes([0x3C]) * SIZE, executed, np.zeros(SIZE, bool), np.zeros(SIZE, bool), np.zeros(SIZE))
    monkeypatch.setattr(tracer, "_heads", lambda: (np.ones(SIZE, bool), np.zeros(SIZE, bool)))
    traces = tracer.find()
    assert max(len(trace.steps) for trace in traces) <= traces_module.MOST_OF_TRACE
    assert sum(len(trace.steps) for trace in traces) < traces_module.MOST_INSTRUCTIONS + traces_module.MOST_OF_TRACE
