"""PyBoy .state files: read and written, in lockstep afterwards, and refused where they do not fit."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.workload import find_rom, random_buttons
from gbxcule_puffer.apps.verify.verify import differences
from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge, load_cartridge
from gbxcule_puffer.emulator.saves import pyboy_layout, pyboy_state
from gbxcule_puffer.emulator.saves.state_files import load_state_file, write_pyboy_state
from gbxcule_puffer.errors import StateError

GAMES = ("homeward", "tobu", "libbet", "rex-runner", "totp-gb")  # MBC3, MBC1, none, MBC5, MBC3 with a clock
STEPS = 60
A, START = 0x10, 0x80


def with_value(data: bytes, cartridge: Cartridge, name: str, value: int) -> bytes:
    """The state with one value replaced."""
    at = 0
    form = pyboy_layout.Variant(True, True, True, pyboy_layout.machine_of(cartridge))
    for entry in pyboy_layout.layout(29, cartridge, form, 804):
        if entry.name == name:
            return data[:at] + value.to_bytes(entry.size, "little") + data[at + entry.size :]
        at += entry.size
    raise KeyError(name)


def rom_of(game: str, request: pytest.FixtureRequest) -> Path:
    if game != "homeward":
        request.getfixturevalue("shared")
    return find_rom(game)


def saved_by_pyboy(rom: Path, steps: int = 30, held: str | None = None) -> bytes:
    machine = PyBoyMachine(rom.read_bytes())
    for buttons in random_buttons(1, steps, 1)[:, 0]:
        machine.step(int(buttons))
    if held is not None:
        machine.pyboy.button_press(held)
        machine.pyboy.tick(1, True, False)
    data = machine.state()
    machine.close()
    return without_host_time(data, load_cartridge(rom))


def without_host_time(data: bytes, cartridge: Cartridge) -> bytes:
    """PyBoy's clock chip adds the host's time since saving when a state is loaded; not with this state."""
    if not cartridge.has_rtc:
        return data
    never = int.from_bytes(np.float64(np.inf).tobytes(), "little")
    return with_value(with_value(data, cartridge, "rtc_epoch", never), cartridge, "rtc_saved_at", never)


def lockstep(emulator: Emulator, oracle: PyBoyEmulator, steps: int = STEPS) -> None:
    for step, buttons in enumerate(random_buttons(2, steps, 1)):
        emulator.step(torch.from_numpy(buttons))
        oracle.step(torch.from_numpy(buttons))
        if step % 10 == 0 or step == steps - 1:
            found = differences(oracle.save(0), emulator.save(0), emulator.cartridge)
            assert not found, f"step {step}: {found}"


@pytest.mark.parametrize("game", GAMES)
def test_a_state_that_pyboy_saved(game: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Both load the same file, the PyBoy a fresh one, and stay in lockstep."""
    rom = rom_of(game, request)
    data = saved_by_pyboy(rom)
    (tmp_path / "x.state").write_bytes(data)
    emulator, oracle = Emulator(rom, screen="full"), PyBoyEmulator(rom, screen="full")
    emulator.load(load_state_file(tmp_path / "x.state", emulator.cartridge))
    oracle.machines[0].load_state(data)
    lockstep(emulator, oracle)


@pytest.mark.parametrize("game", GAMES)
def test_a_state_that_the_emulator_saved(game: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """PyBoy loads the file and goes on as the emulator that wrote it, which loads nothing."""
    rom = rom_of(game, request)
    emulator, oracle = Emulator(rom, screen="full"), PyBoyEmulator(rom, screen="full")
    for buttons in random_buttons(3, 30, 1):
        emulator.step(torch.from_numpy(buttons))
    write_pyboy_state(tmp_path / "x.state", emulator.save(0), emulator.cartridge)
    with (tmp_path / "x.state").open("rb") as file:
        oracle.machines[0].pyboy.load_state(file)  # as anyone would
    cycles = {"cycles_low", "cycles_high"} if emulator.cartridge.has_rtc else set()
    assert not set(differences(oracle.save(0), emulator.save(0), emulator.cartridge)) - cycles
    lockstep(emulator, oracle)


def test_what_pyboy_saved_is_written_again(request: pytest.FixtureRequest) -> None:
    """All values but those that a neutral one replaces; the file has the same length."""
    neutral = {"dma_start", "scanlines", "sound_sampling_off", "pixels"}
    for game in ("tobu", "rex-runner"):
        rom = rom_of(game, request)
        cartridge, data = load_cartridge(rom), saved_by_pyboy(rom)
        again = pyboy_state.to_bytes(pyboy_state.from_bytes(data, cartridge), cartridge)
        before, after = (pyboy_layout.read(state, cartridge, "x") for state in (data, again))
        assert len(again) == len(data)
        assert {name for name, value in before.items() if after[name] != value} <= neutral
        colors = [np.frombuffer(values["pixels"], pyboy_state.PIXEL)["color"] for values in (before, after)]
        assert np.array_equal(colors[0], colors[1])


def test_a_held_button_is_part_of_the_state() -> None:
    """It stays held, as in PyBoy, until a step presses and releases it."""
    rom = find_rom("homeward")
    emulator, oracle = Emulator(rom, screen="full"), PyBoyEmulator(rom, screen="full")
    data = saved_by_pyboy(rom, 5, held="a")
    snapshot = pyboy_state.from_bytes(data, emulator.cartridge)
    assert snapshot.fields()["buttons"] == A
    again = pyboy_state.to_bytes(snapshot, emulator.cartridge)
    assert pyboy_state.from_bytes(again, emulator.cartridge).fields()["buttons"] == A
    emulator.load(snapshot)
    oracle.machines[0].load_state(data)
    for buttons, held in ((0, A), (START, A), (A, 0), (0, 0)):
        emulator.step(torch.tensor([buttons], dtype=torch.uint8))
        oracle.step(torch.tensor([buttons], dtype=torch.uint8))
        assert emulator.registers()["buttons"] == held
        assert not differences(oracle.save(0), emulator.save(0), emulator.cartridge)


def in_form_of(data: bytes, cartridge: Cartridge, version: int, variant: pyboy_layout.Variant) -> bytes:
    """A state of version 29 rewritten as an older version has it."""
    values: dict[str, Any] = {**pyboy_layout.read(data, cartridge, "x"), "version": version}
    samples = values["sound_samples"] if version >= 14 else 0
    parts = []
    for entry in pyboy_layout.layout(version, cartridge, variant, samples):
        value: Any = values.get(entry.name, 0)
        if entry.name == "old_pixels":
            value = np.ascontiguousarray(np.frombuffer(values["pixels"], pyboy_state.PIXEL)["color"]).tobytes()
        elif isinstance(value, int):
            value = value.to_bytes(entry.size, "little")
        parts.append(value if value else bytes(entry.size))
    return b"".join(parts)


VERSIONS = [("homeward", version) for version in range(9, 30)] + [("rex-runner", 9), ("rex-runner", 15)]


@pytest.mark.parametrize(("game", "version"), VERSIONS)
def test_each_version_is_read(game: str, version: int, request: pytest.FixtureRequest) -> None:
    """As PyBoy 2.8.1 reads it, and in the forms that the releases of the time wrote."""
    rom = rom_of(game, request)
    cartridge, data = load_cartridge(rom), saved_by_pyboy(rom)
    reference = pyboy_state.from_bytes(data, cartridge)
    for variant in pyboy_layout.variants(version):
        snapshot = pyboy_state.from_bytes(in_form_of(data, cartridge, version, variant), cartridge)
        assert np.array_equal(snapshot.memory, reference.memory), variant
        assert np.array_equal(snapshot.screen, reference.screen), variant
        before, after = reference.fields(), snapshot.fields()
        differing = {name for name in before if before[name] != after[name]}
        lost = {"dma_index", "dma_source"} if version < 19 else set()
        lost |= {"cycles_low", "cycles_high"} if version < 12 else set()
        assert differing <= lost, variant


@pytest.mark.parametrize("version", [9, 11, 13, 17, 20, 25])
def test_pyboy_reads_the_older_versions_alike(version: int) -> None:
    rom = find_rom("homeward")
    emulator, oracle = Emulator(rom, screen="full"), PyBoyEmulator(rom, screen="full")
    form = pyboy_layout.Variant(True, True, True)
    data = in_form_of(saved_by_pyboy(rom), emulator.cartridge, version, form)
    snapshot = pyboy_state.from_bytes(data, emulator.cartridge)
    emulator.load(snapshot)
    oracle.load(snapshot)  # what these versions lack comes from what ran before: here a machine at rest
    oracle.machines[0].load_state(data)
    for buttons in random_buttons(4, 20, 1):
        emulator.step(torch.from_numpy(buttons))
        oracle.step(torch.from_numpy(buttons))
    found = differences(oracle.save(0), emulator.save(0), emulator.cartridge)
    assert not set(found) - {"cycles_low", "cycles_high"}, found


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data, _: data[:-1], "bytes, a PyBoy state of version 29 has"),
        (lambda data, _: data + b"\0", "bytes, a PyBoy state of version 29 has"),
        (lambda data, _: data[:1000], "bytes, a PyBoy state of version 29 has"),
        (lambda _data, _: b"", "version 9 to 29"),
        (lambda data, _: b"\x1e" + data[1:], "version 9 to 29"),
        (lambda data, _: b"\x08" + data[1:], "version 9 to 29"),
        (lambda data, _: b"PK\x03\x04" + data, "version 9 to 29"),
        (lambda data, _: data + bytes(3 * 0x2000), "4 banks of cartridge RAM, the ROM has 1"),
        (lambda data, cart: with_value(data, cart, "cgb", 1), "Game Boy Color"),
        (lambda data, cart: with_value(data, cart, "lcd_cgb", 1), "Game Boy Color"),
        (lambda data, cart: with_value(data, cart, "bootrom_enabled", 1), "boot ROM"),
        (lambda data, cart: with_value(data, cart, "ly", 200), "ly is 200"),
        (lambda data, cart: with_value(data, cart, "lcd_clock", 1 << 40), "lcd_clock is"),
        (lambda data, cart: with_value(data, cart, "rom_bank", 99), "ROM bank 99"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_with_one_line(damage: Any, message: str, tmp_path: Path) -> None:
    emulator = Emulator(find_rom("homeward"))
    before = emulator.state_hash()
    (tmp_path / "x.state").write_bytes(damage(saved_by_pyboy(find_rom("homeward"), 2), emulator.cartridge))
    with pytest.raises(StateError, match=message) as caught:
        emulator.load(load_state_file(tmp_path / "x.state", emulator.cartridge))
    assert "\n" not in str(caught.value) and "x.state" in str(caught.value)
    assert np.array_equal(emulator.state_hash(), before)


def test_what_pyboy_cannot_hold_is_refused() -> None:
    emulator = Emulator(find_rom("homeward"))
    emulator.set_registers(0, locked=1)
    with pytest.raises(StateError, match="illegal opcode"):
        pyboy_state.to_bytes(emulator.save(0), emulator.cartridge)


def test_what_the_format_lacks_is_restored_by_the_oracle() -> None:
    """Hidden LCD state, the clock's latch and EI before HALT, which PyBoy's file forgets."""
    rom = find_rom("homeward")
    emulator, oracle = Emulator(rom, screen="full"), PyBoyEmulator(rom, screen="full")
    code = bytes([0xFB, 0x76, 0x04, 0x18, 0xFB])  # ei; halt; inc b; jr to ei
    emulator.write_memory(0, 0xC000, code)
    emulator.set_registers(0, pc=0xC001, halted=1, halted_after_ei=1, ime=1, interrupt_enable=2, interrupt_flag=0)
    emulator.set_registers(0, stat_mode_hidden=1, stat=0xC2, lyc=100, b=0)
    oracle.load(emulator.save(0))
    emulator.step(torch.zeros(1, dtype=torch.uint8))
    oracle.step(torch.zeros(1, dtype=torch.uint8))
    assert not differences(oracle.save(0), emulator.save(0), emulator.cartridge)


@pytest.mark.parametrize("size", [0x2000, 0x2001, 0x2044, 0x8000, 0x20000])
def test_save_ram(size: int) -> None:
    """HOMEWARD has 8 KiB; of a padded file its first bytes count, as in PyBoy."""
    emulator = Emulator(find_rom("homeward"), 2)
    data = bytes(np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8))
    emulator.load_ram(data, 1)
    assert emulator.save_ram(1) == data[:0x2000] and emulator.save_ram(0) != data[:0x2000]
    emulator.load_ram(data)
    assert emulator.save_ram(0) == data[:0x2000]
    assert emulator.read_memory(0, 0xA000, 1, bank=0)[0] == data[0]
    machine = PyBoyMachine(find_rom("homeward").read_bytes(), save_ram=data)
    assert bytes(machine.pyboy.memory[0, 0xA000:0xBFFF]) == data[:0x1FFF]
    machine.close()


@pytest.mark.parametrize("size", [0, 512, 0x1FFF])
def test_save_ram_that_is_too_short(size: int) -> None:
    emulator = Emulator(find_rom("homeward"), 2)
    before = emulator.state_hash()
    with pytest.raises(StateError, match=f"the save RAM has {size} bytes, HOMEWARD has 8192: give this game's"):
        emulator.load_ram(bytes(size))
    assert np.array_equal(emulator.state_hash(), before)


def test_save_ram_is_pyboys_file(shared: Path) -> None:
    """PyBoy's .ram file goes into the emulator at power-on, and the emulator's into PyBoy; then both run alike."""
    del shared
    rom = find_rom("tobu")  # MBC1 with a battery
    cartridge = load_cartridge(rom)
    data = bytes(np.random.default_rng(1).integers(0, 256, cartridge.ram_banks * hw.RAM_BANK_SIZE, dtype=np.uint8))
    emulator = Emulator(rom, screen="full")
    emulator.reset(save_ram=data)
    machine = PyBoyMachine(rom.read_bytes(), save_ram=data)
    for buttons in random_buttons(5, 20, 1)[:, 0]:
        emulator.step(torch.tensor([buttons]))
        machine.step(int(buttons))
    expected = pyboy_state.from_bytes(machine.state(), cartridge, running=True)
    assert not differences(expected, emulator.save(0), cartridge)
    out = io.BytesIO()
    machine.pyboy.stop(save=True, ram_file=out)
    assert out.getvalue() == emulator.save_ram(0)
    emulator.reset()
    assert emulator.save_ram(0) != data


def test_a_state_of_another_version_names_it() -> None:
    emulator = Emulator(find_rom("homeward"))
    data = bytearray(pyboy_state.to_bytes(emulator.save(0), emulator.cartridge))
    other = "give one of version 9 to 29, as PyBoy 2.8.1 saves it"
    for version, line in (
        (30, f"of version 30, of a newer PyBoy than 2.8.1, which writes 29: {other}"),
        (41, "of version 41, of a newer"),
        (8, f"of version 8, of an old PyBoy: {other}"),
        (200, "neither a snapshot"),
    ):
        data[0] = version
        with pytest.raises(StateError, match=f"^mine: .*{line}"):
            pyboy_state.from_bytes(bytes(data), emulator.cartridge, "mine")
