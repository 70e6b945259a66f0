"""The Game Boy Color's part of PyBoy's .state files, to and from a snapshot's fields and memory row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.saves.pyboy_layout import SAME_COLOR_FIELDS
from gbxcule_puffer.emulator.state import color_row_size, row_size
from gbxcule_puffer.errors import StateError


def fields_of(values: Mapping[str, Any]) -> dict[str, int]:
    """The fields of a file; FF72 to FF75 are not in the file, and become 0."""
    return {name: int(values.get(name, 0)) for name in SAME_COLOR_FIELDS} | {"color_mode": int(values["lcd_cgb"])}


def colors_of(pixels: np.ndarray) -> np.ndarray:
    """Colours of 15 bits, uint16, red lowest, of PyBoy's pixels (n,) uint32."""
    parts = [(pixels >> 8 * index + 3 & 31) << 5 * index for index in range(3)]
    return sum(parts[1:], parts[0]).astype(np.uint16)


def pixels_of(colors: np.ndarray) -> np.ndarray:
    """PyBoy's pixels, uint32, of colours; half a picture is doubled."""
    scale = hw.SCREEN_HEIGHT // colors.shape[0]
    whole = colors.astype(np.uint32).repeat(scale, 0).repeat(scale, 1)
    return 0xFF000000 | (whole & 31) << 3 | (whole >> 5 & 31) << 11 | (whole >> 10 & 31) << 19


def shades_of(colors: np.ndarray) -> np.ndarray:
    """Shades 0 to 3, uint8, of colours (hw/lcd/color_picture.py, grey)."""
    luma = (2 * (colors & 31) + 5 * (colors >> 5 & 31) + (colors >> 10 & 31)) >> 3
    return (3 - (luma >> 3)).astype(np.uint8)


def fill_row(row: np.ndarray, values: Mapping[str, Any], cartridge: Cartridge, colors: np.ndarray) -> np.ndarray:
    """Write a DMG's memory row, followed by the rest of a Game Boy Color's."""
    start = row_size(cartridge.ram_banks)
    whole = np.zeros(color_row_size(cartridge.ram_banks, 1), np.uint8)
    whole[:start] = row[:start]
    parts = {
        "vram1": 0,
        "wram": hw.COLOR_WRAM,
        "bg_palettes": hw.COLOR_PALETTES,
        "obj_palettes": hw.COLOR_PALETTES + hw.OBJ_PALETTES,
    }
    for name, offset in parts.items():
        block = np.frombuffer(values.get(name, b""), np.uint8)[0x2000 if name == "wram" else 0 :]
        whole[start + offset :][: len(block)] = block
    whole[start + hw.COLOR_SIZE :] = colors.astype("<u2").view(np.uint8)
    return whole


def values_of(fields: Mapping[str, int], row: np.ndarray, cartridge: Cartridge, colors: np.ndarray) -> dict[str, Any]:
    """The values of a file; colors: the picture.

    Raises: StateError if PyBoy's clock of the LCD has wrapped.
    """
    if fields["lcd_wrapped"]:
        raise StateError("PyBoy's clock of the LCD has run backwards (docs/color.md); save in another frame")
    own = row[row_size(cartridge.ram_banks) :]
    values: dict[str, Any] = {name: fields[name] for name in SAME_COLOR_FIELDS}
    values |= {"lcd_speed": fields["double_speed"], "sound_speed": fields["double_speed"]}
    values["wram"] = row[hw.WRAM - hw.ROW_BASE :][:0x2000].tobytes() + own[hw.COLOR_WRAM : hw.COLOR_PALETTES].tobytes()
    values["vram1"] = own[: hw.COLOR_WRAM].tobytes()
    palettes = own[hw.COLOR_PALETTES : hw.COLOR_SIZE].tobytes()
    for name, block in (("bg", palettes[: hw.OBJ_PALETTES]), ("obj", palettes[hw.OBJ_PALETTES :])):
        index = fields[f"{name}_index"]
        values |= {f"{name}_palettes": block, f"{name}_increments": index >> 7}
        values |= {f"{name}_color": index >> 1 & 31, f"{name}_high": index & 1}
    values["colors"] = pixels_of(colors)
    return values
