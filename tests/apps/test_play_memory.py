"""The RAM of a person's game: commands, pokes and frozen values, what they do to traces, and names in files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from gbxcule_puffer import cli
from gbxcule_puffer.apps.play.memory import COMMANDS, LONGEST_COMMAND, MOST_WATCHED
from gbxcule_puffer.apps.play.session import PlaySession
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.saves.state_files import load_state_file
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import ROMS
from gbxcule_puffer.tasks.actions import buttons_of
from gbxcule_puffer.tasks.goals.traces import Trace, picture_hash
from gbxcule_puffer.tasks.ram import Number, Ram, Symbols
from gbxcule_puffer.tasks.ram.readings import number_of, stored
from gbxcule_puffer.tasks.ram.symbol_writing import numbers_in

BEGIN = ("NOOP", "START", "NOOP", "NOOP")
LIVES, SCORE = 0xC123, 0xC122


@pytest.fixture
def session(tmp_path: Path) -> PlaySession:
    """ORCHARD where the first apple falls, as a ROM of one's own, without symbols."""
    shutil.copy(ROMS / "orchard.gb", tmp_path / "game.gb")
    return begun(PlaySession(tmp_path / "game.gb", tmp_path / "play"))


def begun(session: PlaySession) -> PlaySession:
    for action in BEGIN:
        session.press(action)
    session.mark()
    return session


def byte(session: PlaySession, address: int) -> int:
    return int(session.emulator.read_memory(0, address, 1)[0])


def ok(session: PlaySession, command: str) -> str:
    answer = session.memory.command(command)
    assert not session.memory.failed, answer
    return answer


def refused(session: PlaySession, command: str) -> str:
    answer = session.memory.command(command)
    assert session.memory.failed and len(answer.splitlines()) == 1 and len(answer) < 400, answer
    return answer


# -- commands --


def test_a_person_finds_the_lives_and_names_them(session: PlaySession, tmp_path: Path) -> None:
    """Waits until hearts go, says how many are left; the name is in a .sym beside the ROM, which an env reads."""
    memory, lives = session.memory, 3
    assert "2 left" in ok(session, "= 3") and memory.left == 2
    for _ in range(60):
        session.press("NOOP")
        if byte(session, LIVES) != lives:
            lives = byte(session, LIVES)
            ok(session, f"= {lives}")
        if memory.left == 1:
            break
        ok(session, "unchanged")
    assert memory.lines()[:2] == ["1 left", f"#1   C123   {lives:>6} u8"]
    assert ok(session, "name #1 hearts") == f"hearts is C123, u8: written to {tmp_path / 'game.sym'}"
    assert memory.state()["watches"][0] | {"value": 0} == {
        "name": "hearts", "where": "C123", "reading": "u8", "value": 0, "frozen": False
    }  # fmt: skip
    env = GBxCuLEEnv(tmp_path / "game.gb", until="hearts==0")
    env.close()
    again = PlaySession(tmp_path / "game.gb", tmp_path / "play")
    assert list(again.memory.watches) == ["hearts"] and "hearts" in again.memory.names


def test_undo_and_a_new_search(session: PlaySession) -> None:
    ok(session, "search u8")
    whole = session.memory.left
    assert ok(session, "= 3") and session.memory.left == 2
    ok(session, "!= 3")
    assert session.memory.left == 0 and "undo takes the condition back" in session.memory.message
    ok(session, "undo")
    assert session.memory.left == 2 and session.memory.conditions == ["= 3"]
    ok(session, "undo")
    assert session.memory.left == whole and session.memory.conditions == []
    assert "no condition to take back" in refused(session, "undo")
    ok(session, "search bcd2 digits3le")
    ok(session, "= 0")
    assert session.memory.search is not None
    assert {match.number.read for match in session.memory.search.matches(most=10**6)} == {"bcd", "digits"}


def test_what_is_shown_is_as_it_is_now(session: PlaySession) -> None:
    ok(session, "watch C123")
    ok(session, "watch C122 u16be")
    ok(session, "= 3")
    session.memory.ram.poke(LIVES, 8)
    state = session.memory.state()
    assert [watch["value"] for watch in state["watches"]] == [8, 8]
    assert {(match["where"], match["value"], match["last"]) for match in state["matches"]} >= {("C123", 8, 3)}
    assert session.memory.title == "C123 8  C122 8"
    ok(session, "unwatch C122")
    assert session.memory.lines()[0] == "C123              8 u8"


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("find 3", "'find' is not a command: give a condition such as = 120 or rose, or search, undo"),
        ("= x", "condition '= x' is not understood"),
        ("search u9", "reading 'u9' is unknown"),
        ("search bcd9", "reading bcd9 is too long for a search"),
        ("poke", "give poke WHERE VALUE [READING]"),
        ("poke C123 1 u8 2", "give poke WHERE VALUE [READING]"),
        ("poke C123 many", "value 'many' is not a number"),
        ("poke C123 256", "256 does not fit into u8: give 0 to 255"),
        ("poke C123 -1", "-1 does not fit into u8"),
        ("poke C123 -129 s8", "-129 does not fit into s8: give -128 to 127"),
        ("poke C123 100 bcd1", "100 does not fit into bcd1: give 0 to 99"),
        ("poke C123 1000 digits3", "1,000 does not fit into digits3: give 0 to 999"),
        ("poke C123 3 bits1", "a count of bits cannot be written"),
        ("poke 0150 1", "0150 is not VRAM, WRAM, OAM or HRAM"),
        ("poke DFFF 1 u16", "do not fit into WRAM"),
        ("poke 9:A000 1", "bank 9"),
        ("poke lives 1", "'lives' is not a hexadecimal address"),
        ("freeze C123 300", "300 does not fit into u8"),
        ("thaw C123", "'C123' is not frozen"),
        ("unwatch C123", "'C123' is not watched"),
        ("watch #1", "'#1' is not in the list of what is left: it has 0 numbers"),
        ("name C123 C124", "reads as a hexadecimal address"),
        ("name C123 a;b", "give letters, digits"),
        ("watch C123 " + "u" * LONGEST_COMMAND, f"at most {LONGEST_COMMAND} characters"),
    ],
)
def test_commands_that_are_refused(session: PlaySession, tmp_path: Path, command: str, fault: str) -> None:
    """In one line; nothing is written, to RAM nor to a file, and the trace goes on."""
    session.press("NOOP")
    before, actions = session.emulator.state_hash(), list(session.actions)
    assert fault in refused(session, command)
    assert session.emulator.state_hash() == before and session.actions == actions
    assert not (tmp_path / "game.sym").exists()


def test_help_knows_every_command(session: PlaySession) -> None:
    assert all(usage in ok(session, "help") for usage, _ in COMMANDS.values())
    for word in COMMANDS:
        assert "is not a command" not in session.memory.command(word)


def test_no_more_are_watched_than_are_shown(session: PlaySession) -> None:
    for i in range(MOST_WATCHED):
        ok(session, f"watch {0xC000 + i:04X}")
    assert f"{MOST_WATCHED} numbers are watched" in refused(session, "watch D000")


@pytest.mark.parametrize(
    "word", ["u8", "s8", "u16", "u16be", "s24be", "u32", "bcd1", "bcd3", "bcd3le", "digits4", "digits4le", "digits3-F6"]
)
def test_what_is_stored_reads_the_same(session: PlaySession, word: str) -> None:
    """A poke of every reading; bits that do not count stay."""
    number = number_of(word, 0xD000)
    ram = session.memory.ram
    ram.poke(0xD000, [0x3A] * 8)
    for value in {number.least, 0, 1, 7, 99 if number.size > 1 else 9}:
        ok(session, f"poke D000 {value} {word}")
        assert ok(session, f"watch D000 {word}") == f"D000 is {value:,}"
    assert ram.view(0xD000 + number.size, 4).tolist() == [[0x3A] * 4]
    if word.startswith("digits4"):
        assert {each >> 4 for each in ram.view(0xD000, 4)[0].tolist()} == {3}, "ASCII stays ASCII"
    assert stored(Number(0xC000, mask=0x0F), 5, [0xA7]) == [0xA5]


# -- pokes, frozen values and traces --


def replayed(session: PlaySession, state: Path, trace: Path) -> np.ndarray:
    """The picture to which a trace leads from a state."""
    spec = Trace.load(trace)
    emulator = Emulator(
        session.rom, screen="full", frames_per_step=spec.frames_per_step, release_after_frames=spec.release_after_frames
    )
    emulator.load(load_state_file(state, emulator.cartridge))
    assert picture_hash(emulator.screen[0].numpy()) == spec.start_picture
    for action in spec.actions:
        emulator.step(torch.tensor([buttons_of(action)], dtype=torch.uint8))
    assert picture_hash(emulator.screen[0].numpy()) == spec.end_picture
    return emulator.screen[0].numpy()


def test_a_poke_begins_a_trace_that_is_saved_with_its_state(session: PlaySession, tmp_path: Path) -> None:
    """Steps before it are kept as the trace that they are; steps after it replay from the state that lies beside."""
    for action in ("LEFT", "LEFT"):
        session.press(action)
    ok(session, "poke C123 9")
    assert byte(session, LIVES) == 9 and session.actions == []
    assert [path.name for path in session.written] == ["state1.state", "trace1.json"]
    for action in ("RIGHT", "NOOP", "NOOP"):
        session.press(action)
    session.save_trace()
    assert session.message == "saved trace2.json: 3 actions from trace2.state, which was poked"
    play = tmp_path / "play"
    assert np.array_equal(replayed(session, play / "trace2.state", play / "trace2.json"), session.picture)
    replayed(session, play / "state1.state", play / "trace1.json")
    session.key("r")
    session.frame(["LEFT"])
    session.quit()
    assert [path.name for path in session.written[4:]] == ["trace3.state", "trace3.json"], "and what follows it"
    assert np.array_equal(replayed(session, play / "trace3.state", play / "trace3.json"), session.picture)


def test_after_a_saved_state_a_trace_is_a_trace(session: PlaySession, tmp_path: Path) -> None:
    ok(session, "poke C123 9")
    session.key("m")
    session.press("LEFT")
    session.quit()
    assert [path.name for path in session.written[1:]] == ["state2.state", "trace1.json"]
    play = tmp_path / "play"
    assert np.array_equal(replayed(session, play / "state2.state", play / "trace1.json"), session.picture)


def test_a_poke_is_taken_back(session: PlaySession) -> None:
    """By undo, also several in a row; then the trace has no poke in it."""
    before = session.emulator.state_hash()
    ok(session, "poke C123 9")
    ok(session, "poke C122 30")
    session.press("LEFT")
    session.key("u")
    assert byte(session, LIVES) == 9 and session.message == "one step back"
    session.key("u")
    assert session.emulator.state_hash() == before and session.message == "the poke is taken back"
    session.key("u")
    assert session.message == "nothing to undo"
    session.press("LEFT")
    session.quit()
    assert [path.name for path in session.written[1:]] == ["trace1.json"]


@pytest.mark.parametrize("real_time", [False, True])
def test_a_frozen_value_stays_and_leaves_no_trace(session: PlaySession, tmp_path: Path, real_time: bool) -> None:
    """It is what it was after each step, or frame; those steps are saved nowhere, what comes after thaw is."""
    session.press("LEFT")
    if real_time:
        session.key("r")
    ok(session, "freeze C123 2")
    ok(session, "freeze C122 7")
    for _ in range(200 if real_time else 30):
        session.frame() if real_time else session.press("NOOP")
        assert (byte(session, LIVES), byte(session, SCORE)) == (2, 7)
    session.save_trace()
    assert "actions with frozen values, which nothing would replay" in session.message
    assert [path.name for path in session.written] == ["state1.state", "trace1.json"]
    ok(session, "poke C122 8")
    session.frame() if real_time else session.press("NOOP")
    assert byte(session, SCORE) == 8, "a poke is what stays from then on"
    ok(session, "thaw C122")
    session.frame() if real_time else session.press("NOOP")
    session.key("t")
    assert "with frozen values" in session.message
    ok(session, "unwatch C123")
    session.frame() if real_time else session.press("LEFT")
    session.quit()
    play = tmp_path / "play"
    assert [path.name for path in session.written[2:]] == ["trace2.state", "trace2.json"] and not session.last_words
    assert np.array_equal(replayed(session, play / "trace2.state", play / "trace2.json"), session.picture)


def test_who_quits_hears_what_is_not_saved(session: PlaySession) -> None:
    ok(session, "freeze C123")
    session.press("NOOP")
    session.quit()
    assert session.last_words == "not saved: 1 actions with frozen values, which nothing would replay"
    assert [path.name for path in session.written] == ["state1.state"]


def test_a_goal_is_reached_by_buttons_alone() -> None:
    session = PlaySession(ROMS / "orchard.gb", None, goal=True)
    before = session.emulator.state_hash()
    for command in ("poke C123 9", "freeze C123 9"):
        assert "a goal is reached by buttons alone" in refused(session, command)
    assert session.emulator.state_hash() == before and not session.memory.frozen
    ok(session, "= 0")


# -- files of symbols --


def test_names_of_our_own_roms_are_written_beside_the_traces(tmp_path: Path) -> None:
    """Not into the package; its symbols are read as well, and keep their addresses."""
    before = (ROMS / "orchard.sym").read_bytes()
    session = begun(PlaySession("orchard", tmp_path / "play"))
    assert ok(session, "watch lives") == "lives is 3"
    ok(session, "= 3")
    assert "C123" in [match["where"] for match in session.memory.state()["matches"] if match["name"] == "lives"]
    assert "name 'score' is 00:C122" in refused(session, "name C200 score")
    ok(session, "name lives hearts")
    ok(session, "name C122 score u16")
    assert list(session.memory.watches) == ["hearts", "score"]
    assert numbers_in(tmp_path / "play/orchard.sym") == {"hearts": Number(LIVES), "score": Number(SCORE, 2)}
    assert (ROMS / "orchard.sym").read_bytes() == before
    again = PlaySession("orchard", tmp_path / "play")
    assert ok(again, "watch score u8") and ok(again, "watch basket_x") and "hearts" in again.memory.watches


def test_a_symbol_file_that_is_given(session: PlaySession, tmp_path: Path) -> None:
    """Its lines stay, a new one is made, and one that is not understood is one line, before anything is played."""
    mine = tmp_path / "mine.sym"
    mine.write_text("00:C122 points ; mine\n")
    session = PlaySession(session.rom, tmp_path / "play", symbols=mine)
    ok(session, "watch points")
    ok(session, "name C123 hearts")
    assert mine.read_text() == "00:C122 points ; mine\n00:C123 hearts ; puffer: u8\n"
    fresh = tmp_path / "sub" / "new.sym"
    session = PlaySession(session.rom, tmp_path / "play", symbols=fresh)
    ok(session, "name C123 hearts")
    assert list(Symbols.load(fresh)) == ["hearts"]
    ok(session, "name C124 hearts")
    assert fresh.read_text() == "00:C124 hearts ; puffer: u8\n", "a name of one's own may move"
    map_file = tmp_path / "mine.map"
    map_file.write_text("ASxxxx Linker\n     0000C122  _points\n")
    session = PlaySession(session.rom, tmp_path / "play", symbols=map_file)
    ok(session, "watch _points")
    ok(session, "name C122 points")
    assert (tmp_path / "game.sym").is_file() and map_file.read_text().endswith("_points\n")
    mine.write_bytes(b"00:C122 a\0")
    with pytest.raises(ConfigError, match=r"mine.sym"):
        PlaySession(session.rom, tmp_path / "play", symbols=mine)


def test_a_damaged_file_beside_the_rom_stops_nobody(session: PlaySession, tmp_path: Path) -> None:
    (tmp_path / "game.sym").write_bytes(b"\xff\xfe0\0")
    again = PlaySession(session.rom, tmp_path / "play")
    assert again.memory.failed and "game.sym" in again.memory.message
    assert "game.sym" in refused(again, "name C123 hearts")
    assert (tmp_path / "game.sym").read_bytes() == b"\xff\xfe0\0"


def test_a_folder_that_cannot_be_written(session: PlaySession, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        os.symlink(tmp_path / "elsewhere.sym", tmp_path / "game.sym")  # root may write anywhere, but not through links
    else:
        tmp_path.chmod(0o500)
    assert "game.sym" in refused(session, "name C123 hearts")
    tmp_path.chmod(0o700)
    assert not (tmp_path / "elsewhere.sym").exists() and list(session.memory.watches) == []


def test_symbols_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.sym").write_bytes(b"\0")
    assert cli.main(["play", "orchard", "--browser", "--symbols", str(tmp_path / "bad.sym")]) == 2
    line = capsys.readouterr().err
    assert "bad.sym" in line and len(line.splitlines()) == 1


def test_a_ram_of_an_env_reads_the_same(session: PlaySession) -> None:
    ok(session, "name C122 score")
    assert int(Ram(session.emulator, Symbols.load(session.memory.target))["score"]) == byte(session, SCORE)
