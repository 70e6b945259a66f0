"""The parts of a game's folder as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gbxcule_puffer.emulator.schedule import MOST_FRAMES
from gbxcule_puffer.games.levels import Levels
from gbxcule_puffer.games.terms.nodes import Tape
from gbxcule_puffer.layout import GAME_FILE
from gbxcule_puffer.tasks.actions import Schedule
from gbxcule_puffer.tasks.ram.number import Number

FORMAT, VERSION, FILE = "gbxcule-game", 1, GAME_FILE
PLAYED = "played.json"  # a trace of an episode that was played well
KINDS = ("action", "puzzle", "board", "maze", "platform", "roguelike", "racing", "shooter", "quest", "other")
MAX_STEPS = 128  # of an episode, where neither the game nor the user says


@dataclass(frozen=True)
class Until:
    """The end of a start: the condition `node` of `tape`, whose numbers are `numbers`; until it holds, the actions
    `repeat` are repeated, for at most `most_steps` steps. text: the condition as it is written."""

    text: str
    tape: Tape
    numbers: tuple[Number, ...]
    node: int
    repeat: tuple[str, ...]
    most_steps: int


@dataclass(frozen=True)
class Start:
    """The starts of episodes: state files, and the names of actions that lead on from there, or from power-on, in steps
    of `schedule`, and what follows them."""

    states: tuple[Path, ...] = ()
    actions: tuple[str, ...] = ()
    schedule: Schedule = field(default_factory=Schedule)
    until: Until | None = None

    @property
    def is_played(self) -> bool:
        """True if buttons lead to where episodes begin."""
        return bool(self.actions) or self.until is not None

    def after(self, frames: int) -> Start:
        """The same, with a wait of as many frames before its actions."""
        whole, rest = divmod(frames, MOST_FRAMES)
        waits = [f"NOOP:{MOST_FRAMES}"] * whole + ([f"NOOP:{rest}"] if rest else [])
        return replace(self, actions=(*waits, *self.actions))


@dataclass(frozen=True)
class LevelTable:
    """Levels: `train` and `test` ones, and the bytes that write a level from `where` on, nodes of `tape`, whose only
    number is the level; where is None if a Task writes them. Or a level is a wait of `wait` frames times its number,
    before the buttons that lead to where episodes begin."""

    train: Levels
    test: Levels | None = None
    where: int | tuple[int, int] | None = None
    tape: Tape = field(default_factory=Tape)
    values: tuple[int, ...] = ()
    wait: int = 0


@dataclass(frozen=True)
class Scores:
    """The scores of whole episodes in `statistic`, a name of [statistics] or [milestones], or `success`: the mean of
    episodes without a button and with random ones, the episode of PLAYED, and from which mean on the game counts as
    solved. Of a game with levels: on its test levels, and PLAYED on the first of them."""

    statistic: str
    noop: float
    random: float
    played: float
    solved: float

    def normalised(self, score: float) -> float:
        """A score on the scale of the game: 0 is random play, 1 the played episode's."""
        return (score - self.random) / (self.played - self.random)


@dataclass(frozen=True)
class Terms:
    """Reward and ends of an episode: nodes of `tape`, whose numbers are `numbers`. statistics, milestones: by
    name; blocked: by the name of the action."""

    tape: Tape = field(default_factory=Tape)
    numbers: tuple[Number, ...] = ()
    reward: int | None = None
    success: int | None = None
    failure: int | None = None
    truncation: int | None = None
    statistics: Mapping[str, int] = field(default_factory=dict)
    milestones: Mapping[str, int] = field(default_factory=dict)
    blocked: Mapping[str, int] = field(default_factory=dict)
