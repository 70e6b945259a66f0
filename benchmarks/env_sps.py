"""Measure the emulator alone: environment steps per second with random v1 actions and the 72x80 observation.

    python benchmarks/env_sps.py --rom homeward --num-envs 64 256
    python benchmarks/env_sps.py --device cuda:0 --rom 2048 libbet --num-envs 1024 16384 --out results.json

One JSON record a ROM and number of environments; the rate is the median of the repeats, which go on from each other.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import warp as wp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.provenance import cpu_name, write_json
from benchmarks.record import FRAMES_PER_STEP, RELEASE_AFTER_FRAMES, count_distinct, speed_record, table
from benchmarks.workload import find_rom, random_buttons, seed_of
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.state import INDEX


@dataclass(frozen=True)
class Plan:
    """How long each measurement is."""

    device: str
    steps: int
    warmup: int
    repeat: int


def synchronize(device: str) -> None:
    """Wait until the device has done everything that was asked of it."""
    if device.startswith("cuda"):
        wp.synchronize_device(device)
        torch.cuda.synchronize(device)


def bytes_in_use(device: str) -> int:
    """Device memory held by torch and Warp on a GPU; the largest resident size so far on the CPU."""
    if device.startswith("cuda"):
        return torch.cuda.memory_allocated(device) + wp.get_mempool_used_mem_current(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def peak_bytes(device: str) -> int:
    """The most memory of that kind held at a time."""
    if device.startswith("cuda"):
        return torch.cuda.max_memory_allocated(device) + wp.get_mempool_used_mem_high(device)
    return bytes_in_use(device)


def measure(rom_path: Path, num_envs: int, plan: Plan) -> dict[str, Any]:
    """One record: start, warm up until the environments have diverged, then time `repeat` times `steps` steps."""
    started = time.perf_counter()
    emulator = Emulator(
        rom_path,
        num_envs,
        plan.device,
        screen="half",
        frames_per_step=FRAMES_PER_STEP,
        release_after_frames=RELEASE_AFTER_FRAMES,
    )
    synchronize(plan.device)
    start_seconds = time.perf_counter() - started

    seed = seed_of(f"env-sps/{rom_path.stem}")
    total = plan.warmup + plan.steps * plan.repeat
    buttons = torch.from_numpy(random_buttons(seed, total, num_envs)).to(plan.device)
    for step in range(plan.warmup):
        emulator.step(buttons[step])
    synchronize(plan.device)

    held = bytes_in_use(plan.device)
    seconds = []
    for first in range(plan.warmup, total, plan.steps):
        begin = time.perf_counter()
        for step in range(first, first + plan.steps):
            emulator.step(buttons[step])
        synchronize(plan.device)
        seconds.append(time.perf_counter() - begin)

    allocated = bytes_in_use(plan.device) - held

    fields = emulator.machine.state.numpy()
    instructions = fields[INDEX["instructions"]]
    extra = {
        "unique_pcs": len(np.unique(fields[INDEX["pc"]])),
        "distinct_pictures": count_distinct(emulator.screen.cpu().numpy()),
        "distinct_states": len(np.unique(np.asarray(emulator.state_hash()))),
        "locked_envs": int(emulator.locked.sum()),
        "instructions_a_step_mean": round(float(instructions.mean()), 1),
        "instructions_a_step_max": int(instructions.max()),
        "bytes_allocated_after_warmup": allocated,
        "peak_device_bytes": peak_bytes(plan.device),
        "start_seconds": round(start_seconds, 2),
    }
    return speed_record(
        backend="gbxcule",
        vec_backend="native",
        device_name=torch.cuda.get_device_name(plan.device) if plan.device.startswith("cuda") else cpu_name(),
        rom_path=rom_path,
        num_envs=num_envs,
        warmup_steps=plan.warmup,
        measured_steps=plan.steps,
        seconds=seconds,
        action_seed=seed,
        extra=extra,
    )


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--rom", nargs="+", default=["homeward"], help="ROM files or names of games")
    parser.add_argument("--num-envs", nargs="+", type=int, default=[16, 64], help="environments, one record each")
    parser.add_argument("--steps", type=int, default=50, help="steps of one repeat")
    parser.add_argument("--warmup", type=int, default=50, help="steps before the first repeat")
    parser.add_argument("--repeat", type=int, default=3, help="repeats, of which the median counts")
    parser.add_argument("--out", type=Path, help="JSON file to write the records to, after each measurement")
    args = parser.parse_args()
    if min(*args.num_envs, args.steps, args.repeat) < 1 or args.warmup < 0:
        parser.error("--num-envs, --steps and --repeat take numbers from 1, --warmup from 0")
    if args.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error(f"--device {args.device}: no NVIDIA GPU here; give --device cpu")
    try:
        args.rom = [find_rom(name) for name in args.rom]
    except FileNotFoundError as error:
        parser.error(str(error))
    return args


def main() -> None:
    args = parse_args()
    plan = Plan(args.device, args.steps, args.warmup, args.repeat)
    records = []
    for rom in args.rom:
        for num_envs in args.num_envs:
            records.append(measure(rom, num_envs, plan))
            print(table(records).splitlines()[0 if len(records) == 1 else -1], flush=True)
            if args.out:
                write_json(args.out, records)
    print("\n" + table(records))


if __name__ == "__main__":
    main()
