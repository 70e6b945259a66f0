"""The suite: our own games as environments, each with levels and a scripted player (docs/suite.md)."""

from gbxcule_puffer.suite.games import GAMES, SuiteGame

__all__ = ["GAMES", "SuiteGame"]
