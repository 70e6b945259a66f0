"""The record of one measurement, one layout for every contender (docs/bench.md lists the keys)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from gbxcule_puffer.apps.bench.contenders import Contender
from gbxcule_puffer.apps.bench.workload import Workload
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.provenance import git_sha, versions
from gbxcule_puffer.tasks.actions import get_codec

DMG_FRAMES_PER_SECOND = 4_194_304 / 70_224
RESAMPLES = 2_000
Record = dict[str, Any]


def make_record(
    contender: Contender, workload: Workload, seconds: Sequence[float], start_seconds: float, allocated: int
) -> Record:
    """`seconds` has one entry per repeat of workload.steps; the rate is their median."""
    rates = rates_of(contender, workload, seconds)
    sps = statistics.median(rates)
    frames_per_second = sps * workload.frames_per_step
    codec = get_codec(workload.action_codec)
    cartridge = load_cartridge(workload.rom, model=workload.model)
    return {
        "backend": contender.name,
        "vec_backend": contender.vec_backend,
        "num_envs": contender.num_envs,
        "stage": workload.stage,
        "rom": workload.rom.stem,
        "rom_sha256": cartridge.sha256,
        "model": cartridge.model,
        "sound": workload.sound,
        "start_state": "post-boot" if workload.start_state is None else workload.start_state.name,
        "actions": workload.actions,
        "action_seed": workload.seed,
        "action_codec": codec.name,
        "action_codec_version": codec.version,
        "frames_per_step": workload.frames_per_step,
        "release_after_frames": workload.release_after_frames,
        "obs": workload.obs,
        "stack_k": workload.stack_k,
        "info_mode": workload.env_options()["info_mode"],
        "reset_every": workload.reset_every,
        "warmup_steps": workload.warmup,
        "measured_steps": workload.steps,
        "repeats": len(rates),
        "sps": round(sps, 2),
        "sps_min": round(min(rates), 2),
        "sps_max": round(max(rates), 2),
        "frames_per_second": round(frames_per_second, 1),
        "x_realtime": round(frames_per_second / DMG_FRAMES_PER_SECOND, 2),
        "ms_per_step": round(1000 * contender.num_envs / sps, 4),
        "bytes_allocated_after_warmup": allocated,
        "start_seconds": round(start_seconds, 2),
        **contender.facts(),
        "versions": versions(),
        "git_sha": git_sha(),
    }


def rates_of(contender: Contender, workload: Workload, seconds: Sequence[float]) -> list[float]:
    """Env steps per second over all envs, for each repeat."""
    return [contender.num_envs * workload.steps / duration for duration in seconds]


def add_ratio(first: Record, second: Record, seconds: Sequence[float], other_seconds: Sequence[float]) -> None:
    """Adds to `first` the ratio of its speed to that of `second`, measured in turns, with `seconds` per repeat of both,
    and the 95 % interval of the ratio."""
    first["versus"] = second["backend"]
    first["versus_num_envs"] = second["num_envs"]
    first["ratio"] = round(first["sps"] / second["sps"], 2)
    scale = first["num_envs"] / second["num_envs"]
    low, high = interval(1 / np.array(seconds) * scale, 1 / np.array(other_seconds))
    first["ratio_low"], first["ratio_high"] = round(low, 3), round(high, 3)


def interval(rates: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of the ratio of two medians, by the bootstrap over pairs of repeats (repeats,)."""
    picks = np.random.Generator(np.random.PCG64(0)).integers(0, len(rates), (RESAMPLES, len(rates)))
    ratios = np.median(rates[picks], axis=1) / np.median(others[picks], axis=1)
    low, high = np.quantile(ratios, (0.025, 0.975))
    return float(low), float(high)
