"""A search for numbers in RAM: against a plain one on random memories, on our own games, and its words."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import ROMS
from gbxcule_puffer.registry import env_creator
from gbxcule_puffer.suite import orchard
from gbxcule_puffer.tasks.actions import buttons_of
from gbxcule_puffer.tasks.ram import Number, Numbers, Ram, Symbols
from gbxcule_puffer.tasks.ram.narrowing import COMPARISONS, FORMS, Narrowing, is_narrowing, parse_narrowing
from gbxcule_puffer.tasks.ram.readings import number_of, word_of
from gbxcule_puffer.tasks.ram.search import ANY, MOST_ZERO, Search, areas_of
from tests.conformance.test_game_boy_color import rom_of
from tests.fuzz.generator import header

ENVS = 2


@pytest.fixture(scope="module")
def ram() -> Iterator[Ram]:
    emulator = Emulator(ROMS / "homeward.gb", ENVS)
    yield Ram(emulator)
    emulator.close()


# -- a plain search --

COMPARE: dict[str, Callable[[int, int], bool]] = {
    "=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


def plain_value(data: list[int], number: Number, zero: int) -> int | None:
    """The number of some bytes; None where they are not its digits."""
    data = data if number.order == "big" else data[::-1]
    if number.read in ("number", "signed"):
        return int.from_bytes(bytes(data), "big", signed=number.read == "signed")
    digits = [half for byte in data for half in divmod(byte, 16)] if number.read == "bcd" else [b - zero for b in data]
    return int("".join(map(str, digits))) if all(0 <= digit <= 9 for digit in digits) else None


def plain_passes(narrowing: Narrowing, now: int | None, before: int | None) -> bool:
    value = narrowing.value
    assert now is not None and (value is None or isinstance(value, int))
    if narrowing.test in COMPARISONS:
        assert value is not None
        return COMPARE[narrowing.test](now, value)
    assert before is not None
    change = now - before
    by = change != 0 if value is None else abs(change) == value
    return {"changed": by, "unchanged": change == 0, "rose": by and change > 0, "fell": by and change < 0}[
        narrowing.test
    ]


def plain_zeros(number: Number, data: list[list[list[int]]], narrowings: list[Narrowing]) -> set[int]:
    """The bytes that can be the digit 0 (of other readings 0) after narrowings of the looks that follow the first; none
    where the number is out. data: its bytes, by look and env."""
    zeros = set(range(MOST_ZERO + 1)) if number.read == "digits" else {0}
    for now, last, narrowing in zip(data[1:], data, narrowings, strict=False):
        before = data[0] if narrowing.since_start else last
        used = now if narrowing.test in COMPARISONS else [*now, *before]
        zeros = {zero for zero in zeros if all(plain_value(each, number, zero) is not None for each in used)}
        passing = [
            {
                zero
                for zero in zeros
                if plain_passes(narrowing, plain_value(mine, number, zero), plain_value(then, number, zero))
            }
            for mine, then in zip(now, before, strict=True)
        ]
        if narrowing.test == "=":
            zeros = set.intersection(*passing)
        elif not all(passing):
            return set()
    return zeros


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_random_memories(ram: Ram, seed: int) -> None:
    """What is left of any reading is what a plain search leaves, after conditions of every kind; undo gives it back."""
    chance, bytes_ = random.Random(seed), np.random.default_rng(seed)
    ends = np.cumsum([area.length for area in areas_of(ram.cartridge)]).tolist()
    shape = ENVS, ends[-1]
    looks = [bytes_.integers(0, 4, shape) + bytes_.choice([0, 0, 0x30, 0xF5], shape) for _ in range(4)]
    same = bytes_.random(shape[1]) < 0.4
    for look in looks[1:]:
        look[:, same] = looks[0][:, same] + (look[:, same] == 3)
    looks = [look.astype(np.uint8) for look in looks]
    tensors = [torch.from_numpy(look) for look in looks]
    columns = [*range(24), *(column for end in ends for column in range(end - 12, min(end + 4, ends[-1])))]
    for word in ANY:
        number = number_of(word)
        narrowings = [
            Narrowing(chance.choice(["=", "=", *COMPARISONS]), chance.choice([0, 1, 2, 12, 100, 0x201, 70_000, -3])),
            Narrowing(
                chance.choice(["changed", "rose", "fell"]), chance.choice([None, 1, 10, 256]), chance.random() < 0.5
            ),
            Narrowing(chance.choice(["unchanged", "changed", "fell"]), None, chance.random() < 0.5),
        ]
        chance.shuffle(narrowings)
        search, counts = Search(ram, [word], look=tensors[0]), list[int]()
        for i, narrowing in enumerate(narrowings, 1):
            counts.append(search.count)
            left = search.narrow(narrowing, look=tensors[i])
            found = {columns_of(search, match.number) for match in search.matches(tensors[i], most=10**9)}
            assert len(found) == left == search.count
            for column in columns:
                end = column + number.size
                fits = end <= ends[-1] and not any(column < each < end for each in ends)
                data = [look[:, column:end].tolist() for look in looks[: i + 1]]
                wanted = fits and bool(plain_zeros(number, data, narrowings[:i]))
                assert (column in found) == wanted, (word, column, narrowings[:i], data)
        while counts:
            assert search.undo() and search.count == counts.pop()
        assert not search.undo()


def columns_of(search: Search, number: Number) -> int:
    """The column of a look at which a number starts."""
    bank, address = search.ram.locate(number.where)
    start = 0
    for area in search.areas:
        if area.bank == bank and area.address <= address < area.address + area.length:
            return start + address - area.address
        start += area.length
    raise AssertionError(number)


@pytest.mark.parametrize(
    ("word", "stored", "value"),
    [
        ("u8", [200], 200), ("s8", [0xFD], -3), ("u16", [0x39, 0x30], 12345), ("u16be", [0x30, 0x39], 12345),
        ("s16", [0xFE, 0xF0], -3842), ("s16be", [0xF0, 0xFE], -3842), ("u24", [0x40, 0xE2, 0x01], 123456),
        ("u24be", [0x01, 0xE2, 0x40], 123456), ("u32", [0xD2, 2, 0x96, 0x49], 1234567890),
        ("u32be", [0x49, 0x96, 2, 0xD2], 1234567890), ("bcd1", [0x42], 42), ("bcd3", [0x01, 0x23, 0x45], 12345),
        ("bcd3le", [0x45, 0x23, 0x01], 12345), ("bcd4", [0x12, 0x34, 0x56, 0x78], 12345678),
        ("digits4", [1, 9, 8, 9], 1989), ("digits4le", [9, 8, 9, 1], 1989), ("digits3", [0x31, 0x32, 0x30], 120),
        ("digits6-F6", [0xFC, 0xF6, 0xF7, 0xF8, 0xF9, 0xFF], 601239),
        ("digits8-4D", [*[0x4E] * 7, 0x4F], 11111112),
    ],
)  # fmt: skip
def test_a_stored_number_is_found_and_read(ram: Ram, word: str, stored: list[int], value: int) -> None:
    """Among all readings, by its value alone; the number that is found reads as the game's, through Numbers."""
    ram.poke(0xC000, [0xEE] * 0x1F00)
    ram.poke(0xC456, stored)
    search = Search(ram)
    assert search.narrow(f"= {value}") >= 1
    numbers = {word_of(each.number): each.number for each in search.matches() if each.number.where == 0xC456}
    assert word in numbers
    assert Numbers(ram, [numbers[word]]).read().tolist() == [[value]] * ENVS


@pytest.mark.parametrize("test", COMPARISONS)
def test_what_is_next_to_a_value(ram: Ram, test: str) -> None:
    ram.poke(0xC300, [40, 41, 42])
    search = Search(ram, ["u8"])
    search.narrow(f"{test} 41")
    left = {match.number.where for match in search.matches(most=10**6)}
    assert [0xC300 + i in left for i in range(3)] == [COMPARE[test](40 + i, 41) for i in range(3)]


def test_equal_readings_are_listed_once(ram: Ram) -> None:
    """5 in a byte is also 5 in two and more bytes, signed and in decimal; it stays so while they say the same."""
    ram.poke(0xC000, [0xEE] * 0x1F00)
    ram.poke(0xC200, [5, 0, 0, 0])
    search = Search(ram)
    search.narrow("= 5")
    assert search.count > 1
    assert [(match.number.where, word_of(match.number)) for match in search.matches()] == [(0xC200, "u8")]
    ram.poke(0xC200, [1, 1, 0, 0])
    search.narrow("rose by 252")
    (match,) = search.matches()
    assert (word_of(match.number), match.now, match.last, match.first) == ("u16", 257, 257, 5)


def test_the_last_look_and_the_first(ram: Ram) -> None:
    search = Search(ram, ["u8"])
    ram.poke(0xC300, 7)
    first = Search(ram, ["u8"])
    for value, condition in ((9, "rose by 2"), (8, "fell"), (8, "unchanged"), (8, "rose by 1 since start")):
        ram.poke(0xC300, value)
        first.narrow(condition)
    assert [match.number.where for match in first.matches()] == [0xC300]
    assert search.narrow("look") == search.narrow("unchanged") > 1000, "a look alone changes only what is compared"


def test_one_value_for_each_game_boy(ram: Ram) -> None:
    ram.poke(0xC310, torch.tensor([41, 42]))
    search = Search(ram, ["u8", "bcd1"])
    search.narrow(Narrowing("=", (41, 42)))
    assert [each.number.where for each in search.matches(env=1)] == [0xC310]
    assert search.matches(env=1)[0].now == 42
    with pytest.raises(ConfigError, match="3 values for 2 Game Boys: give one each"):
        search.narrow(Narrowing("=", (1, 2, 3)))


@pytest.mark.parametrize(
    ("cartridge", "places"),
    [
        ("cgb", [0xC010, 0xCFFF, 0xD010, (3, 0xD010), (7, 0xDFFF), 0xFF80, 0xFFFE]),
        ("dmg", [0xC010, 0xD010, 0xDFFF, 0xFFFE]),
        ("mbc5", [(0, 0xA000), (3, 0xBFFF), 0xC000]),
        ("mbc2", [0xDFFF]),
    ],
)
def test_every_area_is_searched(cartridge: str, places: list[Any]) -> None:
    rom = bytearray(rom_of("", 0xC0 if cartridge == "cgb" else 0x00))
    if cartridge.startswith("mbc"):
        header(rom, {"mbc5": 0x1B, "mbc2": 0x06}[cartridge], {"mbc5": 3, "mbc2": 0}[cartridge])
    emulator = Emulator(bytes(rom), 1, model="cgb" if cartridge == "cgb" else "dmg")
    ram = Ram(emulator)
    for place in places:
        ram.poke(place, 0x93)
        search = Search(ram, ["u8", "u16"])
        ram.poke(place, 0xB9)
        search.narrow("rose by 38")
        assert place in [match.number.where for match in search.matches()]
        matches = search.matches(most=10**6)
        assert Numbers(ram, [match.number for match in matches]).read()[0].tolist() == [match.now for match in matches]
    emulator.close()


# -- our own games --


def test_score_and_lives_of_orchard() -> None:
    """A person knows what is on the screen: score and lives; a few looks find both, in the symbol file's places."""
    env = env_creator("gbxcule_orchard")(num_envs=1, io="torch", seed=5)
    symbols = Symbols.load("orchard")
    observation, _ = env.reset(seed=5)
    play = orchard.player(env)
    score, lives = Search(env.ram), Search(env.ram)
    for step in range(100):
        observation, *_ = env.step(play(observation) if step < 60 else torch.ones(1, dtype=torch.int64))
        if step % 12 == 11:
            score.narrow(f"= {int(env.ram['score'])}")
            lives.narrow(f"= {int(env.ram['lives'])}")
    assert [match.number for match in score.matches()] == [Number(symbols["score"].address)]
    assert [match.number for match in lives.matches()] == [Number(symbols["lives"].address)]
    env.close()


def test_positions_of_homeward() -> None:
    """x rises with a step to the right and not with one into a wall; y rises downwards."""
    emulator = Emulator(ROMS / "homeward.gb")
    symbols = Symbols.load("homeward")
    ram = Ram(emulator, symbols)

    def press(name: str) -> None:
        emulator.step(torch.tensor([buttons_of(name)], dtype=torch.uint8))

    for name in ("NOOP", "START", "NOOP"):
        press(name)
    x, y = Search(ram), Search(ram)
    moves = ("DOWN", "RIGHT", "RIGHT", "RIGHT", "LEFT", "UP", "NOOP", "DOWN", "RIGHT")
    for name in moves:
        before = int(ram["player_x"]), int(ram["player_y"])
        press(name)
        for search, then, now in zip((x, y), before, (int(ram["player_x"]), int(ram["player_y"])), strict=True):
            search.narrow("unchanged" if now == then else f"{'rose' if now > then else 'fell'} by 1")
    assert symbols["player_x"].address in [match.number.where for match in x.matches()] and len(x.matches()) <= 3
    assert symbols["player_y"].address in [match.number.where for match in y.matches()] and len(y.matches()) <= 3
    emulator.close()


# -- words --


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("= 120", Narrowing("=", 120)), ("120", Narrowing("=", 120)), ("==0", Narrowing("=", 0)),
        ("=$1F", Narrowing("=", 31)), ("= 0xff", Narrowing("=", 255)), ("!= -3", Narrowing("!=", -3)),
        ("<5", Narrowing("<", 5)), ("<= 5", Narrowing("<=", 5)), (" > 5 ", Narrowing(">", 5)),
        (">=4294967295", Narrowing(">=", 2**32 - 1)), ("changed", Narrowing("changed")),
        ("Unchanged since start", Narrowing("unchanged", None, True)), ("rose", Narrowing("rose")),
        ("rose by 10", Narrowing("rose", 10)), ("fell  by 0x10 since  start", Narrowing("fell", 16, True)),
        ("changed by 2", Narrowing("changed", 2)), ("look", Narrowing("look")),
    ],
)  # fmt: skip
def test_conditions(text: str, wanted: Narrowing) -> None:
    assert parse_narrowing(text) == wanted
    assert is_narrowing(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", f"condition '' is not understood: give one such as {FORMS}"),
        ("= ", "is not understood"),
        ("= 1.5", "is not understood"),
        ("= 0x", "is not understood"),
        ("= 12x", "is not understood"),
        ("rose by", "is not understood"),
        ("rose by 0", "a distance is at least 1: give e.g. rose by 1"),
        ("fell by -2", "a distance is at least 1"),
        ("unchanged by 2", "unchanged stands alone"),
        ("look since start", "look stands alone"),
        ("= 4294967296", "numbers of up to four bytes: give 4,294,967,295 at most"),
        ("= " + "9" * 5000, "numbers of up to four bytes"),
        ("= -2147483649", "numbers of up to four bytes"),
        ("rose by 10 since yesterday", "is not understood"),
        ("rose\nfell", "is not understood"),
    ],
)
def test_conditions_that_are_refused(text: str, fault: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_narrowing(text)
    assert fault in str(error.value) and len(str(error.value).splitlines()) == 1 and len(str(error.value)) < 300


@pytest.mark.parametrize("word", [*ANY, "u40be", "s56", "bcd9", "digits18le", "digits6-F6", "bits4", "bits512"])
def test_words_of_readings(word: str) -> None:
    assert word_of(number_of(word, 0xC000)) == word


@pytest.mark.parametrize(
    "word", ["", "u9", "u8be8", "bcd", "bcd0", "bcd10", "digits19", "digits3-F", "bcd2-30", "U8", "bits0"]
)
def test_words_that_are_no_reading(word: str) -> None:
    with pytest.raises(ConfigError) as error:
        number_of(word)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("word", ["u40", "bcd5", "digits9", "bits2"])
def test_readings_that_a_search_does_not_have(ram: Ram, word: str) -> None:
    with pytest.raises(ConfigError, match=f"reading {word} is too long for a search|reading {word}"):
        Search(ram, [word])
