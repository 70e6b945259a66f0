"""The wall: the Game Boys of an env, moving, as a web page."""

from gbxcule_puffer.trainers.wall.wall import DEFAULT_ADDRESS, Wall

__all__ = ["DEFAULT_ADDRESS", "Wall"]
