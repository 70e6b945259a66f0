"""The environment: episodes on the emulator, as a native PufferLib environment."""

from typing import TYPE_CHECKING

from gbxcule_puffer.lazily import door

if TYPE_CHECKING:
    from gbxcule_puffer.env.env import GBxCuLEEnv

__all__ = ["GBxCuLEEnv"]
# The toy environment shares files of this room and needs no Warp
__getattr__ = door(__name__, {"GBxCuLEEnv": "env.env"})
