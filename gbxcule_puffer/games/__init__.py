"""Games in folders: a ROM's digest, a start, options, and terms for the reward and the ends (docs/games.md)."""

from gbxcule_puffer.games.folder import find_game_folder, load_game, own_games, saved_name
from gbxcule_puffer.games.game import Game
from gbxcule_puffer.games.make import make_game_env

__all__ = ["Game", "find_game_folder", "load_game", "make_game_env", "own_games", "saved_name"]
