"""The files of an env's task: the given files, or made from a stage file or a list, or HOMEWARD's first stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.layout import ROMS, find_rom
from gbxcule_puffer.tasks.goals.recipe import GoalRecipe, GoalSettings
from gbxcule_puffer.tasks.stages.list import has_recipes, is_stage_list, make_stages
from gbxcule_puffer.tasks.task import TaskSpec

ROM, STAGE = ROMS / "homeward.gb", ROMS / "homeward/stage1.json"


def default_rom(prefix: str = "--") -> Path:
    """HOMEWARD's file; prefix: of the caller's flags, for the error.

    Raises: ConfigError if it is not installed.
    """
    if not ROM.is_file():
        raise ConfigError(f"{ROM} is missing from the installation: install gbxcule-puffer again, or give {prefix}rom")
    return ROM


@dataclass(frozen=True)
class TaskSource:
    """The options that name a task: a ROM with its start and goal, a `stage` file or a list of `stages`. A `task` needs
    no goal. The default is HOMEWARD's first stage.

    prefix: of the caller's flags, for errors.
    """

    rom: StrPath | None = None
    start_state: StrPath | Sequence[StrPath] | None = None
    goal_dir: StrPath | None = None
    stage: StrPath | None = None
    stages: StrPath | None = None
    task: TaskSpec | None = None
    prefix: str = "--"

    def make(self, out: StrPath, settings: GoalSettings | None = None) -> dict[str, str | None]:
        """Keywords of the env: rom, and start_state and goal_dir, or stages. Missing files are made in a folder in
        `out`.

        Raises: ConfigError, and the errors of GoalRecipe and `make_stages`.
        """
        self._check()
        rom = find_rom(self.rom) if self.rom else ROM
        if self.stages:
            stages = self.stages
            if is_stage_list(stages) and has_recipes(stages):
                rom, stages = make_stages(stages, Path(out) / "stages", settings)
            return {"rom": str(rom), "stages": str(stages)}
        start, goal = self.start_state, self.goal_dir
        if not goal and (self.stage or not self.task):
            made = GoalRecipe.load(self.stage or STAGE, settings).make(Path(out) / "stage")
            rom, start, goal = made.rom, start or made.start_state, made.goal_dir
        files = {"rom": str(rom), "start_state": str(start) if start else None}
        return files | ({"goal_dir": str(goal)} if goal else {})

    def _check(self) -> None:
        """Raises: ConfigError for files that do not fit together, or a missing file."""
        flag = self.prefix
        if self.stages and (self.goal_dir or self.start_state):
            raise ConfigError(
                f"{flag}stages has starts and goals of its own: leave {flag}start-state and {flag}goal-dir out"
            )
        if self.rom and not (self.goal_dir or self.stages or self.task):
            raise ConfigError(
                f"{flag}rom needs {flag}goal-dir, {flag}stages, {flag}task or {flag}game: "
                "make a game's folder with `puffer game new`, or a goal with `puffer goal make`"
            )
        if not (self.rom or self.stage):
            default_rom(flag)
