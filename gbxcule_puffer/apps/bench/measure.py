"""Measures contenders in turns: start, warm up, then one repeat of each at a time: A B, B A, A B."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gbxcule_puffer.apps.bench.contenders import Contender
from gbxcule_puffer.apps.bench.records import Record, add_ratio, make_record
from gbxcule_puffer.apps.bench.workload import LEAD_IN_STEPS, Workload

SETTLE_SECONDS = 0.6  # PufferLib's workers spin for half a second after their last step
WARMUP_PARTS = 8  # reports of progress during a warm-up


@dataclass
class Turn:
    """The state of one contender's measurement: `done` of `total` steps."""

    contender: Contender
    total: int
    doing: str = "waits"
    done: int = 0
    start_seconds: float = 0.0
    seconds: list[float] = field(default_factory=list)


Watcher = Callable[[list[Turn]], None]


def compare(contenders: list[Contender], workload: Workload, watch: Watcher) -> list[Record]:
    """One record per contender; the first one's has the ratio to the second. All contenders are closed, whatever
    happens."""
    turns = [Turn(contender, workload.total_steps) for contender in contenders]
    try:
        for turn in turns:
            _warm_up(turn, workload, lambda: watch(turns))
        held = [turn.contender.bytes_in_use() for turn in turns]
        for repeat in range(workload.repeat):
            for turn in turns if repeat % 2 == 0 else reversed(turns):  # a slow change of the machine favours neither
                turn.doing = f"repeat {repeat + 1} of {workload.repeat}"
                watch(turns)
                _time(turn, workload, repeat)
                if len(turns) > 1 and turn.contender.vec_backend.startswith("mp"):
                    time.sleep(SETTLE_SECONDS)
        records = []
        for turn, before in zip(turns, held, strict=True):
            allocated = turn.contender.bytes_in_use() - before
            records.append(make_record(turn.contender, workload, turn.seconds, turn.start_seconds, allocated))
            turn.doing = "done"
        if len(records) > 1:
            add_ratio(records[0], records[1], turns[0].seconds, turns[1].seconds)
        return records
    finally:
        for contender in contenders:
            contender.close()


def _warm_up(turn: Turn, workload: Workload, watch: Callable[[], None]) -> None:
    turn.doing = "starts"
    watch()
    began = time.perf_counter()
    turn.contender.start()
    turn.start_seconds = time.perf_counter() - began
    turn.doing = "warms up"
    part = max(1, -(-workload.warmup // WARMUP_PARTS))
    for first in range(0, workload.warmup, part):
        watch()
        turn.done = min(first + part, workload.warmup)
        turn.contender.run(slice(first, turn.done))


def _time(turn: Turn, workload: Workload, repeat: int) -> None:
    first = workload.warmup + repeat * (LEAD_IN_STEPS + workload.steps)
    turn.contender.run(slice(first, first + LEAD_IN_STEPS))
    first += LEAD_IN_STEPS
    began = time.perf_counter()
    turn.contender.run(slice(first, first + workload.steps))
    turn.seconds.append(time.perf_counter() - began)
    turn.done = first + workload.steps
