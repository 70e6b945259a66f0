"""`puffer bench --autotune`: the fastest launch shape for each number of envs on this GPU, saved for all later runs."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterator, Sequence

import torch

from gbxcule_puffer.apps.bench.workload import Workload
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import (
    BLOCK_DIMS,
    LANES,
    MIXED,
    TWINS,
    LaunchShape,
    Table,
    save_table,
)
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.provenance import device_name

STEPS = 6
ROUNDS = 3
WARMUP = 60  # steps until the games have diverged


def autotune(workload: Workload, sizes: Sequence[int], device: str) -> None:
    """Measure all shapes for each number of envs, in turns, print a table and save the best ones.

    Raises: ConfigError on a CPU, whose kernel has no shapes, and the errors of Emulator.
    """
    if not device.startswith("cuda"):
        raise ConfigError("--autotune chooses how a GPU's kernel is launched: give --device cuda")
    shapes = list(all_shapes())
    table: dict[int, LaunchShape] = {}
    print(f"{'envs':>9}  lanes  block   grouped    steps/s")
    for num_envs in sorted(sizes):
        rates = measure(workload, num_envs, device, shapes)
        table[num_envs] = max(rates, key=lambda shape: rates[shape])
        for shape, rate in rates.items():
            mark = "  best" if shape == table[num_envs] else ""
            grouped = shape.twins if shape.grouped else "no"
            line = f"{num_envs:>9,}  {shape.lanes:>5}  {shape.block_dim:>5}  {grouped:>8}  {rate:>9,.0f}{mark}"
            print(line, flush=True)
    print(f"kept in {keep(table, device)}")


def all_shapes() -> Iterator[LaunchShape]:
    """All shapes whose warps have equal numbers of lanes."""
    for lanes, block_dim in itertools.product(LANES, BLOCK_DIMS):
        yield LaunchShape(lanes, block_dim)
        for twins in TWINS if lanes > 1 else (MIXED,):  # with one lane, envs share no warp
            yield LaunchShape(lanes, block_dim, True, twins=twins)


def keep(table: Table, device: str) -> str:
    """Save the table under the device's name; returns the file."""
    return str(save_table(device_name(device), table))


def measure(workload: Workload, num_envs: int, device: str, shapes: Sequence[LaunchShape]) -> dict[LaunchShape, float]:
    """Steps per second of each shape, the median of ROUNDS turns; random buttons."""
    emulator = Emulator(workload.rom, num_envs, device, model=workload.model, sound=workload.sound, autotune=False)
    assert emulator.launches is not None
    generator = torch.Generator(device).manual_seed(workload.seed)
    one_button = torch.tensor([0, *(1 << bit for bit in range(8))], dtype=torch.uint8, device=device)

    def run(steps: int) -> None:
        for _ in range(steps):
            choice = torch.randint(len(one_button), (num_envs,), device=device, generator=generator)
            emulator.step(one_button[choice])
        torch.cuda.synchronize(device)

    run(WARMUP)
    rates: dict[LaunchShape, list[float]] = {shape: [] for shape in shapes}
    for _ in range(ROUNDS):
        for shape in shapes:
            emulator.launches.shape = shape
            run(1)
            begin = time.perf_counter()
            run(STEPS)
            rates[shape].append(STEPS * num_envs / (time.perf_counter() - begin))
    return {shape: statistics.median(found) for shape, found in rates.items()}
