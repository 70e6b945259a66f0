"""Tile maps, sprites and the game area of all Game Boys, as tensors of tile identifiers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.pyboy_api import left_out
from gbxcule_puffer.integrations.pyboy_api.fields import Fields
from gbxcule_puffer.integrations.pyboy_api.hint import AxisHint
from gbxcule_puffer.integrations.pyboy_api.memory import Memory
from gbxcule_puffer.tasks.ram import Ram

LOW_MAP, HIGH_MAP, MAP_SIZE = 0x9800, 0x9C00, 32
BACKGROUND_BIT, WINDOW_BIT, TILE_DATA_BIT = 0x08, 0x40, 0x10  # of LCDC
TILES = 384  # of each bank
SPRITES = 40


class TileMap:
    """A tile map: map[column, row] of identifiers 0-383, (num_envs,) int32. Slices return (num_envs, columns),
    (num_envs, rows), or with both (num_envs, rows, columns)."""

    shape = (MAP_SIZE, MAP_SIZE)

    def __init__(self, memory: Memory, fields: Fields, select: int, hint: AxisHint) -> None:
        self._memory, self._fields, self._select, self._hint = memory, fields, select, hint

    def __getattr__(self, name: str) -> NoReturn:
        left_out.refuse("a tile map", left_out.TILE_MAP, name)

    def __getitem__(self, key: int | slice | tuple[int | slice, int | slice]) -> torch.Tensor:
        columns, rows = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
        column, row = _part(columns), _part(rows)
        if isinstance(column, slice) or isinstance(row, slice):
            self._hint.say()
        return self.identifiers()[:, row, column]

    def identifiers(self) -> torch.Tensor:
        """The whole map, (num_envs, 32, 32) int32; on a Game Boy Color in the bank that the CPU has selected, as in
        PyBoy."""
        low, high = (self._memory.read(first, first + MAP_SIZE**2) for first in (LOW_MAP, HIGH_MAP))
        lcdc = self._fields["lcdc"][:, None]
        numbers = torch.where((lcdc & self._select) != 0, high, low)
        signed = torch.where(numbers < 128, numbers + 256, numbers)
        return torch.where((lcdc & TILE_DATA_BIT) != 0, numbers, signed).view(-1, MAP_SIZE, MAP_SIZE)

    def tile_identifier(self, column: int, row: int) -> torch.Tensor:
        """The identifier at a column and row, (num_envs,) int32."""
        return self[column, row]


def _part(given: object) -> int | slice:
    """Columns or rows of a tile map.

    Raises: ConfigError for those that the map does not have; torch would count negative ones from its end.
    """
    try:
        if not isinstance(given, slice):
            first = operator.index(given)  # type: ignore[arg-type]
            fits, part = 0 <= first < MAP_SIZE, first
        else:
            first, stop, step = (
                default if bound is None else operator.index(bound)
                for bound, default in ((given.start, 0), (given.stop, MAP_SIZE), (given.step, 1))
            )
            fits, part = 0 <= first <= stop <= MAP_SIZE and step > 0, slice(first, stop, step)
    except TypeError:
        fits, part = False, 0
    if not fits:
        raise ConfigError(f"a tile map has columns and rows 0 to 31, not {given!r:.60}")
    return part


@dataclass(frozen=True)
class Sprite:
    """A sprite of all Game Boys, tensors (num_envs,) int32, on_screen bool; x, y: its upper left corner; height: 8 or
    16."""

    x: torch.Tensor
    y: torch.Tensor
    tile_identifier: torch.Tensor
    attr_obj_bg_priority: torch.Tensor
    attr_y_flip: torch.Tensor
    attr_x_flip: torch.Tensor
    attr_palette_number: torch.Tensor
    attr_cgb_bank_number: torch.Tensor
    height: torch.Tensor
    on_screen: torch.Tensor

    @property
    def shape(self) -> tuple[int, torch.Tensor]:
        """(8, height)."""
        return 8, self.height

    def __getattr__(self, name: str) -> NoReturn:
        left_out.refuse("a sprite", left_out.SPRITE, name)


def sprites(ram: Ram, fields: Fields) -> Sprite:
    """All 40 sprites at once: each tensor (num_envs, 40)."""
    oam = fields.oam_reads(ram.view(hw.OAM, 4 * SPRITES).to(torch.int32)).view(-1, SPRITES, 4)
    y, x, tile, attributes = oam[..., 0] - 16, oam[..., 1] - 8, oam[..., 2], oam[..., 3]
    height = torch.where((fields["lcdc"] & hw.LCDC_OBJ_SIZE) != 0, 16, 8).to(torch.int32)[:, None].expand_as(x)
    on_screen = (y > -height) & (y < hw.SCREEN_HEIGHT) & (x > -8) & (x < hw.SCREEN_WIDTH)
    priority, y_flip, x_flip, palette = ((attributes >> bit) & 1 for bit in (7, 6, 5, 4))
    bank = torch.zeros_like(tile)
    if fields.is_color:
        palette, bank = attributes & 7, (attributes >> 3) & 1
        tile = tile + TILES * bank
    return Sprite(x, y, tile, priority, y_flip, x_flip, palette, bank, height, on_screen)


def sprite(ram: Ram, fields: Fields, index: int) -> Sprite:
    """One sprite of all Game Boys, by its number."""
    whole = sprites(ram, fields)
    return Sprite(**{name: value[:, index] for name, value in vars(whole).items()})


class GameArea:
    """Tiles with the sprites on top of them, as small numbers: PyBoy's game_area without a game wrapper."""

    def __init__(self, ram: Ram, fields: Fields, background: TileMap) -> None:
        self._ram, self._fields, self._background = ram, fields, background
        self.section = (0, 0, MAP_SIZE, MAP_SIZE)
        self._tiles = 2 * TILES if fields.is_color else TILES
        self.set_mapping(range(self._tiles))

    def set_mapping(self, mapping: Sequence[int] | Any, sprite_offset: int = 0) -> None:
        """Numbers for the identifiers 0 to 383 (767 on a Game Boy Color), and the number that is added for sprites."""
        self._mapping = torch.as_tensor(list(mapping), dtype=torch.int32, device=self._ram.device)
        self._offset = sprite_offset
        if len(self._mapping) < self._tiles:
            raise ConfigError(f"a mapping has a number for each of {self._tiles} tiles, not {len(self._mapping)}")

    def set_section(self, x: int, y: int, width: int, height: int) -> None:
        """The part of the tile map that `read` returns.

        Raises: ConfigError for a part that leaves the map.
        """
        if not (0 <= x < x + width <= MAP_SIZE and 0 <= y < y + height <= MAP_SIZE):
            raise ConfigError(f"section {(x, y, width, height)} leaves the map of {MAP_SIZE} x {MAP_SIZE} tiles")
        self.section = (x, y, width, height)

    def settings(self) -> tuple[object, ...]:
        """Section, mapping and offset, for a copy."""
        return self.section, self._mapping.clone(), self._offset

    def take_settings(self, settings: tuple[Any, ...]) -> None:
        """Takes what `settings` returned."""
        self.section, self._mapping, self._offset = settings

    def read(self) -> torch.Tensor:
        """The current section, (num_envs, height, width) int32."""
        x, y, width, height = self.section
        shown = self._background.identifiers()[:, y : y + height, x : x + width]
        tiles = self._mapping[shown.long()].flatten(1)
        beside = tiles.new_zeros((len(tiles), 1))  # for sprites outside of the section
        area, whole = torch.cat([tiles, beside], 1), sprites(self._ram, self._fields)
        columns, rows = (whole.x >> 3) - x, (whole.y >> 3) - y
        for index in range(SPRITES):  # in order, because later sprites are on top
            for half in (0, 1):
                column, row = columns[:, index], rows[:, index] + half
                seen = whole.on_screen[:, index] & (column >= 0) & (column < width) & (row >= 0) & (row < height)
                if half:
                    seen = seen & (whole.height[:, index] == 16)
                cell = torch.where(seen, row * width + column, width * height)
                value = self._mapping[whole.tile_identifier[:, index].long() + half] + self._offset
                area.scatter_(1, cell.long()[:, None], value[:, None])
        return area[:, :-1].view(-1, height, width)
