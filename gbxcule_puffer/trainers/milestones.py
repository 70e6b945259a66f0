"""The milestones of a run: when each was first reached, a state of each, and their exchange between processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from gbxcule_puffer.env.curriculum.milestones import Milestones
from gbxcule_puffer.env.protocol import EnvLike
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.files import Kind, make_folder, parse_json, read_text, write_text
from gbxcule_puffer.trainers.distributed import World

LINES = "milestones.jsonl"
FOLDER = "milestones"
LARGEST_FILE = 2**24  # bytes
KIND = Kind("milestones", StateError, "remove it")


class MilestoneLog:
    """A run's milestones.jsonl, with a line for each milestone that was reached, and a folder with a state of each.

    All processes call `look`; the first one writes. resumed_at: the step from which a resumed run goes on; later lines
    are forgotten.
    """

    def __init__(self, run_dir: Path, envs: Sequence[EnvLike], world: World, resumed_at: int | None) -> None:
        self.run_dir, self.world = run_dir, world
        self.found = [env.milestones for env in envs if env.milestones is not None]
        path = run_dir / LINES
        self._lines: list[dict[str, object]] = []
        if self.found and world.rank == 0 and resumed_at is not None and path.exists():
            self._lines = [line for line in _read(path) if int(str(line["step"])) <= resumed_at]
            self._write()
        self._known = {str(line["name"]) for line in self._lines}
        self._has_state = {name for name in self._known if any((run_dir / FOLDER).glob(f"*-{name}.state"))}

    def look(self, step: int, seconds: float) -> None:
        """Exchanges states with the other processes and takes note of new milestones, after `step` steps."""
        if not self.found:
            return
        share(self.found, self.world)
        reached = torch.stack([each.reached for each in self.found]).any(0)
        if self.world.size > 1:
            reached = torch.stack([part.to(reached.device) for part in self.world.gather_all(reached)]).any(0)
        if self.world.rank:
            return
        names = self.found[0].names
        new = [names[i] for i in reached.nonzero()[:, 0].tolist() if names[i] not in self._known]
        for name in new:
            self._known.add(name)
            line: dict[str, object] = {"name": name, "number": names.index(name), "step": step}
            self._lines.append(line | {"seconds": round(seconds, 3)})
            print(f"milestone      {name}: reached by step {step:,}, {seconds:.0f} s", flush=True)
        self._save_states()
        if new:
            self._write()

    def _write(self) -> None:
        write_text(self.run_dir / LINES, "".join(json.dumps(line) + "\n" for line in self._lines))

    def _save_states(self) -> None:
        """Writes the first state of each milestone that has one, and no file yet."""
        for found in self.found:
            if not found.each:
                continue
            kept = found.filled.view(len(found.names), -1).any(1).nonzero()[:, 0].tolist()
            for number in kept:
                if (name := found.names[number]) not in self._has_state:
                    self._has_state.add(name)
                    found.newest(name).to_file(make_folder(self.run_dir / FOLDER) / f"{number:03}-{name}.state")


def share(found: Sequence[Milestones], world: World) -> None:
    """Gives the states of each milestone that some env has to those that have none: among the envs of a process, and of
    all processes. Every process has to call it."""
    if not found[0].each:
        return
    for number in range(len(found[0].names)):
        for each in found if len(found) > 1 else ():
            source = next((other for other in found if bool(other.kept(number))), None)
            if source is not None and not bool(each.kept(number)):
                each.adopt(number, source.parts(number))
    if world.size == 1:
        return
    counts = torch.stack([found[0].kept(number) for number in range(len(found[0].names))])
    table = torch.stack(world.gather_all(counts.long())) > 0  # (processes, milestones)
    for number in (table.any(0) & ~table.all(0)).nonzero()[:, 0].tolist():
        source = int(table[:, number].long().argmax())
        parts = {name: part.contiguous() for name, part in found[0].parts(number).items()}
        for part in parts.values():
            world.send(part, source)
        if not table[world.rank, number]:
            for each in found:
                each.adopt(number, parts)


def _read(path: Path) -> list[dict[str, object]]:
    """The lines of a milestones.jsonl. Raises: StateError for a damaged one."""
    try:
        lines: list[Any] = [parse_json(line, path, KIND) for line in read_text(path, KIND, LARGEST_FILE).splitlines()]
        assert all([isinstance(line["name"], str) and type(line["step"]) is int for line in lines])
    except (ValueError, KeyError, TypeError, AssertionError):
        raise KIND.bad(path, "has lines of another kind") from None
    return lines
