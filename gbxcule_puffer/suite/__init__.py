"""The suite: our own games as environments, each with a Task, levels and a scripted player (docs/suite.md)."""

from gbxcule_puffer.suite.games import GAMES, Game, find_game, make_env

__all__ = ["GAMES", "Game", "find_game", "make_env"]
