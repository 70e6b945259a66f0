"""--game of the commands that play a Game Boy: ROM, start and options are the folder's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gbxcule_puffer import cli
from gbxcule_puffer.apps.play.command import Play
from gbxcule_puffer.commandline import parse
from gbxcule_puffer.emulator.cartridge import load_cartridge
from tests.games.folders import game_text, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tables = (
        '[start]\nactions = ["START"]\n[env]\nframes_per_step = 12\naction_codec = "NOOP,A,LEFT"',
        '[end]\nfailure = "lives == 0"\n[statistics]\nlives = "lives"',
        '[variants.still]\npatch = [{offset = 0x150, bytes = "18 FE"}]\n'
        '[variants.many]\npoke = {address = "lives", value = 9}',
    )
    return write(tmp_path_factory.mktemp("games") / "mine", game_text(*tables), rom=True)


def run(words: str, folder: Path, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert cli.main([*words.split(), "--game", str(folder)]) == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


def test_play_takes_rom_start_and_schedule_from_the_folder(folder: Path) -> None:
    flags = parse(Play, "play", None, ["--game", str(folder)])
    assert (flags.rom, flags.frames_per_step) == (str(folder / "orchard.gb"), 12)
    assert flags.start_state is not None and Path(flags.start_state).is_file()
    assert str(folder) not in flags.start_state, "nothing is written into the folder"
    assert parse(Play, "play", None, ["--game", str(folder), "--frames-per-step=20"]).frames_per_step == 20
    still = parse(Play, "play", None, ["--game", str(folder), "--variant=still"])
    assert load_cartridge(still.rom).data[0x150:0x152] == b"\x18\xfe"


def test_verify_compares_the_game(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run("verify --steps 3 --json", folder, capsys))
    assert found["equal"] and found["frames_per_step"] == 12 and found["start_state"].endswith(".state")


def test_record_films_it(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "film.gif"
    assert "3 steps of 2 Game Boys" in run(f"record --steps 3 --num-envs 2 --variant many --out {out}", folder, capsys)


def test_bench_measures_its_task(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = f"bench --num-envs 2 --steps 2 --warmup 1 --repeat 1 --device cpu --out {tmp_path / 'out'}"
    run(words, folder, capsys)
    (record,) = json.loads((tmp_path / "out/records.json").read_text())
    assert (record["rom"], record["frames_per_step"], record["num_envs"]) == ("orchard", 12, 2)
    assert record["start_state"].endswith(".state")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("verify --variant many", "--variant many writes RAM, which only an environment does"),
        ("verify homeward", "is not the game's ROM"),
        ("play --variant easy", "variant 'easy' is not in"),
        ("record --out a.gif --levels 3", "has no [levels]: leave them out"),
        ("bench --rom homeward", "--game and --rom exclude each other"),
        ("verify orchard --variant still", "variant still changes the ROM: leave ROM out"),
    ],
)
def test_what_does_not_fit_is_one_line(
    words: str, fault: str, folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    error = run(words, folder, capsys, 2)
    assert fault in error and error.count("\n") == 1


@pytest.mark.parametrize("words", ["verify", "play", "record --out a.gif", "profile"])
def test_a_rom_or_a_game_is_needed(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words.split()) == 2
    assert "ROM is missing: give a Game Boy image, or a game's folder with --game" in capsys.readouterr().err
    assert cli.main([*words.split(), "--variant", "easy"]) == 2
