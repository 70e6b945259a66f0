"""What one whole step of the environment costs: milliseconds on the device, in Python and from a CUDA graph, kernels
and copies of a step, and a digest of all that the steps returned, to compare two commits.

    python -m benchmarks.training.step_cost --device cuda:0 --num-envs 256 2048 16384      (one JSON record a line)
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from cleanrl_style.a2c_streaming import Args
from gbxcule_puffer.provenance import git_sha
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.envs import make_env, task_files

WARMUP, STEPS, REPEATS = 150, 50, 3


def digest(env: Any, actions: torch.Tensor) -> str:
    """Of the rewards and ends of each step of `actions`, and the pictures of every tenth."""
    found = hashlib.sha256()
    for number, row in enumerate(actions):
        obs, rewards, terminals, truncations, _ = env.step(row)
        pictures = (obs, env.final_observation) if number % 10 == 0 else ()
        for part in (rewards, terminals, truncations, *pictures):
            found.update(part.cpu().numpy().tobytes())
    return found.hexdigest()[:16]


def milliseconds(step: Callable[[torch.Tensor], Any], actions: torch.Tensor, wait: Callable[[], Any]) -> list[float]:
    """(until all steps have been done, until Python has asked for them) a step."""
    wait()
    begin = time.perf_counter()
    for row in actions:
        step(row)
    asked = time.perf_counter() - begin
    wait()
    return [round(1000 * seconds / len(actions), 3) for seconds in (time.perf_counter() - begin, asked)]


def measure(num_envs: int, device: str, files: dict[str, Any], args: Args) -> dict[str, Any]:
    """One record."""
    env = make_env(args, num_envs, device, files, 1, info_mode="none")
    on_gpu = env.device.type == "cuda"
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    generator = torch.Generator(device).manual_seed(5)
    size = (WARMUP + (REPEATS + 1) * STEPS, num_envs)
    actions = torch.randint(int(env.codec.num_actions), size, generator=generator, device=device)
    env.reset(seed=3)
    record = {"git_sha": git_sha(), "device": device, "num_envs": num_envs, "digest": digest(env, actions[:WARMUP])}
    parts = actions[WARMUP:].split(STEPS)
    times = [milliseconds(env.step, part, wait) for part in parts[:REPEATS]]
    record |= {"ms_a_step": [whole for whole, _ in times], "ms_in_python": [asked for _, asked in times]}
    if on_gpu:
        with torch.cuda.stream(torch.cuda.Stream()):
            row, graph = actions[0].clone(), torch.cuda.CUDAGraph()
            env.step(row)
            wait()
            with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
                env.step(row)
            record["ms_from_a_graph"] = milliseconds(lambda next: (row.copy_(next), graph.replay()), parts[-1], wait)[0]
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            env.step(row)
            wait()
        record["device_operations"] = sum(event.count for event in profile.key_averages())
    env.close()
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--num-envs", nargs="+", type=int, default=[16])
    parser.add_argument("--run-dir", type=Path, default=Path("runs/step_cost"), help="folder for the task's files")
    plan = parser.parse_args()
    args = Args(device=plan.device)
    files = task_files(args, plan.run_dir, World())
    for num_envs in plan.num_envs:
        print(json.dumps(measure(num_envs, plan.device, files, args)), flush=True)


if __name__ == "__main__":
    main()
