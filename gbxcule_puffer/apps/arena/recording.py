"""From a run's folder to its record, and from a record to the proof that it is true."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from gbxcule_puffer.apps.arena.records import KIND, SECONDS, STEPS, TEST, TRAIN, Record, with_states
from gbxcule_puffer.apps.arena.replays import LETTERS, RETURN, SUCCESS, Episodes, differences, play, replay
from gbxcule_puffer.commandline import parse
from gbxcule_puffer.device import resolve_device
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.options import EPISODES, PICTURE, TASK, EnvOptions
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.files import StrPath, parse_json, read_object, read_text
from gbxcule_puffer.games import Game, load_game, own_games
from gbxcule_puffer.layout import trainer_scripts, trainers
from gbxcule_puffer.tasks.task import PREFIX
from gbxcule_puffer.trainers.envs import make_env
from gbxcule_puffer.trainers.flags import CODE, PATHS, RunFlags, flags_of
from gbxcule_puffer.trainers.folder import MANIFEST, METRICS, RUN
from gbxcule_puffer.trainers.runlog import LIMIT, TAGS
from gbxcule_puffer.trainers.trained import Trained, load_script
from gbxcule_puffer.trainers.weights import write_weights

SEED = 1_000_003  # of the final evaluations
POINTS = 60  # of a curve
AT_END = "eval/random_return"  # in the last record of a run that has ended
# Options that an agent may choose for a game: what it observes; curriculum and stagger are left out of evaluations.
FREE = {"obs", "stack_k", "ram_obs", "visited_obs", "action_obs", "curriculum", "stagger", "symbols", "position"}
FIXED = [
    each.name
    for each in fields(EnvOptions)
    if each.metadata["subject"] in (PICTURE, TASK, EPISODES) and each.name not in FREE
]
FIXED += ["header", "model", "env", "variant"]


def has_ended(run: Path) -> bool:
    """True for a run's folder whose training has come to its end; False for one that was cut off, be it in a line."""
    path = run / METRICS
    try:
        lines = _lines(path) if path.exists() else ()
    except StateError:
        return False
    return bool(lines) and AT_END in lines[-1]


def record_run(
    run: StrPath, agent: str | None, episodes: int, device: str, jobs: int = 1, weights: StrPath | None = None
) -> tuple[Record, list[str]]:
    """The record of a run that has ended: its final evaluations, played now, and replayed on a CPU; and where the two
    differ, which is an error of the emulator. agent: its name in tables, of None the trainer's; weights:
    a file to write, in half precision, with which the evaluations are then played.

    Raises: StateError for a folder without a run; ConfigError for one whose game has no name here, or was trained with
    settings that are not its own.
    """
    run, trained = Path(run), Trained(run)
    settings = {name: value for name, value in trained.checkpoint["args"].items() if value is not None}
    game = _game(settings, f"{run}")
    if unlike := unlike_game(trained.args, bare_flags(trained.script.EXP_NAME, game.name)):
        raise ConfigError(f"{run}: {unlike[0]}: train with --game {game.name}, and without this flag")
    levels: dict[str, str | None] = {TRAIN: settings.get("levels")}
    if game.levels is not None and game.levels.test is not None:
        levels[TEST] = TEST
    curve, seconds = curve_of(run), _seconds(run)
    sha256 = "" if weights is None else write_weights(weights, trained.checkpoint)
    played = {name: _played(weights or run, episodes, device, chosen) for name, chosen in levels.items()}
    manifest = read_object(run / MANIFEST, RUN)
    record = Record(
        game=game.name,
        agent=agent or name_of(trained.script.EXP_NAME),
        script=trained.script.EXP_NAME,
        seed=settings["seed"],
        num_envs=settings["num_envs"],
        steps=trained.checkpoint["counters"]["global_step"],
        seconds=seconds,
        device=str(manifest.get("device_name")),
        jobs=jobs,
        git_sha=str(manifest.get("git_sha")),
        versions=manifest.get("versions", {}),
        rom_sha256=game.rom.sha256,
        weights_sha256=sha256,
        settings=settings,
        curve=curve,
        evaluations=played,
    )
    again = dict(replays(record))
    found = [f"{name}: {line}" for name, each in played.items() for line in differences(each, again[name])]
    return with_states(record, {name: each.states for name, each in again.items()}), found


def _played(run: StrPath, episodes: int, device: str, levels: str | None) -> Episodes:
    trained = Trained(run)
    env = trained.open_env(episodes, resolve_device(device), SEED, levels=levels)
    try:
        found = play(trained.policy(env, SEED, greedy=False), env, SEED)
        known = {name: each for name, each in found.values.items() if not any(map(math.isnan, each))}
        return replace(found, values=known)  # others are of some episodes only
    finally:
        env.close()


def name_of(script: str) -> str:
    """A trainer's name for people: ppo for ppo_lite."""
    return next((name for name, path in trainers().items() if path.stem == script), script)


def statistic_of(game: Game) -> str:
    """The game's score: what [scores] names, else the return."""
    return RETURN if game.scores is None else game.scores.statistic


def score_text(record: Record) -> str:
    """The score of a record in words."""
    statistic = statistic_of(load_game(record.game))
    return f"{statistic} {record.score(statistic):.4g} ({record.last} levels)"


def verify(record: Record, source: StrPath = "record") -> list[str]:
    """Replays all episodes of a record on a CPU. Returns a line for each difference from the record, and for each
    setting that is not the game's: none if the record is true. A folder may pay for something else later, or count
    other things: the return is compared only where it is the score, and of the statistics those that the folder has.

    Raises: StateError for settings that no run has, or of another ROM; and the errors of its game.
    """
    if found := unlike_game(_flags(record, source), bare_flags(record.script, record.game)):
        return found
    game = load_game(record.game)
    for name, each in replays(record, source):
        recorded = record.evaluations[name]
        left_out = {RETURN, *(recorded.values.keys() - each.values.keys())} - {statistic_of(game)}
        found += [f"{name}: {line}" for line in differences(recorded, each, left_out)]
    for name, each in record.evaluations.items():
        if each.seed != SEED:
            found.append(f"{name}: played with seed {each.seed}, all final evaluations have {SEED}")
        if statistic_of(game) not in each.values:
            found.append(f"{name}: no {statistic_of(game)}, which is the game's score")
    if game.levels is not None and game.levels.test is not None and TEST not in record.evaluations:
        found.append("no evaluation on the test levels")
    return found


def replays(record: Record, source: StrPath = "record") -> Iterator[tuple[str, Episodes]]:
    """Each evaluation by its name, played again from its actions in the game as its folder describes it.

    Raises: as `verify`.
    """
    trained_on = _flags(record, source).levels
    for name, episodes in record.evaluations.items():
        args = bare_flags(record.script, record.game)
        args.levels = TEST if name == TEST else trained_on
        env = make_env(args, len(episodes.actions), "cpu", {}, episodes.seed, incentives=False)
        assert isinstance(env, GBxCuLEEnv)
        try:
            known = LETTERS[: env.codec.num_actions]
            if not set().union(*episodes.actions) <= set(known):
                raise KIND.bad(source, f"has an action that the game does not have: they are {known}")
            if (longest := max(episodes.lengths)) > env.max_steps:
                raise KIND.bad(
                    source, f"has an episode of {longest:,} steps, the game's have at most {env.max_steps:,}"
                )
            yield name, replay(env, episodes)
        finally:
            env.close()


def _flags(record: Record, source: StrPath) -> RunFlags:
    """The flags of the run.

    Raises: StateError.
    """
    scripts = trainer_scripts()
    if record.script not in scripts:
        raise KIND.bad(source, f"is of a trainer {record.script!r:.40} that is not here")
    game = _game(record.settings, source)
    if game.name != record.game:
        raise KIND.bad(source, f"is of the game {record.game!r:.40}, and its run of {game.name}")
    if game.rom.sha256 != record.rom_sha256:
        raise KIND.bad(source, f"is of another ROM of {record.game} than the one here")
    script = load_script(scripts[record.script])
    return flags_of(script.Args, record.settings, Path(source), script.EXP_NAME)


def bare_flags(script: str, game: str) -> RunFlags:
    """The flags that a trainer has for a game where no others are given."""
    return parse(load_script(trainer_scripts()[script]).Args, script, None, ["--game", game])


def unlike_game(args: RunFlags, bare: RunFlags) -> list[str]:
    """Settings that are not the game's, a line each: its limits, actions, start, reward and ends are for nobody to
    change."""
    return [
        f"{name} is {getattr(args, name)!s:.40}, the game's is {getattr(bare, name)!s:.40}"
        for name in FIXED
        if getattr(args, name) != getattr(bare, name)
    ]


def _game(settings: Mapping[str, Any], source: StrPath) -> Game:
    """The game of a run's flags, one that comes with the package: nothing that a record names is a file.

    Raises: ConfigError.
    """
    name = settings.get("game")
    if not isinstance(name, str) or name not in own_games():
        raise ConfigError(f"{source}: its game {name!r:.40} is none of puffer game list: train with --game NAME")
    for each in (*PATHS, CODE):
        if settings.get(each) is not None:
            raise ConfigError(f"{source}: a record has no files, and this one names {each}: train without it")
    return load_game(name)


def curve_of(run: Path) -> dict[str, list[float]]:
    """Columns with the steps, the seconds, and means of the training's own episodes: success, return and the game's
    statistics; at most POINTS points, each of all episodes since the one before."""
    rows = [row for row in _lines(run / METRICS) if row.get("env/episodes") and TAGS["episode_return"] in row]
    names = {TAGS["episode_return"]: RETURN, TAGS["success"]: SUCCESS}
    prefix = f"env/{PREFIX}"
    names |= {tag: tag.removeprefix(prefix) for row in rows for tag in row if tag.startswith(prefix)}
    names = {tag: name for tag, name in names.items() if all(isinstance(row.get(tag), int | float) for row in rows)}
    found: dict[str, list[float]] = {each: [] for each in (STEPS, SECONDS, *names.values())}
    size = max(1, math.ceil(len(rows) / POINTS))
    for first in range(0, len(rows), size):
        part = rows[first : first + size]
        count = sum(row["env/episodes"] for row in part)
        found[STEPS].append(part[-1]["global_step"])
        found[SECONDS].append(round(part[-1]["charts/seconds"], 3))
        for tag, name in names.items():
            found[name].append(round(sum(row[tag] * row["env/episodes"] for row in part) / count, 5))
    return found


def _seconds(run: Path) -> float:
    """Seconds of a run up to its last step."""
    found = [row["charts/seconds"] for row in _lines(run / METRICS) if "charts/seconds" in row]
    if not found:
        raise ConfigError(f"run {run} is too short for a curve: it has no record of its training")
    return round(found[-1], 3)


def _lines(path: Path) -> Sequence[dict[str, Any]]:
    """The records of metrics.jsonl. Raises: StateError."""
    lines: list[Any] = [parse_json(line, path, RUN) for line in read_text(path, RUN, LIMIT).splitlines()]
    return lines
