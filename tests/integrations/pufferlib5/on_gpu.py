"""PufferLib 5's env beside GBxCuLEEnv on one GPU: 10,000 steps compared bit for bit, and steps a second in pairs.

    python -m tests.integrations.pufferlib5.on_gpu write FOLDER     # needs nvcc, and no GPU
    python -m tests.integrations.pufferlib5.on_gpu run FOLDER --out benchmarks/results/h100/native_10000.json

`write` makes an env of `puffer native` for each case and compiles host.cu with it; FOLDER may go to another machine.
`run` plays the cases: the host steps in CUDA graphs, Python with io="torch" and the same launches (autotune=False).
Cases that compare make digests of all observations, rewards and ends in every step, on the GPU, both at the same time.
Those that are timed make them of the last step, when the clock has stopped; each repeat is a pair, in the order A B,
B A, A B. The record is rewritten after each case.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.workload import find_rom
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.files import check_target, write_json
from gbxcule_puffer.games import load_game, make_game_env
from gbxcule_puffer.layout import child_environment
from gbxcule_puffer.provenance import git_sha, versions
from tests.integrations.pufferlib5.compare import Steps, compile_host, env_steps, first_difference, host_steps
from tests.support.envs import make_test_stages

SEED = 7
REPEATS = 3
STAGES = "stages"  # in an option: the file that `write` makes


@dataclass(frozen=True)
class Case:
    """A game with options, played by both. game: of a folder, with its terms; timed: without digests of each step."""

    num_envs: int
    steps: int
    options: dict[str, Any]
    rom: str = "homeward"
    game: str | None = None
    timed: bool = False
    words: str = field(default="", kw_only=True)


SHORT = {"frames_per_step": 4, "release_after_frames": 2}
EPISODES = {"start_waits": 3, "sticky_actions": 0.25, "max_steps": 50}
TERMS = {**SHORT, "max_steps": 150, "start_waits": 5}
CASES = {
    "orchard": Case(256, 10_000, TERMS, game="orchard", words="reward terms and levels"),
    "storeroom": Case(256, 10_000, TERMS, game="storeroom", words="reward terms and levels"),
    "color": Case(256, 10_000, {**SHORT, **EPISODES, "model": "cgb", "obs": "luma"}, "snake", words="Game Boy Color"),
    "waits": Case(256, 10_000, {**SHORT, **EPISODES, "obs": "packed", "stack_k": 2}, words="sticky actions, a stack"),
    "goals": Case(256, 2_000, {"stages": STAGES, "max_steps": 64}, words="the three stages' goals"),
    "speed_16384": Case(16_384, 1010, {"obs": "packed"}, timed=True),
    "speed_131072": Case(131_072, 310, {"obs": "packed"}, timed=True),
    "speed_terms": Case(16_384, 510, {"obs": "packed"}, game="orchard", timed=True, words="reward terms and levels"),
}


def write(folder: Path, names: Sequence[str], arch: str) -> None:
    """Writes the envs of the cases, their hosts and the stages."""
    (folder / STAGES).mkdir(parents=True, exist_ok=True)
    stages = make_test_stages(folder / STAGES)["stages"]
    for name in names:
        case, target = CASES[name], folder / name
        game = ["--game", case.game] if case.game else [str(find_rom(case.rom))]
        flags = [f"--{key.replace('_', '-')}={value}" for key, value in with_stages(case.options, Path(stages)).items()]
        words = [*game, "--to", str(target), "--arch", arch, "--num-envs", str(case.num_envs), *flags]
        command = [sys.executable, "-m", "gbxcule_puffer", "native", *words]
        subprocess.run(command, check=True, env=child_environment())
        compile_host(target, target / "host", f"sm_{arch}")


def with_stages(options: dict[str, Any], stages: Path) -> dict[str, Any]:
    """A case's options with the file of the stages."""
    return {key: str(stages) if value == STAGES else value for key, value in options.items()}


def make(case: Case, stages: Path) -> GBxCuLEEnv:
    """The Python env of a case."""
    options = {"io": "torch", "info_mode": "none", "autotune": False, **with_stages(case.options, stages)}
    if case.game:
        return make_game_env(load_game(case.game), GBxCuLEEnv, case.num_envs, "cuda", **options)
    return GBxCuLEEnv(find_rom(case.rom), case.num_envs, "cuda", **options)


def run(folder: Path, name: str) -> dict[str, Any]:
    """Plays a case; its entry of the record."""
    case, host = CASES[name], folder / name / "host"
    env = make(case, next((folder / STAGES).rglob("stages.json")))

    def native() -> tuple[Steps, str]:
        return host_steps(host, case.num_envs, case.steps, SEED, case.timed)

    def python() -> Steps:
        return env_steps(env, case.steps, SEED, case.timed)

    with ThreadPoolExecutor(1) as beside:
        host_run = beside.submit(native)
        if case.timed:
            host_run.result()
        wanted = python()
        found, printed = host_run.result()
    entry: dict[str, Any] = {
        "game": case.game or case.rom, "with": case.words, "options": case.options, "num_envs": case.num_envs,
        "steps": len(found.digests) - 1, "difference": first_difference(found, wanted),
        "host": dict(zip(*[iter(printed.split())] * 2, strict=True)),
    }  # fmt: skip
    if case.timed:
        pairs = [(found.sps, wanted.sps)]
        for repeat in range(1, REPEATS):
            first = python().sps if repeat % 2 else 0.0
            own = native()[0].sps
            pairs.append((own, first or python().sps))
        entry["sps"] = {"native": [round(own) for own, _ in pairs], "python": [round(other) for _, other in pairs]}
        entry["ratio"] = round(statistics.median(own for own, _ in pairs) / statistics.median(b for _, b in pairs), 4)
    env.close()
    return entry


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the folder, or plays it and writes the record; 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("write", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--arch", default="90", help="of the GPU, for write (90)")
    parser.add_argument("--out", type=Path, help="record, for run")
    args = parser.parse_args(argv)
    folder = args.folder.resolve()
    if args.action == "write":
        write(folder, args.cases, args.arch)
        return 0
    if args.out is None:
        parser.error("run needs --out")
    check_target(args.out)
    record: dict[str, Any] = {
        "what": "host.cu beside GBxCuLEEnv (python -m tests.integrations.pufferlib5.on_gpu)",
        "date": time.strftime("%Y-%m-%d"), "git_sha": git_sha(), "device_name": torch.cuda.get_device_name(),
        "versions": versions(), "runs": {},
    }  # fmt: skip
    for name in args.cases:
        record["runs"][name] = run(folder, name)
        torch.cuda.empty_cache()  # the host allocates for itself
        print(name, record["runs"][name], flush=True)
        write_json(args.out, record)
    return int(any(entry["difference"] for entry in record["runs"].values()))


if __name__ == "__main__":
    sys.exit(main())
