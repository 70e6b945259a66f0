"""`puffer game new` and `puffer game check`: proposals, answers, findings, exit codes."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from gbxcule_puffer import cli, progress
from gbxcule_puffer.apps.game.proposing import (
    try_buttons,
)
from gbxcule_puffer.apps.game.seeding import find_seed
from gbxcule_puffer.apps.scan.command import table
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.games import load_game
from gbxcule_puffer.games.levels import Levels
from gbxcule_puffer.games.writing import game_title
from gbxcule_puffer.layout import ROMS, child_environment
from gbxcule_puffer.scan.result import Candidate, ScanResult, Start
from gbxcule_puffer.scan.scan import scan
from gbxcule_puffer.tasks.ram.number import Number
from gbxcule_puffer.tasks.start import play_to_start
from tests.games.folders import game_text, write

START = '[start]\nactions = ["START", "NOOP"]'
NUMBERS = '[numbers]\nscore = "score"\nlives = "lives"\nunused = "C7F0"'
GOOD = (
    START,
    NUMBERS,
    '[reward]\nscore = "score.delta"',
    '[end]\nfailure = "lives == 0"',
    '[statistics]\nscore = "score"',
)


def check(folder: Path | str, *words: str, code: int, capsys: pytest.CaptureFixture[str]) -> str:
    found = cli.main(["game", "check", str(folder), "--num-envs", "8", "--steps", "40", *words])
    captured = capsys.readouterr()
    assert found == code, captured
    return captured.err if code == 2 else captured.out


def test_a_good_game_is_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "mine", game_text(*GOOD, '[milestones]\none = "score > 0"'), rom=True)
    before = sorted(folder.iterdir())
    said = check(folder, code=0, capsys=capsys)
    assert "ok     start" in said and "failure 8" in said and "one:" in said and "score: 0 to" in said
    assert "wrong" not in said and sorted(folder.iterdir()) == before
    found = json.loads(check(folder, "--json", code=0, capsys=capsys))
    assert found["ok"] and found["random"]["failure"] == 8 and {"mean", "std", "rewarded"} <= found["idle"].keys()


@pytest.mark.parametrize(
    ("tables", "state", "text"),
    [
        ((START, NUMBERS), "wrong", "random buttons were never rewarded"),
        ((START, NUMBERS, '[reward]\nunused = "unused.delta"'), "wrong", "random buttons were never rewarded"),
        ((START, NUMBERS, '[reward]\nsame = "1"'), "wrong", "random buttons were never rewarded"),
        ((*GOOD[:3], '[end]\nfailure = "lives <= 9"'), "wrong", "100% of the episodes end within 2 steps"),
        ((*GOOD[:3], '[end]\nfailure = "unused == 1"'), "wrong", "failure cannot come: unused (0) never changed"),
        ((*GOOD[:3], '[end]\nsuccess = "score > 200"'), "hint", "no episode came to an end of its own"),
        ((*GOOD[:3], "[env]\nmax_steps = 20"), "hint", "only max_steps ends an episode"),
        ((*GOOD[:3], '[env]\naction_codec = "NOOP,LEFT,A"'), "ok", "the picture answers to the D-pad"),
        ((*GOOD[1:3], '[env]\naction_codec = "NOOP,START"'), "ok", "the picture answers to a button"),
        ((*GOOD, '[milestones]\nfar = "score > 200"'), "ok", "far: 0% of the episodes"),
        ((*GOOD[:4], '[statistics]\nunused = "unused"'), "hint", "unused was 0 at the end of each episode"),
        ((*GOOD[:3], '[statistics]\nscore = "score"', "[env]\nmax_steps = 99"), "hint", "no episode has ended in 40"),
        ((*GOOD[1:3], '[end]\nfailure = "lives.delta < 0"'), "hint", "does not look like play"),
        ((*GOOD[:2], '[reward]\nmoves = "-abs(basket_x.delta)"'), "hint", "pressing nothing is rewarded more"),
        ((*GOOD[:2], '[reward]\nlives = "once(lives == 1)"'), "wrong", "it is the same whatever is pressed"),
    ],
)
def test_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tables: tuple[str], state: str, text: str
) -> None:
    folder = write(tmp_path / "mine", game_text(*tables), rom=True)
    said = check(folder, code=int(state == "wrong"), capsys=capsys)
    (line,) = [line for line in said.splitlines() if text in line]
    assert line.startswith(state)


@pytest.mark.parametrize(("reward", "state"), [("score.delta", "ok"), ("unused.delta", "wrong")])
def test_findings_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str], reward: str, state: str) -> None:
    folder = write(tmp_path / "mine", game_text(*GOOD[:2], f'[reward]\nterm = "{reward}"', *GOOD[3:]), rom=True)
    found = json.loads(check(folder, "--json", code=int(state == "wrong"), capsys=capsys))
    assert found["ok"] == (state == "ok")
    assert [each["state"] for each in found["findings"] if each["subject"] == "reward"] == [state]
    assert all(each["text"] for each in found["findings"])


def test_choices_made_at_once_are_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    codec = '[env]\naction_codec = "NOOP,LEFT,RIGHT/NOOP,A"'
    folder = write(tmp_path / "mine", game_text(*GOOD, codec), rom=True)
    assert "failure" in check(folder, code=0, capsys=capsys)


@pytest.mark.parametrize(
    ("tables", "text"),
    [
        (('[reward]\nscore = "scores.delta"',), "name 'scores' is unknown: did you mean score?"),
        (('[end]\nfailure = "lives == "',), "is not a term"),
        (("[numbers]\nx = 'nowhere'",), "nowhere"),
    ],
)
def test_a_wrong_folder_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tables: tuple[str], text: str
) -> None:
    said = check(write(tmp_path / "mine", game_text(*tables), rom=True), code=2, capsys=capsys)
    assert text in said and said.count("\n") == 1


def test_the_rom_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "mine", game_text('[numbers]\nlives = "C123"', '[end]\nfailure = "lives == 0"'))
    assert "--rom" in check(folder, code=2, capsys=capsys)
    check(folder, "--rom", str(ROMS / "orchard.gb"), code=1, capsys=capsys)


@pytest.mark.parametrize(
    ("header", "file", "title"),
    [
        ("ORCHARD", "my-rom.gb", "Orchard"),
        ("LATEBUS", "roms/late-bus.gb", "Late Bus"),
        ("CRYSTALS2", "crystals 2.gbc", "Crystals 2"),
        ("1", "night_shift.gb", "Night Shift"),
        ("", "x.gb", "X"),
        ("", "-.gb", "Game"),
    ],
)
def test_the_title_that_is_proposed(header: str, file: str, title: str) -> None:
    assert game_title(header, file) == title


def test_the_table_of_a_scan_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    start = Start(None, ("NOOP",) * 99)  # pyright: ignore[reportArgumentType]
    candidates = [Candidate("score", "score", Number(0xC122), 0.3, "rises with an apple, " * 20)]
    facts = {"title": "ORCHARD", "num_envs": 64, "game_seconds": 101, "bytes_that_change": 99, "seconds": 18.0}
    said = table(ScanResult(start, candidates, None, facts | {"device": "cpu"}))  # pyright: ignore[reportArgumentType]
    assert max(map(len, said.splitlines())) <= 80


@pytest.fixture
def new_is_tried_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gbxcule_puffer.apps.game.checking.STEPS", 60)


def new(tmp_path: Path, *words: str) -> int:
    (tmp_path / "start.txt").write_text("NOOP START NOOP")
    return cli.main(["game", "new", str(ROMS / "orchard.gb"), "--out", str(tmp_path / "mine"), "--num-envs", "16",
                     "--seconds", "8", "--start-actions", str(tmp_path / "start.txt"), *words])  # fmt: skip


@pytest.mark.usefixtures("new_is_tried_briefly")
def test_new_asks_and_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = ["C122 u8", "C123", "-", "-", "-", "C0A4 u16", "ORCHARD", "Catch apples.", "NOOP,LEFT,RIGHT", "12"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(answers) + "\n"))
    assert new(tmp_path, "--pictures", str(tmp_path / "strips")) == 0
    said = capsys.readouterr().out
    assert "pictures" in said and (tmp_path / "strips" / "x.png").is_file()
    assert "written" in said and "ok     reward" in said
    game = load_game(tmp_path / "mine")
    assert (game.title, game.goal) == ("ORCHARD", "Catch apples.")
    assert (game.env["action_codec"], game.env["frames_per_step"]) == ("NOOP,LEFT,RIGHT", 12)
    assert {name: number.where for name, number in game.numbers.items()} == {"score": 0xC122, "lives": 0xC123}
    assert game.levels is not None and game.levels.where == 0xC0A4 and game.levels.test == Levels(32_768, 16_384)
    assert sorted(each.name for each in (tmp_path / "mine").iterdir()) == ["game.toml", "mine.sym", "start.state"]
    assert check(tmp_path / "mine", "--rom", str(ROMS / "orchard.gb"), code=0, capsys=capsys)


@pytest.mark.usefixtures("new_is_tried_briefly")
def test_new_takes_proposals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(progress, "_listeners", [lines.append])
    monkeypatch.setattr(progress, "EVERY", math.inf)  # how far a step is, is said on a slow machine only
    assert new(tmp_path, "--yes") == 0
    said = capsys.readouterr()
    assert "frames of a step: " in said.out and "x of the player, from left to right: 1\n" in said.out
    phases = [line.split()[0] for line in lines if line[0].isalpha()]  # and counts of steps on a busy machine
    assert phases == ["playing", "comparing", "playing", "playing"], "in its silent seconds"
    game = load_game(tmp_path / "mine")
    assert game.numbers["x"].where == 0xC124, "the basket"
    assert game.terms.reward is not None and game.env["action_codec"] == "NOOP,LEFT,RIGHT"


def test_buttons_that_do_nothing_at_the_start_are_found() -> None:
    cartridge = load_cartridge(str(ROMS / "storeroom.gb"))
    beside_a_wall = play_to_start(cartridge, ["NOOP", "START", "NOOP"])
    assert try_buttons(cartridge, beside_a_wall).buttons == ("UP", "DOWN", "LEFT", "RIGHT")


def test_the_seed_is_found_among_other_numbers() -> None:
    cartridge = load_cartridge(str(ROMS / "orchard.gb"))
    start = play_to_start(cartridge, ["NOOP", "START", "NOOP"])
    basket, score, rng = Number(0xC124), Number(0xC122), Number(0xC0A5)
    assert find_seed(cartridge, start, [basket, score, rng]) == Number(0xC0A4, 2)
    assert find_seed(cartridge, start, [basket, score]) is None
    assert find_seed(cartridge, start, [Number(0xC000), Number((0, 0xA000)), Number(0xFFFE)]) is None, "edges of RAM"


def test_list_names_our_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["game", "list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert {"homeward", "orchard", "storeroom"} < set(names) and names == sorted(names)


Result = TypeVar("Result")


def once(work: Callable[..., Result]) -> Callable[..., Result]:
    """`work` for calls that all have the same result: the first one does it."""
    results: list[Result] = []

    def call(*args: object, **options: object) -> Result:
        if not results:
            results.append(work(*args, **options))
        return results[0]

    return call


SCAN, TRY = once(scan), once(try_buttons)  # of ORCHARD from the same start, before the questions


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ("", "the answers have ended"),
        ("C122\n", "the answers have ended"),
        ("77\n-\n-\n-\n-\n", "77"),
        ("C122\n-\n-\n-\n-\nC0A4 u32\n", "C0A4 u32"),
        ("-\n-\n-\n-\n-\n-\nORCHARD\n", "nothing to reward was chosen"),
        ("C122 u9\n", "u9"),
        ("4000\n", "4000"),
        ("C122\n-\n-\n-\n-\n-\nT\nG\nNOOP,JUMP\n8\n", "JUMP"),
        ("C122\n-\n-\n-\n-\n-\nT\nG\nNOOP,A\nmany\n", "many"),
    ],
)
def test_wrong_answers_are_one_line_and_leave_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answers: str, text: str
) -> None:
    monkeypatch.setattr("gbxcule_puffer.scan.scan.scan", SCAN)
    monkeypatch.setattr("gbxcule_puffer.apps.game.proposing.try_buttons", TRY)
    monkeypatch.setattr("sys.stdin", io.StringIO(answers))
    assert new(tmp_path) == 2
    said = capsys.readouterr().err
    assert text in said and said.strip().count("\n") == 0 and not (tmp_path / "mine").exists()


class Terminal(io.StringIO):
    """Lines that somebody types."""

    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("new_is_tried_briefly")
def test_wrong_answers_are_asked_for_again_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a scan of minutes found is not lost by a slip."""
    nothing = ["-", "-", "-", "-", "-"]
    numbers = ["77", "C122 u9", "4000", "C122", "-", "-", "-", "-"]
    others = ["C0A4 u32", "-", "ORCHARD", "Catch.", "NOOP,JUMP", "NOOP,LEFT,RIGHT", "many", "0", "12"]
    monkeypatch.setattr("gbxcule_puffer.scan.scan.scan", SCAN)
    monkeypatch.setattr("gbxcule_puffer.apps.game.proposing.try_buttons", TRY)
    monkeypatch.setattr("sys.stdin", Terminal("\n".join([*nothing, *numbers, *others]) + "\n"))
    assert new(tmp_path) == 0
    said = capsys.readouterr().out
    wrong = ("nothing to reward was chosen", "77", "u9", "4000", "C0A4 u32", "JUMP", "'many' must be", "'0' must be")
    assert all(text in said for text in wrong)
    game = load_game(tmp_path / "mine")
    assert game.numbers["score"].where == 0xC122 and game.env["frames_per_step"] == 12


def test_without_stdin_new_says_so_before_the_scan(tmp_path: Path) -> None:
    """A process whose stdin is closed."""
    command = [sys.executable, "-m", "gbxcule_puffer", "game", "new", str(ROMS / "orchard.gb"), "--out", "mine"]
    done = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                            preexec_fn=lambda: os.close(0), env=child_environment())  # fmt: skip
    out, error = done.communicate(timeout=120)
    assert (done.returncode, out) == (2, b"") and b"the answers have ended" in error and error.count(b"\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["empty file", "pipe that ends"])
def test_without_a_terminal_new_says_so_before_the_scan(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for a scan whose questions cannot be answered."""
    reading, writing = os.pipe()
    os.close(writing)
    with open(reading), open(os.devnull) as empty, os.fdopen(os.dup(reading)) as pipe:
        monkeypatch.setattr("sys.stdin", empty if kind == "empty file" else pipe)
        assert cli.main(["game", "new", str(ROMS / "orchard.gb"), "--out", str(tmp_path / "mine")]) == 2
    said = capsys.readouterr()
    assert "the answers have ended" in said.err and said.err.count("\n") == 1 and said.out == ""
    assert not list(tmp_path.iterdir())


def test_new_does_not_touch_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    assert new(tmp_path, "--yes") == 2
    assert "is there already" in capsys.readouterr().err and not list((tmp_path / "mine").iterdir())
