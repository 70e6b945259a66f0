"""The games that come with the package: their folders, licenses, played episodes and page."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.pages import arena_games
from benchmarks.workload import shared_folder
from gbxcule_puffer.apps.game.playing import replay
from gbxcule_puffer.games import load_game, own_games
from gbxcule_puffer.games.roms import SUFFIXES, VARIABLE, digest
from gbxcule_puffer.layout import ARENA, OWNED
from gbxcule_puffer.tasks.goals.traces import Trace

# With these a ROM may be passed on (docs/arena-games.md).
FREE = {"MIT", "Zlib", "0BSD", "Unlicense", "CC0-1.0"}
SHIPPED = [path for path in sorted(ARENA.rglob("*")) if path.suffix.lower() in SUFFIXES]
PLAYED = [name for name in own_games() if load_game(name).played is not None]
QUICK_STEPS, MOST_STEPS = 300, 4000  # of a replay that takes no two seconds, and of one that takes five


@pytest.mark.parametrize("name", [name for name in own_games() if load_game(name).folder.parent != OWNED])
def test_folder_of(name: str) -> None:
    game = load_game(name)
    assert game.name == game.folder.name == name and game.goal.endswith(".") and game.kind
    assert game.rom.author and game.rom.license and (game.folder.parent != ARENA or game.rom.source)
    assert game.env.get("max_steps"), "no episode is endless"
    frames = game.env["max_steps"] * game.env.get("frames_per_step", 24)
    played = 24 * len(Trace.load(game.played).actions) if game.played else 0
    assert frames <= max(60 * 600, 2 * played), "an episode has ten minutes at most, or twice what winning takes"
    if (scores := game.scores) is not None:
        assert game.played is not None and scores.random < scores.solved and scores.random < scores.played


@pytest.mark.parametrize("rom", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_a_rom_that_ships_is_free(rom: Path) -> None:
    game = load_game(rom.parent)
    assert digest(rom) == game.rom.sha256 and game.rom.license in FREE
    license = (rom.parent / "LICENSE.txt").read_text()
    assert "Copyright" in license or game.rom.license in ("Unlicense", "CC0-1.0")
    assert not rom.stat().st_mode & 0o111


@pytest.mark.kernel
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (steps > QUICK_STEPS) + [pytest.mark.long] * (steps > MOST_STEPS))
        for name in PLAYED
        for path in [load_game(name).played]
        if path is not None
        for steps in [len(Trace.load(path).actions)]
    ],
)
def test_played_episode_of(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    game = load_game(name)
    if (shared := shared_folder()) is not None:
        monkeypatch.setenv(VARIABLE, str(shared / "roms"))
    if game.rom.find(game.folder) is None:
        pytest.skip(f"the ROM of {game.title} is not here")
    assert game.scores is not None and replay(game).score == game.scores.played


def test_the_page_is_written_from_the_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    text = arena_games.PAGE.read_text()
    assert arena_games.page(text) == text, "run `python -m benchmarks.pages.arena_games`"
