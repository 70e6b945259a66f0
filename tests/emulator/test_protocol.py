"""Emulator and PyBoyEmulator behind one interface: the same calls give the same machines."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.emulator import Emulator, EmulatorLike, PoolLike
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.errors import ConfigError, StateError
from tests.conformance.test_game_boy_color import rom_of

ROM = Path(__file__).parents[2] / "roms" / "micro" / "joy_diverge_persist.gb"
BUTTONS = (hw.BUTTON_START, hw.BUTTON_A, 0, hw.BUTTON_DOWN, hw.BUTTON_LEFT)


def play(emulator: EmulatorLike) -> list[np.ndarray]:
    """Pictures and work RAM after steps, a reset, a load, and a pool's save and reset."""
    seen = []

    def step(*buttons: int) -> None:
        emulator.step(torch.tensor(buttons, dtype=torch.uint8, device=emulator.device))
        seen.append(emulator.screen.numpy().copy())
        seen.append(np.stack([emulator.read_memory(env, hw.WRAM, 0x2000) for env in range(emulator.num_envs)]))

    for button in BUTTONS:
        step(button, 0)
    one = emulator.save(0)
    emulator.check(one)
    pool: PoolLike = emulator.pool([one, emulator.save(1)])
    assert pool.spare_tensors() == {}
    emulator.reset()
    step(0, hw.BUTTON_START)
    emulator.load(one, 1)
    step(hw.BUTTON_A, hw.BUTTON_RIGHT)
    pool.save(torch.tensor([False, True]), torch.tensor([0, 0], dtype=torch.int32))
    pool.reset(torch.tensor([True, True]), torch.tensor([0, 1], dtype=torch.int32))
    step(hw.BUTTON_UP, hw.BUTTON_B)
    assert emulator.locked.tolist() == [0, 0]
    registers = emulator.registers(1)
    seen.append(np.array([registers[name] for name in ("a", "f", "b", "c", "d", "e", "h", "l", "sp", "pc", "ly")]))
    emulator.close()
    return seen


def test_both_emulators_play_the_same() -> None:
    ours, pyboy = play(Emulator(ROM, 2)), play(PyBoyEmulator(ROM, 2))
    assert len({picture.tobytes() for picture in ours}) > 6
    for found, expected in zip(ours, pyboy, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", [Emulator, PyBoyEmulator])
def test_every_name_of_the_protocol_is_there(kind: type[Emulator] | type[PyBoyEmulator]) -> None:
    emulator = kind(ROM, 1, frames_per_step=4, release_after_frames=2)
    assert {name for name in vars(EmulatorLike) if not name.startswith("_")} <= set(dir(emulator))
    for name, member in vars(EmulatorLike).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            wanted, given = (list(inspect.signature(f).parameters)[1:] for f in (member, getattr(kind, name)))
            assert given[: len(wanted)] == wanted, name
    facts = (emulator.num_envs, emulator.device, emulator.frames_per_step, emulator.release_after_frames)
    assert facts == (1, "cpu", 4, 2)
    assert (emulator.cartridge.title, emulator.pixel_step) == ("JOY-DIVERGE-PER", 2)
    assert (emulator.mirror is None) == (kind is Emulator)


@pytest.mark.parametrize(("model", "flag"), [("dmg", 0), ("cgb", 0), ("cgb", 0xC0)])
def test_pyboys_sprites_are_those_of_its_states(model: str, flag: int) -> None:
    """A look at OAM reads the begin of a state, and changes nothing, wherever in an OAM DMA."""
    rom, seen = rom_of("2150C1 34 3EC1 E046 3E28 3D 20FD 18F4", flag), set()  # counts in C150, copies C100 for ever
    options = {"model": model, "frames_per_step": 1, "release_after_frames": 1}
    watched, alone = (PyBoyEmulator(rom, 1, **options) for _ in range(2))
    for each in (watched, alone):
        each.machines[0].pyboy.memory[0xC100:0xC1A0] = list(range(1, 161))
    first = hw.OAM - hw.ROW_BASE
    watched.mirror.watch(first + 2, first + 160)
    for step in range(12):
        for each in (watched, alone):
            each.step(torch.tensor([step], dtype=torch.uint8))
        found, expected = watched.memory[0].numpy(), alone.save(0).memory[0]
        seen.add(expected[first + 2 : first + 160].tobytes())
        np.testing.assert_array_equal(found[first + 2 : first + 160], expected[first + 2 : first + 160])
        assert watched.machines[0].state() == alone.machines[0].state()
    assert len(seen) > 1
    for each in (watched, alone):
        each.close()


def test_pools_refuse_what_they_cannot_hold() -> None:
    oracle = PyBoyEmulator(ROM, 2)
    with pytest.raises(ConfigError, match="cannot save live envs"):
        oracle.pool([oracle.save(0)], spare=1)
    with pytest.raises(StateError, match="the snapshot has 2 envs, a pool takes those of one"):
        oracle.pool([oracle.save()])
    oracle.close()
