"""GBxCuLEEnv beside host.cu: the same actions, and digests of the same arrays."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from gbxcule_puffer.env import GBxCuLEEnv

HERE = Path(__file__).parent
FACTOR = 0x9E3779B97F4A7C15 - 2**64
MASK = 0xFFFFFFFF
NAMES = ("observations", "rewards", "terminals")


@dataclass(frozen=True)
class Steps:
    """Digests of a reset and of the steps behind it, (steps + 1, 3) int64, and the steps a second of all envs."""

    digests: np.ndarray
    sps: float


def compile_host(folder: Path, host: Path, arch: str = "native") -> None:
    """Compiles host.cu with the env of a folder of `puffer native`."""
    header = f'-DENV_HEADER="{folder.resolve()}/gbxcule.cu"'
    options = ["-O2", f"-arch={arch}", "-cudart", "static", "-Werror", "all-warnings", "-I", str(HERE), header]
    subprocess.run(["nvcc", *options, "-o", str(host), str(HERE / "host.cu"), "-ldl"], check=True)


def host_steps(host: Path, num_envs: int, steps: int, seed: int, timed: bool = False) -> tuple[Steps, str]:
    """Runs host.cu's program with the env of its folder; returns what it did, and what it printed.

    timed: digests of the reset and of the last step alone.
    """
    out, environment = host.with_name("digests"), {**os.environ, "GBX_FOLDER": str(host.parent)}
    arguments = [host, str(num_envs), str(steps), "600", str(seed), out, *(["timed"] if timed else [])]
    text = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    numbers, words = np.fromfile(out, np.int64), text.split()
    return Steps(numbers[1:].reshape(-1, 3), float(words[words.index("sps") + 1])), text.strip()


def env_steps(env: GBxCuLEEnv, steps: int, seed: int, timed: bool = False, warmup: int = 10) -> Steps:
    """The same steps of an env with io="torch". timed: digests of the reset and of the last step alone."""
    device, n = env.device, env.num_envs
    observations = env.reset(seed)[0]
    parts = [observations.reshape(n, -1).view(torch.int32).flatten(), env.rewards, env.terminals]
    weights = [(torch.arange(1, part.numel() + 1, device=device) * FACTOR) | 1 for part in parts]
    digests = torch.zeros((steps + 1, 3), dtype=torch.int64, device=device)

    def note(step: int) -> None:
        words = env.observations.reshape(n, -1).view(torch.int32).flatten()
        ended = (env.terminals | env.truncations).float()
        for column, part in enumerate((words, env.rewards.view(torch.int32), ended.view(torch.int32))):
            digests[step, column] = torch.sum(part * weights[column])

    note(0)
    start = 0.0
    for step in range(steps):
        if step == warmup:
            torch.cuda.synchronize(device)
            start = time.perf_counter()
        env.step(actions_of(env, step))
        if not timed:
            note(step + 1)
    torch.cuda.synchronize(device)
    sps = n * (steps - warmup) / (time.perf_counter() - start)
    if timed:
        note(steps)
    return Steps(digests.cpu().numpy(), sps)


def actions_of(env: GBxCuLEEnv, step: int) -> torch.Tensor:
    """The actions of a step, a hash of env and step."""
    sizes = env.codec.factors or (env.codec.num_actions,)
    index = torch.arange(env.num_envs * len(sizes), device=env.device)
    x = (index * 0x9E3779B1 + step * 0x85EBCA77) & MASK
    x = ((x ^ (x >> 15)) * 0x2C1B3C6D) & MASK
    x = ((x ^ (x >> 12)) * 0x297A2D39) & MASK
    x = (x ^ (x >> 15)).view(env.num_envs, -1) % torch.tensor(sizes, device=env.device)
    return x if env.codec.factors else x[:, 0]


def first_difference(native: Steps, python: Steps) -> str:
    """The first step and array that differ, in words; empty if none does."""
    count = min(len(native.digests), len(python.digests))
    differs = native.digests[:count] != python.digests[:count]
    if not differs.any():
        return ""
    step, column = np.argwhere(differs)[0]
    return f"{NAMES[column]} differ after step {step}"
