"""The record of one speed measurement, one layout for every backend, and the table that shows several."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.provenance import git_sha, versions
from benchmarks.workload import sha256

FRAMES_PER_STEP = 24
RELEASE_AFTER_FRAMES = 8
DMG_FRAMES_PER_SECOND = 4_194_304 / 70_224

COLUMNS = ("rom", "backend", "num_envs", "sps", "sps_min", "sps_max", "x_realtime", "ms_per_step", "distinct_pictures")


def speed_record(
    *,
    backend: str,
    vec_backend: str,
    device_name: str,
    rom_path: Path,
    num_envs: int,
    warmup_steps: int,
    measured_steps: int,
    seconds: Sequence[float],
    action_seed: int,
    extra: dict[str, Any],
) -> dict[str, Any]:
    """One record of contracts.md, "Benchmark artifact"; `seconds` has one entry for each repeat of `measured_steps`."""
    rates = [num_envs * measured_steps / duration for duration in seconds]
    sps = statistics.median(rates)
    return {
        "backend": backend,
        "vec_backend": vec_backend,
        "device_name": device_name,
        "num_envs": num_envs,
        "stage": "obs_only",
        "rom": rom_path.stem,
        "rom_sha256": sha256(rom_path.read_bytes()),
        "start_state": "post-boot",
        "action_codec": "pokemonred_puffer_v1",
        "action_codec_version": 1,
        "action_seed": action_seed,
        "frames_per_step": FRAMES_PER_STEP,
        "release_after_frames": RELEASE_AFTER_FRAMES,
        "obs": "shades",
        "stack_k": 1,
        "warmup_steps": warmup_steps,
        "measured_steps": measured_steps,
        "repeats": len(rates),
        "sps": round(sps, 1),
        "sps_min": round(min(rates), 1),
        "sps_max": round(max(rates), 1),
        "frames_per_second": round(sps * FRAMES_PER_STEP, 1),
        "x_realtime": round(sps * FRAMES_PER_STEP / DMG_FRAMES_PER_SECOND, 2),
        "ms_per_step": round(1000 * num_envs / sps, 4),
        **extra,
        "versions": versions(),
        "git_sha": git_sha(),
    }


def count_distinct(pictures: np.ndarray) -> int:
    """How many different pictures a batch (num_envs, 72, 80) holds: 1 means that nobody diverged."""
    return len({picture.tobytes() for picture in np.ascontiguousarray(pictures)})


def table(records: Sequence[dict[str, Any]]) -> str:
    """The records as aligned text, one line each."""
    rows = [COLUMNS, *([_shown(record[column]) for column in COLUMNS] for record in records)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _shown(value: Any) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else str(value)
