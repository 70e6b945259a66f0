"""A dataclass of flags as a command line: values, limits, and one line for every mistake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from gbxcule_puffer.commandline import as_words, at_most_one, check, command, flag, help_text, parse, word
from gbxcule_puffer.commandline.flags import flags_of
from gbxcule_puffer.errors import ConfigError


@command
class Film:
    """Film a game.

    Nothing else.
    """

    rom: str = word("a game", "ROM")
    out: str = flag(help="file to write", metavar="FILE")
    steps: int = flag(120, "steps to film", least=1, most=10**9)
    lr: float | None = flag(None, "learning rate (default: none)", least=0)
    loop: bool = flag(False, "begin again", "The picture")
    sound: bool = flag(True, "hear it", "The picture")
    games: tuple[str, ...] = flag((), "more games", metavar="ROM")
    sizes: tuple[int, ...] = flag((16,), "sizes", least=1)
    kind: str = flag("gif", "kind of file", "The picture", one_of=("gif", "mp4"))
    way: tuple[str, ...] = flag((), "a way; again for more", repeat=True)
    json: str | None = flag(None, "the result as JSON", metavar="FILE", bare="-")


@dataclass
class Documented:
    """Flags as CleanRL's scripts have them."""

    speed: float = 0.5
    """how fast,
    in all"""
    mode: Literal["fast", "slow"] = "fast"
    """which way"""


@dataclass
class Other(Documented):
    speed: float = 0.7
    turns: int = flag(3, "turns", gpu=5)


def words(text: str) -> Film:
    return parse(Film, "puffer film", argv=text.split())


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("--steps 1e3", {"steps": 1000}),
        ("--steps=1.5e2", {"steps": 150}),
        ("--lr 1e-3", {"lr": 0.001}),
        ("--loop --no-sound", {"loop": True, "sound": False}),
        ("--games a.gb b,c.gb", {"games": ("a.gb", "b,c.gb")}),
        ("--sizes 16,64 1e3", {"sizes": (16, 64, 1000)}),
        ("--sizes=8,9", {"sizes": (8, 9)}),
        ("--games a.gb --loop --games b.gb c.gb", {"games": ("a.gb", "b.gb", "c.gb"), "loop": True}),
        ("--sizes 8 --sizes=9,10", {"sizes": (8, 9, 10)}),
        ("--way a --way b", {"way": ("a", "b")}),
        ("--json --loop", {"json": "-", "loop": True}),
        ("--json", {"json": "-"}),
        ("--json x.json", {"json": "x.json"}),
        ("--json=x.json", {"json": "x.json"}),
    ],
)
def test_values(text: str, values: dict[str, Any]) -> None:
    assert vars(words(f"game.gb --out film.gif {text}")) == vars(Film(rom="game.gb", out="film.gif")) | values


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("--out x", "ROM is missing: a game (see puffer film --help)"),
        ("game.gb", "--out is missing: file to write (see puffer film --help)"),
        ("game.gb --out", "--out needs a value: file to write (see puffer film --help)"),
        ("game.gb more --out x", "'more' is one word too many (see puffer film --help)"),
        ("game.gb --out x --loop 1", "'1' is one word too many (see puffer film --help)"),
        ("game.gb --out x --steps 1.5", "--steps '1.5' is not a whole number (see puffer film --help)"),
        ("game.gb --out x --steps 0", "--steps 0 must be from 1 to 1,000,000,000"),
        ("game.gb --out x --lr=fast", "--lr 'fast' is not a number (see puffer film --help)"),
        ("game.gb --out x --lr -1", "--lr -1.0 must be at least 0"),
        ("game.gb --out x --lr nan", "--lr nan must be at least 0"),
        ("game.gb --out x --sizes 16,0", "--sizes 0 must be at least 1"),
        ("game.gb --out x --sizes 16,a", "--sizes 'a' is not a whole number (see puffer film --help)"),
        ("game.gb --out x --kind avi", "--kind 'avi' is unknown: give one of gif, mp4"),
        ("game.gb --out x --stepz 3", "flag '--stepz' is unknown: did you mean --steps?"),
        ("game.gb --out x -s 3", "flag '-s' is unknown: see puffer film --help"),
        ("game.gb --out x --nothing", "flag '--nothing' is unknown: see puffer film --help"),
        ("--rom game.gb --out x", "flag --rom is unknown: give ROM alone, as in puffer film ROM"),
        ("game.gb --out x --learning-rate 3", "flag '--learning-rate' is unknown: here it is --lr"),
        ("game.gb --out x --learning_rate=3", "flag '--learning-rate' is unknown: here it is --lr"),
    ],
)
def test_mistakes_are_one_line(text: str, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        words(text)
    assert str(caught.value) == line


def test_defaults_of_others() -> None:
    """What is typed wins over `defaults`, and those over the class's own."""
    given = {"steps": 7, "sound": False}
    made = parse(Film, "film", argv=["game.gb", "--out=x", "--steps=8"], defaults=given)
    assert (made.steps, made.sound, made.kind) == (8, False, "gif")


def test_a_flag_that_makes_defaults() -> None:
    @command
    class Again:
        replay: bool = flag(False, "as before")
        steps: int = flag(1, "steps")

        def defaults(self) -> dict[str, int]:
            return {"steps": 5} if self.replay else {}

    for argv, steps in (([], 1), (["--replay"], 5), (["--replay", "--steps", "1"], 1)):
        assert parse(Again, "again", argv=argv).steps == steps


def test_words_for_another_parser() -> None:
    @command
    class Train:
        what: str = word("a trainer", "WHAT")
        words: tuple[str, ...] = word("its flags", "...", (), rest=True)

    assert parse(Train, "train", argv=["ppo", "--help", "-x"]).words == ("--help", "-x")
    with pytest.raises(ConfigError, match="--lr stands before WHAT: give train WHAT --lr"):
        parse(Train, "train", argv=["--lr", "1", "ppo"])


def test_flags_as_words_and_back() -> None:
    made = Film(rom="game.gb", out="x", sizes=(1, 2), sound=False, lr=0.5)
    values = {name: value for name, value in vars(made).items() if name != "rom"}
    assert parse(Film, "film", argv=["game.gb", *as_words(values)]) == made


def test_limits_of_a_dataclass_made_in_python() -> None:
    with pytest.raises(ConfigError, match="--steps 0 must be from 1"):
        check(Film(rom="x", out="y", steps=0))
    with pytest.raises(ConfigError, match="--loop and --lr exclude each other"):
        at_most_one(Film(rom="x", out="y", lr=1, loop=True), "loop", "lr")
    at_most_one(Film(rom="x", out="y", loop=True), "loop", "lr")


HELP = """usage: puffer film ROM --out FILE [flags]

Film a game.

Nothing else.

  ROM                         a game

Flags
  --out FILE                  file to write (required)
  --steps N                   steps to film (default: 120)
  --lr X                      learning rate (default: none)
  --games ROM ...             more games
  --sizes N                   sizes (default: 16)
  --way TEXT                  a way; again for more
  --json [FILE]               the result as JSON

The picture
  --loop                      begin again
  --sound, --no-sound         hear it (default: on)
  --kind {gif,mp4}            kind of file (default: gif)
"""


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        words("--help")
    assert end.value.code == 0
    assert capsys.readouterr().out == HELP


def test_help_keeps_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    known = flags_of(Film)
    for columns in (50, 80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        text = help_text("puffer film", "what it does " * 30, known)
        longest = max(map(len, text.splitlines()))
        assert columns - 15 < longest <= columns


def test_help_of_documented_fields_and_of_those_declared_again() -> None:
    text = help_text("train", "", flags_of(Other))
    assert "--speed X                   how fast, in all (default: 0.7)" in text
    assert "--mode {fast,slow}          which way (default: fast)" in text
    assert "--turns N                   turns (default: 3; on a GPU 5)" in text
    with pytest.raises(ConfigError, match="--mode 'lazy' is unknown: give one of fast, slow"):
        parse(Other, "train", argv=["--mode", "lazy"])
