"""The task that options describe: ROM, start and goal as given, else made from a stage file, else HOMEWARD's first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.layout import ROMS, find_rom
from gbxcule_puffer.tasks.goals.recipe import make_stage
from gbxcule_puffer.tasks.stages.list import has_recipes, is_stage_list, make_stages

ROM, STAGE = ROMS / "homeward.gb", ROMS / "homeward/stage1.json"


def default_rom(prefix: str = "--") -> Path:
    """HOMEWARD's file; prefix: how the caller's flags begin, for the error.

    Raises: ConfigError where it is not installed.
    """
    if not ROM.is_file():
        raise ConfigError(f"{ROM} is missing from the installation: install gbxcule-puffer again, or give {prefix}rom")
    return ROM


def find_task(
    out: StrPath,
    *,
    rom: StrPath | None = None,
    start_state: StrPath | None = None,
    goal_dir: StrPath | None = None,
    stage: StrPath | None = None,
    stages: StrPath | None = None,
    task: Any = None,
    quest: StrPath | None = None,
    prefix: str = "--",
    **config: Any,
) -> dict[str, str | None]:
    """An env's rom, start_state and goal_dir, or its rom and stages.

    What is not given is made from `stage`, or from the recipes of the list `stages`, into a folder in `out`. A `task`,
    or a `quest` for a `rom`, needs no goal.
    config: as of `make_goal`; prefix: how the caller's flags begin, for errors.

    Raises: ConfigError, and what `make_stage` and `make_stages` raise.
    """
    rom = find_rom(rom) if rom else None
    if stages and (goal_dir or start_state):
        raise ConfigError(
            f"{prefix}stages has starts and goals of its own: leave {prefix}start-state and {prefix}goal-dir out"
        )
    if rom and not (goal_dir or stages or task or quest):
        raise ConfigError(
            f"{prefix}rom needs {prefix}goal-dir, {prefix}stages, {prefix}task or {prefix}quest: "
            "make a goal with `puffer goal make`"
        )
    if not (rom or stage):
        default_rom(prefix)
    if stages:
        if is_stage_list(stages) and has_recipes(stages):
            rom, stages = make_stages(stages, Path(out) / "stages", **config)
        return {"rom": str(rom or ROM), "stages": str(stages)}
    if not goal_dir and not stage and (task or (rom and quest)):
        return {"rom": str(rom or ROM), "start_state": str(start_state) if start_state else None}
    if not goal_dir:
        made = make_stage(stage or STAGE, Path(out) / "stage", **config)
        rom, start_state, goal_dir = made.rom, start_state or made.start_state, made.goal_dir
    return {"rom": str(rom or ROM), "start_state": str(start_state) if start_state else None, "goal_dir": str(goal_dir)}
