"""Changes of the LCD that are made several at once leave the state that they leave one by one."""

from __future__ import annotations

from functools import cache as memoize
from typing import Any

import numpy as np
import pytest
import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.build.instantiate import Edit
from gbxcule_puffer.emulator.build.variant import Variant, build
from gbxcule_puffer.emulator.state import INDEX, ColorCpu, Cpu, Machine
from tests.fuzz.generator import header

NUM_ENVS = {"dmg": 15_000, "cgb": 5_000}
FIELDS = ["lcd_zero", "lcd_target", "lcd_last", "ly", "stat", "stat_line", "lcd_next_mode", "lcd_transition",
          "mode3_extra", "window_hit", "window_first", "interrupt_flag", "frame_done", "lcd_first_frame",
          "lcd_restart"]  # fmt: skip
LINE = hw.LINE_T_CYCLES


@memoize
def make_settle(model: str) -> Any:
    """A kernel that makes the changes of ppu.settle_changes, or the same ones without lines.pass_changes."""
    as_on_gpus = Edit("hw.lcd.ppu", "settle_changes", "intrinsics.is_gpu() == 0", "False")
    kernels = build("interpreter", Variant(color=model == "cgb"), (as_on_gpus,))
    ppu, generated = kernels.module("hw.lcd.ppu"), kernels.generated
    load, store, cpu = generated.load, generated.store, ColorCpu if model == "cgb" else Cpu

    @wp.kernel(enable_backward=False, module="unique")
    def settle(machine: Machine, times: wp.array2d(dtype=int), at_once: int):
        m = machine
        c = cpu()
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
                during = wp.where(c.settle_from > c.previous or c.lcd_target > c.previous, 1, 0)
                ppu.change(m, c, c.now)
            c.lcd_last = c.now
        ppu.end_step(c)
        store(m, c)

    return settle  # pyright: ignore[reportReturnType]


def images() -> bytes:
    rom = bytearray(0x8000)
    header(rom, 0, 0)
    return bytes(rom)


def random_states(seed: int, model: str, state: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """Fill the states and OAM of all envs: LCDs in any line, some of them with fields at odds, and sprites. Returns
    (now, previous, settle_from) of each: `previous` is before the next event, as a batch ends there."""
    random = np.random.default_rng(seed)
    num_envs, is_color = len(memory), model == "cgb"

    def draw(low: int, high: int) -> np.ndarray:
        return random.integers(low, high, num_envs)

    def rarely(one_in: int) -> np.ndarray:
        return draw(0, one_in) == 0

    def by_phase(*values: Any) -> np.ndarray:
        return np.stack(np.broadcast_arrays(*values, phase)[:-1])[phase, np.arange(num_envs)]

    oam = random.integers(0, 256, (num_envs, 40, 4), np.uint8)
    crowd = draw(1, 41)
    line = np.where(rarely(4), draw(130, 154), draw(0, 144))
    oam[:, :, 0] = np.where(np.arange(40) < crowd[:, None], line[:, None] + random.integers(0, 24, (num_envs, 40)), 0)
    oam[:, :, 1] = np.where(rarely(3)[:, None], oam[:, :, 1] & 0x1F, oam[:, :, 1])
    memory[:, hw.OAM - hw.ROW_BASE : hw.OAM_END - hw.ROW_BASE] = oam.reshape(num_envs, 160)
    phase = draw(int(is_color), 4)  # clock.py
    phase = np.where((phase == 0) & (line == 0), 1, phase)
    phase = np.where(line > 143, 5, np.where((phase == 3) & (line == 143), 4, phase))
    extra = draw(-4, 112)
    lyc = np.where(rarely(2), line + draw(0, 3), draw(0, 156))
    sources = np.where(rarely(8), draw(0, 16) << 3, draw(0, 2) << 6 | draw(0, 2) << 4)
    level = ((sources >> 6) & (lyc == line)) | ((sources >> 4) & (line > 143))
    early = 0 if is_color else 4
    dot = line * LINE + by_phase(0, 80, (250 if is_color else 252) + extra, LINE - early, LINE, LINE)
    zero = -draw(0, 154 * LINE)
    double = draw(0, 2) if is_color else np.zeros(num_envs, int)
    values: dict[str, Any] = {
        "lcdc": np.where(rarely(20), draw(0, 256), draw(0, 128) | 0x80),
        "stat": 0x80 | sources | (lyc == line) << 2 | by_phase(0, 2, 3, 0, 0, 1),
        "stat_line": level,
        "ly": line,
        "lyc": lyc,
        "scx": draw(0, 256),
        "wy": np.where(rarely(2), line + draw(-2, 4), draw(0, 256)) & 0xFF,
        "lcd_next_mode": by_phase(2, 3, 0, 2, 1, 1),
        "lcd_transition": by_phase(2, 0, 0, int(not is_color), 0, 0),
        "mode3_extra": extra,
        "window_hit": rarely(4),
        "interrupt_flag": draw(0, 32),
        "lcd_zero": zero,
        "lcd_target": zero + (dot << double),
        "lcd_last": zero + (dot << double) - draw(1, 400),
    }
    if is_color:
        values |= {"double_speed": double, "color_mode": draw(0, 2)}
    for name, value in values.items():
        state[INDEX[name]] = value
    ranges = {"stat_line": 2, "ly": 154, "lcd_next_mode": 4, "lcd_transition": 4 if is_color else 3,
              "lcd_first_frame": 2, "lcd_restart": 2}  # fmt: skip
    regular = state.copy()
    for name, values_below in ranges.items():
        state[INDEX[name]] = np.where(rarely(40), draw(0, values_below), state[INDEX[name]])
    state[INDEX["stat"]] ^= np.where(rarely(40), draw(0, 8), 0).astype(np.int32)
    state[INDEX["lcd_target"]] += np.where(rarely(40), draw(-8, 8), 0).astype(np.int32)
    if is_color:
        state[INDEX["lcd_last"]] += np.where(rarely(40), 400, 0).astype(np.int32)
    odd = (state != regular).any(axis=0)
    target = state[INDEX["lcd_target"]]
    length = draw(0, 7) * 4
    now = target + (
        np.where(rarely(2), draw(0, 32), np.where(rarely(2) | odd, draw(0, LINE), draw(0, 60 * LINE))) << double
    )
    event = np.where(line < 144, 144, 154) * LINE
    is_awaited = (sources >> 6 != 0) & (lyc > line) & (lyc < 154)
    event = np.where(is_awaited, np.minimum(event, lyc * LINE - np.where(lyc < 144, early, 0)), event)
    previous = np.where(odd, now - length, np.minimum(now - length, zero + (event << double) - 1))
    now = np.maximum(previous + length, target)
    settle_from = np.where(rarely(8), previous + draw(1, 9), previous - draw(0, 2000))
    return np.stack([now, previous, settle_from], 1).astype(np.int32)


@pytest.fixture(scope="module", params=["dmg", "cgb"])
def emulator(request: pytest.FixtureRequest) -> Emulator:
    return Emulator(images(), NUM_ENVS[request.param], kernel="interpreter", model=request.param)


@pytest.mark.parametrize("seed", range(8))
def test_at_once_and_one_by_one(emulator: Emulator, seed: int) -> None:
    state, memory = wp.to_torch(emulator.machine.state), emulator.memory
    begin = state.numpy().copy()
    begin[:] = 0
    times = random_states(seed, emulator.model, begin, memory.numpy())
    results = []
    for at_once in (0, 1):
        state.copy_(torch.from_numpy(begin))
        kernel = make_settle(emulator.model)
        wp.launch(kernel, len(times), [emulator.machine, wp.array(times, dtype=int), at_once], device="cpu")
        results.append(state.numpy().copy())
    wrong = np.flatnonzero((results[0] != results[1]).any(axis=0))
    assert len(wrong) == 0, report(begin, times, results, int(wrong[0]), len(wrong))
    moved = results[0][INDEX["ly"]] != begin[INDEX["ly"]]
    assert 0.2 < moved.mean() < 0.9


def report(begin: np.ndarray, times: np.ndarray, results: list[np.ndarray], env: int, count: int) -> str:
    lines = [f"{count} differ; env {env}, now, previous and settle_from {times[env].tolist()}:"]
    for name, row in INDEX.items():
        if row < len(begin) and (name in FIELDS or len({int(a[row, env]) for a in (begin, *results)}) > 1):
            lines.append(f"{name}: {begin[row, env]}, then {results[0][row, env]}; at once {results[1][row, env]}")
    return "\n".join(lines)
