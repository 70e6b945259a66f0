"""The suite: our own games as environments, with a Task and levels each, and their players (docs/suite.md)."""

from gbxcule_puffer.integrations.suite.games import GAMES, Game, creator, find_game, make_env

__all__ = ["GAMES", "Game", "creator", "find_game", "make_env"]
