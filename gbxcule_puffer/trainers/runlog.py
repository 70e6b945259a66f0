"""A run's records: TensorBoard, metrics.jsonl, a progress line, the manifest, and failure.json if the run fails."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from gbxcule_puffer.errors import StorageError
from gbxcule_puffer.files import open_append, read_bytes, write_bytes, write_json
from gbxcule_puffer.provenance import cpu_name, git_sha, versions
from gbxcule_puffer.tasks.task import PREFIX
from gbxcule_puffer.trainers.boards.tensorboard import TensorBoard
from gbxcule_puffer.trainers.boards.tracking import Tracking
from gbxcule_puffer.trainers.flags import RunFlags, flags_to_save
from gbxcule_puffer.trainers.folder import MANIFEST, METRICS, NOTE, RUN

REMEDY = "make room and continue with --resume"
LIMIT = 2**28  # bytes of metrics.jsonl
MOST_SHOWN = 4  # statistics of Tasks in the progress line
# The env's infos under CleanRL's names; all others are env/NAME.
TAGS = {
    "episode_return": "charts/episodic_return",
    "episode_length": "charts/episodic_length",
    "success": "charts/success_rate",
}
# Means over the episodes that ended; the others are sums or means over envs.
OF_EPISODES = ("episode_return", "episode_length", "success", PREFIX)  # as names, or as their beginnings
COUNTS = ("episodes", "locked")


def merge_infos(infos: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The infos of env groups or processes of the same size, merged as if from one env, under their tags.

    A percentile is the mean of the groups' percentiles; all others are exact.
    """
    merged: dict[str, float] = {}
    for name in {name: None for info in infos for name in info}:
        having = [info for info in infos if name in info]
        values = [info[name] for info in having]
        weights = [info["episodes"] for info in having] if name.startswith(OF_EPISODES) else [1.0] * len(having)
        total = sum(value * weight for value, weight in zip(values, weights, strict=True))
        merged[TAGS.get(name, f"env/{name}")] = total if name in COUNTS else total / sum(weights)
    return merged


def manifest_of(args: RunFlags, exp_name: str, run_dir: Path, processes: int, note: object) -> dict[str, Any]:
    """The description of a run: its trainer, its flags, its machine and versions; note: of its --task, if it has
    one."""
    device = args.device
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else cpu_name()
    facts = {"exp_name": exp_name, "git_sha": git_sha(), "device": device, "device_name": name}
    facts |= {"processes": processes, "versions": versions(), **({NOTE: note} if note else {})}
    return facts | {"config": flags_to_save(args, run_dir)}


class RunLog:
    """TensorBoard, metrics.jsonl and a progress line in `run_dir`, and its manifest.

    `resumed_at`: the checkpoint's step. Records after it are dropped, so that the files equal those of a run that was
    never interrupted. `tracking`: Weights & Biases, which also gets all records.
    """

    def __init__(
        self,
        run_dir: Path,
        manifest: Mapping[str, Any],
        resumed_at: int | None = None,
        tracking: Tracking | None = None,
    ) -> None:
        """Raises: StorageError if the folder is not writable."""
        self.run_dir, self.manifest, self.tracking = run_dir, manifest, tracking
        self.last: dict[str, float] = {}
        self.shown_at, self.begun = 0.0, resumed_at or 0
        path = run_dir / METRICS
        write_json(run_dir / MANIFEST, manifest, REMEDY)
        if resumed_at is not None and path.exists():
            _drop_records_after(path, resumed_at)
        self.lines = open_append(path, REMEDY)
        try:
            self.board = TensorBoard(run_dir, manifest.get("config", {}), resumed_at)
        except OSError as error:
            raise self._cannot_write(error) from None

    def record(self, step: int, metrics: Mapping[str, float]) -> None:
        """Writes one record; a loss that is NaN or infinite ends the run with failure.json and exit code 1.

        Raises: StorageError when the disk is full.
        """
        self.last |= metrics
        strict = {name: value if math.isfinite(value) else str(value) for name, value in metrics.items()}
        try:
            self.board.add(step, metrics)
            self.lines.write(json.dumps({"global_step": step, **strict}) + "\n")
            self.lines.flush()
        except OSError as error:
            raise self._cannot_write(error) from None
        if self.tracking:
            self.tracking.add(step, metrics)
        broken = [name for name, value in metrics.items() if name.startswith("losses/") and not math.isfinite(value)]
        if broken:
            self.fail(step, broken)

    def fail(self, step: int, broken: Sequence[str]) -> None:
        """Writes failure.json, names what is not finite in one line, and exits with code 1."""
        self.close(failed=True)
        trace_id, path = uuid.uuid4().hex, self.run_dir / "failure.json"
        last = {name: value if math.isfinite(value) else str(value) for name, value in self.last.items()}
        report = {"trace_id": trace_id, "global_step": step, "not_finite": list(broken), "metrics": last}
        write_json(path, {**self.manifest, **report}, REMEDY)
        names = ", ".join(broken[:4]) + (f" and {len(broken) - 4} more" if len(broken) > 4 else "")
        print(f"{names} not finite at step {step}: see {path} ({trace_id})", file=sys.stderr)
        sys.exit(1)

    def check_weights(self, step: int, networks: Sequence[torch.nn.Module]) -> None:
        """Ends the run as `record` does when a weight is not finite: call it before a checkpoint is overwritten."""
        states = [network.state_dict() for network in networks]
        tensors = {name: tensor for state in states for name, tensor in state.items() if tensor.is_floating_point()}
        finite = torch.stack([tensor.isfinite().all() for tensor in tensors.values()]).tolist()
        if not all(finite):
            self.fail(step, [f"weights {name}" for name, good in zip(tensors, finite, strict=True) if not good])

    def picture(self, kind: str, step: int, suffix: str, encoded: bytes) -> None:
        """A PNG or GIF file's bytes: into the run's media folder, named by the step, and onto the boards.

        Raises: StorageError when the disk is full.
        """
        path = self.run_dir / f"media/{kind}_{step:012d}.{suffix}"
        write_bytes(path, encoded, REMEDY)
        try:
            self.board.add_image(f"media/{kind}", step, encoded)
        except OSError as error:
            raise self._cannot_write(error) from None
        if self.tracking:
            self.tracking.add_image(f"media/{kind}", step, path)

    def progress(self, step: int, total: int, seconds: float, last: bool = False, may_stop: bool = False) -> None:
        """One line on stderr: redrawn in place in a terminal, elsewhere a new line every 10 seconds. may_stop: the run
        ends before `total` if it succeeds."""
        live, now = sys.stderr.isatty(), time.monotonic()
        if not last and now - self.shown_at < (0.2 if live else 10):
            return
        self.shown_at = now
        parts = {"steps": f"{step:,} of {total:,} steps", "elapsed": f"{_minutes(seconds)} elapsed"}
        left = self.seconds_left(step, total, seconds)
        if math.isfinite(left) and not last:
            parts["left"] = f"{'at most ' if may_stop else ''}{_minutes(left)} left"
        for label, tag, form in (
            ("SPS", "charts/SPS", ",.0f"),
            ("return", "charts/episodic_return", ".2f"),
            ("success", "charts/success_rate", ".2f"),
            ("evaluated", "eval/success_rate", ".2f"),
        ):
            if tag in self.last:
                parts[label] = f"{label} {self.last[tag]:{form}}"
        found = [(tag, tag.split("/", 2)[2]) for tag in self.last if tag.removeprefix("env/").startswith(PREFIX)]
        statistics = {tag: f"{name} {self.last[tag]:.2f}" for tag, name in found[:MOST_SHOWN]}
        parts |= statistics
        text, columns = ", ".join(parts.values()), _columns() - 1
        if live:  # a wrapped line could not be redrawn
            bar = f"[{'#' * (20 * step // total):20.20}] "
            text = bar + text if len(bar + text) <= columns else text
            for name in (*reversed(statistics), "SPS", "return", "elapsed"):
                if len(text) > columns and parts.pop(name, None):
                    text = ", ".join(parts.values())
            text = text[:columns]
        end = "" if live and not last else "\n"
        print(f"\r\x1b[K{text}" if live else text, end=end, file=sys.stderr, flush=True)

    def seconds_left(self, step: int, total: int, seconds: float) -> float:
        """The time from `step` to `total`, at the speed of the `seconds` so far; infinite while there is none."""
        done = step - self.begun
        return seconds * (total - step) / done if done > 0 else math.inf

    def close(self, failed: bool = False) -> None:
        """Closes the files. Raises: StorageError if the last of them does not fit on the disk."""
        tracking, self.tracking = self.tracking, None
        if tracking:
            tracking.close(failed)
        try:
            self.lines.close()
            self.board.close()
        except OSError as error:
            raise self._cannot_write(error) from None

    def _cannot_write(self, error: OSError) -> StorageError:
        reason = error.strerror or error
        return StorageError(f"run folder {self.run_dir} cannot be written ({reason}): {REMEDY}")


def _columns() -> int:
    """The width of the terminal at stderr; infinite if unknown."""
    with contextlib.suppress(OSError, ValueError):
        return os.get_terminal_size(sys.stderr.fileno()).columns or sys.maxsize
    return sys.maxsize


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _drop_records_after(path: Path, step: int) -> None:
    """Keeps the records of `path` up to `step`; drops damaged lines, too, such as the last line of a killed run."""
    lines, kept = read_bytes(path, RUN, LIMIT).splitlines(keepends=True), []
    for line in lines:
        try:
            if json.loads(line)["global_step"] <= step and line.endswith(b"\n"):
                kept.append(line)
        except (ValueError, TypeError, KeyError, RecursionError):
            if line is not lines[-1]:
                print(f"{path}: a line is damaged and left out: {line[:40]!r}", file=sys.stderr)
    write_bytes(path, b"".join(kept), REMEDY)
