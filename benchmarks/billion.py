"""Game Boy frames a second of a whole machine: one process for each GPU, all of them on the same game at the same time.

    python -m benchmarks.billion --out benchmarks/results/billion.json [--gpus 1 2 4] [--rom ROM[:NUM_ENVS] ...]

Each process plays the same ROM with random buttons, a step of 24 frames with the 72x80 picture of its last frame. When
all have warmed up, they begin together and take the same number of steps. The machine's rate is all frames over the
time from the first begin to the last end, on the clock that the processes share. Nothing is tuned during the run.
Without --rom: HOMEWARD, snake and three games of the shared corpus.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.workload import ROOT, shared_folder
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.files import check_target, write_json
from gbxcule_puffer.layout import child_environment
from gbxcule_puffer.provenance import cpu_name, git_sha

FRAMES_PER_STEP = 24
WARMUP = 40  # steps
SECONDS = 2.0  # that the measured steps take, about
LEAST_STEPS = 8
NUM_ENVS = {"homeward": 524_288, "snake": 262_144}
OTHERS = 131_072
CORPUS = ("airaki", "jp", "tuff")


def games() -> list[tuple[Path, int]]:
    """ROMs and the number of Game Boys of each on a GPU."""
    found = [(ROOT / "roms/homeward.gb", NUM_ENVS["homeward"])]
    if (shared := shared_folder()) is not None:
        found.append((shared / "roms/homebrew/snake.gb", NUM_ENVS["snake"]))
        found += [(shared / f"roms/corpus/{name}.gb", OTHERS) for name in CORPUS]
    return found


def measure(rom: Path, num_envs: int, gpus: Sequence[str]) -> dict[str, Any]:
    """One game on some GPUs ('0', '1', ...; or 'cpu'), as an entry of the record."""
    processes = [_start(rom, num_envs, gpu) for gpu in gpus]
    ready = [_answer(process) for process in processes]
    step_seconds = max(answer["step_seconds"] for answer in ready)
    steps = max(LEAST_STEPS, round(SECONDS / step_seconds))
    begin = time.monotonic() + 0.05
    for process in processes:
        _tell(process, {"steps": steps, "begin": begin})
    done = [_answer(process) for process in processes]
    for process in processes:
        process.wait()
    seconds = max(answer["end"] for answer in done) - min(answer["begin"] for answer in done)
    frames = FRAMES_PER_STEP * num_envs * steps
    return {
        "game": rom.stem, "rom_sha256": load_cartridge(rom, "pyboy").sha256, "gpus": len(gpus), "num_envs": num_envs,
        "steps": steps, "seconds": round(seconds, 4), "frames_per_second": round(len(gpus) * frames / seconds),
        "of_each": [round(frames / (answer["end"] - answer["begin"])) for answer in done],
        "gib_of_each": [answer["gib"] for answer in done], "device": ready[0]["device"],
    }  # fmt: skip


def _start(rom: Path, num_envs: int, gpu: str) -> subprocess.Popen[str]:
    """The process of a GPU."""
    environment = child_environment() | ({} if gpu == "cpu" else {"CUDA_VISIBLE_DEVICES": gpu})
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment["PYTHONPATH"]])
    command = [sys.executable, "-m", "benchmarks.billion", "--worker", str(rom), str(num_envs), gpu]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=ROOT)


def _tell(process: subprocess.Popen[str], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()


def _answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            return json.loads(line)
    raise SystemExit("a GPU's process has ended: its error stands above")


def worker(rom: str, num_envs: int, gpu: str) -> None:
    """Warm up, say how long a step takes, wait for the others, and play."""
    import torch

    from gbxcule_puffer.emulator import Emulator

    device = "cpu" if gpu == "cpu" else "cuda"
    emulator = Emulator(rom, num_envs, device, frames_per_step=FRAMES_PER_STEP, autotune=False)
    generator = torch.Generator(device).manual_seed(0 if gpu == "cpu" else int(gpu))
    table = torch.tensor([0x00, 0x10, 0x20, 0x80, 0x04, 0x08, 0x02, 0x01], dtype=torch.uint8, device=device)
    rows = table[torch.randint(len(table), (16, num_envs), generator=generator, device=device)]

    def play(steps: int) -> tuple[float, float]:
        """Begin and end of some steps."""
        begin = time.monotonic()
        for step in range(steps):
            emulator.step(rows[step % len(rows)])
        if device == "cuda":
            torch.cuda.synchronize()
        return begin, time.monotonic()

    play(WARMUP)
    begin, end = play(LEAST_STEPS)
    name = cpu_name() if device == "cpu" else torch.cuda.get_device_name()
    print(json.dumps({"step_seconds": (end - begin) / LEAST_STEPS, "device": name}), flush=True)
    plan = json.loads(sys.stdin.readline())
    time.sleep(max(0.0, plan["begin"] - time.monotonic()))
    begin, end = play(plan["steps"])
    used = 0.0
    if device == "cuda":
        free, total = torch.cuda.mem_get_info()
        used = (total - free) / 2**30
    print(json.dumps({"begin": begin, "end": end, "gib": round(used, 2)}), flush=True)


def main() -> int:
    """Measures each game on each number of GPUs, and rewrites the record after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, nargs="+", help="numbers of GPUs (default: 1, 2, 4, ... up to all)")
    parser.add_argument("--rom", nargs="+", help="images, each with :NUM_ENVS if not 131,072")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: processes without a GPU")
    parser.add_argument("--out", type=Path, required=True, help="JSON file for the record")
    args = parser.parse_args()
    check_target(args.out)
    import torch

    all_gpus = 2 if args.device == "cpu" else torch.cuda.device_count()
    numbers = args.gpus or [number for number in (1, 2, 4, 8) if number <= all_gpus]
    roms = [(Path(rom.partition(":")[0]), int(rom.partition(":")[2] or OTHERS)) for rom in args.rom or []] or games()
    runs: list[dict[str, Any]] = []
    for rom, num_envs in roms:
        for number in numbers:
            gpus = [str(gpu) if args.device == "cuda" else "cpu" for gpu in range(number)]
            runs.append(measure(rom, num_envs, gpus))
            run = runs[-1]
            print(f"{run['game']:12} {number} x {run['device']}: {run['frames_per_second']:,} frames/s", flush=True)
            write_json(args.out, {"git_sha": git_sha(), "frames_per_step": FRAMES_PER_STEP, "runs": runs})
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        sys.exit(main())
