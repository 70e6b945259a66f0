"""Games in folders: a ROM's digest, a start, options, and terms for the reward and the ends (docs/games.md)."""

from gbxcule_puffer.games.folder import load_game, saved_name
from gbxcule_puffer.games.game import Game
from gbxcule_puffer.games.make import make_game_env
from gbxcule_puffer.layout import find_game_folder, own_games

__all__ = ["Game", "find_game_folder", "load_game", "make_game_env", "own_games", "saved_name"]
