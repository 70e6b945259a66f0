"""`puffer scan` on our own games, whose symbol files say what their bytes are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from gbxcule_puffer.cli import main
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import ROMS
from gbxcule_puffer.scan.film import Seen
from gbxcule_puffer.scan.numbers import Carries, number_of
from gbxcule_puffer.scan.result import KINDS, ScanResult
from gbxcule_puffer.scan.scan import film_pictures, scan
from gbxcule_puffer.scan.shown import READS
from gbxcule_puffer.tasks.ram.number import Number
from gbxcule_puffer.tasks.ram.symbols import Symbols
from gbxcule_puffer.tasks.start import play_to_start
from tests.support.roms import tiny_rom

pytestmark = pytest.mark.kernel
HOUSE = ("NOOP", "NOOP", "START", "NOOP", "A", "NOOP", "NOOP", "NOOP")
ORCHARD = ROMS / "orchard.gb"
SECONDS = 20


@pytest.fixture(scope="module")
def orchard() -> ScanResult:
    return scan(ORCHARD, seconds=SECONDS)


def found(result: ScanResult, kind: str) -> list[int]:
    """The addresses of the candidates of a kind and of their copies, best first."""
    several = [[each.number.where, *each.aliases] for each in result.of(kind)]
    return [where for each in several for where in each if isinstance(where, int)]


@pytest.mark.parametrize(
    ("kind", "symbol"), [("x", "basket_x"), ("score", "score"), ("lives", "lives"), ("menu", "game_state")]
)
def test_bytes_of_our_game_are_found(orchard: ScanResult, kind: str, symbol: str) -> None:
    address = Symbols.load(ROMS / "orchard.sym")[symbol].address
    assert address in found(orchard, kind)


def test_homewards_position_and_map_are_found() -> None:
    """Positions in pixels and tiles, each above the camera's; the map above the bytes that depend on it."""
    symbols = Symbols.load(ROMS / "homeward.sym")
    result = scan(ROMS / "homeward.gb", start_actions=HOUSE, seconds=SECONDS)
    for axis, names in (("x", ("player_px", "player_x")), ("y", ("player_py", "player_y"))):
        best = [each.number.where for each in result.of(axis)[:2]]
        assert set(best) == {symbols[name].address for name in names}
        assert all(each.confidence > 0.2 for each in result.of(axis)[:2])
    assert symbols["player_map"].address in found(result, "map")


def test_the_maps_of_all_game_boys_are_kept(orchard: ScanResult) -> None:
    """Of few, a score that rises seldom is not seen."""
    recording = orchard.recording
    assert recording.tiles.shape[:2] == recording.filmed.shape[:2] == (len(recording.filmed), 64)


def test_of_each_kind_the_best_and_what_is_at_least_ten_percent_sure_is_listed(orchard: ScanResult) -> None:
    for kind in KINDS:
        assert all(each.confidence >= 0.1 for each in orchard.of(kind)[1:])


def test_the_best_position_is_the_players(orchard: ScanResult) -> None:
    best = orchard.of("x")[0]
    assert best.number.where == Symbols.load(ROMS / "orchard.sym")["basket_x"].address
    assert best.confidence > 0.8 and "RIGHT" in best.evidence
    assert best.number.read == "number"  # decimal by chance: a basket's x rises by eight


@pytest.mark.parametrize(("digits", "size"), [(2, 1), (4, 2), (5, 3)])
@pytest.mark.parametrize("side", [1, -1])
def test_zeros_on_the_screen_are_bytes_of_a_score(orchard: ScanResult, digits: int, size: int, side: int) -> None:
    """A BCD byte of which random play reaches no more, and bytes of 0 beside it: as many as the picture has digits."""
    recording = orchard.recording
    byte = next(
        index
        for index, where in enumerate(recording.where)
        if isinstance(where, int)
        and [recording.constant(where + side * i) for i in (1, 2)] == [0, 0]
        and recording.constant(where - side) != 0
    )
    whole = torch.zeros(len(recording.where))
    stats = {name: whole for name in ("lowest", "start")} | {name: whole + 1 for name in ("decimal", "shown")}
    stats |= {"highest": whole + 0x35, "distinct": whole + 20, "shown_read": whole + READS.index("bcd")}
    alone = Carries(torch.full((len(whole),), -1), torch.zeros(len(whole), dtype=torch.bool))
    number, _ = number_of(byte, recording, {**stats, "shown_digits": whole + digits}, alone, counts=True)
    where = recording.where[byte]
    assert isinstance(where, int)
    first = where if side == 1 or size == 1 else where - size + 1
    assert number == Number(first, size, "bcd", "big" if side == -1 and size > 1 else "little")


# A sprite whose x is nowhere but in the table of sprites: RIGHT and LEFT add to the byte itself, once a frame.
OWN_SPRITE = bytes.fromhex(
    "F044FE9020FA"  # until line 144
    "210080 36FF23 36FF 2100FE 3650 23 3650 3E93E040"  # a row of tile 0, the sprite at 80, 80, sprites on
    "F044FE9020FA 3E20E000F000F000 47 2101FE CB40200134 CB48200135 F044FE9028FA 18DF"
)


def test_a_position_that_only_the_table_of_sprites_has_is_found(tmp_path: Path) -> None:
    result = scan(tiny_rom(tmp_path / "sprite.gb", OWN_SPRITE), start_actions=["NOOP"], seconds=5, num_envs=16)
    assert [each.number for each in result.of("x")] == [Number(hw.OAM + 1)] and result.of("x")[0].confidence > 0.5
    assert not result.of("y")


def test_the_start_is_where_its_actions_lead(orchard: ScanResult) -> None:
    actions = orchard.start.actions
    assert actions
    again = play_to_start(ORCHARD, actions)
    assert np.array_equal(again.memory, orchard.start.state.memory)


def test_strips_show_pictures_that_differ(orchard: ScanResult) -> None:
    strip = orchard.strip(orchard.of("x")[0])
    assert strip is not None
    pictures, values = strip
    moments = len(pictures) // 2
    assert pictures.shape == (2 * moments, 72, 80) and len(values) == 2 * moments
    for i in range(moments):
        before, after = values[i], values[moments + i]
        assert before is not None and after is not None and abs(after - before) == 8
        assert (pictures[i] != pictures[moments + i]).any()


def test_the_command_writes_a_folder_and_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, names = tmp_path / "found", tmp_path / "orchard.sym"
    arguments = ["--seconds", "6", "--num-envs", "16", "--out", str(out), "--sym", str(names), "--json"]
    assert main(["scan", str(ORCHARD), *arguments]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {each["kind"] for each in printed["candidates"]} <= KINDS.keys()
    assert json.loads((out / "scan.json").read_text()) == printed
    assert (out / "start.txt").read_text().split() == printed["start_actions"]
    assert Symbols.load(names)["x"].address == int(printed["candidates"][0]["address"], 16)
    pictures = sorted((out / "film").iterdir())
    assert [picture.name for picture in pictures] == [f"{i:03}.png" for i in range(len(pictures))] and pictures
    assert (
        main(["scan", str(ORCHARD), "--start-state", str(out / "start.state"), "--seconds", "3", "--num-envs", "16"])
        == 0
    )


@pytest.mark.parametrize("start", [["NOOP", "START", "NOOP"], pytest.param(None, marks=pytest.mark.long)])
def test_the_same_seed_gives_the_same_result(start: list[str] | None) -> None:
    """Also of the search for a start, which takes longest."""
    one, other = (scan(ORCHARD, start_actions=start, seconds=2, num_envs=16, seed=3).as_json() for _ in range(2))
    assert one["candidates"] == other["candidates"] and one["start_actions"] == other["start_actions"]


def test_what_was_recorded_can_be_searched(orchard: ScanResult) -> None:
    """Values by look, env and byte, with the location of each byte: the basket never leaves the picture."""
    recording = orchard.recording
    looks, envs, total = recording.values.shape
    assert (looks, envs, total) == (*recording.valid.shape, len(recording.where))
    basket = recording.values[:, :, recording.where.index(Symbols.load(ROMS / "orchard.sym")["basket_x"].address)]
    assert int(basket.max()) < 160


def test_what_a_film_shows_is_found(orchard: ScanResult) -> None:
    """Conditions as one types them who reads the score and counts the hearts in some pictures."""
    film, symbols = orchard.recording.film, Symbols.load(ROMS / "orchard.sym")
    assert len(film.pictures) == len(film.looks) and film.pictures.shape[1:] == (144, 160)
    for name in ("score", "lives"):
        address = symbols[name].address
        values = film.looks[:, address - hw.WRAM].tolist()
        apart = [i for i in range(1, len(values)) if values[i] != values[i - 1]][:4]
        seen = [f"start: {values[0]}"]
        for picture in apart:
            before, now = values[picture - 1], values[picture]
            seen += [
                f"{picture - 1}: = {before}",
                f"{picture}: {'rose' if now > before else 'fell'} by {abs(now - before)}",
            ]
        search, left = film.search([Seen.of(text) for text in seen])
        assert address in [match.number.where for match in search.matches(film.look(None))]
        assert left == sorted(left, reverse=True) and left[-1] < 20


def test_the_command_lists_what_is_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = tmp_path / "orchard.sym"
    arguments = ["--start-actions", str(tmp_path / "start.txt"), "--seconds", "3", "--num-envs", "16"]
    (tmp_path / "start.txt").write_text("NOOP START NOOP")
    seen = ["--where", "start: 3", "--where", "1: unchanged", "--where", "< 4", "--name", "hearts", "--sym", str(names)]
    assert main(["scan", str(ORCHARD), *arguments, *seen]) == 0
    lines = capsys.readouterr().out.splitlines()
    lives = Symbols.load(ROMS / "orchard.sym")["lives"].address
    assert any(line.startswith(f"{lives:04X}     u8        3 3 3 ") for line in lines)
    assert "hearts" in lines[-1] and Symbols.load(names)["hearts"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("now: 3", "is not a picture"),
        ("3: more", "is not understood"),
        ("-1: 3", "is not a picture"),
        ("", "is empty"),
    ],
    ids=["picture", "condition", "negative", "empty"],
)
def test_wrong_conditions_end_in_one_line(text: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", str(ORCHARD), "--where", text]) == 2
    error = capsys.readouterr().err
    assert word in error and error.count("\n") == 1


def test_a_picture_behind_the_end_of_the_film_ends_in_one_line(orchard: ScanResult) -> None:
    with pytest.raises(ConfigError, match="picture 999 is not in the film: give 0 to "):
        orchard.recording.film.search([Seen.of("999: 3")])


def test_the_pictures_of_a_film_are_known_before_the_scan(
    orchard: ScanResult, capsys: pytest.CaptureFixture[str]
) -> None:
    assert film_pictures(SECONDS, "cpu") == len(orchard.recording.film.pictures)
    assert main(["scan", str(ORCHARD), "--where", "20: 3", "--seconds", str(SECONDS)]) == 2
    assert capsys.readouterr().err == "puffer: picture 20 is not in the film: give 0 to 19, or more --seconds\n"


def test_a_wrong_number_of_game_boys_ends_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", str(ORCHARD), "--num-envs", "20"]) == 2
    assert "multiple of 8" in capsys.readouterr().err


def test_a_rom_that_does_nothing_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rom, start = tiny_rom(tmp_path / "still.gb", bytes.fromhex("18 FE")), tmp_path / "start.txt"
    start.write_text("NOOP")
    assert main(["scan", rom, "--start-actions", str(start), "--num-envs", "16", "--seconds", "3"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "no byte of RAM changes" in error and "--start-state" in error
