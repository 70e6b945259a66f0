"""header='pyboy': images that PyBoy runs and no cartridge has, in lockstep with PyBoy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.emulator import Emulator, load_cartridge
from gbxcule_puffer.errors import ConfigError, RomError
from tests.fuzz.generator import header
from tests.fuzz.lockstep import compare, random_buttons

# Work RAM filled, summed and shown in a loop; after a write to 2000 what is at 4000 is read, too
CODE = "31F0DF 2100C0 7D8677 2C 20FA 24 7C FED0 20F4 3E03 EA0020 F044 E043 C35001"


def image(cartridge_type: int, size: int, size_code: int = 0) -> bytes:
    rom = bytearray(0x8000)
    rom[0x100:0x104] = 0x00, 0xC3, 0x50, 0x01
    code = bytes.fromhex(CODE)
    rom[0x150 : 0x150 + len(code)] = code
    header(rom, cartridge_type, 0)
    rom[0x148] = size_code
    rom[0x14D] = (-sum(rom[0x134:0x14D]) - 0x19) & 0xFF
    return bytes(rom[:size]).ljust(size, b"\xff")


@pytest.mark.parametrize("cartridge_type", [0x00, 0x01, 0x05, 0x11, 0x19])
def test_16_kib_are_shown_twice(cartridge_type: int) -> None:
    rom = image(cartridge_type, 0x4000)
    with pytest.raises(
        RomError, match=r"16384 bytes is too short .* \(header='pyboy', --header pyboy, runs it as PyBoy does\)"
    ):
        Emulator(rom)
    cartridge = load_cartridge(rom, header="pyboy")
    result = compare(cartridge, random_buttons(1, 12, 1), check_every=3)
    assert not result.difference, "\n".join(result.difference)
    assert result.instructions > 10_000
    assert np.array_equal(Emulator(cartridge).read_memory(0, 0x4000, 0x4000), np.frombuffer(rom, np.uint8))


def test_shorter_than_the_header_says() -> None:
    rom = image(0x01, 0xC000, size_code=4)
    with pytest.raises(
        RomError, match=r"promises 524288 bytes and the file has 49152; .*header='pyboy', --header pyboy, runs it"
    ):
        load_cartridge(rom)
    cartridge = load_cartridge(rom, header="pyboy")
    assert cartridge.rom_banks == 3
    result = compare(cartridge, random_buttons(2, 12, 1), check_every=3)
    assert not result.difference, "\n".join(result.difference)


def test_states_of_16_kib_go_to_pyboy_and_back() -> None:
    rom = image(0x00, 0x4000)
    ours, pyboy = Emulator(rom, header="pyboy"), PyBoyEmulator(rom, header="pyboy")
    pyboy.load(ours.save(0))
    assert pyboy.registers()["pc"] == ours.registers()["pc"]
    ours.load(pyboy.save(0))
    pyboy.close()


@pytest.mark.parametrize(("index", "value", "error"), [(0x14D, 0x00, "checksum"), (0x149, 0x07, "RAM size code 07")])
def test_what_pyboy_refuses_is_refused(index: int, value: int, error: str) -> None:
    rom = bytearray(image(0x00, 0x8000))
    rom[index] = value
    if index != 0x14D:
        rom[0x14D] = (-sum(rom[0x134:0x14D]) - 0x19) & 0xFF
    with pytest.raises(RomError, match=f"{error}.* PyBoy refuses it, too"):
        load_cartridge(bytes(rom), header="pyboy")
    with pytest.raises(Exception, match=r"checksum mismatch|^7$"):
        PyBoyMachine(bytes(rom))


@pytest.mark.parametrize("size", [0, 0x3FFF, 0x4001, 0x2000])
def test_parts_of_banks_are_refused(size: int) -> None:
    with pytest.raises(RomError):
        load_cartridge(image(0x00, 0x8000)[:size], header="pyboy")


def test_another_word_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"header is .lax.; it must be 'strict' or 'pyboy'"):
        load_cartridge(image(0x00, 0x8000), header="lax")


@pytest.mark.parametrize(
    ("start", "kind"), [(b"PK\x03\x04", "zip"), (b"\x1f\x8b\x08", "gzip"), (b"7z\xbc\xaf\x27\x1c", "7z")]
)
def test_an_archive_is_called_one(start: bytes, kind: str) -> None:
    with pytest.raises(RomError, match=f"ROM: a {kind} archive, not a ROM: unpack it"):
        load_cartridge(start.ljust(1000, b"\0"))


def test_a_colour_only_game_gets_a_warning() -> None:
    rom = bytearray(image(0x00, 0x8000))
    rom[0x143] = 0xC0
    rom[0x14D] = (-sum(rom[0x134:0x14D]) - 0x19) & 0xFF
    with pytest.warns(UserWarning, match="ROM: for the Game Boy Color only"):
        load_cartridge(bytes(rom))


def test_our_own_game_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of that name comes first, no folder does, and no other path leads into the installation."""
    monkeypatch.chdir(tmp_path)
    assert load_cartridge("homeward").title == "HOMEWARD"
    (tmp_path / "homeward").mkdir()  # as `puffer stage --out homeward` makes one
    assert load_cartridge("homeward").title == "HOMEWARD"
    (tmp_path / "homeward").rmdir()
    for name in ("../roms/homeward", "homeward/../homeward", "Homeward"):
        with pytest.raises(RomError):
            load_cartridge(name)
    (tmp_path / "homeward").write_bytes(image(0x00, 0x8000))
    assert load_cartridge("homeward").title != "HOMEWARD"


def test_what_is_no_rom_at_all() -> None:
    """A number where a path belongs is a RomError, as any other wrong ROM."""
    with pytest.raises(RomError, match="rom is 7; it must be a path, the image's bytes, or a Cartridge"):
        load_cartridge(7)  # pyright: ignore[reportArgumentType]
