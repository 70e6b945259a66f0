"""After `close` every public call says in one line that its object is closed, and none revives it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.gym import make, make_vec
from gbxcule_puffer.integrations.pufferl.env import PuffeRLEnv
from gbxcule_puffer.integrations.pyboy_api import GameBoys
from gbxcule_puffer.toy import ToyEnv

ROM = Path(__file__).parents[1] / "roms/homeward.gb"
THINGS: dict[str, Callable[[], Any]] = {
    "Emulator": lambda: Emulator(ROM, 2),
    "GameBoys": lambda: GameBoys(ROM, 2),
    "GBxCuLEEnv": lambda: GBxCuLEEnv(ROM, 2),
    "GBxCuLEEnv of tensors": lambda: GBxCuLEEnv(ROM, 2, io="torch"),
    "PuffeRLEnv": lambda: PuffeRLEnv(ROM, 2),
    "GameBoyEnv": lambda: make(rom=ROM),
    "GameBoyVectorEnv": lambda: make_vec(num_envs=2, rom=ROM),
    "PyBoyEmulator": lambda: PyBoyEmulator(ROM),
    "PyBoyPufferSingle": lambda: PyBoyPufferSingle(ROM, 2),
    "PyBoyPufferVec": lambda: PyBoyPufferVec(ROM, 2, backend="serial"),
    "ToyEnv": lambda: ToyEnv(2),
}
ENDS = {"close", "stop"}


def closed(name: str, used: bool) -> Any:
    """A thing after its end, or after a reset and its end."""
    thing = THINGS[name]()
    if used and hasattr(thing, "reset"):
        thing.reset()
    (thing.stop if name == "GameBoys" else thing.close)()
    return thing


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("name", THINGS)
def test_every_method_says_that_it_is_closed(name: str, used: bool) -> None:
    thing, line = closed(name, used), f"this {name.split()[0]} is closed: make another one"
    names = [each for each in dir(type(thing)) if not each.startswith("_") and each not in ENDS]
    methods = [each for each in names if callable(getattr(type(thing), each)) and each != "close_extras"]
    assert len(methods) > 4
    for method in methods:
        with pytest.raises(ConfigError) as caught:
            getattr(thing, method)()
        assert str(caught.value) == line, method
    for each in set(names) - set(methods):  # attributes and properties, of which those that need what is gone say so
        try:
            getattr(thing, each)
        except ConfigError as error:
            assert str(error) == line or (each == "colors" and "this is a DMG" in str(error)), each
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        if name not in ("GameBoyEnv", "GameBoyVectorEnv", "ToyEnv"):
            with pytest.raises(ConfigError, match=f"{line}|cannot be copied"):
                copier(thing)
    for end in ENDS & set(dir(thing)):
        getattr(thing, end)()  # twice is once


def test_a_step_with_arguments_says_so_too() -> None:
    calls: tuple[tuple[str, Callable[[Any], Any]], ...] = (
        ("Emulator", lambda one: one.step(torch.zeros(2, dtype=torch.uint8))),
        ("Emulator", lambda one: one.reset()),
        ("GBxCuLEEnv", lambda one: one.reset(seed=1)),
        ("GBxCuLEEnv", lambda one: one.step(np.zeros(2, int))),
        ("GBxCuLEEnv", lambda one: one.ram),
        ("GBxCuLEEnv", lambda one: one.emulator),
        ("GameBoyVectorEnv", lambda one: one.reset(seed=[1, 2])),
        ("GameBoyEnv", lambda one: one.step(1)),
        ("GameBoys", lambda one: one.memory[0xC000]),
        ("GameBoys", lambda one: one.memory.__setitem__(0xC000, 1)),
        ("GameBoys", lambda one: one.register_file.A),
        ("GameBoys", lambda one: setattr(one.register_file, "A", 1)),
        ("GameBoys", lambda one: one.screen.ndarray),
        ("GameBoys", lambda one: one.screen.image()),
        ("GameBoys", lambda one: one.tilemap_window[:, :]),
    )
    for name, call in calls:
        with pytest.raises(ConfigError, match=f"^this {name} is closed: make another one$"):
            call(closed(name, True))


def test_with_ends_it() -> None:
    with GameBoys(ROM) as boys:
        assert boys.tick()
    with pytest.raises(ConfigError, match="this GameBoys is closed"):
        boys.tick()


def test_those_of_stable_baselines3() -> None:
    pytest.importorskip("stable_baselines3")
    from gbxcule_puffer.integrations.sb3 import StableVecEnv

    env: Any = StableVecEnv(make_vec(num_envs=2, rom=ROM))
    env.reset()
    env.close()
    for call in (env.reset, env.step_wait, env.get_images):
        with pytest.raises(ConfigError, match="this StableVecEnv is closed"):
            call()


def test_those_of_torchrl() -> None:
    pytest.importorskip("torchrl")
    from gbxcule_puffer.integrations.torchrl import GameBoyTorchRL

    env = GameBoyTorchRL(rom=str(ROM), num_envs=2)
    env.close()
    with pytest.raises(ConfigError, match="this GBxCuLEEnv is closed"):
        env.reset()
