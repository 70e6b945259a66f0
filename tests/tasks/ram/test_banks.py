"""Banks of a Game Boy Color by number and by symbol, whichever the game has selected; the same of PyBoy's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram import Ram, Symbols
from gbxcule_puffer.tasks.ram.addresses import parse_address
from gbxcule_puffer.tasks.ram.symbols import Location
from tests.conformance.test_game_boy_color import rom_of

# 11, 33, 55 to D010 of banks 1, 3, 5; 88 to 8010 of bank 1 of VRAM, 22 of bank 0. Banks 5 and 1 stay selected. The
# loop counts C010 up, at D011 of bank 5 it stores the same.
PROGRAM = """
    3E01 E070 3E11 EA10D0  3E03 E070 3E33 EA10D0  3E05 E070 3E55 EA10D0
    AF E040 E04F 3E22 EA1080  3E01 E04F 3E88 EA1080
    2110C0 34 7E EA11D0 18F9
"""
SYMBOLS = Symbols(
    {"wOne": Location(1, 0xD010), "wFive": Location(5, 0xD010), "wNone": Location(0, 0xD010),
     "vOne": Location(1, 0x8010)}
)  # fmt: skip
VALUES = {
    0xD010: 0x11, (1, 0xD010): 0x11, (3, 0xD010): 0x33, (5, 0xD010): 0x55, "wOne": 0x11, "wFive": 0x55, "wNone": 0x11,
    0x8010: 0x22, (0, 0x8010): 0x22, (1, 0x8010): 0x88, "vOne": 0x88,
}  # fmt: skip


@pytest.fixture(params=[(kind, flag) for kind in (Emulator, PyBoyEmulator) for flag in (0xC0, 0x00)])
def emulator(request: Any) -> Iterator[Any]:
    """Two Game Boys; those with a DMG's cartridge have bank 1 of WRAM alone."""
    kind, flag = request.param
    made = kind(rom_of(PROGRAM, flag), 2, model="cgb")
    made.step(torch.zeros(2, dtype=torch.uint8))
    yield made
    made.close()


def test_each_bank_is_read(emulator: Any) -> None:
    ram = Ram(emulator, SYMBOLS)
    if emulator.cartridge.is_for_color:
        wanted = VALUES
    else:  # SVBK does nothing
        wanted = {place: 0x55 if value in (0x11, 0x55) else value for place, value in VALUES.items()}
        wanted |= {(3, 0xD010): 0, (5, 0xD010): 0, "wFive": 0}
    assert {place: ram[place].tolist() for place in VALUES} == {place: [value] * 2 for place, value in wanted.items()}
    assert ram[list(VALUES)].tolist() == [list(wanted.values())] * 2
    assert ram[5, 0xD010:0xD012][:, 0].tolist() == [wanted[5, 0xD010]] * 2


def test_each_bank_is_written(emulator: Any) -> None:
    ram = Ram(emulator)
    places = [(3, 0xD010), (7, 0xDFFF), (1, 0xD010), (0, 0x8010), (1, 0x8010), (1, 0x9FFF)]
    before = emulator.registers(1)["vram_bank"]
    for value, place in enumerate(places, 1):
        ram.poke(place, value, torch.tensor([False, True]))
    assert emulator.registers(1)["vram_bank"] == before == 1
    for value, (bank, address) in enumerate(places, 1):
        assert int(emulator.read_memory(1, address, 1, bank)[0]) == value
        assert int(emulator.read_memory(0, address, 1, bank)[0]) != value
    emulator.step(torch.zeros(2, dtype=torch.uint8))
    assert ram[(7, 0xDFFF)].tolist() == [0, 2]


def test_what_is_watched_changes_with_the_game(emulator: Any) -> None:
    ram = Ram(emulator)
    bank = 5 if emulator.cartridge.is_for_color else 1
    for _ in range(2):
        emulator.step(torch.zeros(2, dtype=torch.uint8))
        assert (ram[0xC010] - ram[(bank, 0xD011)]).abs().max() <= 1
        assert int(ram[(bank, 0xD011)][0]) == int(emulator.read_memory(0, 0xD011, 1, bank)[0])


def test_places_as_text() -> None:
    texts = ("5:D010", "1:D010", "0:D010", "1:8010", "0:8010", "1:C010", "0:FF80", "wFive", "wOne", "vOne", "wFive + 1")
    found = [parse_address(text, "x", SYMBOLS) for text in texts]
    assert found == [
        (5, 0xD010), 0xD010, 0xD010, (1, 0x8010), 0x8010, 0xC010, 0xFF80, (5, 0xD010), 0xD010, (1, 0x8010), (5, 0xD011),
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="x: -3:D010 has bank -3"):
        parse_address("-3:D010", "x")


def test_options_name_banks(tmp_path: Path) -> None:
    """Observed bytes, and steps that end by a byte of a bank, of ours and of PyBoy's."""
    (tmp_path / "game.sym").write_text("05:D010 wFive\n03:D010 wThree\n01:8010 vOne\n05:D011 wCount\n")
    options: dict[str, Any] = {"symbols": str(tmp_path / "game.sym"), "ram_obs": "wFive,3:D010,D010,vOne"}
    options |= {"model": "cgb"}
    frames = []
    for until in (None, "wCount==7", "5:D011>=3"):
        ours, theirs = (kind(rom_of(PROGRAM), 2, until=until, **options) for kind in (GBxCuLEEnv, PyBoyPufferSingle))
        for env in (ours, theirs):
            env.reset(seed=1)
            env.step(np.array([0, 1]))
        assert (ours.observations == theirs.observations).all()
        seen = ours.layout.split(torch.from_numpy(ours.observations))["ram"]
        assert (seen * 255).round().tolist() == [[0x55, 0x33, 0x11, 0x88]] * 2
        assert ours.emulator.frames.tolist() == theirs.emulator.frames.tolist()
        frames.append(ours.emulator.frames.tolist())
    assert frames[2] != frames[0]


def test_a_dmg_has_no_such_banks() -> None:
    ram = Ram(Emulator(rom_of(PROGRAM, 0x80)), SYMBOLS)
    assert ram["wOne"].tolist() == ram["wNone"].tolist() == [0x55]
    for place in ("wFive", (3, 0xD010), (1, 0x8010)):
        with pytest.raises(ConfigError, match="this is a DMG, which has one: give model='cgb', or no bank"):
            ram[place]
