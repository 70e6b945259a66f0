"""Action codecs: the buttons of each action index, for the Warp joypad and for PyBoy, and the press/release
schedule."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from gbxcule_puffer.emulator.schedule import FRAMES_PER_STEP, MOST_FRAMES, RELEASE_AFTER_FRAMES
from gbxcule_puffer.errors import ActionError, ConfigError

if TYPE_CHECKING:
    import gymnasium
    import torch

# name: (D-pad mask, button mask, PyBoy press event). Mask bits are P1's (Pan Docs, "Joypad Input"), here 1 = pressed;
# the events are pyboy.utils.WindowEvent, whose releases lie RELEASE above the presses (tests/tasks/test_actions.py).
BUTTONS: dict[str, tuple[int, int, int | None]] = {
    "NOOP": (0, 0, None),
    "RIGHT": (1, 0, 3),
    "LEFT": (2, 0, 4),
    "UP": (4, 0, 1),
    "DOWN": (8, 0, 2),
    "A": (0, 1, 5),
    "B": (0, 2, 6),
    "SELECT": (0, 4, 7),
    "START": (0, 8, 8),
}
RELEASE = 8
OWN_VERSION = -1  # of codecs that are written as a list of actions
MOST_ACTIONS = 256  # all combinations of the eight buttons
MOST_STEPS = 2**31 - 1  # of an attempt: the kernels count them
STEPS = f"at least 1 and at most {MOST_STEPS:,}"


def buttons_of(action: str) -> int:
    """The byte for `Emulator.step` of an action's name: NOOP, a button, or several joined by `+`.

    Raises: KeyError for another name.
    """
    parts = [BUTTONS[part] for part in without_frames(action).split("+")]
    return sum(dpad | button << 4 for dpad, button, _ in parts)


def frames_of(action: str) -> int:
    """The number of frames in an action's name, as in NOOP:60; 0 if it takes frames_per_step."""
    return int(action.partition(":")[2] or 0)


def without_frames(action: str) -> str:
    """An action's name without its number of frames."""
    return action.partition(":")[0]


def all_buttons_of(actions: Iterable[str]) -> list[int]:
    """`buttons_of` for each action's name, of any codec.

    Raises: ActionError for a text that is not an action.
    """
    found = []
    for i, name in enumerate(actions):
        if not set(name.split("+")) <= BUTTONS.keys():
            known = f"give {', '.join(BUTTONS)}, or several with + between them"
            raise ActionError(f"action {i} is {name!r:.40}, which is not a button: {known}")
        found.append(buttons_of(name))
    return found


def checked_names(actions: Iterable[str]) -> list[str]:
    """Actions' names as codecs have them, 'A+UP' or 'NOOP:60', of texts such as 'up+a' or 'NOOP:60'.

    Raises: ActionError for a text that is not an action.
    """
    found = []
    for i, name in enumerate(actions):
        pressed, colon, frames = name.upper().partition(":")
        buttons, frames = sorted(pressed.strip().split("+")), frames.strip()
        known = set(buttons) <= BUTTONS.keys() and len(set(buttons)) == len(buttons)
        if not known or (len(buttons) > 1 and "NOOP" in buttons):
            remedy = f"give {', '.join(BUTTONS)}, or several with + between them"
            raise ActionError(f"action {i} is {name!r:.40}, which is not a button: {remedy}")
        if colon and not (frames.isdecimal() and len(frames) < 6 and 1 <= int(frames) <= MOST_FRAMES):
            raise ActionError(f"action {i} is {name!r:.40}, whose frames are not from 1 to {MOST_FRAMES:,}")
        found.append("+".join(buttons) + (f":{int(frames)}" if colon else ""))
    return found


def are_names(value: object) -> bool:
    """True for a list of texts, which is how files store the names of actions."""
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def is_steps(value: object) -> bool:
    """True for a whole number in the range of STEPS."""
    return type(value) is int and 1 <= value <= MOST_STEPS


def action_of(buttons: Iterable[str]) -> str:
    """The name of the action that presses these buttons: 'NOOP', 'UP', 'A+UP'."""
    return "+".join(sorted(set(buttons) - {"NOOP"})) or "NOOP"


@dataclass(frozen=True)
class ActionCodec:
    """A named, versioned order of actions; `version` is the id in kernels and artifacts. An action is a button, NOOP,
    or several buttons at once, such as UP+B, and may have its own number of frames, such as NOOP:60.

    `factors`: the number of options of each choice, for a codec whose actions consist of several choices at once. Its
    actions are all combinations, with the last choice changing fastest; inside the env they have these numbers.
    """

    name: str
    version: int
    actions: tuple[str, ...]
    factors: tuple[int, ...] = ()

    @property
    def num_actions(self) -> int:
        return len(self.actions)

    @property
    def space(self) -> gymnasium.Space:
        """Discrete, or MultiDiscrete if an action consists of several choices."""
        from gymnasium.spaces import Discrete, MultiDiscrete  # imported only where spaces are needed

        return MultiDiscrete(list(self.factors)) if self.factors else Discrete(self.num_actions)

    def join(self, choices: torch.Tensor) -> torch.Tensor:
        """Action numbers (n,) from their choices (n, factors), integers; -1 if a choice is out of range."""
        numbers, inside = choices[:, 0] * 0, choices[:, 0] == choices[:, 0]
        for column, size in zip(choices.unbind(1), self.factors, strict=True):
            numbers, inside = numbers * size + column, inside & (column >= 0) & (column < size)
        return numbers.masked_fill(~inside, -1)

    def split(self, actions: torch.Tensor) -> list[torch.Tensor]:
        """The choices, each (n,), from action numbers (n,)."""
        found: list[torch.Tensor] = []
        for size in reversed(self.factors):
            actions, choice = actions // size, actions % size
            found.insert(0, choice)
        return found

    def to_pyboy_press(self, action: int) -> int | None:
        """The pyboy.utils.WindowEvent that presses `action`; None for NOOP.

        Raises: ActionError for an action of several buttons.
        """
        name = without_frames(self._name(action))
        if name not in BUTTONS:
            raise ActionError(f"action {name} presses several buttons: take to_joypad_mask")
        return BUTTONS[name][2]

    def to_pyboy_release(self, action: int) -> int | None:
        """The pyboy.utils.WindowEvent that releases `action`; None for NOOP."""
        press = self.to_pyboy_press(action)
        return None if press is None else press + RELEASE

    def to_joypad_mask(self, action: int) -> tuple[int, int]:
        """(dpad_mask, button_mask), bits 0-3 RIGHT LEFT UP DOWN and A B SELECT START, 1 = pressed."""
        both = buttons_of(self._name(action))
        return both & 0x0F, both >> 4

    def to_buttons(self, action: int) -> int:
        """Both masks in the one byte that `Emulator.step` takes: bits 0-3 the D-pad, bits 4-7 the buttons."""
        return buttons_of(self._name(action))

    @property
    def frames(self) -> tuple[int, ...]:
        """Frames of each action, 0 for frames_per_step; empty if no action has its own number."""
        found = tuple(map(frames_of, self.actions))
        return found if any(found) else ()

    def parse(self, names: Iterable[str]) -> list[int]:
        """Action indices of `names`, e.g. ["UP", "A"].

        Raises: ActionError for a name that this codec does not have.
        """
        indices = []
        for i, name in enumerate(names):
            if name not in self.actions:
                raise ActionError(f"action {i} is {name!r}, which {self.name} lacks: use {' '.join(self.actions)}")
            indices.append(self.actions.index(name))
        return indices

    def _name(self, action: int) -> str:
        if not 0 <= action < self.num_actions:
            raise ActionError(f"action {action} is out of range: {self.name} takes 0..{self.num_actions - 1}")
        return self.actions[action]


CODECS: dict[str, ActionCodec] = {
    codec.name: codec
    for codec in (
        ActionCodec("pokemonred_puffer_v0", 0, ("A", "B", "START", "UP", "DOWN", "LEFT", "RIGHT")),
        ActionCodec("pokemonred_puffer_v1", 1, ("NOOP", "A", "B", "START", "UP", "DOWN", "LEFT", "RIGHT")),
    )
}
# Written as a user would write them.
NAMED = {
    "multi_binary": "NOOP,A/NOOP,B/NOOP,SELECT/NOOP,START/NOOP,UP/NOOP,DOWN/NOOP,LEFT/NOOP,RIGHT",
    "multi_discrete": "NOOP,UP,DOWN,LEFT,RIGHT/NOOP,A,B,A+B/NOOP,START,SELECT",
}
DEFAULT_CODEC = "pokemonred_puffer_v1"


def get_codec(name: str) -> ActionCodec:
    """The codec called `name`, or the codec that `name` lists: actions separated by commas, each of them NOOP, a
    button, or several joined by `+`, such as 'NOOP,A,B,SELECT,UP+B', optionally with a colon and the number of frames:
    'NOOP:60'. Several lists separated by slashes are choices that are made at once: 'NOOP,UP,DOWN/NOOP,A,B'.

    Raises: ConfigError for another text; the message lists the known names.
    """
    if name in CODECS:
        return CODECS[name]
    lists = [_parse_list(name, part) for part in NAMED.get(name, name).split("/")]
    if math.prod(len(choices) for choices in lists) > MOST_ACTIONS:
        raise ConfigError(f"action_codec {name!r:.80} has more than {MOST_ACTIONS} combinations: leave some out")
    if len(lists) == 1:
        actions = tuple(lists[0])
    elif ":" in name:
        raise ConfigError(f"action_codec {name!r:.80} has frames in choices made at once: give one list of actions")
    else:
        actions = tuple(action_of("+".join(choices).split("+")) for choices in product(*lists))
    if len(set(actions)) < len(actions):
        raise ConfigError(f"action_codec {name!r:.80} has an action twice: leave one out")
    factors = tuple(len(choices) for choices in lists) if len(lists) > 1 else ()
    own = name if name in NAMED else "/".join(",".join(choices) for choices in lists)
    return ActionCodec(own, OWN_VERSION, actions, factors)


def _parse_list(name: str, text: str) -> list[str]:
    """The actions of one list of the codec `name`."""
    parts = [action.upper().partition(":") for action in text.split(",")]
    if len(parts) < 2:
        known = f"give one of {', '.join((*CODECS, *NAMED))}, or a list such as NOOP,A,B,SELECT,UP+B"
        raise ConfigError(f"action_codec {name!r:.80} is unknown: {known}")
    actions = []
    for pressed, colon, frames in parts:
        buttons, frames = sorted(pressed.strip().split("+")), frames.strip()
        action = "+".join(buttons)
        if colon and not (frames.isdecimal() and len(frames) < 6 and 1 <= int(frames) <= MOST_FRAMES):
            given = f"{action}:{frames}"
            raise ConfigError(f"action_codec {name!r:.80} has {given!r:.40}: its frames are from 1 to {MOST_FRAMES:,}")
        actions.append(f"{action}:{int(frames)}" if colon else action)
        if (
            not set(buttons) <= set(BUTTONS)
            or len(set(buttons)) < len(buttons)
            or (len(buttons) > 1 and "NOOP" in buttons)
        ):
            raise ConfigError(f"action_codec {name!r:.80} has {action!r:.40}: its buttons are {', '.join(BUTTONS)}")
    return actions


def allowed_actions(codec: ActionCodec, blocked: Iterable[str]) -> list[bool]:
    """For each action of the codec, True unless it is among the `blocked` names.

    Raises: ConfigError for a name that the codec lacks, or if no action is left.
    """
    blocked = list(blocked)
    for name in blocked:
        if name not in codec.actions:
            raise ConfigError(
                f"blocked_actions has {name!r:.40}, which {codec.name} lacks: use {' '.join(codec.actions)}"
            )
    allowed = [name not in blocked for name in codec.actions]
    if not any(allowed):
        raise ConfigError("blocked_actions blocks every action: leave at least one")
    return allowed


@dataclass(frozen=True)
class Schedule:
    """One step in frames: press, `release_after_frames`, release, the rest of `frames_per_step`. Where they are equal,
    a step `holds` its buttons: the next one releases those that it does not hold, and presses those that are new.
    An action's own frames take the place of frames_per_step."""

    frames_per_step: int = FRAMES_PER_STEP
    release_after_frames: int = RELEASE_AFTER_FRAMES

    def __post_init__(self) -> None:
        if not 0 < self.release_after_frames <= self.frames_per_step:
            raise ConfigError(
                f"release_after_frames {self.release_after_frames} must be from 1 to frames_per_step "
                f"{self.frames_per_step}: 8 of 24 is the default, and as many as frames_per_step hold the buttons"
            )

    def of(self, action: str) -> tuple[int, int]:
        """(frames, frames after which its buttons are released) of a step with an action."""
        frames = frames_of(action) or self.frames_per_step
        return frames, frames if self.holds else min(self.release_after_frames, frames)

    @property
    def holds(self) -> bool:
        """True where a step releases no button at its end."""
        return self.release_after_frames == self.frames_per_step
