"""Agents that come with games: they play as soon as the package is there, and their records are true."""

from __future__ import annotations

from typing import Any

import pytest

from gbxcule_puffer.apps.arena.recording import statistic_of, verify
from gbxcule_puffer.apps.arena.records import read_record
from gbxcule_puffer.apps.play import play
from gbxcule_puffer.apps.watch.watch import Player
from gbxcule_puffer.cli import main
from gbxcule_puffer.games import find_game_folder, load_game, own_games
from gbxcule_puffer.trainers.evaluation import evaluate
from gbxcule_puffer.trainers.trained import Trained
from gbxcule_puffer.trainers.weights import AGENT, RECORD

pytestmark = pytest.mark.kernel
GAMES = [name for name in own_games() if (find_game_folder(name) / AGENT).is_file()]


def test_the_first_games_have_one() -> None:
    assert {"homeward", "orchard", "storeroom", "2048"} <= set(GAMES)


@pytest.mark.parametrize("name", [pytest.param("homeward", marks=pytest.mark.long), "orchard"])
def test_it_plays_levels_that_it_was_not_trained_on(name: str) -> None:
    trained = Trained(name)
    env = trained.open_env(8, "cpu", 1, levels="test")
    found = evaluate(trained.policy(env, 1, greedy=True), env, 8, 1)
    env.close()
    assert found["success_rate"] >= 7 / 8


def test_it_plays_2048_better_than_at_random() -> None:
    trained, scores = Trained("2048"), load_game("2048").scores
    env = trained.open_env(8, "cpu", 1)
    found = evaluate(trained.policy(env, 1, greedy=False), env, 8, 1)
    env.close()
    assert scores is not None and found["task/score"] > 2 * scores.random


@pytest.mark.parametrize("name", GAMES)
def test_its_record_is_of_it(name: str) -> None:
    record, game = read_record(find_game_folder(name) / RECORD), load_game(name)
    assert record.game == name and game.scores is not None
    least = 0.9 if name in ("homeward", "orchard", "storeroom") else 0.1
    assert game.scores.normalised(record.score(statistic_of(game))) > least


@pytest.mark.slow
def test_a_record_is_true() -> None:
    assert verify(read_record(find_game_folder("homeward") / RECORD)) == []


def test_it_is_watched_by_the_games_name() -> None:
    player = Player("orchard", 2, "cpu", 0, greedy=False)
    assert player.name == "orchard" and player.trained_steps > 1e6
    pictures = player.step()
    player.env.close()
    assert pictures is not None and pictures.shape == (2, 144, 160)


@pytest.mark.parametrize("words", ["homeward --agent", "--game homeward --agent --greedy"], ids=["rom", "game"])
def test_it_plays_beside_a_person(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(play, "show", lambda session, display, address: seen.append(session))
    assert main(["play", *words.split()]) == 0
    (session,) = seen
    assert session.agent.trained.path == find_game_folder("homeward") / AGENT
    session.let_agent_play(True)
    assert session.message == "the agent plays"


def test_a_game_without_an_agent_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "gateward", "--agent"]) == 2
    assert "comes without an agent: train one with puffer train ppo --game gateward" in capsys.readouterr().err
