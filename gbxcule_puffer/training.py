"""What trainers share that is not the algorithm: flags, the run's folder, metrics, checkpoints, evaluation."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import torch
import tyro
from torch.utils.tensorboard.writer import SummaryWriter

from gbxcule_puffer import __version__
from gbxcule_puffer.errors import StateError

Flags = TypeVar("Flags")
Policy = Callable[[torch.Tensor], torch.Tensor]
PACKAGES = ("torch", "warp-lang", "pufferlib-core", "pyboy", "numpy")
# The env's infos under CleanRL's names; every other one is env/NAME.
TAGS = {
    "episode_return": "charts/episodic_return",
    "episode_length": "charts/episodic_length",
    "success": "charts/success_rate",
}


def parse_flags(flags: type[Flags], prog: str, description: str | None, argv: Sequence[str] | None = None) -> Flags:
    """The command line as a dataclass; a mistake is one line on stderr and exit code 2."""
    message = io.StringIO()
    try:
        with contextlib.redirect_stderr(message):
            return tyro.cli(flags, prog=prog, description=description, args=argv)
    except SystemExit as end:
        if end.code:
            # tyro draws a box around its message, with a title in its first line and rules between its parts.
            lines = [line.strip("\u2502 ") for line in message.getvalue().splitlines()[1:]]
            text = " ".join(line for line in lines if line.strip("\u2500\u2570\u256f-"))
            for appendix in (" Argument helptext:", " For full helptext"):
                text = text.split(appendix)[0]
            print(f"{prog}: {text} (see --help)", file=sys.stderr)
        raise


class RunLog:
    """TensorBoard, metrics.jsonl and a progress line in `run_dir`, and its manifest."""

    def __init__(self, run_dir: Path, args: Any) -> None:
        self.run_dir, self.config = run_dir, asdict(args)
        facts = {"git_sha": git_sha(), "device": args.device, "device_name": device_name(args.device)}
        write_json(run_dir / "manifest.json", {**facts, "versions": versions(), "config": self.config})
        self.writer = SummaryWriter(str(run_dir))
        self.lines = (run_dir / "metrics.jsonl").open("a")
        self.last: dict[str, float] = {}
        self.shown_at = 0.0

    def record(self, step: int, metrics: Mapping[str, float]) -> None:
        """Writes one record; a loss that is NaN or infinite ends the run with failure.json and exit code 1."""
        self.last |= metrics
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)
        strict = {name: value if math.isfinite(value) else str(value) for name, value in metrics.items()}
        self.lines.write(json.dumps({"global_step": step, **strict}) + "\n")
        self.lines.flush()
        broken = [name for name, value in metrics.items() if name.startswith("losses/") and not math.isfinite(value)]
        if broken:
            self.close()
            trace_id, path = uuid.uuid4().hex, self.run_dir / "failure.json"
            report = {"trace_id": trace_id, "global_step": step, "not_finite": broken, "metrics": strict}
            write_json(path, {**report, "config": self.config, "versions": versions()})
            print(f"{', '.join(broken)} not finite at step {step}: see {path} ({trace_id})", file=sys.stderr)
            sys.exit(1)

    def progress(self, step: int, total: int, seconds: float, last: bool = False) -> None:
        """One line on stderr: redrawn in place in a terminal, a new one every 10 seconds elsewhere."""
        live, now = sys.stderr.isatty(), time.monotonic()
        if not last and now - self.shown_at < (0.2 if live else 10):
            return
        self.shown_at = now
        bar = f"[{'#' * (20 * step // total):20.20}] " if live else ""
        text = f"{bar}{step:,} of {total:,} steps, {int(seconds) // 60}:{int(seconds) % 60:02d}"
        for label, tag, form in (
            ("SPS", "charts/SPS", ",.0f"),
            ("return", "charts/episodic_return", ".2f"),
            ("success", "charts/success_rate", ".2f"),
            ("evaluated", "eval/success_rate", ".2f"),
        ):
            if tag in self.last:
                text += f", {label} {self.last[tag]:{form}}"
        end = "" if live and not last else "\n"
        print(f"\r\x1b[K{text}" if live else text, end=end, file=sys.stderr, flush=True)

    def close(self) -> None:
        self.writer.close()
        self.lines.close()


class Stopwatch:
    """Seconds between marks; on a GPU a mark waits for the work, so `on` only where a record is due."""

    def __init__(self, device: torch.device, on: bool) -> None:
        self.cuda, self.on = device.type == "cuda", on
        self.seconds: dict[str, float] = {}
        self.last = self._now() if on else 0.0

    def mark(self, name: str) -> None:
        """Everything since the mark before was `name`."""
        if self.on:
            now = self._now()
            self.seconds[name] = now - self.last
            self.last = now

    def _now(self) -> float:
        if self.cuda:
            torch.cuda.synchronize()
        return time.perf_counter()


@torch.no_grad()
def evaluate(policy: Policy, env: Any, episodes: int, seed: int) -> dict[str, float]:
    """Plays `episodes` in an env with num_envs=1: success rate, mean return, median steps of the successful ones."""
    obs, _ = env.reset(seed=seed)
    lengths, returns, length, total = [], [], 0, 0.0
    while len(returns) < episodes:
        obs, rewards, terminals, truncations, _ = env.step(policy(obs))
        length, total = length + 1, total + float(rewards[0])
        if terminals[0] or truncations[0]:
            lengths += [length] if terminals[0] else []
            returns.append(total)
            length, total = 0, 0.0
    result = {"success_rate": len(lengths) / episodes, "return": statistics.fmean(returns)}
    return result | ({"median_steps": float(statistics.median(lengths))} if lengths else {})


@torch.no_grad()
def random_success_rate(env: Any, episodes: int, seed: int) -> float:
    """How often uniformly random actions succeed: each env's first episode, in as many rounds as `episodes` needs."""
    generator = torch.Generator(env.device).manual_seed(seed)
    results: list[bool] = []
    while len(results) < episodes:
        env.reset(seed=seed + len(results))
        first = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
        won = torch.zeros_like(first)
        for _ in range(env.max_steps):
            shape = {"size": (env.num_envs,), "generator": generator, "device": env.device}
            _, _, terminals, truncations, _ = env.step(torch.randint(env.single_action_space.n, **shape))
            won |= first & terminals
            first &= ~(terminals | truncations)
        results += won.tolist()
    return sum(results[:episodes]) / episodes


def save_checkpoint(path: Path, state: Mapping[str, Any], args: Any) -> None:
    """Writes `state`, the flags and the versions; a reader sees the old checkpoint or the new one, never a part."""
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        torch.save({**state, "args": asdict(args), "versions": versions()}, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def load_checkpoint(path: str, args: Any, free: Collection[str]) -> dict[str, Any]:
    """Reads a checkpoint made with the same flags as `args`, except for those in `free`.

    Raises: StateError for a damaged file, or naming the flag that differs.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        saved = state["args"]
    except Exception as error:  # torch.load has no common type for what a damaged file raises
        raise StateError(f"checkpoint {path} cannot be read ({str(error).splitlines()[0]}): give another") from None
    for name, value in asdict(args).items():
        if name not in free and saved.get(name) != value:
            flag = "--" + name.replace("_", "-")
            raise StateError(f"checkpoint {path} was made with {flag} {saved.get(name)}, not {value}: give the same")
    return state


def rng_state(device: torch.device) -> dict[str, Any]:
    """The state of torch's generators, for a checkpoint."""
    cuda = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def set_rng_state(state: Mapping[str, Any], device: torch.device) -> None:
    """Puts torch's generators where `rng_state` found them."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and state["cuda"] is not None:
        torch.cuda.set_rng_state(state["cuda"], device)


def write_json(path: Path, content: Any) -> None:
    """Indented JSON."""
    path.write_text(json.dumps(content, indent=1) + "\n")


def versions() -> dict[str, str]:
    """Python and the packages that decide a result."""
    own = {"python": platform.python_version(), "gbxcule-puffer": __version__}
    return own | {name: metadata.version(name) for name in PACKAGES}


def git_sha() -> str | None:
    """The commit of the source tree, None outside of a repository."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        return subprocess.check_output(command, cwd=Path(__file__).parent, text=True, stderr=subprocess.DEVNULL).strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def device_name(device: str) -> str:
    """The GPU's name, or the kind and number of CPU cores."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()}, {os.cpu_count()} cores"
