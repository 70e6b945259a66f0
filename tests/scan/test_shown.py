"""Digits in the maps of a picture are found, whatever the tile of 0, with and without zeros in front."""

from __future__ import annotations

import pytest
import torch

from gbxcule_puffer.scan.shown import READS, find_shown

PICTURES, GAME_BOYS, CELLS, CELL = 60, 2, 64, 20  # the lowest digit is in cell CELL
BLANK = 0x20


def scores(step: int) -> torch.Tensor:
    """A score in each picture of two games, (pictures, Game Boys): it rises now and then, and begins again."""
    generator = torch.Generator().manual_seed(step)
    rises = step * (torch.rand((PICTURES, GAME_BOYS), generator=generator) < 0.4)
    return rises.cumsum(0) % (12 * step)


def draw(score: torch.Tensor, zero: int, blank: bool, digits: int = 3) -> torch.Tensor:
    """The maps, with the score in some cells, tiles that change at random, and others that stay."""
    generator = torch.Generator().manual_seed(7)
    tiles = torch.full((PICTURES, GAME_BOYS, CELLS), BLANK, dtype=torch.uint8)
    tiles[:, :, 30:] = torch.randint(0, 256, (PICTURES, GAME_BOYS, CELLS - 30), generator=generator, dtype=torch.uint8)
    for place in range(digits):
        digit = (score // 10**place % 10 + zero).to(torch.uint8)
        left_out = blank & (score < 10**place) & (place > 0)
        tiles[:, :, CELL - place] = torch.where(left_out, BLANK, digit)
    return tiles


def stored(score: torch.Tensor, read: str) -> torch.Tensor:
    if read == "bcd":
        return score // 10 % 10 * 16 + score % 10
    return score % 10 if read == "digits" else score


@pytest.mark.parametrize("blank", [False, True], ids=["zeros", "blanks"])
@pytest.mark.parametrize(("zero", "step"), [(0x30, 1), (0xE5, 3), (0, 7)])
@pytest.mark.parametrize("read", READS)
def test_a_score_on_the_screen_is_found(read: str, zero: int, step: int, blank: bool) -> None:
    score = scores(step)
    values = torch.stack([stored(score, read), scores(5) % 11], 2).to(torch.uint8)
    found = find_shown(values, draw(score, zero, blank), torch.tensor([True, True]))
    assert found["shown"][0] > 0.9 and int(found["shown_cell"][0]) == CELL
    assert found["shown"][1] < 0.6
    assert int(found["shown_digits"][0]) == (1 if blank else 3)
    if step > 1 and read != "digits":  # up to 9, all readings are the same
        assert READS[int(found["shown_read"][0])] == read


def test_a_score_in_tens_is_found_where_its_last_digit_never_changes() -> None:
    score = 10 * scores(1)
    values = stored(score, "bcd")[:, :, None].to(torch.uint8)
    found = find_shown(values, draw(score, 0x30, False), torch.tensor([True]))
    assert found["shown"][0] > 0.9 and int(found["shown_cell"][0]) == CELL - 1


@pytest.mark.parametrize("step", [3, 100])
def test_a_binary_score_of_two_bytes_is_found(step: int) -> None:
    """Above 255 the low byte alone has other digits; in steps of 100 the last two never change."""
    score = 100 + step * scores(1)
    values = torch.stack([score % 256, score // 256], 2).to(torch.uint8)
    into = torch.tensor([1, -1])
    found = find_shown(values, draw(score, 0x30, False, 4), torch.tensor([True, False]), into)
    assert found["shown"][0] > 0.9 and int(found["shown_cell"][0]) == CELL - (2 if step == 100 else 0)
    assert int(found["shown_digits"][0]) == 4
    alone = find_shown(values, draw(score, 0x30, False, 4), torch.tensor([True, False]))
    assert step < 100 or alone["shown"][0] < 0.6


def test_a_number_that_moves_with_a_tile_is_not_on_the_screen() -> None:
    """The tile steps with the byte, but does not stand for its digits: each game begins with another one."""
    score = scores(3)
    first = 40 * torch.arange(GAME_BOYS) + 7 * (torch.arange(PICTURES) // 9)[:, None]
    tiles = draw(score, 0x30, False)
    tiles[:, :, CELL] = ((score % 10 + first) % 256).to(torch.uint8)
    found = find_shown(stored(score, "digits")[:, :, None].to(torch.uint8), tiles, torch.tensor([True]))
    assert found["shown"][0] < 0.6


@pytest.mark.parametrize("ahead", [0, 0x20])
def test_the_number_of_a_digits_tile_is_read_as_a_digit(ahead: int) -> None:
    tiles = draw(scores(3), 0x30, False)
    found = find_shown(tiles[:, :, CELL : CELL + 1] + ahead, tiles, torch.tensor([True]))
    assert found["shown"][0] > 0.9 and READS[int(found["shown_read"][0])] == "digits"


def test_bytes_that_are_not_worth_it_are_not_looked_for() -> None:
    score = scores(3)
    found = find_shown(score[:, :, None].to(torch.uint8), draw(score, 0x30, False), torch.tensor([False]))
    assert found["shown"].tolist() == [0]


def test_a_tile_that_another_one_replaces_is_not_a_number() -> None:
    score = 58 + scores(1) % 2
    tiles = draw(score, 0x30, False)
    tiles[:, :, CELL] = score.to(torch.uint8)
    found = find_shown(score[:, :, None].to(torch.uint8), tiles, torch.tensor([True]))
    assert found["shown"].tolist() == [0]


def test_a_score_that_is_seldom_above_nine_is_a_number() -> None:
    score = torch.arange(PICTURES)[:, None].expand(-1, GAME_BOYS) // 2 % 12
    found = find_shown(score[:, :, None].to(torch.uint8), draw(score, 0x30, False), torch.tensor([True]))
    assert found["shown"][0] > 0.9 and READS[int(found["shown_read"][0])] == "number"


@pytest.mark.parametrize("rows", [2, 1])
def test_the_fields_of_a_board_are_not_numbers(rows: int) -> None:
    """Each field's tile rises with its byte. In one row alone, they may be digits of numbers beside each other."""
    fields = torch.stack([scores(1) % 5, *(scores(1).roll(shift, 0) % 5 for shift in (7, 15, 23))], 2).to(torch.uint8)
    tiles = torch.full((PICTURES, GAME_BOYS, CELLS), BLANK, dtype=torch.uint8)
    for index, cell in enumerate([2, 4, 2 + 32, 4 + 32] if rows > 1 else [2, 4, 6, 8]):
        tiles[:, :, cell] = fields[:, :, index] + 0x60
    found = find_shown(fields, tiles, torch.ones(4, dtype=torch.bool))
    assert (found["shown"] > 0.9).all()
    assert {READS[int(read)] for read in found["shown_read"]} == ({"digits"} if rows > 1 else {"number"})
