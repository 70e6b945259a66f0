"""What a Task of one's own adds to the time of a step.

    python -m benchmarks.training.task_cost --device cuda --num-envs 16384      (one JSON record)

plays HOMEWARD with random actions in two envs in turns: without a Task, and with one that looks at 2,560 event bits,
ten symbols and eight hooks, pays for new bits, new cells and calls, and tells three statistics.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import torch

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.provenance import cpu_name, git_sha, versions
from gbxcule_puffer.tasks.ram import Ram, bits_set
from gbxcule_puffer.tasks.task import StepInfo, StepResult, Task

ROM = Path(__file__).parents[2] / "roms/homeward.gb"
EVENT_BYTES = 320
SYMBOLS = ["player_map", "player_x", "player_y", "player_facing", "step_left"]
SYMBOLS += ["quest_flags", "box_kind", "npc_x", "npc_y", "jump_left"]
HOOKS = ["vblank", "read_joypad", "player_update", "camera_wanted", "warp_check", "player_act", "text_show", "fade_out"]


class Events(Task):
    """Event bits seen for the first time in an episode, ten values that change, and eight routines that run."""

    def setup(self, ram: Ram) -> None:
        for name in HOOKS:
            ram.hook(name)

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.seen = ram.view("shadow_oam", EVENT_BYTES)
        self.values = ram[SYMBOLS]
        self.count = torch.zeros(ram.num_envs, dtype=torch.int64, device=ram.device)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
        events, values = ram.view("shadow_oam", EVENT_BYTES).clone(), ram[SYMBOLS]
        new = bits_set(events & ~self.seen)
        moved = (values != self.values).sum(1)
        called = ram.executions(HOOKS[3:]).sum(1)
        self.seen.bitwise_or_(events)
        self.values, self.count = values, self.count + new
        told = {"events": self.count, "flags": ram.popcount("quest_flags"), "column": values[:, 1]}
        return StepResult(0.1 * new + 0.01 * moved + 0.001 * called, terminal=values[:, 5] == 7, statistics=told)


def seconds(env: GBxCuLEEnv, actions: torch.Tensor) -> tuple[float, float]:
    """(time, CPU time of all threads) of a step with these actions, (steps, num_envs)."""
    wait(env.device)
    start, cpu_start = time.perf_counter(), time.process_time()
    for row in actions:
        env.step(row)
    wait(env.device)
    return (time.perf_counter() - start) / len(actions), (time.process_time() - cpu_start) / len(actions)


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--num-envs", type=int, default=256)
    parser.add_argument("--steps", type=int, default=32, help="steps of one measurement")
    parser.add_argument("--rounds", type=int, default=9, help="measurements of each, in turns")
    args = parser.parse_args()
    keywords = {"io": "torch", "info_mode": "none", "max_steps": 512, "symbols": ROM.with_suffix(".sym")}
    keywords["autotune"] = False  # the same launches in both
    envs = [GBxCuLEEnv(ROM, args.num_envs, args.device, task=task, **keywords) for task in (None, Events)]
    device = envs[0].device
    generator = torch.Generator(device).manual_seed(1)
    actions = torch.randint(8, (args.steps, args.num_envs), generator=generator, device=device)
    times: list[list[tuple[float, float]]] = [[], []]
    for env in envs:
        env.reset(seed=1)
    for number in range(args.rounds + 1):  # the first is the warm-up
        for env, found in zip(envs, times, strict=True):
            measured = seconds(env, actions)
            if number:
                found.append(measured)
    (plain, cpu_plain), (with_task, cpu_with_task) = (
        map(statistics.median, zip(*found, strict=True)) for found in times
    )
    name = cpu_name() if device.type == "cpu" else torch.cuda.get_device_name(device)
    record = {"device_name": name, "num_envs": args.num_envs, "event_bits": 8 * EVENT_BYTES, "symbols": len(SYMBOLS)}
    record["hooks"] = len(HOOKS)
    record |= {"ms_per_step": plain * 1e3, "ms_per_step_with_task": with_task * 1e3}
    record["share_of_a_step"] = with_task / plain - 1
    if device.type == "cpu":  # of cores that others use, too, this tells more
        record["share_of_cpu_time"] = cpu_with_task / cpu_plain - 1
    record |= {"git_sha": git_sha(), "versions": versions()}
    print(json.dumps(record))


if __name__ == "__main__":
    main()
