"""The counts of a game in plain words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gbxcule_puffer.apps.profile.loops import Loop, address_of, find_loops
from gbxcule_puffer.apps.profile.measure import Counts
from gbxcule_puffer.apps.profile.names import AddressNames, cause_text
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.gpu import stop_counters as stops
from gbxcule_puffer.emulator.hw import counters

INTERRUPTS = ("VBlank", "STAT", "timer", "serial", "joypad")
LEAST_SHARE = 0.01  # of a loop or cause that is listed
MOST_LISTED = 6
MOST_LINES = 12  # of a loop
RST_38, OPCODE_RST_38 = 0x38, 0xFF  # where games end up that jump to nowhere
# Medians of the 59 games of `puffer bench --suite corpus`, 4 envs, steps 24 to 36
TYPICAL = {"executed": 32_000, "stops": 46, "interpreted": 4.1, "events": 130}


def report(name: str, interpreted: Counts, datapath: Counts | None, names: AddressNames) -> str:
    """The whole text; datapath: its counts, if measured."""
    loops = find_loops(interpreted)
    lines = [*_head(name, interpreted), "", *_executed(interpreted, loops, names), "", *_clock(interpreted, names)]
    if datapath is not None:
        lines += ["", *_stops(datapath, names)]
    return "\n".join([*lines, "", *_verdict(interpreted, datapath, loops, names)])


def _head(name: str, counts: Counts) -> Iterator[str]:
    executed = counts.instructions
    yield (
        f"{name}: {executed.mean():,.0f} instructions are executed in a step of {counts.frames_per_step} frames "
        f"({executed.max():,} at most; half of the reference games execute less than {TYPICAL['executed']:,})"
    )


def _executed(counts: Counts, loops: list[Loop], names: AddressNames) -> Iterator[str]:
    """Loops by their share of the instructions."""
    total = max(1, int(counts.rows[counters.EXECUTED].sum()))
    waiting = [loop for loop in loops if loop.repeated > LEAST_SHARE * total]
    working = sorted((loop for loop in loops if not loop.repeated), key=lambda loop: -loop.executed)
    waits = sum(loop.repeated for loop in loops) / total
    yield f"What is executed: {100 * waits:.0f} % only waits, in loops that are not skipped"
    for loop in waiting[:MOST_LISTED]:
        yield from _loop(loop, loop.repeated / total, names)
    large = [loop for loop in working[:MOST_LISTED] if loop.executed > LEAST_SHARE * total]
    yield f"  and {100 * (1 - waits):.0f} % works" + ("; its loops:" if large else "")
    for loop in large:
        share, size = 100 * loop.executed / total, len(loop.lines)
        yield f"  {share:5.1f} %  {_address(loop.begin, names)}, {size} instructions long"


def _loop(loop: Loop, share: float, names: AddressNames) -> Iterator[str]:
    """A waiting loop with its code."""
    yield f"  {100 * share:5.1f} %  {_address(loop.begin, names)} {loop.what_it_does}"
    for index, text in loop.lines[:MOST_LINES]:
        yield f"             {address_of(index)[1]:04X}  {text}"
    if len(loop.lines) > MOST_LINES:
        yield f"             ... {len(loop.lines) - MOST_LINES} more"


def _clock(counts: Counts, names: AddressNames) -> Iterator[str]:
    """HALT, skipped loops, interrupts, events."""
    causes = counts.rows[counters.CAUSES]
    frames = counts.frames_per_step
    halted = counts.a_step(causes[counters.HALT_T_CYCLES]) / (frames * hw.FRAME_T_CYCLES)
    skipped = counts.rows[counters.SKIPPED]
    yield "What costs next to nothing"
    yield f"  {100 * halted:5.1f} %  of the Game Boy's time is spent in HALT"
    indices = [index for index in np.argsort(-skipped)[:3].tolist() if skipped[index]]
    where = ", ".join(_address(index, names, counts) for index in indices)
    text = f" (most at {where})" if where else ""
    yield f"  {counts.a_step(skipped.sum()):,.0f} more instructions a step are skipped, with their loops{text}"
    yield ""
    batches = counts.a_step(causes[counters.BATCHES])
    yield "What happens in a step"
    yield f"  interrupts: {_interrupts(counts)}"
    yield f"  events, at which all devices are updated: {batches:,.0f} (usually {TYPICAL['events']:,})"


def _stops(counts: Counts, names: AddressNames) -> Iterator[str]:
    """The causes of the data path's stops."""
    executed = max(1.0, float(counts.instructions.sum()))
    causes = counts.rows[counters.CAUSES]
    by_text: dict[str, list[int]] = {}
    for cause in range(1, stops.MOST):
        column = counters.STOP_CAUSE + cause
        if causes[column]:
            sums = by_text.setdefault(cause_text(cause), [0, 0])
            sums[0] += int(causes[column])
            sums[1] += int(causes[column + stops.MOST])
    total, left = (sum(sums[index] for sums in by_text.values()) for index in (0, 1))
    yield (
        f"On a GPU all lanes of a warp wait while one stops. Of 1,000 instructions {1000 * total / executed:.0f} stop "
        f"(usually {TYPICAL['stops']}), {1000 * left / executed:.1f} for the interpreter, the most expensive (usually "
        f"{TYPICAL['interpreted']}):"
    )
    yield "    stops  interpreter"
    for text, (count, asleep) in sorted(by_text.items(), key=lambda item: -item[1][0])[: 2 * MOST_LISTED]:
        if count > LEAST_SHARE * total:
            yield f"  {1000 * count / executed:7.1f}  {1000 * asleep / executed:11.1f}  {text}"
    row = counts.rows[counters.STOPS]
    indices = [index for index in np.argsort(-row)[:MOST_LISTED].tolist() if row[index] > LEAST_SHARE * total]
    where = (f"{_address(index, names, counts)} ({100 * row[index] / total:.0f} %)" for index in indices)
    if indices:
        yield f"  most at {', '.join(where)}"


def _verdict(counts: Counts, datapath: Counts | None, loops: list[Loop], names: AddressNames) -> Iterator[str]:
    """The reasons why the game is slow, the largest first."""
    total = max(1, int(counts.rows[counters.EXECUTED].sum()))
    reasons: list[str] = []
    if counts.cartridge.data[RST_38] == OPCODE_RST_38 and counts.rows[counters.EXECUTED, RST_38] > total / 2:
        reasons.append("The game has crashed: RST 38 at 0038 calls itself for ever.")
    if loops and loops[0].repeated > 0.1 * total:
        loop = loops[0]
        share = 100 * loop.repeated / total
        reasons.append(
            f"{share:.0f} % of the time is spent in a loop at {_address(loop.begin, names)} that is not skipped: it "
            f"{loop.what_it_does}."
        )
    executed = counts.instructions
    if executed.mean() > 1.5 * TYPICAL["executed"]:
        reasons.append(f"It executes {executed.mean() / TYPICAL['executed']:.1f} times as many instructions as usual.")
    events = counts.a_step(counts.rows[counters.CAUSES][counters.BATCHES])
    if events > 10 * TYPICAL["events"]:
        often = events / TYPICAL["events"]
        reasons.append(f"Events come {often:.0f} times as often as usual; interrupts: {_interrupts(counts)}.")
    if datapath is not None:
        stop_share = 1000 * float(datapath.rows[counters.STOPS].sum()) / max(1.0, float(datapath.instructions.sum()))
        if stop_share > 2 * TYPICAL["stops"]:
            reasons.append(f"On a GPU it stops {stop_share / TYPICAL['stops']:.1f} times as often as usual.")
        if executed.max() > 2 * executed.mean():
            reasons.append(
                f"On a GPU a step lasts as long as its slowest warp, and the slowest env executes "
                f"{executed.max() / executed.mean():.1f} times the mean."
            )
    yield "In short: " + (" ".join(reasons) or "nothing stands out: it costs about what its instructions cost.")


def _interrupts(counts: Counts) -> str:
    """Interrupts per step, by kind."""
    dispatched = counts.rows[counters.CAUSES][counters.DISPATCHED :][: len(INTERRUPTS)]
    found = (f"{counts.a_step(count):,.0f} {name}" for count, name in zip(dispatched, INTERRUPTS, strict=True) if count)
    return ", ".join(found) or "none"


def _address(index: int, names: AddressNames, counts: Counts | None = None) -> str:
    """An index of the ROM, or beyond it of RAM, as an address in words."""
    if counts is not None and index >= len(counts.cartridge.data):
        return f"{index - len(counts.cartridge.data) + hw.ROW_BASE:04X} in RAM"
    return names.text(*address_of(index))
