"""The emulator: thousands of Game Boys in lockstep, their states, and the cartridges they run."""

from typing import TYPE_CHECKING

from gbxcule_puffer.lazily import door

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
    "ByteTest": "emulator.probes.until",
    "Cartridge": "emulator.cartridge",
    "Emulator": "emulator.emulator",
    "EmulatorLike": "emulator.protocol",
    "PoolLike": "emulator.protocol",
    "Snapshot": "emulator.snapshot",
    "SnapshotPool": "emulator.pool",
    "load_cartridge": "emulator.cartridge",
}

# The tables in this room need neither torch nor Warp
__getattr__ = door(__name__, FILES)
