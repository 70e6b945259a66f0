"""Records of runs: one JSON file with the training, the scores, and the action traces that prove them."""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, get_type_hints

from gbxcule_puffer.apps.arena.replays import LETTERS, RETURN, SUCCESS, Episodes
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.files import Kind, StrPath, inflate, read_object, write_text

FORMAT, VERSION = "gbxcule-arena", 1
KIND = Kind("arena record", StateError, "give a file of puffer arena record")
LARGEST, MOST_EPISODES, MOST_VALUES = 2**24, 1024, 256  # bytes of a record, episodes of an evaluation, their values
MOST_CURVE = 10_000  # points
STEPS, SECONDS = "steps", "seconds"  # of a curve
TRAIN, TEST = "train", "test"  # evaluations: on the levels of the training, or the start as it is; on the test levels
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")  # of a game, an agent, a script
DIGEST = re.compile(r"[0-9a-f]{32}")
LIST, LINE_BREAK = re.compile(r"\[\n\s*([^][{}]*?)\n\s*\]"), re.compile(r"\n\s*")  # of indented JSON


@dataclass(frozen=True)
class Record:
    """A run of an agent on a game.

    agent: its name in tables; script: the trainer of cleanrl_style; steps: over all Game Boys; seconds: of training;
    jobs: runs that shared the device; weights_sha256: of the file with which the evaluations were played, empty for the
    run's checkpoint; settings: the run's flags, without files; curve: columns with STEPS, SECONDS, SUCCESS, RETURN and
    the game's statistics of the training's own episodes; evaluations: the final ones, TRAIN and TEST.
    """

    game: str
    agent: str
    script: str
    seed: int
    num_envs: int
    steps: int
    seconds: float
    device: str
    jobs: int
    git_sha: str
    versions: Mapping[str, str]
    rom_sha256: str
    weights_sha256: str
    settings: Mapping[str, Any]
    curve: Mapping[str, Sequence[float]]
    evaluations: Mapping[str, Episodes]

    def score(self, statistic: str, evaluation: str | None = None) -> float:
        """The mean of a value of an evaluation's episodes; of None on the test levels, where there are any.

        Raises: StateError for a statistic that the record does not have.
        """
        values = self.evaluations[evaluation or self.last].values
        if statistic not in values:
            raise KIND.bad(self.label, f"does not have {statistic!r:.60}, the score of {self.game}")
        return math.fsum(values[statistic]) / len(values[statistic])

    @property
    def last(self) -> str:
        """The evaluation that counts: on the test levels, where there are any."""
        return TEST if TEST in self.evaluations else TRAIN

    @property
    def label(self) -> str:
        """Its name in messages and of its file."""
        return f"{self.game}__{self.agent}__{self.seed}"

    def write(self, path: StrPath) -> None:
        """Writes the file: JSON, a list in a line, packed actions. Raises: StorageError."""
        content = {"format": FORMAT, "version": VERSION, **asdict(self)}
        for each in content["evaluations"].values():
            each["actions"] = packed(each["actions"])
        text = json.dumps(content, indent=1, allow_nan=False)
        flat = LIST.sub(lambda found: f"[{re.sub(LINE_BREAK, ' ', found[1])}]", text)
        write_text(path, flat + "\n")


def packed(actions: Sequence[str]) -> dict[str, Any]:
    """Texts of actions as a record has them: their `lengths`, and all in one, `packed` by zlib as base64."""
    data = zlib.compress("".join(actions).encode(), 9)
    return {"lengths": [len(each) for each in actions], "packed": base64.b64encode(data).decode()}


def unpacked(found: object) -> list[Any]:
    """The texts that `packed` made of them; a list, as older records have, as it is; of anything else none."""
    if isinstance(found, list):
        return found
    lengths, text = (found.get(name) for name in ("lengths", "packed")) if isinstance(found, dict) else (None, None)
    if not isinstance(lengths, list) or not all(type(each) is int and 0 < each < LARGEST for each in lengths):
        return []
    try:
        data = base64.b64decode(text if isinstance(text, str) else "", validate=True)
    except ValueError:
        return []
    ends = list(accumulate(lengths))
    whole = inflate(data, ends[-1]) if ends and ends[-1] <= LARGEST else None
    if whole is None or not whole.isascii():
        return []
    return [whole[end - length : end].decode() for end, length in zip(ends, lengths, strict=True)]


def read_record(path: StrPath) -> Record:
    """A record from a file, which may be a stranger's: types and ranges are checked, not whether it is true (verify).

    Raises: StateError.
    """
    found = read_object(path, KIND, FORMAT, VERSION, LARGEST)
    hints = get_type_hints(Record)
    for each in fields(Record):
        value = found.get(each.name)
        kind = {str: str, int: int, float: (int, float)}.get(hints[each.name])
        kind = kind or dict
        if not isinstance(value, kind) or isinstance(value, bool):
            raise KIND.bad(path, f"is damaged ({each.name} is {value!r:.40})")
        if isinstance(value, int | float) and not abs(value) < 2**63:
            raise KIND.bad(path, f"is damaged ({each.name} is out of range)")
    for name in ("game", "agent", "script"):
        if not NAME.fullmatch(found[name]):
            raise KIND.bad(path, f"has a name with other than letters, digits and _.+- in it ({name})")
    columns, steps = found["curve"], found["curve"].get(STEPS)
    count = len(steps) if isinstance(steps, list) else 0
    if not {STEPS, SECONDS} <= columns.keys() or not _are_numbers(columns, count) or count > MOST_CURVE:
        raise KIND.bad(path, "is damaged (curve)")
    evaluations = found["evaluations"]
    if TRAIN not in evaluations or not evaluations.keys() <= {TRAIN, TEST}:
        raise KIND.bad(path, f"is damaged (evaluations are {TRAIN} and {TEST})")
    own = {name: _episodes(value, path) for name, value in evaluations.items()}
    values: dict[str, Any] = {each.name: found[each.name] for each in fields(Record)}
    return Record(**{**values, "evaluations": own})


def _are_numbers(columns: Mapping[str, Any], count: int) -> bool:
    """True for named lists with `count` numbers each."""
    return len(columns) <= MOST_VALUES and all(
        isinstance(column, list) and len(column) == count and all(type(each) in (int, float) for each in column)
        for column in columns.values()
    )


def _episodes(found: object, path: StrPath) -> Episodes:
    if not isinstance(found, dict) or found.keys() != {each.name for each in fields(Episodes)}:
        raise KIND.bad(path, "is damaged (an evaluation)")
    states, values, seed = (found[name] for name in ("states", "values", "seed"))
    actions = unpacked(found["actions"])
    count = len(actions)
    if not 1 <= count <= MOST_EPISODES or not isinstance(states, list) or len(states) != count:
        raise KIND.bad(path, f"is damaged (episodes: from 1 to {MOST_EPISODES})")
    if not all(isinstance(each, str) and each and set(each) <= set(LETTERS) for each in actions):
        raise KIND.bad(path, "is damaged (actions)")
    if not all(isinstance(each, str) and DIGEST.fullmatch(each) for each in states):
        raise KIND.bad(path, "is damaged (states)")
    if not isinstance(values, dict) or not {SUCCESS, RETURN} <= values.keys() or not _are_numbers(values, count):
        raise KIND.bad(path, "is damaged (values)")
    if type(seed) is not int or not abs(seed) < 2**62:
        raise KIND.bad(path, "is damaged (seed)")
    return Episodes(seed, actions, {name: list(map(float, each)) for name, each in values.items()}, states)


def with_states(record: Record, states: Mapping[str, Sequence[str]]) -> Record:
    """The record with the digests of its evaluations' last states."""
    own = {name: replace(each, states=list(states[name])) for name, each in record.evaluations.items()}
    return replace(record, evaluations=own)


def find_records(paths: Sequence[StrPath]) -> list[Path]:
    """The files of records: those given, and those in folders that are given, sorted.

    Raises: StateError where there is none.
    """
    found = []
    for path in map(Path, paths):
        own = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not own:
            raise KIND.bad(path, "has no records in it")
        found += own
    return found
