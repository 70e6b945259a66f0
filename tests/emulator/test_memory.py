"""The emulator's memory: the estimate is what is allocated, too much is refused, the documentation is current."""

from pathlib import Path

import pytest

from benchmarks.pages import performance, state_table
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.arrays import memory_needed
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.emulator.gpu.schedule import lane_order
from gbxcule_puffer.emulator.state import ARRAYS
from gbxcule_puffer.errors import DeviceError

ROOT = Path(__file__).resolve().parents[2]
ROM = ROOT / "roms" / "homeward.gb"


@pytest.mark.parametrize("kernel", ["interpreter", "datapath"])
@pytest.mark.parametrize("screen", ["half", "full"])
def test_the_estimate_is_what_is_allocated(kernel: str, screen: str) -> None:
    emulator = Emulator(ROM, 3, screen=screen, kernel=kernel)
    machine = emulator.machine
    arrays = [machine.rom, machine.code, machine.state, machine.screen, machine.skipped, machine.frames]
    if kernel == "datapath":
        arrays += [machine.descriptors, machine.areas]
    held = sum(array.capacity for array in arrays) + 3 * machine.memory.strides[0] + 3
    if kernel == "datapath":
        held += lane_order.memory_needed(3)
    assert held == memory_needed(load_cartridge(ROM), 3, emulator.pixel_step, kernel == "datapath")


@pytest.mark.parametrize("kernel", ["interpreter", "datapath"])
def test_the_machine_is_as_declared(kernel: str) -> None:
    """Each array has its sizes, and one that the kernel has no use for is empty."""
    emulator, empty = Emulator(ROM, 3, kernel=kernel), set()
    emulator.hook(0, 0x150)
    known = {"num_envs": 3, "bytes": len(emulator.cartridge.data), "rows": 72, "columns": 80, "opcodes": 256}
    for line in ARRAYS.strip().splitlines():
        name, sizes = line.split(" ")[0], line[line.index("[") + 1 : line.index("]")].split(", ")
        array = getattr(emulator.machine, name)
        shape = (0,) * len(sizes) if array is None else array.shape
        if 0 in shape:
            empty.add(name)
        elif name != "rom":  # which has padding
            assert all(known.get(size, found) == found for size, found in zip(sizes, shape, strict=True)), line
    of_datapath = {"descriptors", "areas", "order", "took", "path"}
    assert empty == {"until", "counts", "marks"} | (of_datapath if kernel == "interpreter" else set())


def test_too_many_envs_are_refused() -> None:
    with pytest.raises(
        DeviceError, match=r"num_envs 1,000,000,000 needs .* GiB of memory on cpu, of which .* is free: use fewer"
    ):
        Emulator(ROM, 1_000_000_000)


def test_an_env_without_cartridge_ram_takes_less_than_48_kib() -> None:
    rom = bytearray(ROM.read_bytes()[:0x8000])
    rom[0x147:0x14A] = 0, 0, 0
    rom[0x14D] = -sum(byte + 1 for byte in rom[0x134:0x14D]) & 0xFF
    cartridge = load_cartridge(bytes(rom))
    assert memory_needed(cartridge, 2) - memory_needed(cartridge, 1) < 48 * 1024


def test_the_documentation_is_current() -> None:
    assert (ROOT / "docs" / "state.md").read_text() == state_table.page()
    assert (ROOT / "docs" / "performance.md").read_text() == performance.page(performance.load_records())
