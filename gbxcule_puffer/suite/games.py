"""The suite's games: their folders are roms/NAME (gbxcule_puffer/games); here are their players and scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.protocol import Policy
from gbxcule_puffer.suite import homeward, orchard, storeroom


@dataclass(frozen=True)
class SuiteGame:
    """The scripted player of a game for an env, and the mean returns of random actions and of the player on the test
    levels, which normalise scores."""

    name: str
    player: Callable[[GBxCuLEEnv], Policy]
    random: float
    scripted: float

    def normalised(self, mean_return: float) -> float:
        """A mean return as a score: 0 is random play, 1 the scripted player's."""
        return (mean_return - self.random) / (self.scripted - self.random)


GAMES = {
    game.name: game
    for game in (
        SuiteGame("homeward", homeward.player, random=0.06, scripted=1.97),
        SuiteGame("orchard", orchard.player, random=-2.3, scripted=32.0),
        SuiteGame("storeroom", storeroom.player, random=0.08, scripted=2.0),
    )
}
