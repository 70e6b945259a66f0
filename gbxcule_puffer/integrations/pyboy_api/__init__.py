"""PyBoy's public API for many Game Boys at once: see GameBoys."""

from gbxcule_puffer.integrations.pyboy_api.game_boys import GameBoys
from gbxcule_puffer.integrations.pyboy_api.hint import BatchAxisWarning

__all__ = ["BatchAxisWarning", "GameBoys"]
