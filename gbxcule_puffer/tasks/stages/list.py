"""stages.json: the stages of a game in order, each with a start state, a goal and a time limit, or how to make them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import Kind, StrPath, read_json, read_object, write_json
from gbxcule_puffer.tasks.actions import STEPS, is_steps
from gbxcule_puffer.tasks.goals.recipe import GoalRecipe, GoalSettings
from gbxcule_puffer.tasks.goals.template import GoalTemplate

FORMAT, VERSION = "gbxcule-stages", 1
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")  # of a stage, and of its folder
LIST_FILE = Kind("stages", ConfigError, "make it with `puffer goal stages`")


@dataclass(frozen=True)
class StageFiles:
    """One stage: its start state, its goal's folder and the steps after which an attempt has failed."""

    name: str
    start_state: Path
    goal_dir: Path
    max_steps: int


def load_stages(path: StrPath, rom_sha256: str) -> list[StageFiles]:
    """The stages of a stages.json for this ROM, in order; paths in it are relative to it.

    Raises: ConfigError for a missing, damaged or foreign file, an old version, another ROM, a wrong stage, or a stage
    whose recipe has not been carried out yet.
    """
    path = Path(path)
    spec = _read(path)
    if spec["rom_sha256"] != rom_sha256:
        raise ConfigError(
            f"stages {path} are of ROM {str(spec['rom_sha256'])[:12]}..., this is {rom_sha256[:12]}...: give that ROM, "
            "or make the stages again"
        )
    for row in spec["stages"]:
        if "recipe" in row:
            raise ConfigError(
                f"stages {path}: {row['name']} is only a recipe: make it with `puffer stage --stage {path} --out DIR` "
                "and give DIR/stages.json"
            )
    folder = path.parent
    return [
        StageFiles(row["name"], folder / row["start_state"], folder / row["goal_dir"], row["max_steps"])
        for row in spec["stages"]
    ]


def write_stages(path: StrPath, rom_sha256: str, stages: Sequence[StageFiles]) -> None:
    """Writes a stages.json with paths relative to it.

    Raises: ConfigError for an invalid name, or a name that two stages have.
    """
    path = Path(path)
    rows = [
        {
            "name": stage.name,
            "start_state": os.path.relpath(stage.start_state, path.parent),
            "goal_dir": os.path.relpath(stage.goal_dir, path.parent),
            "max_steps": stage.max_steps,
        }
        for stage in stages
    ]
    spec = {"format": FORMAT, "version": VERSION, "rom_sha256": rom_sha256, "stages": rows}
    _check(spec, path)
    write_json(path, spec)


def is_stage_list(path: StrPath) -> bool:
    """True if a JSON file says that it is a list of stages; False for anything else, readable or not."""
    try:
        spec = read_json(path, LIST_FILE)
    except ConfigError:
        return False
    return isinstance(spec, dict) and spec.get("format") == FORMAT


def has_recipes(path: StrPath) -> bool:
    """True if `make_stages` has to make the stages of a list first.

    Raises: ConfigError for a file that is not a list of stages.
    """
    return any("recipe" in row for row in _read(Path(path))["stages"])


def make_stages(path: StrPath, out: StrPath, settings: GoalSettings | None = None) -> tuple[Path, Path]:
    """Carries out the recipes (stage files beside the list) into out/NAME and writes out/stages.json. Returns the ROM
    and the new list.

    Raises: ConfigError, and the errors of GoalRecipe.
    """
    path, out = Path(path), Path(out)
    spec, made, rom = _read(path), [], None
    for row in spec["stages"]:
        if "recipe" not in row:
            raise ConfigError(f"stages {path}: {row['name']} has no recipe and is made already: use the list as it is")
    for row in spec["stages"]:
        files = GoalRecipe.load(path.parent / row["recipe"], settings).make(out / row["name"])
        found = GoalTemplate.load(files.goal_dir).meta["rom_sha256"]
        if found != spec["rom_sha256"]:
            raise ConfigError(
                f"stages {path} are of ROM {str(spec['rom_sha256'])[:12]}..., {files.rom} is {found[:12]}...: give the "
                "ROM they were written for, or correct rom_sha256"
            )
        rom = files.rom
        made.append(StageFiles(row["name"], files.start_state, files.goal_dir, row["max_steps"]))
    assert rom is not None
    write_stages(out / "stages.json", spec["rom_sha256"], made)
    return rom, out / "stages.json"


def _read(path: Path) -> dict[str, Any]:
    """A list of stages, checked except for its ROM."""
    spec = read_object(path, LIST_FILE, FORMAT, VERSION)
    _check(spec, path)
    return spec


def _check(spec: dict[str, object], path: Path) -> None:
    rows, names = spec.get("stages"), set()
    if not isinstance(spec.get("rom_sha256"), str) or not isinstance(rows, list) or not rows:
        raise LIST_FILE.bad(path, "lacks rom_sha256 or stages")
    for number, row in enumerate(rows, 1):
        fits = isinstance(row, dict) and isinstance(row.get("name"), str) and is_steps(row.get("max_steps"))
        fits = fits and {"name", "max_steps", *row} in (
            {"name", "max_steps", "recipe"},
            {"name", "max_steps", "start_state", "goal_dir"},
        )  # fmt: skip
        if not fits or not all(isinstance(row[name], str) for name in row if name != "max_steps"):
            raise ConfigError(
                f"stages {path}: stage {number} must have name, max_steps ({STEPS}), and start_state and "
                "goal_dir or a recipe, and nothing else"
            )
        if not NAME.fullmatch(row["name"]):
            raise ConfigError(
                f"stages {path}: {row['name']!r:.80} is not a name of a stage: give up to 64 letters, digits and -_."
            )
        if row["name"] in names:
            raise ConfigError(f"stages {path}: two stages are called {row['name']!r}: rename one")
        names.add(row["name"])
