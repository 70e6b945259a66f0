"""The environment: episodes on the emulator, as a native PufferLib environment."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gbxcule_puffer.env.env import GBxCuLEEnv

__all__ = ["GBxCuLEEnv"]


def __getattr__(name: str) -> object:
    """GBxCuLEEnv, imported when it is asked for: the toy environment shares files of this room and needs no Warp."""
    if name != "GBxCuLEEnv":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gbxcule_puffer.env.env import GBxCuLEEnv

    return GBxCuLEEnv
