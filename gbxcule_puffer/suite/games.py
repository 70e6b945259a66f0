"""The suite's games as environments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.protocol import Policy
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import ROMS, SUITE
from gbxcule_puffer.suite import homeward, orchard, storeroom
from gbxcule_puffer.suite.levels import Leveled, Levels


@dataclass(frozen=True)
class Game:
    """A game: its Task, the scripted player for an env, its time limit in steps, and the mean returns of random actions
    and of the player on the test levels, which normalise scores."""

    name: str
    task: type[Leveled]
    player: Callable[[GBxCuLEEnv], Policy]
    max_steps: int
    random: float
    scripted: float

    def normalised(self, mean_return: float) -> float:
        """A mean return as a score: 0 is random play, 1 the scripted player's."""
        return (mean_return - self.random) / (self.scripted - self.random)


GAMES = {
    game.name: game
    for game in (
        Game("homeward", homeward.Homeward, homeward.player, max_steps=256, random=0.06, scripted=1.97),
        Game("orchard", orchard.Orchard, orchard.player, max_steps=256, random=-2.3, scripted=32.0),
        Game("storeroom", storeroom.Storeroom, storeroom.player, max_steps=128, random=0.08, scripted=2.0),
    )
}


def find_game(name: str) -> tuple[Game, Levels]:
    """The game and the levels of an environment's name, such as gbxcule_orchard-64.

    Raises: ConfigError.
    """
    full, _, levels = name.partition("-")
    game = GAMES.get(full.removeprefix("gbxcule_"))
    if game is None:
        raise ConfigError(f"environment {name!r:.60} is not a game of the suite: give one of {', '.join(SUITE)}")
    return game, Levels.parse(levels)


def make_env(
    game: Game,
    levels: Levels,
    creator: Callable[[str], Callable[..., object]],
    num_envs: int = 1,
    device: str = "cpu",
    *,
    on: str = "gbxcule",
    **options: object,
) -> Any:
    """The game on `num_envs` Game Boys. Each episode begins at power-on with a level in RAM, and shows the game after
    its first step.

    creator: returns the class of an environment by name; on: such a name, gbxcule or a PyBoy baseline; options: as in
    GBxCuLEEnv, except the ROM.

    Raises: ConfigError, and the errors of the env.
    """
    defaults = {"symbols": str(ROMS / f"{game.name}.sym"), "max_steps": game.max_steps, "task": game.task(levels)}
    given = {name: value for name, value in options.items() if value is not None or name not in defaults}
    return creator(on)(str(ROMS / f"{game.name}.gb"), num_envs, device, **(defaults | given))
