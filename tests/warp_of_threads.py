"""Four lanes of a warp as four threads of the CPU: what the data path's loop does on a GPU, without one.

The loop's collective functions, in which all lanes of a warp meet, become barriers that the threads wait at.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from gbxcule_puffer.codegen import cache, interpreter
from gbxcule_puffer.emulator import Emulator

LANES = 4
_BARRIER = """
    extern void give_way() __asm__("sched_yield");
    static int arrived = 0, round = 0, gathered = START, result = 0, lock = 0;
    const int own_round = __atomic_load_n(&round, __ATOMIC_SEQ_CST);
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_SEQ_CST)) give_way();
    GATHER;
    const bool is_last = ++arrived == LANES;
    if (is_last) { result = gathered; gathered = START; arrived = 0; }
    __atomic_store_n(&lock, 0, __ATOMIC_SEQ_CST);
    if (is_last) __atomic_store_n(&round, own_round + 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&round, __ATOMIC_SEQ_CST) == own_round) give_way();
    return result;
"""


def _barrier(start: str, gather: str) -> str:
    return _BARRIER.replace("LANES", str(LANES)).replace("START", start).replace("GATHER", gather)


@wp.func_native(_barrier("0", "gathered |= flag != 0"))
def any_lane(flag: int) -> int:
    """native.any_lane of the threads."""
    ...


@wp.func_native(_barrier("0x7fffffff", "gathered = value < gathered ? value : gathered"))
def least(value: int) -> int:
    """native.least of the threads."""
    ...


def kernel_step() -> wp.Kernel:
    """The data path's kernel, each thread a lane of the same warp."""
    text = interpreter.source("datapath")
    for name in ("any_lane", "least"):
        assert f"native.{name}(" in text
        text = text.replace(f"native.{name}(", f"warp_of_threads.{name}(")
    header = "from gbxcule_puffer.codegen import datapath, visits\n"
    assert header in text
    text = text.replace(header, header + "from tests import warp_of_threads\n")
    return cache.import_source("warp_of_threads", text).kernel_step


class WarpOfThreads(Emulator):
    """An emulator of four envs, which are the lanes of one warp."""

    def __init__(self, rom: Any, **options: Any) -> None:
        super().__init__(rom, LANES, kernel="datapath", num_threads=LANES, **options)

    def _kernel(self) -> wp.Kernel:
        return kernel_step()

    def _arguments(self, first_env: int, count: int, frames: int, release_after: int) -> tuple[list[object], int]:
        inputs, dim = super()._arguments(first_env, count, frames, release_after)
        inputs[-2] = LANES  # sets how long a lane sleeps
        return inputs, dim
