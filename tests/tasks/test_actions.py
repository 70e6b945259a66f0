"""Action codecs: order, masks, PyBoy events, and the errors that name what is wrong."""

from __future__ import annotations

import re

import gymnasium
import pytest
import torch

from gbxcule_puffer.errors import ActionError, ConfigError
from gbxcule_puffer.tasks.actions import CODECS, Schedule, get_codec

# bits 0-3 RIGHT LEFT UP DOWN, bits 4-7 A B SELECT START
BYTES = {"NOOP": 0, "A": 16, "B": 32, "START": 128, "UP": 4, "DOWN": 8, "LEFT": 2, "RIGHT": 1}


def test_the_two_codecs() -> None:
    v0, v1 = get_codec("pokemonred_puffer_v0"), get_codec("pokemonred_puffer_v1")
    assert (v0.version, v0.num_actions) == (0, 7)
    assert (v1.version, v1.num_actions) == (1, 8)
    assert v0.actions == ("A", "B", "START", "UP", "DOWN", "LEFT", "RIGHT")
    assert v1.actions == ("NOOP", *v0.actions)


@pytest.mark.parametrize("name", CODECS)
def test_masks_and_buttons(name: str) -> None:
    codec = get_codec(name)
    for index, action in enumerate(codec.actions):
        assert codec.to_buttons(index) == BYTES[action]
        assert codec.to_joypad_mask(index) == (BYTES[action] & 15, BYTES[action] >> 4)


@pytest.mark.parametrize("name", CODECS)
def test_pyboy_events(name: str) -> None:
    from pyboy.utils import WindowEvent

    codec = get_codec(name)
    for index, action in enumerate(codec.actions):
        if action == "NOOP":
            assert codec.to_pyboy_press(index) is None
            assert codec.to_pyboy_release(index) is None
            continue
        kind = "BUTTON" if action in ("A", "B", "START") else "ARROW"
        assert codec.to_pyboy_press(index) == getattr(WindowEvent, f"PRESS_{kind}_{action}")
        assert codec.to_pyboy_release(index) == getattr(WindowEvent, f"RELEASE_{kind}_{action}")


def test_names_become_indices() -> None:
    codec = get_codec("pokemonred_puffer_v1")
    assert codec.parse(["NOOP", "RIGHT", "A"]) == [0, 7, 1]
    with pytest.raises(ActionError, match=r"action 1 is 'JUMP'.*NOOP A B"):
        codec.parse(["A", "JUMP"])


def test_errors() -> None:
    with pytest.raises(ConfigError, match=r"'v9' is unknown.*pokemonred_puffer_v1"):
        get_codec("v9")
    for action in (-1, 8):
        with pytest.raises(ActionError, match=r"0\.\.7"):
            get_codec("pokemonred_puffer_v1").to_joypad_mask(action)
    for frames, release in ((24, 0), (24, 25), (0, 0)):
        with pytest.raises(ConfigError, match="release_after_frames"):
            Schedule(frames, release)


def test_a_list_is_a_codec_of_its_own() -> None:
    from pyboy.utils import WindowEvent

    codec = get_codec("noop, A, SELECT,UP+B ,START+SELECT+A+B")
    assert codec.actions == ("NOOP", "A", "SELECT", "B+UP", "A+B+SELECT+START")
    assert codec.name == "NOOP,A,SELECT,B+UP,A+B+SELECT+START"
    assert get_codec(codec.name) == codec, "its name is its list"
    assert [codec.to_buttons(action) for action in range(5)] == [0, 0x10, 0x40, 0x24, 0xF0]
    assert codec.to_pyboy_press(2) == WindowEvent.PRESS_BUTTON_SELECT
    with pytest.raises(ActionError, match="presses several buttons"):
        codec.to_pyboy_press(3)


def test_actions_with_frames_of_their_own() -> None:
    codec = get_codec("noop:060, A,up+b: 12,A:8")
    assert codec.actions == ("NOOP:60", "A", "B+UP:12", "A:8") and codec.frames == (60, 0, 12, 8)
    assert get_codec(codec.name) == codec
    assert [codec.to_buttons(action) for action in range(4)] == [0, 0x10, 0x24, 0x10]
    assert codec.to_pyboy_press(0) is None and codec.to_pyboy_press(3) == codec.to_pyboy_press(1)
    assert get_codec("NOOP,A").frames == ()
    released, held = Schedule(24, 10), Schedule(24, 24)
    assert [released.of(action) for action in codec.actions] == [(60, 10), (24, 10), (12, 10), (8, 8)]
    assert [held.of(action) for action in codec.actions] == [(60, 60), (24, 24), (12, 12), (8, 8)]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("A", "is unknown"), ("", "is unknown"), ("A,TURBO", "has 'TURBO'"), ("A,B,", "has ''"), ("A,A", "twice"),
        ("UP+A,A+UP", "twice"), ("NOOP,A/NOOP,A", "twice"), ("NOOP,A/B", "is unknown"), ("NOOP,A/", "is unknown"),
        ("NOOP:,A", "has 'NOOP:': its frames"), ("NOOP:0,A", "from 1 to 20,000"), ("A,B:99999", "has 'B:99999'"),
        ("A:2:3,B", "has 'A:2:3'"), ("A:x,B", "has 'A:X'"), ("A:24,A:24", "twice"), (":6,A", "has ''"),
        ("NOOP,A:6/NOOP,B", "has frames in choices made at once"),
        ("multi_binary/NOOP,A", "is unknown"), ("A,NOOP+B", "has 'B+NOOP'"), ("A,B+B", "has 'B+B'"), ("A,+", "has '+'"),
    ],
)  # fmt: skip
def test_lists_that_are_refused(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        get_codec(name)


def test_choices_made_at_once() -> None:
    codec = get_codec("noop,up,down/NOOP,A")
    assert codec.actions == ("NOOP", "A", "UP", "A+UP", "DOWN", "A+DOWN")
    assert (codec.factors, codec.name) == ((3, 2), "NOOP,UP,DOWN/NOOP,A")
    assert get_codec(codec.name) == codec
    choices = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]])
    assert codec.join(choices).tolist() == list(range(6))
    assert torch.equal(torch.stack(codec.split(torch.arange(6)), 1), choices)
    assert codec.join(torch.tensor([[0, 2], [-1, 1], [3, 0]])).tolist() == [-1, -1, -1]


def test_the_named_ones_press_each_button_alone() -> None:
    binary, discrete = get_codec("multi_binary"), get_codec("multi_discrete")
    assert binary.space == gymnasium.spaces.MultiDiscrete([2] * 8)
    assert sorted(map(binary.to_buttons, range(256))) == list(range(256)), "every combination"
    assert discrete.factors == (5, 4, 3)
    alone = [binary.actions[int(binary.join(torch.eye(8, dtype=torch.int64)[i : i + 1]))] for i in range(8)]
    assert alone == ["A", "B", "SELECT", "START", "UP", "DOWN", "LEFT", "RIGHT"]
    with pytest.raises(ConfigError, match="more than 256 combinations"):
        get_codec("NOOP,A,B,A+B/NOOP,UP,DOWN,LEFT,RIGHT/NOOP,START,SELECT,START+SELECT/A,B,UP,DOWN")
