"""Compare cells of pictures with cells of RAM: what a visit key tells apart on the way through HOMEWARD's three stages.

    python -m benchmarks.training.visit_cells --out visit_cells.json

Game Boys play the stages' solutions, with some actions at random. For each kind of cell: how many there are, how many
of them show several positions, facings or states of the quest, and how many of them one cell of RAM has on average.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.curriculum.visits import VisitCounter
from gbxcule_puffer.files import write_json
from gbxcule_puffer.layout import ROMS
from gbxcule_puffer.provenance import git_sha
from gbxcule_puffer.tasks.ram import Ram, RamWatch
from gbxcule_puffer.tasks.source import TaskSource

RAM = {"map": 0xC0A0, "column": 0xC0A1, "row": 0xC0A2, "facing": 0xC0A3, "quest": 0xC0A5}  # docs/homeward.md
OFTEN, SELDOM = 0.42, 0.02  # shares of random actions, of every fifth Game Boy and of the others


def play(num_envs: int, steps: int, folder: Path) -> dict[str, dict[int, set[tuple[int, ...]]]]:
    """Kind of cell -> key -> the bytes of RAM with which it was seen."""
    task: dict[str, Any] = {**TaskSource(stages=ROMS / "homeward/stages.json").make(folder)}
    env = GBxCuLEEnv(num_envs=num_envs, curriculum="by_env", io="torch", **task)
    env.reset(seed=1)
    names = env.codec.actions
    files = [ROMS / f"homeward/stage{number}.json" for number in (1, 2, 3)]
    solutions = [[names.index(name) for name in json.loads(file.read_text())["solve_actions"]] for file in files]
    watch = RamWatch(Ram(env.emulator), list(RAM.values()))
    counters = {kind: VisitCounter(env.emulator.screen, kind) for kind in ("picture", "pixels")}
    found: dict[str, dict[int, set[tuple[int, ...]]]] = {kind: defaultdict(set) for kind in counters}
    generator = torch.Generator().manual_seed(1)
    done = [0] * num_envs
    for _ in range(steps):
        actions = torch.randint(len(names), (num_envs,), generator=generator)
        luck = torch.rand(num_envs, generator=generator).tolist()
        for number, ended in enumerate(env.final_mask.tolist()):
            done[number] *= not ended
            way = solutions[int(env.stage[number])]
            if done[number] < len(way) and luck[number] > (SELDOM if number % 5 else OFTEN):
                actions[number] = way[done[number]]
                done[number] += 1
        env.step(actions)
        rows = [tuple(row) for row in watch.read().tolist()]
        for kind, counter in counters.items():
            counter.visit()
            for key, row in zip(counter.key.tolist(), rows, strict=True):
                found[kind][key].add(row)
    return found


def summary(cells: dict[int, set[tuple[int, ...]]]) -> dict[str, Any]:
    """Numbers of cells, and of those that stand for several values of a byte."""
    cells_of_ram = {row for rows in cells.values() for row in rows}
    result: dict[str, Any] = {"cells": len(cells), "cells of RAM": len(cells_of_ram)}
    result["cells of one of RAM"] = round(sum(map(len, cells.values())) / len(cells_of_ram), 2)
    for number, name in enumerate(RAM):
        result[f"several of {name}"] = sum(len({row[number] for row in rows}) > 1 for rows in cells.values())
    return result


def main() -> None:
    parser = argparse.ArgumentParser(prog="visit_cells", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--num-envs", type=int, default=128)
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--out", type=Path, help="JSON file for the record")
    plan = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {kind: summary(cells) for kind, cells in play(plan.num_envs, plan.steps, Path(folder)).items()}
    for kind, result in found.items():
        print(kind, *(f"{name} {value}" for name, value in result.items()), sep="\n  ")
    if plan.out:
        write_json(plan.out, {"num_envs": plan.num_envs, "steps": plan.steps, "git_sha": git_sha(), **found})


if __name__ == "__main__":
    main()
