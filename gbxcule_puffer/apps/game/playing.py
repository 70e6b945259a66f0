"""Played episodes of a game: recorded as a trace, and played again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.games.game import Game
from gbxcule_puffer.games.levels import Levels
from gbxcule_puffer.games.make import make_game_env
from gbxcule_puffer.tasks.actions import checked_names
from gbxcule_puffer.tasks.goals.traces import Trace, picture_hash

SEED = 0  # of a game's start, where it is sampled


@dataclass(frozen=True)
class Episode:
    """A played episode: its trace, its score (the statistic that [scores] names; None without [scores]), its return,
    and whether it has ended with the trace's last action."""

    trace: Trace
    score: float | None
    total: float
    has_ended: bool


@torch.no_grad()
def play_episode(game: Game, names: Sequence[str], rom: StrPath | None = None) -> Episode:
    """The first episode of one Game Boy with these actions, on the first of the levels that [scores] are of.

    Raises: ConfigError for an action that the game does not have, and for actions after the end of the episode; the
    errors of make_game_env.
    """
    if not names:
        raise ConfigError("there are no actions in it: record an episode")
    levels = game.scored_levels
    first = None if levels is None else Levels(levels.first, 1)
    options = {"io": "torch", "autotune": False, "obs": "shades", "seed": SEED}
    env = make_game_env(game, GBxCuLEEnv, 1, levels=first, rom=rom, **options)
    try:
        if env.codec.factors or env.codec.frames:
            raise ConfigError(f"{game.source}: [env] action_codec: has no traces: give a list such as NOOP,A,UP+B")
        numbers = env.codec.parse(checked_names(names))
        env.reset(seed=SEED)
        start, total, has_ended = picture_hash(env.emulator.screen[0].cpu().numpy()), 0.0, False
        for number in numbers:
            if has_ended:
                raise ConfigError(f"the episode ends before the last of its {len(names):,} actions: record it again")
            _, rewards, terminals, truncations, _ = env.step(torch.tensor([number]))
            total += float(rewards[0])
            has_ended = bool(terminals[0] | truncations[0])
        succeeded = bool(terminals[0] & ~env.failures[0])  # pyright: ignore[reportPossiblyUnboundVariable]
        values = {name: float(each[0]) for name, each in env.statistics().items()} | {"success": float(succeeded)}
        schedule = (env.options.frames_per_step, env.options.release_after_frames)
        end = picture_hash(env.final_pictures()[0].cpu().numpy())
        trace = Trace(env.cartridge.sha256, *schedule, start, end, tuple(names))
    finally:
        env.close()
    score = None if game.scores is None else values[statistic_key(values, game.scores.statistic)]
    return Episode(trace, score, total, has_ended)


def statistic_key(values: Collection[str], name: str) -> str:
    """The full name of a statistic, which the infos have after the name of its Task.

    Raises: ConfigError for one that the game's Task does not have.
    """
    for key in values:
        if key == name or key.partition("/")[2] == name:
            return key
    raise ConfigError(f"[scores] statistic: {name!r:.60} is not one of the game: give one of {', '.join(values)}")


def replay(game: Game, rom: StrPath | None = None) -> Episode:
    """The episode of the game's played.json, played again.

    Raises: ConfigError if there is none, or it is of another ROM or schedule, or its pictures or its end differ.
    """
    if game.played is None:
        raise ConfigError(f"{game.folder}: there is no played.json: record it with `puffer play`")
    trace = Trace.load(game.played)
    found = play_episode(game, trace.actions, rom)
    trace.check(game.played, found.trace.rom_sha256, found.trace.frames_per_step, found.trace.release_after_frames)
    for name in ("start_picture", "end_picture"):
        if getattr(trace, name) != getattr(found.trace, name):
            raise ConfigError(f"{game.played}: replays to another {name.replace('_', ' ')}: record it again")
    if not found.has_ended:
        raise ConfigError(f"{game.played}: stops before its episode ends: record it to the end")
    return found
