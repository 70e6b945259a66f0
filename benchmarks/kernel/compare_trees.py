"""Steps per second of two trees of this project, in turns, over many games: what a change of the kernel is worth.

    python -m benchmarks.kernel.compare_trees OLD_TREE NEW_TREE --num-envs 16384 --out FILE.json [--rom ROM ...]

Each tree runs in a process of its own, on the same game with the same random buttons. One after the other warms up;
then they take turns, old, new, new, old. Pictures, memory and counts of instructions after each turn have to be equal.
A step is 24 frames with the 72x80 picture; on a CPU the process's own time counts. The record is rewritten after each
game, so that a time limit cuts off only the rest. Without --rom: all games of `puffer bench --suite corpus`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FRAMES_PER_STEP = 24
TURN_SECONDS, MOST_STEPS = 0.1, 16  # a turn has as many steps, but at most these


def main() -> int:
    """The command line. Returns 1 where the trees differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="folder with the older gbxcule_puffer/")
    parser.add_argument("new", type=Path)
    parser.add_argument("--rom", nargs="+", type=Path, help="image files (default: HOMEWARD and the shared games)")
    parser.add_argument("--num-envs", type=int, default=16_384)
    parser.add_argument("--warmup", type=int, default=24, help="steps of each tree before the first turn")
    parser.add_argument("--steps", type=int, default=2, help="steps of a turn, at least")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no game after this time")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--names", nargs=2, default=["before", "after"], metavar="SHA", help="the trees' commits")
    parser.add_argument("--out", type=Path, required=True, help="JSON file for the record")
    args = parser.parse_args()
    if not 1 <= args.steps <= MOST_STEPS:
        parser.error(f"--steps {args.steps} must be from 1 to {MOST_STEPS}")
    begin = time.monotonic()
    trees = [Tree(path, args.device, args.num_envs) for path in (args.old, args.new)]
    games: list[dict[str, Any]] = []
    record = {
        "what": "steps/s of two trees in turns: old, new, new, old; 24 frames a step with the 72x80 picture, random "
        "actions; pictures, memory and counts of instructions equal after each turn",
        **{"old": args.names[0], "new": args.names[1], "num_envs": args.num_envs, "warmup": args.warmup},
        "games": games,
    }
    for rom in args.rom or _corpus():
        if time.monotonic() - begin > args.seconds:
            print(f"left out, for lack of time: {Path(rom).stem}", flush=True)
            continue
        games.append(compare(trees, str(rom), args.warmup, args.steps))
        record |= {"device_name": trees[0].device_name, "start_seconds": [tree.start_seconds for tree in trees]}
        record |= {"seconds": round(time.monotonic() - begin), "geometric_mean": round(_mean(games), 4)}
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(record, indent=1) + "\n")
        one = games[-1]
        print(f"{one['game']:32} {one['old'][0]:>10,} {one['new'][0]:>10,} {one['ratio']:7.3f}", flush=True)
    for tree in trees:
        tree.close()
    different = [game["game"] for game in games if not game["equal"]]
    print(f"{len(games)} games: geometric mean {_mean(games):.3f}, different: {', '.join(different) or 'none'}")
    return 1 if different else 0


def compare(trees: list[Tree], rom: str, warmup: int, steps: int) -> dict[str, Any]:
    """One game: steps/s of the two turns of each tree."""
    seed = sum(Path(rom).stem.encode())
    step_seconds = 0.0
    for tree in trees:  # one after the other: the launch shape may be chosen by what these steps take
        tree.ask({"open": rom, "seed": seed, "warmup": warmup, "rows": warmup + 2 * MOST_STEPS})
        step_seconds = max(step_seconds, tree.answer()["step_seconds"])
    steps = max(steps, min(MOST_STEPS, math.ceil(TURN_SECONDS / step_seconds)))
    turns: list[list[dict[str, Any]]] = [[], []]
    for index in (0, 1, 1, 0):
        trees[index].ask({"run": steps})
        turns[index].append(trees[index].answer())
    rates = [[round(turn["rate"]) for turn in one] for one in turns]
    return {
        **{"game": Path(rom).stem, "steps": steps, "old": rates[0], "new": rates[1]},
        "ratio": round(math.sqrt(math.prod(rates[1]) / math.prod(rates[0])), 4),
        "equal": [turn["digest"] for turn in turns[0]] == [turn["digest"] for turn in turns[1]],
        "digest": turns[0][-1]["digest"],
    }


class Tree:
    """A tree's process. start_seconds: until its first step was over, mostly compiling."""

    def __init__(self, path: Path, device: str, num_envs: int) -> None:
        if not (path / "gbxcule_puffer").is_dir():
            raise SystemExit(f"{path} has no gbxcule_puffer/: give the folder of a tree")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), os.environ.get("PYTHONPATH", "")])}
        command = [sys.executable, __file__, "--worker", device, str(num_envs)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.device_name, self.start_seconds = "", 0.0

    def ask(self, question: dict[str, Any]) -> None:
        """Begin what `answer` waits for."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """What became of the question."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                found = json.loads(line)
                self.device_name = found.get("device_name", self.device_name)
                self.start_seconds = self.start_seconds or found.get("first_step_seconds", 0.0)
                return found
        raise SystemExit("a tree's process has ended: its error stands above")

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def worker(device: str, num_envs: int) -> None:
    """The process of a tree: questions on stdin, answers on stdout."""
    import torch

    from gbxcule_puffer.emulator import Emulator

    instructions = sys.modules[Emulator.__module__].INDEX["instructions"]  # which trees have in different modules

    def synchronize() -> float:
        if device == "cpu":
            return time.process_time()
        torch.cuda.synchronize(device)
        return time.perf_counter()

    emulator: Any = None
    table = torch.tensor([0x00, 0x10, 0x20, 0x80, 0x04, 0x08, 0x02, 0x01], dtype=torch.uint8, device=device)
    rows, index = torch.zeros(0), 0

    def run(steps: int) -> float:
        nonlocal index
        begin = synchronize()
        for _ in range(steps):
            emulator.step(rows[index])
            index += 1
        return synchronize() - begin

    def digest() -> str:
        """Of the pictures, of memory from 8000 to DFFF, and of how many instructions the last step had."""
        sums = []
        for bytes_of_env in (emulator.screen.flatten(1), emulator.memory[:, :0x6000]):
            words = bytes_of_env.view(torch.int64)
            weights = torch.arange(1, 2 * words.shape[1], 2, device=device)
            of_env = (words * weights).sum(1)
            sums.append(int((of_env * torch.arange(1, 2 * len(words), 2, device=device)).sum()) % 2**64)
        counts = emulator._state[instructions].long()
        sums.append(int((counts * torch.arange(1, 2 * len(counts), 2, device=device)).sum()))
        return "".join(f"{value:016x}" for value in sums)

    for line in sys.stdin:
        question = json.loads(line)
        answer: dict[str, Any] = {}
        if "open" in question:
            emulator = None
            emulator = Emulator(question["open"], num_envs, device, frames_per_step=FRAMES_PER_STEP)
            generator = torch.Generator(device).manual_seed(question["seed"])
            shape = (question["rows"], num_envs)
            rows, index = table[torch.randint(len(table), shape, generator=generator, device=device)], 0
            begin = time.perf_counter()
            run(1)
            answer["first_step_seconds"] = round(time.perf_counter() - begin, 2)
            run(question["warmup"] - 2)
            answer["step_seconds"] = run(1)
            answer["device_name"] = "CPU" if device == "cpu" else torch.cuda.get_device_name(device)
        else:
            answer["rate"] = question["run"] * num_envs / run(question["run"])
            answer["digest"] = digest()
        print(json.dumps(answer), flush=True)


def _corpus() -> list[Path]:
    """The reference games, then the corpus in an order without meaning: a part of it stands for all."""
    from gbxcule_puffer.apps.bench.suites import roms_of_suite

    roms = roms_of_suite("corpus")
    known, others = roms[:9], roms[9:]
    random.Random(0).shuffle(others)
    return [*known, *others]


def _mean(games: list[dict[str, Any]]) -> float:
    """The geometric mean of the ratios."""
    return math.exp(sum(math.log(game["ratio"]) for game in games) / len(games)) if games else math.nan


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main())
