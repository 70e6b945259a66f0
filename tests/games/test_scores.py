"""[scores] of a game, its played.json, and ROMs that are fetched by digest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gbxcule_puffer import cli
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.games import load_game
from gbxcule_puffer.layout import ROMS
from tests.games.folders import game_text, write

ROM = (ROMS / "orchard.gb").read_bytes()
PLAYED = (
    '[start]\nactions = ["START", "NOOP"]',
    '[env]\nmax_steps = 12',
    '[numbers]\nscore = "C122"\nx = "C124"',
    '[reward]\nscore = "score.delta"\nmoves = "abs(x.delta)"',
    '[statistics]\nscore = "score"\nx = "x"',
)  # fmt: skip
SCORES = '[scores]\nstatistic = "x"\nnoop = {noop}\nrandom = 80\nplayed = {played}\nsolved = 3\n'


def scored(folder: Path, noop: float = 72, played: float = 8) -> Path:
    return write(folder, game_text(*PLAYED, SCORES.format(noop=noop, played=played)), rom=True)


def test_scores_of_a_game(tmp_path: Path) -> None:
    scores = load_game(scored(tmp_path / "mine")).scores
    assert scores is not None and (scores.statistic, scores.noop, scores.solved) == ("x", 72, 3)
    assert scores.normalised(80) == 0 and scores.normalised(8) == 1 and scores.normalised(-64) == 2
    assert load_game(write(tmp_path / "other", game_text(*PLAYED))).scores is None


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (('statistic = "x"', 'statistic = "scor"'), "'scor' is not a statistic of this game: did you mean score?"),
        (("solved = 3\n", ""), "solved: is missing"),
        (("random = 80", 'random = "much"'), "random: is 'much': give a number"),
        (("played = 8", "played = 80"), "played: equals random"),
        (("solved = 3", "solved = 3\nbest = 4"), "best: is not a known field"),
    ],
    ids=["statistic", "missing", "text", "equal", "unknown"],
)
def test_wrong_scores_are_one_line(tmp_path: Path, change: tuple[str, str], fault: str) -> None:
    text = game_text(*PLAYED, SCORES.format(noop=72, played=8))
    assert change[0] in text
    with pytest.raises(ConfigError, match=r"game.toml: \[scores\] ") as raised:
        load_game(write(tmp_path / "mine", text.replace(*change)))
    assert fault in str(raised.value)


def fetch(name: Path | str, source: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = cli.main(["game", "fetch", str(name), "--from", str(source)])
    return code, capsys.readouterr().out


def test_a_rom_is_fetched_by_its_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder, source = write(tmp_path / "games/mine", game_text()), tmp_path / "source/deep/er"
    source.mkdir(parents=True)
    (source / "another.gb").write_bytes(bytes(32_768))
    game = load_game(folder)
    code, said = fetch(folder, tmp_path / "source", capsys)
    assert code == 1 and f"missing   mine: no file in {tmp_path / 'source'} has SHA-256 {game.rom.sha256}" in said
    (source / "a name that says nothing.GBC").write_bytes(ROM)
    code, said = fetch(folder, tmp_path / "source", capsys)
    (copy,) = (tmp_path / "data/gbxcule-puffer/roms").iterdir()
    assert code == 0 and said == f"fetched   mine: {copy}\n" and copy.read_bytes() == ROM
    shutil.rmtree(source)
    assert Path(str(game.options()["rom"])) == copy
    assert fetch(folder, tmp_path / "source", capsys) == (0, f"here      mine: {copy}\n")
    assert cli.main(["game", "fetch", str(folder), "--from", str(copy)]) == 2


def test_a_folder_of_the_environment_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, roms = write(tmp_path / "games/mine", game_text()), tmp_path / "roms/below"
    roms.mkdir(parents=True)
    (roms / "x.gb").write_bytes(ROM)
    assert load_game(folder).rom.find(folder) is None
    monkeypatch.setenv("GBXCULE_ROMS", f"{tmp_path / 'absent'}:{tmp_path / 'roms'}")
    assert load_game(folder).rom.find(folder) == roms / "x.gb"
    (roms / "x.gb").write_bytes(bytes(32_768))
    assert load_game(folder).rom.find(folder) is None, "the file has changed"


def test_the_list_has_every_game(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["game", "list", "--json"]) == 0
    listed = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    orchard = listed["orchard"]
    assert (orchard["kind"], orchard["rom"], orchard["license"]) == ("action", str(ROMS / "orchard.gb"), "MIT")
    assert orchard["scores"]["statistic"] == "success"
    assert cli.main(["game", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(listed) and any("solved 0.98" in line for line in lines)


def check(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = cli.main(["game", "check", str(folder), "--num-envs", "8"])
    captured = capsys.readouterr()
    return code, captured.out or captured.err


def test_check_measures_the_scores_and_replays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from gbxcule_puffer.apps.game.playing import play_episode

    folder = scored(tmp_path / "mine", noop=30)
    game = load_game(folder)
    episode = play_episode(game, ["LEFT"] * 12)
    assert episode.score is not None and episode.has_ended
    code, said = check(folder, capsys)
    assert code == 1 and "noop: x" in said and "not 30" in said and "there is no played.json" in said
    noop = float(said.partition("noop: x ")[2].split()[0])
    scored(folder, noop, episode.score)
    episode.trace.save(folder / "played.json")
    code, said = check(folder, capsys)
    assert f"ok     score      played: played.json replays to x {episode.score:g} in 12 steps" in said
    assert "ok     score      noop" in said
    scored(folder, noop, episode.score + 1)
    code, said = check(folder, capsys)
    assert code == 1 and f"replays to x {episode.score:g}, not {episode.score + 1:g}" in said
    changed = json.loads((folder / "played.json").read_text())
    changed["actions"][-1] = "RIGHT"
    (folder / "played.json").write_text(json.dumps(changed))
    code, said = check(folder, capsys)
    assert code == 2 and "replays to another end picture" in said and said.count("\n") == 1
    play_episode(game, ["LEFT"] * 11).trace.save(folder / "played.json")
    assert "stops before its episode ends" in check(folder, capsys)[1]
    with pytest.raises(ConfigError, match="ends before the last of its 13 actions"):
        play_episode(game, ["LEFT"] * 13)


@pytest.mark.kernel
def test_a_search_plays_well_and_its_trace_replays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables: list[str] = list(PLAYED)
    tables[1] = "[env]\nmax_steps = 20"
    folder = write(tmp_path / "mine", game_text(*tables, SCORES.format(noop=72, played=8)), rom=True)
    words = ["game", "solve", str(folder), "--num-envs", "13", "--keep", "3", "--burst", "5", "--hold", "3"]
    assert cli.main([*words, "--seconds", "300"]) == 0
    *found, written = capsys.readouterr().out.splitlines()
    path = folder / "played.json"
    actions = json.loads(path.read_text())["actions"]
    best = found[-1].removeprefix("end: ")
    assert best.endswith("20 steps") and written == f"written   {path}: {best}" and len(actions) == 20
    from gbxcule_puffer.apps.game.playing import replay

    assert f"{replay(load_game(folder)).total:g}" == best.partition("return ")[2].partition(",")[0]


@pytest.mark.kernel
def test_a_reward_that_random_buttons_miss_is_shown_by_the_played_episode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from gbxcule_puffer.apps.game.playing import play_episode

    tables = [each.replace('moves = "abs(x.delta)"', 'never = "0 * x"') for each in PLAYED]
    tables[3] = tables[3].replace('score = "score.delta"', "")
    folder = write(tmp_path / "mine", game_text(*tables, SCORES.format(noop=72, played=8)), rom=True)
    assert "wrong  reward" in check(folder, capsys)[1]
    play_episode(load_game(folder), ["LEFT"] * 12).trace.save(folder / "played.json")
    assert "hint   reward     random buttons were never rewarded" in check(folder, capsys)[1]
