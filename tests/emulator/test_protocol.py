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


def test_pools_refuse_what_they_cannot_hold() -> None:
    oracle = PyBoyEmulator(ROM, 2)
    with pytest.raises(ConfigError, match="cannot save live envs"):
        oracle.pool([oracle.save(0)], spare=1)
    with pytest.raises(StateError, match="the snapshot has 2 envs, a pool takes those of one"):
        oracle.pool([oracle.save()])
    oracle.close()
