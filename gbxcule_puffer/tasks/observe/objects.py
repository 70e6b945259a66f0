"""Tiles and sprites of the visible screen, from VRAM, OAM and the LCD's registers: a kernel after the step."""

# Kernels: Warp's integers are types of their own.
# pyright: reportOperatorIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import numpy as np
import torch
import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.address_space import row_offset
from gbxcule_puffer.emulator.hw import intrinsics
from gbxcule_puffer.emulator.launch import Launcher, fill
from gbxcule_puffer.emulator.protocol import EmulatorLike
from gbxcule_puffer.tasks.observe.pictures import FEATURES, NO_TILE, OBJECTS, SPRITES, PictureKind
from gbxcule_puffer.tasks.observe.pixels import signed
from gbxcule_puffer.tasks.ram.view import Ram

ROWS, COLUMNS = wp.constant(OBJECTS["tiles"].rows), wp.constant(OBJECTS["tiles"].row_values)
CELLS = wp.constant(ROWS * COLUMNS)
MAPS, MAPS_END = 0x9800, 0xA000
OAM_IN_ROW, MAPS_IN_ROW = wp.constant(hw.OAM - hw.ROW_BASE), wp.constant(MAPS - hw.ROW_BASE)
MAP_SIZE = wp.constant(0x400)
BANK_TILES = wp.constant(NO_TILE // 2)
NOTHING, COUNT, SIZE = wp.constant(NO_TILE), wp.constant(SPRITES), wp.constant(len(FEATURES))


@wp.struct
class Screens:
    """Inputs of the kernels, of each env: `memory` rows, registers of the LCD, and the `mask` of the envs to read.
    bank_1: the offset of the maps of VRAM bank 1 in a row, 0 where a game does not use them."""

    memory: wp.array2d(dtype=wp.uint8)
    mask: wp.array(dtype=wp.bool)
    lcdc: wp.array(dtype=wp.int32)
    scy: wp.array(dtype=wp.int32)
    scx: wp.array(dtype=wp.int32)
    wy: wp.array(dtype=wp.int32)
    wx: wp.array(dtype=wp.int32)
    bank_1: int


@wp.struct
class Sprite:
    """An entry of OAM; y and x of its upper left corner."""

    y: int
    x: int
    tile: int
    bank: int
    attributes: int
    height: int
    is_visible: bool


@wp.func
def is_set(s: Screens, env: int, bit: int) -> bool:
    """True if a bit of LCDC is set."""
    return (s.lcdc[env] & bit) != 0


@wp.func
def sprite_of(s: Screens, env: int, index: int) -> Sprite:
    """A sprite of OAM."""
    first = OAM_IN_ROW + 4 * index
    sprite = Sprite()
    sprite.y = int(s.memory[env, first]) - 16
    sprite.x = int(s.memory[env, first + 1]) - 8
    sprite.tile = int(s.memory[env, first + 2])
    sprite.attributes = int(s.memory[env, first + 3])
    sprite.bank = wp.where(s.bank_1 != 0, (sprite.attributes >> 3) & 1, 0)
    sprite.height = wp.where(is_set(s, env, hw.LCDC_OBJ_SIZE), 16, 8)
    is_inside = sprite.y > -sprite.height and sprite.y < hw.SCREEN_HEIGHT
    is_inside = is_inside and sprite.x > -8 and sprite.x < hw.SCREEN_WIDTH
    sprite.is_visible = is_inside and is_set(s, env, hw.LCDC_OBJ_ENABLE) and is_set(s, env, hw.LCDC_ENABLE)
    return sprite


@wp.func
def tile_of(s: Screens, env: int, row: int, column: int) -> int:
    """The tile of background or window at the pixel (8 * row, 8 * column) of the screen."""
    y = 8 * row
    x = 8 * column
    left = s.wx[env] - 7
    has_window = is_set(s, env, hw.LCDC_WINDOW_ENABLE) and y >= s.wy[env] and left < hw.SCREEN_WIDTH
    is_window = has_window and x >= left
    is_blank = s.bank_1 == 0 and not has_window and not is_set(s, env, hw.LCDC_BG_ENABLE)  # as render.is_blank
    if is_blank or not is_set(s, env, hw.LCDC_ENABLE):
        return NOTHING
    map_bit = int(hw.LCDC_BG_MAP)
    if is_window:
        map_bit = int(hw.LCDC_WINDOW_MAP)
        y = y - s.wy[env]
        x = x - left
    else:
        y = y + s.scy[env]
        x = x + s.scx[env]
    cell = wp.where(is_set(s, env, map_bit), MAP_SIZE, 0) + 32 * ((y >> 3) & 31) + ((x >> 3) & 31)
    tile = int(s.memory[env, MAPS_IN_ROW + cell])
    if tile < 128 and not is_set(s, env, hw.LCDC_TILE_DATA):
        tile = tile + 256
    if s.bank_1 != 0 and (int(s.memory[env, s.bank_1 + cell]) & 8) != 0:
        tile = tile + BANK_TILES
    return tile


@wp.func
def put(out: wp.array2d(dtype=wp.int16), env: int, row: int, column: int, tile: int):
    """Writes a tile of a sprite where it is on the screen."""
    if row >= 0 and row < ROWS and column >= 0 and column < COLUMNS:
        out[env, CELLS + row * COLUMNS + column] = wp.int16(tile)


@wp.kernel(enable_backward=False)
def kernel_tiles(s: Screens, out: wp.array2d(dtype=wp.int16), lanes: int):
    """The cells of background and window, then those of the sprites, of which later ones cover earlier ones."""
    env, lane = wp.tid()  # pyright: ignore
    if s.mask[env]:
        for cell in range(lane, CELLS, lanes):
            out[env, cell] = wp.int16(tile_of(s, env, cell // COLUMNS, cell % COLUMNS))
            out[env, CELLS + cell] = wp.int16(NOTHING)
    intrinsics.converge()
    if lane == 0 and s.mask[env]:
        for index in range(COUNT):
            sprite = sprite_of(s, env, index)
            if sprite.is_visible:
                tile = sprite.tile + BANK_TILES * sprite.bank
                put(out, env, sprite.y >> 3, sprite.x >> 3, tile)
                if sprite.height == 16:
                    put(out, env, (sprite.y >> 3) + 1, sprite.x >> 3, tile + 1)


@wp.kernel(enable_backward=False)
def kernel_objects(s: Screens, out: wp.array2d(dtype=wp.uint8), lanes: int):
    """FEATURES of the sprites."""
    env, lane = wp.tid()  # pyright: ignore
    if s.mask[env]:
        for index in range(lane, COUNT, lanes):
            sprite = sprite_of(s, env, index)
            first = index * SIZE
            attributes = sprite.attributes
            palette = wp.where(s.bank_1 != 0, attributes & 7, (attributes >> 4) & 1)
            out[env, first] = wp.uint8(sprite.y + 16)
            out[env, first + 1] = wp.uint8(sprite.x + 8)
            out[env, first + 2] = wp.uint8(sprite.tile)
            out[env, first + 3] = wp.uint8(sprite.bank)
            out[env, first + 4] = wp.uint8(palette)
            out[env, first + 5] = wp.uint8((attributes >> 5) & 1)
            out[env, first + 6] = wp.uint8((attributes >> 6) & 1)
            out[env, first + 7] = wp.uint8((attributes >> 7) & 1)
            out[env, first + 8] = wp.uint8(wp.where(sprite.height == 16, 1, 0))
            out[env, first + 9] = wp.uint8(wp.where(sprite.is_visible, 1, 0))


class ObjectReader:
    """`values` (num_envs, planes, rows, values of a row) of an emulator's Game Boys: the tiles or objects of a `kind`,
    as they are after `read`. Registers count as they are at the end of the frame. Allocates only here."""

    def __init__(self, emulator: EmulatorLike, kind: PictureKind) -> None:
        device, cartridge = torch.device(emulator.device), emulator.cartridge
        uses_banks = emulator.model == "cgb" and cartridge.is_for_color
        ram = Ram(emulator)  # asks a mirror for what the kernels read
        ram.view(hw.OAM, 4 * SPRITES)
        for bank in ((0, 1) if uses_banks else (None,)) if kind.form == "tiles" else ():
            ram.view(MAPS if bank is None else (bank, MAPS), MAPS_END - MAPS)
        dtype = getattr(torch, np.dtype(kind.dtype).name)
        shape = emulator.num_envs, kind.planes, kind.rows, kind.row_values
        self.values = torch.zeros(shape, dtype=dtype, device=device)
        self._rows = signed(self.values).view(emulator.num_envs, -1)
        self._all = torch.ones(emulator.num_envs, dtype=torch.bool, device=device)
        self._kernel = kernel_tiles if kind.form == "tiles" else kernel_objects
        self._emulator, self._launcher = emulator, Launcher(device)
        self._bank_1 = row_offset(cartridge, MAPS, 1, 1) if uses_banks else 0
        self._screens: dict[int, Screens] = {}  # by the address of the mask

    def read(self, mask: torch.Tensor | None = None) -> None:
        """Fills `values` of the envs of `mask` (num_envs,) bool, a tensor that keeps its address, or of all. No host
        synchronisation."""
        mask = self._all if mask is None else mask
        registers = self._emulator.lcd_registers()
        if mask.data_ptr() not in self._screens:
            screens = fill(Screens(), memory=self._emulator.memory, mask=mask, **registers, bank_1=self._bank_1)
            self._screens[mask.data_ptr()] = screens
        lanes = self._launcher.lanes
        self._launcher(self._kernel, (len(mask), lanes), self._screens[mask.data_ptr()], self._rows, lanes)
