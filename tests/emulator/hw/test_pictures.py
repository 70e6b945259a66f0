"""Pictures of random VRAM, OAM and LCD registers, drawn line by line and by the kernel of a GPU's step, against another
renderer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.build.variant import build
from gbxcule_puffer.emulator.hw.lcd import drawing
from gbxcule_puffer.emulator.state import INDEX, Cpu, Machine
from tests.fuzz.generator import header

NUM_ENVS = 32
REGISTERS = ("lcdc", "scy", "scx", "wx", "bgp", "obp0", "obp1")
load = build("interpreter").generated.load


@wp.kernel(enable_backward=False)
def draw_lines(machine: Machine):
    m = machine
    c = Cpu()
    c.env = wp.tid()
    load(m, c)
    for line in range(c.next_line, hw.SCREEN_HEIGHT):
        if line % m.pixel_step == 0:
            drawing.draw_line(m, c, line)


def scenes(emulator: Emulator) -> None:
    """Random memory and registers in all envs; some of their lines are drawn already, some have a crowd of sprites."""
    random = np.random.default_rng(0)
    memory = emulator.memory.numpy()
    vram = random.integers(0, 256, (NUM_ENVS, 0x2000), np.uint8)
    vram[:, :0x1800] &= np.where(random.random((NUM_ENVS, 0x1800)) < 0.5, 0, 255).astype(np.uint8)  # some colour 0
    memory[:, hw.VRAM - hw.ROW_BASE : hw.VRAM - hw.ROW_BASE + 0x2000] = vram
    oam = random.integers(0, 256, (NUM_ENVS, 40, 4), np.uint8)
    crowd = random.random((NUM_ENVS, 1)) < 0.5
    oam[:, :, 0] = np.where(crowd, random.integers(60, 90, (NUM_ENVS, 40)), oam[:, :, 0])
    oam[:, :, 1] = np.where(crowd, random.integers(0, 32, (NUM_ENVS, 40)) * 6, oam[:, :, 1])
    memory[:, hw.OAM - hw.ROW_BASE : hw.OAM_END - hw.ROW_BASE] = oam.reshape(NUM_ENVS, 160)
    for name in REGISTERS:
        emulator._state[INDEX[name]] = torch.from_numpy(random.integers(0, 256, NUM_ENVS)).int()
    emulator._state[INDEX["lcdc"]] |= 0x80
    for name, below in (("window_hit", 2), ("window_first", 144), ("next_line", 40)):
        emulator._state[INDEX[name]] = torch.from_numpy(random.integers(0, below, NUM_ENVS)).int()
    emulator._state[INDEX["window_line"]] = -1
    emulator._state[INDEX["drawing"]] = 1


class Scene:
    """An env's memory and registers; draws a line pixel by pixel."""

    def __init__(self, emulator: Emulator, env: int) -> None:
        self.memory = emulator.memory[env].numpy().astype(int)
        self.state = emulator._state[:, env]

    def __getattr__(self, name: str) -> int:
        return int(self.state[INDEX[name]])

    def byte(self, address: int) -> int:
        return int(self.memory[address - hw.ROW_BASE])

    def color(self, address: int, column: int) -> int:
        low, high = self.byte(address), self.byte(address + 1)
        return (low >> (7 - column)) & 1 | ((high >> (7 - column)) & 1) << 1

    def background(self, line: int, x: int) -> int | None:
        """Colour of the background or window; None where there is neither."""
        left = self.wx - 7
        shows = self.lcdc & 0x20 and self.wx < 167 and self.window_hit and line >= self.window_first
        if shows and x >= left:
            base, column = 0x9C00 if self.lcdc & 0x40 else 0x9800, x - left
            y = line - max(self.next_line, self.window_first)
        elif not shows and not self.lcdc & 1:
            return None
        else:
            base, column, y = 0x9C00 if self.lcdc & 8 else 0x9800, x + self.scx, line + self.scy
        tile = self.byte(base + (y // 8 % 32) * 32 + column // 8 % 32)
        address = 0x8000 + 16 * tile if self.lcdc & 0x10 else 0x9000 + 16 * (tile - 256 * (tile >= 128))
        return self.color(address + 2 * (y % 8), column % 8)

    def line(self, line: int) -> list[int]:
        """The shades of all pixels of a line."""
        colors = [self.background(line, x) for x in range(hw.SCREEN_WIDTH)]
        shades = [self.bgp >> 2 * (color or 0) & 3 for color in colors]
        if self.lcdc & 2:
            height = 16 if self.lcdc & 4 else 8
            entries = [[self.byte(hw.OAM + 4 * index + part) for part in range(4)] for index in range(40)]
            found = [(entry[1], index) for index, entry in enumerate(entries) if 0 <= line + 16 - entry[0] < height]
            for left, index in sorted(found[:10], reverse=True):
                y, _, tile, flags = entries[index]
                row = line + 16 - y
                row = height - 1 - row if flags & 0x40 else row
                address = 0x8000 + 16 * (tile & (0xFE if height == 16 else 0xFF)) + 2 * row
                for dx in range(8):
                    x, color = left - 8 + dx, self.color(address, 7 - dx if flags & 0x20 else dx)
                    if 0 <= x < hw.SCREEN_WIDTH and color and (not flags & 0x80 or colors[x] == 0):
                        shades[x] = (self.obp1 if flags & 0x10 else self.obp0) >> 2 * color & 3
        return shades


@pytest.mark.parametrize("screen", ["half", "full"])
def test_pictures(screen: str) -> None:
    rom = bytearray(0x8000)
    header(rom, 0, 0)
    emulator = Emulator(bytes(rom), NUM_ENVS, kernel="datapath", num_threads=1, screen=screen)
    scenes(emulator)
    pictures = []
    for kernel, dim, inputs in ((draw_lines, NUM_ENVS, []), (build("datapath").draw, NUM_ENVS, [1])):
        emulator._screen.fill_(9)
        wp.launch(kernel, dim, [emulator.machine, *inputs], device="cpu")
        pictures.append(emulator._screen.numpy().copy())
    size = emulator.pixel_step
    for env in range(NUM_ENVS):
        scene = Scene(emulator, env)
        first = -(-scene.next_line // size)
        for row in range(env % 29, hw.SCREEN_HEIGHT // size, 29):
            expected = scene.line(size * row)[::size] if row >= first else 9  # a line that is drawn is not drawn again
            for picture in pictures:
                np.testing.assert_array_equal(picture[env, row], expected, f"env {env}, row {row}")
