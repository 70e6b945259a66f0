"""PyBoy's .state files of a Game Boy Color: games in and out, in lockstep afterwards."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
import torch

from gbxcule_puffer.apps.verify.verify import differences
from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.emulator.saves.state_files import load_state_file, write_pyboy_state
from tests.conformance.test_game_boy_color import games
from tests.emulator.saves.test_pyboy_state import without_host_time
from tests.fuzz.lockstep import random_buttons
from tests.support.shared import cases

POINTS = (7, 30)  # steps before the state is saved, in turns
STEPS = 8  # after it
LOST = {f"undocumented_{number}" for number in range(72, 76)}  # PyBoy's files lack FF72 to FF75
GAMES = games()


def go_on(emulator: Emulator, oracle: PyBoyEmulator, seed: int) -> None:
    """Both are equal now and after STEPS steps, and their pictures after each."""
    if emulator.cartridge.has_rtc:
        oracle.machines[0].pyboy.memory[0x6000] = 0xFF  # no command: brings the clock chip up to date after the load
    for step, buttons in enumerate(random_buttons(seed, STEPS + 1, 1)):
        if step in (0, STEPS):
            found = differences(oracle.save(0), emulator.save(0), emulator.cartridge)
            assert not set(found) - LOST, found
        for one in (emulator, oracle):
            one.step(torch.from_numpy(buttons))
        assert torch.equal(emulator.colors, oracle.colors), step


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize(
    ("path", "point"), cases([pytest.param(path, POINTS[i % 2], id=path.stem) for i, path in enumerate(GAMES)], 2)
)
def test_states_of_games(path: Path, point: int, tmp_path: Path) -> None:
    """The emulator goes on from PyBoy's file as a fresh PyBoy does, and PyBoy from the file that the emulator wrote."""
    seed, file = zlib.crc32(path.stem.encode()) + point, tmp_path / "x.state"
    cartridge = load_cartridge(path, model="cgb")
    emulator, oracle = Emulator(cartridge, screen="full"), PyBoyEmulator(cartridge, screen="full")
    machine = PyBoyMachine(path.read_bytes(), model="cgb")
    for buttons in random_buttons(seed, point, 1)[:, 0]:
        machine.step(int(buttons))
    data = without_host_time(machine.state(), cartridge)
    machine.close()
    file.write_bytes(data)
    emulator.load(load_state_file(file, cartridge))
    oracle.machines[0].load_state(data)
    go_on(emulator, oracle, seed + 1)

    write_pyboy_state(file, emulator.save(0), cartridge)
    again = PyBoyEmulator(cartridge, screen="full")
    again.machines[0].load_state(without_host_time(file.read_bytes(), cartridge))
    go_on(emulator, again, seed + 2)


@pytest.mark.usefixtures("shared")
def test_there_are_games() -> None:
    """The test above has not gone without its ROMs."""
    assert len([path for path in GAMES if path.read_bytes()[0x143] & 0x80]) >= 20
    assert any(load_cartridge(path).has_rtc for path in GAMES)
