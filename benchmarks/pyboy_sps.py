"""Measure PyBoy in several processes: the same schedule, actions, start and 72x80 observation as env_sps.py.

    python benchmarks/pyboy_sps.py --rom homeward 2048 --out results.json

The processes run free, each over its own environments, and meet only at the start and the end of a repeat: no
synchronisation a step and no learner, so this is PyBoy at its best (`mp_async`).
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import resource
import sys
import time
from multiprocessing.shared_memory import SharedMemory
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from baselines.pyboy_machine import PyBoyMachine
from benchmarks.provenance import cpu_name, usable_cores, write_json
from benchmarks.record import FRAMES_PER_STEP, RELEASE_AFTER_FRAMES, count_distinct, speed_record, table
from benchmarks.workload import find_rom, random_buttons, seed_of

SHAPE = (72, 80)
STALLED_SECONDS = 600  # a worker that died must not leave the others waiting


def work(
    rom: bytes, buttons: np.ndarray, first_env: int, shared_name: str, warmup: int, steps: int, gate: Barrier
) -> None:
    """A worker process: its environments' columns of `buttons`, repeat by repeat."""
    memory = SharedMemory(shared_name)
    count = buttons.shape[1]
    offset = first_env * SHAPE[0] * SHAPE[1]
    observations = np.ndarray((count, *SHAPE), np.uint8, memory.buf, offset)
    pyboys = [PyBoyMachine(rom, FRAMES_PER_STEP, RELEASE_AFTER_FRAMES) for _ in range(count)]

    def step_all(row: np.ndarray) -> None:
        for env, pyboy in enumerate(pyboys):
            pyboy.step(int(row[env]))
            pyboy.picture(every=2, out=observations[env])

    for row in buttons[:warmup]:
        step_all(row)
    for first in range(warmup, len(buttons), steps):
        gate.wait()
        for row in buttons[first : first + steps]:
            step_all(row)
        gate.wait()
    memory.close()


def measure(rom_path: Path, processes: int, envs_per_process: int, args: argparse.Namespace) -> dict[str, Any]:
    """One record: every process warms up by itself, then each repeat is timed from gate to gate."""
    rom = rom_path.read_bytes()
    num_envs = processes * envs_per_process
    seed = seed_of(f"env-sps/{rom_path.stem}")
    buttons = random_buttons(seed, args.warmup + args.steps * args.repeat, num_envs)
    context = mp.get_context("spawn")
    gate = context.Barrier(processes + 1, timeout=STALLED_SECONDS)
    memory = SharedMemory(create=True, size=num_envs * SHAPE[0] * SHAPE[1])
    workers = []
    try:
        for index in range(processes):
            first_env = index * envs_per_process
            own = np.ascontiguousarray(buttons[:, first_env : first_env + envs_per_process])
            workers.append(
                context.Process(target=work, args=(rom, own, first_env, memory.name, args.warmup, args.steps, gate))
            )
            workers[-1].start()
        seconds = []
        for _ in range(args.repeat):
            gate.wait()
            begin = time.perf_counter()
            gate.wait()
            seconds.append(time.perf_counter() - begin)
        for worker in workers:
            worker.join()
        pictures = np.ndarray((num_envs, *SHAPE), np.uint8, memory.buf).copy()
    finally:
        for worker in workers:
            worker.kill()
        memory.close()
        memory.unlink()
    return speed_record(
        backend="pyboy",
        vec_backend="mp_async",
        device_name=cpu_name(),
        rom_path=rom_path,
        num_envs=num_envs,
        warmup_steps=args.warmup,
        measured_steps=args.steps,
        seconds=seconds,
        action_seed=seed,
        extra={
            "processes": processes,
            "distinct_pictures": count_distinct(pictures),
            "peak_process_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
        },
    )


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rom", nargs="+", default=["homeward"], help="ROM files or names of games")
    parser.add_argument("--processes", type=int, default=usable_cores(), help="worker processes (default: all cores)")
    parser.add_argument("--envs-per-process", type=int, default=4, help="PyBoys that each process steps in turn")
    parser.add_argument("--steps", type=int, default=50, help="steps of one repeat")
    parser.add_argument("--warmup", type=int, default=50, help="steps before the first repeat")
    parser.add_argument("--repeat", type=int, default=3, help="repeats, of which the median counts")
    parser.add_argument("--out", type=Path, help="JSON file to write the records to, after each measurement")
    args = parser.parse_args()
    if min(args.processes, args.envs_per_process, args.steps, args.repeat) < 1 or args.warmup < 0:
        parser.error("--processes, --envs-per-process, --steps and --repeat take numbers from 1, --warmup from 0")
    try:
        args.rom = [find_rom(name) for name in args.rom]
    except FileNotFoundError as error:
        parser.error(str(error))
    return args


def main() -> None:
    args = parse_args()
    records = []
    for rom in args.rom:
        records.append(measure(rom, args.processes, args.envs_per_process, args))
        if args.out:
            write_json(args.out, records)
    print(table(records))


if __name__ == "__main__":
    main()
