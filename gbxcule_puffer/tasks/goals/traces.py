"""Action traces: the actions of a person or a program, step by step, and hashes that check a replay."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass

import numpy as np

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import Kind, StrPath, parse_json, read_object, read_text, write_json
from gbxcule_puffer.tasks.actions import BUTTONS, action_of

FORMAT, VERSION = "gbxcule-trace", 1
TRACE_FILE = Kind("trace", ConfigError, "record it with `puffer play`")
ACTIONS_FILE = Kind("actions", ConfigError, "give a trace, a list or a text of action names")
LIMIT = 32 * 2**20  # bytes, about three million actions


def picture_hash(picture: np.ndarray) -> str:
    """SHA-256 of a picture's every second line and column, hex: 144x160 and 72x80 give the same."""
    half = picture[::2, ::2] if picture.shape == (144, 160) else picture
    return hashlib.sha256(np.ascontiguousarray(half, np.uint8).tobytes()).hexdigest()


@dataclass(frozen=True)
class Trace:
    """Named actions of a ROM with one schedule, and hashes of the pictures before the first and after the last. In
    real-time play each action is one frame: frames_per_step and release_after_frames are 1."""

    rom_sha256: str
    frames_per_step: int
    release_after_frames: int
    start_picture: str
    end_picture: str
    actions: tuple[str, ...]

    def save(self, path: StrPath) -> None:
        """Writes the file completely or not at all."""
        write_json(path, {"format": FORMAT, "version": VERSION, **asdict(self)})

    @classmethod
    def load(cls, path: StrPath) -> Trace:
        """Reads a trace.

        Raises: ConfigError for a missing, damaged or foreign file, an old version or an unknown action.
        """
        spec = read_object(path, TRACE_FILE, FORMAT, VERSION, LIMIT)
        del spec["format"], spec["version"]
        kinds = {"frames_per_step": int, "release_after_frames": int, "actions": list}
        if set(spec) != set(cls.__dataclass_fields__) or not all(
            isinstance(value, kinds.get(name, str)) for name, value in spec.items()
        ):
            raise TRACE_FILE.bad(path, "its fields are not those of a trace", again=True)
        unknown = [name for name in spec["actions"] if not _is_action(name)]
        if unknown:
            raise TRACE_FILE.bad(path, f"action {unknown[0]!r} is unknown", again=True)
        return cls(**{**spec, "actions": tuple(spec["actions"])})

    def check(self, source: StrPath, rom_sha256: str, frames_per_step: int, release_after_frames: int) -> None:
        """Raises: ConfigError if the trace is of another ROM or schedule; the message names both values."""
        for name, wanted in (
            ("rom_sha256", rom_sha256),
            ("frames_per_step", frames_per_step),
            ("release_after_frames", release_after_frames),
        ):
            own = getattr(self, name)
            if own != wanted:
                raise ConfigError(f"trace {source}: was recorded with {name} {own}, not {wanted}: give the same")


def _is_action(name: object) -> bool:
    """True for the name of a button, of several held together, or NOOP."""
    return isinstance(name, str) and set(name.split("+")) <= BUTTONS.keys() and action_of(name.split("+")) == name


def read_actions(path: StrPath) -> tuple[list[str], Trace | None]:
    """(action names, the trace they come from): from a trace, a JSON list, or a text of names separated by blanks or
    lines.

    Raises: ConfigError if the file cannot be read or is none of them.
    """
    text = read_text(path, ACTIONS_FILE, LIMIT)
    if text.lstrip().startswith("{"):
        trace = Trace.load(path)
        return list(trace.actions), trace
    if not text.lstrip().startswith("["):
        return text.split(), None
    names = parse_json(text, path, ACTIONS_FILE)
    assert isinstance(names, list)  # JSON that begins with a bracket
    return [str(name) for name in names], None
