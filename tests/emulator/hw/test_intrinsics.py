"""What is written once for the CPU and once for a GPU: copies of words, and the sprites of a line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import warp as wp

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import intrinsics, row
from gbxcule_puffer.emulator.hw.lcd import mode3
from gbxcule_puffer.emulator.state import Cpu, Machine

HOMEWARD = Path(__file__).parents[3] / "roms" / "homeward.gb"
WORDS = 48  # of a row; half of them are copied from
LINES = 4_000


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    return "cpu" if request.param == "cpu" else request.getfixturevalue("cuda_device")


@wp.kernel(enable_backward=False)
def copy(machine: Machine):
    m = machine
    c = Cpu()
    c.env = wp.tid()
    c.row = intrinsics.address_of_row(m.memory, c.env) - wp.uint64(hw.ROW_BASE)
    row.copy_words(c, hw.VRAM + 4, hw.VRAM + 4 * (WORDS // 2), c.env)


@wp.kernel(enable_backward=False)
def extra(machine: Machine, lcdc: wp.array(dtype=int), scx: wp.array(dtype=int), found: wp.array(dtype=int)):
    m = machine
    c = Cpu()
    c.env = wp.tid()
    c.row = intrinsics.address_of_row(m.memory, c.env) - wp.uint64(hw.ROW_BASE)
    c.lcdc = lcdc[c.env]
    c.scx = scx[c.env]
    found[c.env] = mode3.extra(m, c, c.env % hw.SCREEN_HEIGHT)


def test_words_are_copied_and_no_others(device: str) -> None:
    emulator = Emulator(HOMEWARD, WORDS // 2 - 1, device)
    rows = emulator.memory.view(-1, emulator.memory.shape[1])[:, : 4 * WORDS]
    rows[:] = rows.new_tensor(np.random.default_rng(0).integers(0, 256, tuple(rows.shape), np.uint8))
    expected = rows.cpu().numpy().copy()
    for count, words in enumerate(expected):
        words[2 * WORDS : 2 * WORDS + 4 * count] = words[4 : 4 + 4 * count]
    wp.launch(copy, emulator.num_envs, [emulator.machine], device=device)
    wp.synchronize()
    np.testing.assert_array_equal(rows.cpu().numpy(), expected)


def length_beyond_172(oam: np.ndarray, line: int, lcdc: int, scx: int) -> int:
    """T-cycles that sprites and SCX add to mode 3, one sprite after the other."""
    scroll = ((scx & 7) + 3) // 4 * 4
    height = 16 if lcdc & hw.LCDC_OBJ_SIZE else 8
    columns = [x for y, x in oam[:, :2].tolist() if 0 <= line + 16 - y < height][:10]
    shown = [x for x in columns if x < 168]
    if not columns or not lcdc & hw.LCDC_OBJ_ENABLE:
        return scroll
    if not shown:
        return scroll - 4
    tiles = sum(max(0, 5 - (x + scx - 8) % 8) for x in set(shown))
    return scroll + max(0, 6 * len(shown) + tiles - 7)


def test_sprites_prolong_mode_3(device: str) -> None:
    random = np.random.default_rng(1)
    line = np.arange(LINES) % hw.SCREEN_HEIGHT
    oam = random.integers(0, 256, (LINES, 40, 4), np.uint8)
    crowd = random.integers(0, 41, (LINES, 1))  # sprites that are on the line or near it, the others anywhere
    near = np.clip(line[:, None] + random.integers(-2, 22, (LINES, 40)), 0, 255)
    oam[:, :, 0] = np.where(random.permuted(np.tile(np.arange(40), (LINES, 1)), axis=1) < crowd, near, oam[:, :, 0])
    oam[:, :, 1] &= random.choice(np.array([0x0F, 0xA7, 0xFF], np.uint8), (LINES, 1))  # also many with one X
    lcdc, scx = random.integers(0, 256, LINES), random.integers(0, 256, LINES)
    emulator = Emulator(HOMEWARD, LINES, device)
    begin = hw.OAM - hw.ROW_BASE
    emulator.memory[:, begin : begin + 160] = emulator.memory.new_tensor(oam.reshape(LINES, 160))
    arrays = [wp.array(values, dtype=int, device=device) for values in (lcdc, scx, np.zeros(LINES))]
    wp.launch(extra, LINES, [emulator.machine, *arrays], device=device)
    expected = [
        length_beyond_172(*fields) for fields in zip(oam, line.tolist(), lcdc.tolist(), scx.tolist(), strict=True)
    ]
    assert arrays[2].numpy().tolist() == expected
    assert len(set(expected)) > 60
