"""The emulator: thousands of Game Boys in lockstep, their states, and the cartridges they run."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gbxcule_puffer.emulator.cartridge import Cartridge, load_cartridge
    from gbxcule_puffer.emulator.emulator import Emulator
    from gbxcule_puffer.emulator.pool import SnapshotPool
    from gbxcule_puffer.emulator.probes.until import ByteTest
    from gbxcule_puffer.emulator.protocol import EmulatorLike, PoolLike
    from gbxcule_puffer.emulator.snapshot import Snapshot

__all__ = [
    "ByteTest",
    "Cartridge",
    "Emulator",
    "EmulatorLike",
    "PoolLike",
    "Snapshot",
    "SnapshotPool",
    "load_cartridge",
]
FILES = {
    "ByteTest": "probes.until",
    "Cartridge": "cartridge",
    "Emulator": "emulator",
    "EmulatorLike": "protocol",
    "PoolLike": "protocol",
    "Snapshot": "snapshot",
    "SnapshotPool": "pool",
    "load_cartridge": "cartridge",
}


def __getattr__(name: str) -> object:
    """A name of FILES, imported when it is asked for: the tables in this room need neither torch nor Warp."""
    if name not in FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{FILES[name]}"), name)
