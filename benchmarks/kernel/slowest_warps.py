"""Measure what a step waits for on a GPU: its slowest warp by itself, and each of that warp's envs by itself.

    python -m benchmarks.kernel.slowest_warps --rom homeward porklike-gb --num-envs 16384 --out slowest_warps.json

After some steps with random actions, ms of the next step with all envs, then of warps of `--lanes` of them in the order
in which the GPU ran them, each as a launch of its own from the same state; of the slowest warp's envs with fewer lanes
of a warp in use, and of each alone. Where two envs take twice as long as one, they do different things at different
times.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from benchmarks.workload import find_rom
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import LaunchShape
from gbxcule_puffer.emulator.state import INDEX
from gbxcule_puffer.files import write_json
from gbxcule_puffer.provenance import device_name, git_sha

BUTTONS = (0x00, 0x10, 0x20, 0x80, 0x04, 0x08, 0x02, 0x01)
FRAMES_PER_STEP = 24


def milliseconds(emulator: Emulator, buttons: torch.Tensor) -> float:
    """A step's time on the GPU."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize(emulator.device)
    begin.record()
    emulator.step(buttons)
    end.record()
    torch.cuda.synchronize(emulator.device)
    return begin.elapsed_time(end)


class Parts:
    """Launches of some of the envs, from the state that all have now."""

    def __init__(self, rom: Path, emulator: Emulator, buttons: torch.Tensor) -> None:
        self._rom, self._buttons, self._device = rom, buttons, emulator.device
        self._state, self._memory = emulator._state.clone(), emulator._memory.clone()
        self._emulators: dict[tuple[int, int], Emulator] = {}

    def time(self, envs: torch.Tensor, lanes: int) -> float:
        """Milliseconds of a step of these envs, with so many lanes of a warp in use, the second time."""
        return [self._once(envs, lanes) for _ in range(2)][1]

    def _once(self, envs: torch.Tensor, lanes: int) -> float:
        key = (len(envs), lanes)
        if key not in self._emulators:
            self._emulators[key] = shaped(self._rom, len(envs), self._device, LaunchShape(lanes, 32))
        emulator = self._emulators[key]
        emulator._state.copy_(self._state[:, envs])
        emulator._memory.copy_(self._memory[envs])
        return milliseconds(emulator, self._buttons[envs])


def shaped(rom: Path, num_envs: int, device: str, shape: LaunchShape) -> Emulator:
    """An emulator on a GPU that launches steps in this shape."""
    emulator = Emulator(rom, num_envs, device, frames_per_step=FRAMES_PER_STEP, autotune=False)
    assert emulator.launches is not None
    emulator.launches.shape = shape
    return emulator


def measure(rom: Path, num_envs: int, lanes: int, warmup: int, device: str) -> dict[str, Any]:
    """The figures of one game."""
    emulator = shaped(rom, num_envs, device, LaunchShape(lanes, 32, grouped=True))
    generator = torch.Generator(device).manual_seed(7)
    choices = torch.randint(len(BUTTONS), (warmup + 1, num_envs), generator=generator, device=device)
    rows = torch.tensor(BUTTONS, dtype=torch.uint8, device=device)[choices]
    for row in rows[:-1]:
        emulator.step(row)
    parts = Parts(rom, emulator, rows[-1])
    whole = milliseconds(emulator, rows[-1])
    length = emulator._state[INDEX["instructions"]] - emulator.skipped
    assert emulator._lanes is not None
    order = emulator._lanes.order[: 32 * (num_envs // lanes)].view(-1, 32)[:, :lanes].long()
    warps = sorted({*range(min(64, len(order))), *range(0, len(order), 24)})
    times = {warp: round(parts.time(order[warp], lanes), 2) for warp in warps}
    slowest = max(times, key=lambda warp: times[warp])
    envs = order[slowest]
    fewer = [count for count in (16, 8, 4, 2, 1) if count <= lanes]
    return {
        **{"rom": rom.name, "full_ms": round(whole, 2), "warps": times, "slowest": (slowest, times[slowest])},
        "instructions": length[envs].tolist(),
        **{f"slowest_at_{count}": round(parts.time(envs, count), 2) for count in fewer},
        "alone": [round(parts.time(env[None], 1), 2) for env in envs],
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rom", nargs="+", default=["homeward"], help="names of reference games, or image files")
    parser.add_argument("--num-envs", type=int, default=16_384)
    parser.add_argument("--lanes", type=int, default=16)
    parser.add_argument("--warmup", type=int, default=20, help="steps with random actions before")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True, help="JSON file, written after each game")
    args = parser.parse_args()
    games: list[dict[str, Any]] = []
    for name in args.rom:
        games.append(measure(find_rom(name), args.num_envs, args.lanes, args.warmup, args.device))
        print(games[-1], flush=True)
        record = {"num_envs": args.num_envs, "warmup": args.warmup, "games": games}
        write_json(args.out, record | {"device_name": device_name(args.device), "git_sha": git_sha()})


if __name__ == "__main__":
    main()
