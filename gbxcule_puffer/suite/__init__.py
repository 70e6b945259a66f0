"""The suite: our own games as environments, with a Task and levels each, and their players (docs/suite.md)."""

from gbxcule_puffer.suite.games import GAMES, Game, find_game, make_env

__all__ = ["GAMES", "Game", "find_game", "make_env"]
