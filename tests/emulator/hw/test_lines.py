"""Changes of the LCD that are made several at once leave the state that they leave one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator, kernels
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw.lcd import ppu
from gbxcule_puffer.emulator.state import INDEX, Cpu, Machine
from tests.fuzz.generator import header

NUM_ENVS = 40_000
FIELDS = ["lcd_zero", "lcd_target", "lcd_last", "ly", "stat", "stat_line", "lcd_next_mode", "lcd_transition",
          "mode3_extra", "window_hit", "window_first", "interrupt_flag", "frame_done", "lcd_first_frame",
          "lcd_restart"]  # fmt: skip
LINE = hw.LINE_T_CYCLES
generated = kernels.modules("interpreter")[1]
load, store = generated.load, generated.store


@wp.kernel(enable_backward=False)
def settle(machine: Machine, times: wp.array2d(dtype=int), at_once: int):
    m = machine
    c = Cpu()
    c.env = wp.tid()
    load(m, c)
    c.now = times[c.env, 0]
    c.previous = times[c.env, 1]
    c.settle_from = times[c.env, 2]
    if at_once != 0:
        ppu.settle_changes(m, c)
    else:
        during = wp.int32(0)
        while c.lcd_target <= c.now and during == 0:
            during = ppu.make_change(m, c)
        c.lcd_last = c.now
    store(m, c)


def images() -> bytes:
    rom = bytearray(0x8000)
    header(rom, 0, 0)
    return bytes(rom)


def random_states(seed: int, state: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """Fill the states and OAM of all envs: LCDs in a line above VBlank, some of them with fields at odds, and sprites.
    Returns (now, previous, settle_from) of each."""
    random = np.random.default_rng(seed)

    def draw(low: int, high: int) -> np.ndarray:
        return random.integers(low, high, NUM_ENVS)

    def rarely(one_in: int) -> np.ndarray:
        return draw(0, one_in) == 0

    def by_count(*values: Any) -> np.ndarray:
        return np.stack(np.broadcast_arrays(*values, count)[:-1])[count, np.arange(NUM_ENVS)]

    oam = random.integers(0, 256, (NUM_ENVS, 40, 4), np.uint8)
    crowd = draw(1, 41)
    line = np.where(rarely(4), draw(130, 144), draw(0, 144))
    oam[:, :, 0] = np.where(np.arange(40) < crowd[:, None], line[:, None] + random.integers(0, 24, (NUM_ENVS, 40)), 0)
    oam[:, :, 1] = np.where(rarely(3)[:, None], oam[:, :, 1] & 0x1F, oam[:, :, 1])
    memory[:, hw.OAM - hw.ROW_BASE : hw.OAM_END - hw.ROW_BASE] = oam.reshape(NUM_ENVS, 160)
    count = draw(0, 4)
    count = np.where((count == 0) & (line == 0), 1, count)
    last = (count == 3) & (line == 143)
    extra = draw(-4, 112)
    lyc = np.where(rarely(2), line + draw(0, 3), draw(0, 154))
    sources = np.where(rarely(8), draw(0, 16) << 3, draw(0, 2) << 6 | draw(0, 2) << 4)
    mode = by_count(0, 2, 3, 0)
    level = (sources >> 6) & (lyc == line)
    time = by_count(0, 80, 252 + extra, np.where(last, 456, 452))
    zero = -draw(0, 154 * LINE)
    values: dict[str, Any] = {
        "lcdc": np.where(rarely(20), draw(0, 256), draw(0, 128) | 0x80),
        "stat": 0x80 | sources | (lyc == line) << 2 | mode,
        "stat_line": level,
        "ly": line,
        "lyc": lyc,
        "scx": draw(0, 256),
        "wy": np.where(rarely(2), line + draw(-2, 4), draw(0, 256)) & 0xFF,
        "lcd_next_mode": by_count(2, 3, 0, np.where(last, 1, 2)),
        "lcd_transition": by_count(2, 0, 0, np.where(last, 0, 1)),
        "mode3_extra": extra,
        "window_hit": rarely(4),
        "interrupt_flag": draw(0, 32),
        "lcd_zero": zero,
        "lcd_target": zero + line * LINE + time,
    }
    for name, value in values.items():
        state[INDEX[name]] = value
    ranges = {
        "stat_line": 2,
        "ly": 154,
        "lcd_next_mode": 4,
        "lcd_transition": 3,
        "lcd_first_frame": 2,
        "lcd_restart": 2,
    }
    for name, values_below in ranges.items():
        state[INDEX[name]] = np.where(rarely(40), draw(0, values_below), state[INDEX[name]])
    state[INDEX["stat"]] ^= np.where(rarely(40), draw(0, 8), 0).astype(np.int32)
    state[INDEX["lcd_target"]] += np.where(rarely(40), draw(-8, 8), 0).astype(np.int32)
    target = state[INDEX["lcd_target"]]
    length = draw(0, 7) * 4
    now = target + np.where(rarely(2), draw(0, 32), np.where(rarely(2), draw(0, 2 * LINE), draw(0, 60 * LINE)))
    previous = now - length
    settle_from = np.where(rarely(8), previous + draw(1, 9), previous - draw(0, 2000))
    return np.stack([now, previous, settle_from], 1).astype(np.int32)


@pytest.fixture(scope="module")
def emulator() -> Emulator:
    return Emulator(images(), NUM_ENVS, kernel="interpreter")


@pytest.mark.parametrize("seed", range(8))
def test_at_once_and_one_by_one(emulator: Emulator, seed: int) -> None:
    state, memory = wp.to_torch(emulator.machine.state), emulator.memory
    begin = state.numpy().copy()
    begin[:] = 0
    times = random_states(seed, begin, memory.numpy())
    results = []
    for at_once in (0, 1):
        state.copy_(torch.from_numpy(begin))
        wp.launch(settle, NUM_ENVS, [emulator.machine, wp.array(times, dtype=int), at_once], device="cpu")
        results.append(state.numpy().copy())
    wrong = np.flatnonzero((results[0] != results[1]).any(axis=0))
    assert len(wrong) == 0, report(begin, times, results, int(wrong[0]), len(wrong))
    moved = results[0][INDEX["ly"]] != begin[INDEX["ly"]]
    assert 0.2 < moved.mean() < 0.9


def report(begin: np.ndarray, times: np.ndarray, results: list[np.ndarray], env: int, count: int) -> str:
    lines = [f"{count} differ; env {env}, now, previous and settle_from {times[env].tolist()}:"]
    for name, row in INDEX.items():
        if (row < len(begin) and len({int(a[row, env]) for a in (begin, *results)}) > 1) or name in FIELDS:
            lines.append(f"{name}: {begin[row, env]}, then {results[0][row, env]}; at once {results[1][row, env]}")
    return "\n".join(lines)
