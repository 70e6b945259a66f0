"""A warp whose lanes are threads of the CPU: what the data path's loop does on a GPU, without one.

    python -m benchmarks.kernel.warp_of_threads [--lanes 16] [--steps 4] [--model cgb] [ROM ...]

plays one env a lane with random actions and prints what the warp does in a step: turns around the loop, times that it
calls the interpreter, and lanes that such a call serves. The loop's collective functions, in which all lanes of a warp
meet, become barriers that the threads sleep at; tests/emulator/gpu/test_warp_of_threads.py compares the states.
"""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path
from typing import Any

import torch
import warp as wp

from benchmarks.workload import find_rom, random_buttons, seed_of
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.build import cache as sources
from gbxcule_puffer.emulator.build.variant import Variant, build

WARMUP = 100  # steps, until the games have gone different ways
TOTALS = ("turns", "calls", "served")
_BARRIER = """
#ifdef __x86_64__
    const long YIELD = 24, FUTEX = 202;
#else
    const long YIELD = 124, FUTEX = 98;
#endif
    const long WAIT = 128, WAKE = 129;
    extern long call(long number, int *word, long operation, long value, long timeout) __asm__("syscall");
    static int arrived = 0, round = 0, gathered = START, result = 0, lock = 0;
    const int own_round = __atomic_load_n(&round, __ATOMIC_SEQ_CST);
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_SEQ_CST)) call(YIELD, 0, 0, 0, 0);
    GATHER;
    const bool is_last = ++arrived == lanes;
    if (is_last) { result = gathered; gathered = START; arrived = 0; }
    __atomic_store_n(&lock, 0, __ATOMIC_SEQ_CST);
    if (is_last) {
        __atomic_store_n(&round, own_round + 1, __ATOMIC_SEQ_CST);
        call(FUTEX, &round, WAKE, 0x7fffffff, 0);
    }
    while (__atomic_load_n(&round, __ATOMIC_SEQ_CST) == own_round) call(FUTEX, &round, WAIT, own_round, 0);
    return result;
"""
_TOTAL = """
    static int totals[3] = {0, 0, 0};
    return __atomic_fetch_add(&totals[which], amount, __ATOMIC_SEQ_CST);
"""


def _barrier(start: str, gather: str) -> str:
    return _BARRIER.replace("START", start).replace("GATHER", gather)


@wp.func_native(_barrier("0", "gathered |= flag"))
def any_lane(lanes: int, flag: bool) -> bool:
    """intrinsics.any_lane of `lanes` threads."""
    ...


@wp.func_native(_barrier("0x7fffffff", "gathered = value < gathered ? value : gathered"))
def least(lanes: int, value: int) -> int:
    """intrinsics.least of `lanes` threads."""
    ...


@wp.func_native(_TOTAL)
def total(which: int, amount: int) -> int:
    """Adds to one of TOTALS, the sums over all lanes; what it was before."""
    ...


ROUND = "            if lane.running == lane_state.ASLEEP and lane.until - lane.lead <= behind:\n"
TURN = "\n                datapath.end_turn(r, i, fixed, table)\n"
IMPORTS = ".gpu import datapath, lane_state, operations, slow_path, stop_counters\n"
CHANGES = {
    IMPORTS: IMPORTS + "from benchmarks.kernel import warp_of_threads\n",
    'module="unique", module_options=USUAL_BLOCK': 'module="MODULE"',
    "        used: int,\n": "        used: int,\n        lanes: int,\n",
    "run_datapath(m, c, used, ": "run_datapath(m, c, used, buttons.shape[0], ",
    "intrinsics.any_lane(": "warp_of_threads.any_lane(lanes, ",
    "intrinsics.least(": "warp_of_threads.least(lanes, ",
    TURN: TURN + "                warp_of_threads.total(0, 1)\n",
    ROUND: (
        "            is_served = int(lane.running == lane_state.ASLEEP and lane.until - lane.lead <= behind)\n"
        "            warp_of_threads.total(1, int(warp_of_threads.any_lane(lanes, is_served != 0)))\n"
        "            warp_of_threads.total(2, is_served)\n" + ROUND
    ),
}
READ_TOTALS = '''

@wp.kernel(enable_backward=False, module="MODULE")
def kernel_totals(totals: wp.array(dtype=wp.int32)):
    """What the totals are."""
    totals[wp.tid()] = warp_of_threads.total(wp.tid(), 0)
'''


@cache
def module(model: str) -> Any:
    """gpu/run.py, each thread a lane of the same warp."""
    loop = build("datapath", Variant(color=model == "cgb")).module("gpu.run")
    text = Path(str(loop.__file__)).read_text()
    for before, after in CHANGES.items():
        assert before in text, before
        text = text.replace(before, after)
    name = f"warp_of_threads_{model}"
    return sources.import_source(name, (text + READ_TOTALS).replace("MODULE", name))


@cache
def kernel(model: str) -> wp.Kernel:
    """The step of a warp. One for all: another of the same name would have Warp look at the whole module again."""
    generated = build("datapath", Variant(color=model == "cgb")).generated
    return module(model).make_kernel(generated.execute, generated.load, generated.store)


class WarpOfThreads(Emulator):
    """An emulator whose envs are the lanes of one warp."""

    def __init__(self, rom: Any, lanes: int, **options: Any) -> None:
        super().__init__(rom, lanes, kernel="datapath", num_threads=lanes, **options)

    def _kernel(self) -> wp.Kernel:
        return kernel(self.model)

    def totals(self) -> dict[str, int]:
        """TOTALS since the process began."""
        result = wp.zeros(len(TOTALS), dtype=wp.int32, device="cpu")
        wp.launch(module(self.model).kernel_totals, len(TOTALS), [result], device="cpu")
        return dict(zip(TOTALS, (int(value) for value in result.numpy()), strict=True))


def count(rom: str, lanes: int, steps: int, model: str) -> dict[str, float]:
    """Turns, calls and served lanes of a warp's step, the mean of `steps`."""
    warp = WarpOfThreads(find_rom(rom), lanes, model=model)
    alone = Emulator(find_rom(rom), lanes, model=model)
    rows = torch.from_numpy(random_buttons(seed_of(rom), WARMUP + steps, lanes))
    for row in rows[:WARMUP]:
        alone.step(row)
    warp.load(alone.save())
    before = warp.totals()
    for row in rows[WARMUP:]:
        warp.step(row)
    of_a_lane = {name: (value - before[name]) / steps / lanes for name, value in warp.totals().items()}
    return of_a_lane | {"served": lanes * of_a_lane["served"]}  # turns and calls are the whole warp's


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roms", nargs="*", default=["homeward", "2048", "libbet", "tobu", "snake"], metavar="ROM")
    parser.add_argument("--lanes", type=int, default=16)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--model", default="dmg", help="dmg, cgb or auto")
    args = parser.parse_args()
    print(f"{args.lanes} lanes, a step\n{'':12}{'turns':>10}{'calls':>10}{'lanes a call':>14}")
    for rom in args.roms:
        found = count(rom, args.lanes, args.steps, args.model)
        print(f"{rom:12}{found['turns']:10,.0f}{found['calls']:10,.0f}{found['served'] / found['calls']:14.1f}")


if __name__ == "__main__":
    main()
