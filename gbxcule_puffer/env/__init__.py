"""The environment: episodes on the emulator, as a native PufferLib environment."""

from gbxcule_puffer.env.env import GBxCuLEEnv

__all__ = ["GBxCuLEEnv"]
