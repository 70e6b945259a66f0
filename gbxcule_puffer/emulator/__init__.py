"""The emulator: thousands of Game Boys in lockstep, their states, and the cartridges they run."""

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
