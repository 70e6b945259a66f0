"""The sound unit of a PyBoy and of an env under the names of sound_fields.py, so that they can be compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbxcule_puffer.emulator import Cartridge, sound_fields
from gbxcule_puffer.emulator.saves import pyboy_layout, pyboy_sound


def pyboy_sound_of(state: bytes, cartridge: Cartridge) -> dict[str, Any]:
    """The sound unit in a state that PyBoy 2.8.1 has saved."""
    form = pyboy_layout.Variant(True, True, True, pyboy_layout.machine_of(cartridge))
    samples = pyboy_layout.NEUTRAL["sound_samples"]
    values = pyboy_layout.unpack(state, pyboy_layout.layout(pyboy_layout.VERSION, cartridge, form, samples))
    fields = pyboy_sound.fields_of(values, values["cycles"], cartridge.model) | {"noise_steps": 0}
    wave = np.frombuffer(values["wave_table"], np.uint8)
    return {**pyboy_sound.comparable(fields, cartridge.model), "wave RAM": wave}


def emulator_sound(row: np.ndarray, model: str) -> dict[str, Any]:
    """The same of an env's memory row."""
    return {**pyboy_sound.comparable(sound_fields.read(row), model), "wave RAM": row[pyboy_sound.WAVE_RAM]}
