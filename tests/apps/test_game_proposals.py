"""What `puffer game new` proposes from a scan's result: the numbers, and how an episode ends."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from gbxcule_puffer.apps.game.proposing import (
    Answers,
    begins_again,
    choose_numbers,
    draft_of,
    game_over,
    late,
    lost,
    share_of_changes,
)
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.layout import ROMS
from gbxcule_puffer.scan.result import Candidate, ScanResult, Start
from gbxcule_puffer.tasks.ram.number import Number


@pytest.mark.parametrize(("also", "kinds"), [((), {"score"}), (("x",), {"x"})])
def test_an_unsure_score_is_proposed_only_where_there_is_no_position(also: tuple[str, ...], kinds: set[str]) -> None:
    candidates = [Candidate("score", "score", Number(0xC122), 0.3, "")]
    candidates += [Candidate(kind, kind, Number(0xC124), 0.9, "") for kind in also]
    result = ScanResult(None, candidates, None)  # pyright: ignore[reportArgumentType]
    assert choose_numbers(result, lambda text, default, read: read(default)).keys() == kinds


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ([True] * 19, 1.0),
        ([True] * 5 + [False] * 14, 5 / 8),  # lost after a second
        ([True] * 2 + [False] * 17, 2 / 8),  # a cursor that comes to rest
        ([False, True] * 9 + [False], 0.5),
        ([False] * 19, 0.0),
    ],
)
def test_how_much_a_game_goes_on_by_itself(changes: list[bool], share: float) -> None:
    assert share_of_changes(changes) == share


@pytest.mark.parametrize(
    ("values", "term"),
    [((0, 4), "lives == 0"), ((1, 3), "lives.delta < 0"), ((2, 60), "lives == 0"), (None, "lives == 0")],
)
def test_the_end_that_is_proposed(values: tuple[int, int] | None, term: str) -> None:
    assert lost(values) == term


@pytest.mark.parametrize(
    ("read", "falls_to", "ends"),
    [
        ("number", [0] * 8, True),
        ("number", [2] * 8, True),  # as at the start
        ("number", [0] * 7, False),  # seldom
        ("number", [0] * 7 + [1] * 3, False),  # spent
        ("digits", [0] * 8, True),
    ],
)
def test_a_score_that_begins_again_ends_an_episode(read: str, falls_to: list[int], ends: bool) -> None:
    """Where there are no lives: a game that is lost and begins again by itself, inside of an episode."""
    low = [2, *(value for each in falls_to for value in (5, each))]
    values = torch.tensor([[[value, 0]] for value in low], dtype=torch.uint8)
    recording = SimpleNamespace(
        where=[0xC123, 0xC124], index={0xC123: 0, 0xC124: 1}, values=values, valid=torch.ones(len(values), 1).bool()
    )
    start = Start(None, ())  # pyright: ignore[reportArgumentType]
    result = ScanResult(start, [], recording)  # pyright: ignore[reportArgumentType]
    score = Number(0xC123, 2, read)
    assert begins_again(result, score) == ends
    assert not begins_again(result, Number(0xC200)), "not recorded"
    draft = draft_of(
        load_cartridge(str(ROMS / "orchard.gb")), "game", "Game", result, {"score": score}, Answers(1.0, ("A",)), 100
    )
    failure, statistic = ("score.delta < 0", "max(score, score.previous)") if ends else (None, "score")
    assert draft.end.get("failure") == (failure and [failure])
    assert draft.statistics == {"score": statistic}, "that of the lost game, not of the next one"


@pytest.mark.parametrize(
    ("comes", "goes", "sure", "ends"),
    [
        (0, 0x80, 0.8, True),
        (0, 0x80, 0.6, False),  # unsure
        (0x80, 0x80, 0.8, False),  # a pause
        (0, 0x10, 0.8, False),  # a text that A closes
    ],
)
def test_what_says_that_a_game_is_over_ends_an_episode(comes: int, goes: int, sure: float, ends: bool) -> None:
    """A byte at which directions do nothing, that only START brings back."""
    length = 24
    values = torch.tensor(([5] * length + [9] * length) * 10 + [5], dtype=torch.uint8).view(-1, 1, 1)
    buttons = torch.zeros((len(values), 1), dtype=torch.uint8)
    buttons[length :: 2 * length], buttons[2 * length :: 2 * length] = comes, goes
    recording = SimpleNamespace(
        index={0xC100: 0}, values=values, valid=torch.ones(len(values), 1).bool(), buttons=buttons, start=values[0, 0]
    )
    menu = Candidate("menu", "menu", Number(0xC100), sure, "")
    found = game_over(ScanResult(None, [menu], recording))  # pyright: ignore[reportArgumentType]
    assert found == ((menu, 9) if ends else None)


@pytest.mark.parametrize(("left", "most", "warns"), [(1, 6, True), (3, 6, True), (4, 6, False), (3, 3, False)])
def test_a_start_late_in_a_game_is_warned_of(left: int, most: int, warns: bool) -> None:
    values = torch.tensor([[[left, 7]], [[0, 7]], [[most, 9]]], dtype=torch.uint8)
    recording = SimpleNamespace(where=[0xC123, 0xC124], values=values, start=values[0, 0])
    result = ScanResult(None, [], recording)  # pyright: ignore[reportArgumentType]
    said = late(result, Number(0xC123))
    assert said is not None if warns else said is None
    assert said is None or said.startswith(f"lives are {left} at the start, and {most} were seen later")
    assert late(result, Number(0xC200)) is None and late(result, Number((1, 0xA000), 2)) is None, "not recorded"
