"""`puffer goal ...`: start states, goal templates and lists of stages."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gbxcule_puffer.apps.flags import GAME, DeviceFlags, StartFlags, StepFlags
from gbxcule_puffer.apps.play.command import DisplayFlags
from gbxcule_puffer.commandline import at_most_one, command, flag, word
from gbxcule_puffer.env.option_flags import Later, option_flag
from gbxcule_puffer.errors import ConfigError

if TYPE_CHECKING:
    from gbxcule_puffer.tasks.goals.recipe import GoalSettings, TaskFiles

TELL_SECONDS = 10  # between two lines that say how far a measurement is
TASK = ("obs", "stack_k", "action_codec", "frames_per_step", "release_after_frames", "k_consecutive")
FOR = "What it is for"
FOLDER = "folder of `puffer goal make`"


@command
class TaskFlags(StepFlags):
    """The environment of a goal, and the folder to write it to."""

    out: str = flag(help="folder for start.state and goal/", metavar="DIR")
    obs: str = option_flag("obs", FOR)
    stack_k: int = option_flag("stack_k", FOR)
    action_codec: str = option_flag("action_codec", FOR)
    k_consecutive: int | None = option_flag("k_consecutive", FOR, Later("4"))

    def settings(self, **more: Any) -> GoalSettings:
        """The env's settings for a goal's recipe; more: header and model."""
        from gbxcule_puffer.tasks.goals.recipe import GoalSettings

        return GoalSettings(**{name: getattr(self, name) for name in TASK}, **more)


@command
class Make(StartFlags, TaskFlags, DisplayFlags):
    """Play actions; the picture they end at is the goal."""

    rom: str = flag(help="Game Boy image, or homeward", metavar="ROM")
    actions: tuple[str, ...] = flag(
        (),
        "trace of `puffer play`, or file of action names, from the start to the goal; again for more ways",
        metavar="FILE",
        repeat=True,
    )
    png: tuple[str, ...] = flag((), "screenshot of the goal; repeat for several pictures", metavar="FILE", repeat=True)
    play: bool = flag(False, "play to the goal by hand, and press g there")
    start_actions: str | None = flag(None, "actions that lead to the start (default: none)", GAME, metavar="FILE")
    header: str = option_flag("header", GAME)

    def run(self) -> None:
        at_most_one(self, "start_actions", "start_state")
        at_most_one(self, "actions", "png", "play")
        if not (self.actions or self.png or self.play):
            raise ConfigError("the goal is missing: give one of --actions, --png and --play")
        from gbxcule_puffer.tasks.goals.recipe import GoalRecipe
        from gbxcule_puffer.tasks.goals.traces import read_actions

        settings = self.settings(header=self.header, model=self.model)
        options: dict[str, Any] = {"start_state": self.start_state, "settings": settings}
        if self.start_actions:
            options["start_actions"], _ = read_actions(self.start_actions)
        if self.play:
            ways, options = [(self._played(options), None)], {**options, "start_actions": ()}
        elif self.png:
            ways, options = [([], None)], {**options, "png": self.png}
        else:
            ways = [read_actions(path) for path in self.actions]
            options["traces"] = {
                path: trace for (_, trace), path in zip(ways, self.actions, strict=True) if trace is not None
            }
        (first, _), *more = ways
        recipe = GoalRecipe(self.rom, first, more_ways=[names for names, _ in more], **options)
        report_goal(recipe.make(self.out))

    def _played(self, options: dict[str, Any]) -> list[str]:
        """The solution that a person plays; its start goes into `options`."""
        from gbxcule_puffer.apps.play.play import show
        from gbxcule_puffer.apps.play.session import FLAGS, PlaySession
        from gbxcule_puffer.files import check_output_folder

        check_output_folder(self.out)
        session = PlaySession(out=None, goal=True, **{name: getattr(self, name) for name in FLAGS})
        for name in options.get("start_actions", ()):
            session.press(name)
        if session.actions:
            session.mark()
        show(session, self.display, self.address)
        if not session.reached:
            raise ConfigError("no goal was marked: play again and press g where the goal is reached")
        options["start_state"] = session.origin
        return session.actions


@command
class Calibrate(DeviceFlags):
    """Measure how well a goal's picture differs from all others; propose tau and k_consecutive."""

    dir: str = word(FOLDER, "DIR")
    truth: tuple[str, ...] = flag(
        (), "condition on RAM that holds at the goal, e.g. C0A3==5; repeat for more", metavar="CONDITION", repeat=True
    )
    apply: bool = flag(False, "write the proposed tau and k into the goal")
    steps: int = flag(20_000, "steps of random play", least=1)
    num_envs: int = flag(64, "Game Boys in parallel", least=1)
    max_steps: int | None = flag(None, "steps of an episode (default: the goal's own, else 128)", least=1)
    out: str | None = flag(None, "the PNG (default: DIR/calibration.png)", metavar="FILE")
    rom: str | None = flag(None, "Game Boy image (default: the goal's)", GAME, metavar="ROM")
    symbols: str | None = option_flag("symbols", GAME)

    def run(self) -> None:
        from gbxcule_puffer.pictures import png_target
        from gbxcule_puffer.tasks.goals.advice import hardly_apart, met_by_chance
        from gbxcule_puffer.tasks.goals.calibrate import calibrate, draw_histogram, read_task, rom_of
        from gbxcule_puffer.tasks.goals.template import GoalTemplate
        from gbxcule_puffer.tasks.ram.condition import parse_condition
        from gbxcule_puffer.tasks.ram.symbols import Symbols

        folder = Path(self.dir)
        path = png_target(self.out or folder / "calibration.png")
        symbols = Symbols.find_files(self.symbols, rom_of(folder, read_task(folder)[0], self.rom))
        truth = [parse_condition(text, "--truth", symbols) for text in self.truth]
        names = ("rom", "steps", "num_envs", "max_steps", "device", "seed")
        given = {name: getattr(self, name) for name in names}
        result = calibrate(self.dir, truth=truth, report=_progress(), **given)
        goal, _ = read_task(self.dir)
        draw_histogram(path, result, goal.meta, f"Goal {folder.resolve().name}")
        measured: dict[str, Any] = {}
        for label, tau, k in (
            ("now", goal.meta["tau"], goal.meta["k_consecutive"]),
            ("proposed", result.tau, result.k_consecutive),
        ):
            rates = result.rates(tau, k)
            measured = {"tau": tau, "k_consecutive": k, **rates}
            missed, false = f"{rates['false_negative']:.2%}", f"{rates['false_positive']:.4%}"
            goals = rates["false_goals"]
            print(f"{label:9} tau {tau:.5f}, k_consecutive {k}: {missed} of the steps at the goal are not recognised;")
            print(f"{'':9} of {rates['random_steps']:,} random steps {false} are, falsely, and {goals} runs of {k}")
        apart = goal.meta.get("calibration", {}).get("start_distance", 1.0)
        for advice in (hardly_apart(apart), met_by_chance(result.by_chance())):
            if advice is not None:
                print(f"warning: {advice}", file=sys.stderr)
        if self.apply:
            calibration = {**goal.meta.get("calibration", {}), "measured": measured}
            meta = {**goal.meta, "tau": result.tau, "k_consecutive": result.k_consecutive, "calibration": calibration}
            GoalTemplate(goal.frames, meta).save(folder / "goal")
            print(f"written   {folder / 'goal'}")
        print(f"histogram {path}")


@command
class Show:
    """Write a goal's pictures as PNG, and print the settings it was made for."""

    dir: str = word(FOLDER, "DIR")
    out: str | None = flag(None, "folder for the pictures (default: DIR/pictures)", metavar="DIR")

    def run(self) -> None:
        from gbxcule_puffer.files import make_folder
        from gbxcule_puffer.pictures import mosaic, save_png
        from gbxcule_puffer.tasks.goals.calibrate import read_task
        from gbxcule_puffer.tasks.goals.template import CHECKED_FIELDS

        goal, start = read_task(self.dir)
        out = make_folder(self.out or Path(self.dir) / "pictures")
        for i, frame in enumerate(goal.frames):
            save_png(out / f"goal{i}.png", frame)
        save_png(out / "goals.png", mosaic(goal.frames))
        for name in (*CHECKED_FIELDS, "tau", "k_consecutive"):
            value = goal.meta[name]
            print(f"{name:20} {f'{value:.5g}' if isinstance(value, float) else value}")
        print(f"{'start state':20} {start}")
        print(f"{'pictures':20} {len(goal.frames)} in {out}")


@command
class Stages:
    """Write a stages.json from finished goals."""

    dirs: tuple[str, ...] = word("folders of `puffer goal make`, in order", "DIR[:MAX_STEPS]")
    out: str = flag(help="the stages.json to write", metavar="FILE")

    def run(self) -> None:
        from gbxcule_puffer.tasks.goals.calibrate import read_task
        from gbxcule_puffer.tasks.stages.list import StageFiles, write_stages

        stages, sums = [], {}
        for text in self.dirs:
            name, _, limit = text.rpartition(":") if text.rpartition(":")[2].isdigit() else (text, "", "128")
            goal, start = read_task(name)
            folder = Path(name).resolve()
            stages.append(StageFiles(folder.name, start.resolve(), folder / "goal", int(limit)))
            sums[goal.meta["rom_sha256"]] = name
        if len(sums) > 1:
            raise ConfigError(f"{' and '.join(sums.values())} are of different ROMs: give goals of one ROM")
        write_stages(Path(self.out).resolve(), next(iter(sums)), stages)
        print(f"stages  {self.out}: {', '.join(f'{stage.name} ({stage.max_steps} steps)' for stage in stages)}")


COMMAND = {"make": Make, "calibrate": Calibrate, "show": Show, "stages": Stages}


def _progress() -> Callable[[int, int], None]:
    """A report of random play: a line on stderr every TELL_SECONDS."""
    reported = time.monotonic()

    def report(done: int, steps: int) -> None:
        nonlocal reported
        if time.monotonic() - reported >= TELL_SECONDS:
            reported = time.monotonic()
            print(f"{done:,} of {steps:,} random steps", file=sys.stderr, flush=True)

    return report


def report_goal(files: TaskFiles) -> None:
    """Prints the files that were made, and a warning if the goal hardly differs from its start."""
    from gbxcule_puffer.tasks.goals.advice import hardly_apart
    from gbxcule_puffer.tasks.goals.template import GoalTemplate

    goal = GoalTemplate.load(files.goal_dir)
    print(f"start state  {files.start_state}")
    count, away = len(goal.frames), len(goal.meta["solve_actions"])
    way = f", {away} actions away" if away else ""
    print(f"goal         {files.goal_dir}: {count} picture{'s' * (count > 1)}{way}")
    apart = goal.meta["calibration"]["start_distance"]
    print(f"tau          {goal.meta['tau']:.5f}; the start is {apart:.5f} away")
    if advice := hardly_apart(apart):
        print(f"warning: {advice}", file=sys.stderr)
