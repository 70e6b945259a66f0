"""PyBoy .state files to and from snapshots: versions 9 to 29 are read, of a Game Boy Color 29; 29 is written.

Values that the format lacks are as in a PyBoy that was booted and then loaded the file: the window's line counter
starts at 0, the clock chip's latch is empty, and an interrupt that ends HALT returns after it even if EI came before
the HALT. The clock chip gets no host time: a file gives the same machine whenever it is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.hw import timer
from gbxcule_puffer.emulator.hw.cartridge import mbc
from gbxcule_puffer.emulator.hw.lcd import ppu
from gbxcule_puffer.emulator.saves import pyboy_color, pyboy_layout, pyboy_sound
from gbxcule_puffer.emulator.saves.one_env import one_env
from gbxcule_puffer.emulator.saves.pyboy_layout import CYCLES_NEVER, SAME_FIELDS, SAME_RTC_FIELDS
from gbxcule_puffer.emulator.snapshot import Snapshot, profile_of
from gbxcule_puffer.emulator.state import INDEX, row_size, state_size
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.pictures import LEVELS

MEMORY = {"vram": hw.VRAM, "wram": hw.WRAM, "oam": hw.OAM, "unusable": hw.OAM_END, "hram": hw.HRAM}
PIXEL = np.dtype([("color", "<u4"), ("attribute", "u1")])
CYCLES_LOW_BITS = 30


def from_bytes(data: bytes, cartridge: Cartridge, name: str = "state", *, running: bool = False) -> Snapshot:
    """One env's snapshot from a PyBoy state.

    running: True if the PyBoy that wrote it continues without loading it, so that its clock chip does not jump.
    Raises: StateError if it is of another version, machine or cartridge, cut off or damaged; the message names `name`.
    """
    values = pyboy_layout.read(data, cartridge, name)
    fields = {field: int(values[field]) for field in SAME_FIELDS if field in values}
    fields.setdefault("serial_control", 0x7E)
    is_color = cartridge.model == "cgb"
    fields |= pyboy_color.fields_of(values) if is_color else {}
    now = values.get("cycles", 0)
    fields |= {"h": values["hl"] >> 8, "l": values["hl"] & 0xFF, "p1": values["io_ports"][0], "window_line": -1}
    fields |= {"buttons": (values["directional"] | values["standard"] << 4) ^ 0xFF}
    fields |= {"cycles_low": now & (1 << CYCLES_LOW_BITS) - 1, "cycles_high": now >> CYCLES_LOW_BITS}
    row = _memory_row(values, cartridge)
    fields |= _lcd_times(values, now) | _timer(values, now)
    fields |= {"bank1": values.get("bank1", 1), "bank2": values.get("bank2", 0)}
    if "window_hit" not in values:
        fields["window_hit"] = int(fields["wy"] <= fields["ly"] < hw.SCREEN_HEIGHT)
    if fields["stat"] & hw.STAT_MODE == 3:
        fields["mode3_extra"] = _mode3_extra(fields, row, is_color)
    fields["serial_end"] = hw.NEVER
    if values.get("serial_active"):
        fields["serial_end"] = values["serial_target"] - values["serial_clock"] + values["serial_last"] - now
    fields["dma_start"] = -0x10000
    if fields.get("dma_active"):
        fields["dma_start"] = max(values["dma_start"] - now, -0x10000)
    if cartridge.has_rtc:
        fields |= {field: int(values.get(field, 0)) for field in SAME_RTC_FIELDS}
        if "rtc_halt" not in values:
            fields |= {"rtc_halt": values["rtc_old_halt"] & 1, "rtc_day_carry": values["rtc_old_day_carry"] & 1}
        if not running and not fields["rtc_halt"]:
            _advance_rtc(fields, now)  # after loading, PyBoy again counts the chip's time from power-on
    for field, value in fields.items():
        if not -(1 << 31) <= value < 1 << 31:
            raise StateError(f"{name}: damaged, {field} would be {value}")
    fields |= _derived(fields, values, cartridge)
    state = np.zeros((state_size(cartridge, 1)[0], 1), np.int32)
    for field, value in fields.items():
        state[INDEX[field], 0] = value
    screen = _screen(values)
    if is_color:
        colors = pyboy_color.colors_of(np.frombuffer(values["pixels"], PIXEL)["color"])
        row, screen = (
            pyboy_color.fill_row(row, values, cartridge, colors),
            pyboy_color.shades_of(colors.reshape(screen.shape)),
        )
    if cartridge.sound:
        pyboy_sound.fill_row(row, values, cartridge.model, now, name)
    snapshot = Snapshot(cartridge.sha256, state, row[None], screen[None], profile_of(cartridge), name)
    snapshot.check(cartridge)
    return snapshot


def to_bytes(snapshot: Snapshot, cartridge: Cartridge, env: int = 0) -> bytes:
    """One env of a snapshot as a PyBoy state of version 29, for PyBoy(..., sound_emulated=False), or True for one with
    sound; with cgb=True for a Game Boy Color's, else False.

    Raises: StateError for another ROM, for an env locked by an illegal opcode, and for ROM banks from 256 up, which the
    format cannot store.
    """
    snapshot.check(cartridge)
    fields = snapshot.fields(env)
    if fields["locked"]:
        raise StateError("an illegal opcode locked this env; PyBoy would never return from such a state")
    now = fields["cycles_low"] | fields["cycles_high"] << CYCLES_LOW_BITS
    if cartridge.has_rtc:  # the clock chip of a PyBoy that loads a state advances by the state's cycle counter
        now = 0x400 if fields["dma_active"] else 0
        fields["rtc_t_cycles"] = max(0, fields["rtc_t_cycles"] - now)
    values: dict[str, Any] = {name: fields[name] for name in (*SAME_FIELDS, *SAME_RTC_FIELDS)}
    values |= {"hl": fields["h"] << 8 | fields["l"], "cycles": now, "sound_last": now}
    if fields["halted_after_ei"]:  # the format loses EI before HALT: execute the HALT once more
        pending = fields["interrupt_flag"] & fields["interrupt_enable"] & 0x1F
        values |= {"halted": 0, "ei_delay": 0 if pending else 1}
    values["dma_start"] = now + fields["dma_start"] if fields["dma_active"] else 0
    speed = fields.get("double_speed", 0)
    clock, target = -fields["lcd_zero"] >> speed, fields["lcd_target"] - fields["lcd_zero"] >> speed
    values |= {"lcd_last": now, "lcd_clock": clock, "lcd_target": target}
    divider = -fields["div_zero"] & 0xFFFF
    values |= {"divider": divider, "div": divider >> 8, "tima": tima(fields, cartridge), "timer_last": now}
    values["tima_counter"] = fields["tima_reload_count"] if fields["tima_reload"] else 0
    values["timer_event"] = fields["timer_next"] if fields["timer_next"] != hw.NEVER else CYCLES_NEVER
    values |= _serial_values(fields, now)
    values |= {"directional": ~fields["buttons"] & 0x0F, "standard": ~fields["buttons"] >> 4 & 0x0F}
    values |= _mapper_values(fields, cartridge)
    row = snapshot.memory[env]
    for name, start in MEMORY.items():
        length = {"vram": 0x2000, "wram": 0x2000, "oam": 0xA0, "unusable": 0x60, "hram": 0x7F}[name]
        values[name] = row[start - hw.ROW_BASE :][:length].tobytes()
    values["cartridge_ram"] = cartridge_ram(row, cartridge).tobytes()
    values["io_ports"] = bytes([fields["p1"]]) + bytes(75)
    values["pixels"] = _pixels(snapshot.screen[env])
    if snapshot.model == "cgb":
        values |= pyboy_color.values_of(fields, row, cartridge, snapshot.colors[env])
        pixels = np.zeros(values["colors"].shape, PIXEL)
        pixels["color"] = values["colors"]
        values["pixels"] = pixels.tobytes()
    if snapshot.has_sound:
        values |= pyboy_sound.values_of(row, now, speed)
    values["rtc_epoch"] = values["rtc_saved_at"] = np.float64(np.inf).tobytes()  # no host time passes while it is saved
    values |= {"rtc_old_halt": fields["rtc_halt"], "rtc_old_day_carry": fields["rtc_day_carry"]}
    return pyboy_layout.write(values, cartridge)


def cartridge_ram(row: np.ndarray, cartridge: Cartridge) -> np.ndarray:
    """All banks of cartridge RAM in a memory row, one after the other, uint8."""
    others = row[hw.ROW_SIZE : row_size(cartridge.ram_banks)]
    return np.concatenate([row[hw.CART_RAM - hw.ROW_BASE :][: hw.RAM_BANK_SIZE], others])


def tima(fields: Mapping[str, int], cartridge: Cartridge) -> int:
    """TIMA at the end of the step; the state has its value at `timer_last`."""
    _, cpu = one_env(cartridge, fields)
    timer.advance(cpu, 0)
    return cpu.tima


def _mode3_extra(fields: Mapping[str, int], row: np.ndarray, is_color: bool) -> int:
    """mode3.extra: T-cycles by which mode 3 of line LY exceeds its usual length. Python cannot call mode3.extra, which
    is native code."""
    scroll = 0 if fields.get("lcd_first_frame") or is_color else ((fields["scx"] & 7) + 3 >> 2) * 4
    if not fields["lcdc"] & hw.LCDC_OBJ_ENABLE:
        return scroll
    height = 16 if fields["lcdc"] & hw.LCDC_OBJ_SIZE else 8
    sprites = row[hw.OAM - hw.ROW_BASE :][:160].reshape(40, 4).astype(int)
    columns = [int(x) for y, x in sprites[:, :2] if 0 <= fields["ly"] + 16 - y < height][:10]
    shown = [x for x in columns if x < 168]
    if not columns:
        return scroll
    if not shown:
        return scroll - 4
    penalty = 6 * len(shown) + sum(max(0, 5 - (x + fields["scx"] - 8 & 7)) for x in set(shown))
    penalty = max(0, penalty - 7)
    return penalty + 3 & ~3 if is_color else scroll + penalty


def _count(value: int, ticks: int, last: int, size: int) -> tuple[int, int]:
    """A counter's value after `ticks`, and how often it carried. It carries after `last`; if it starts above that, it
    only wraps at `size`."""
    if value > last:
        if ticks < size - value:
            return value + ticks, 0
        value, ticks = 0, ticks - (size - value)
    carries, value = divmod(value + ticks, last + 1)
    return value, carries


def _advance_rtc(fields: dict[str, int], t_cycles: int) -> None:
    """Advance the clock chip's counters, as rtc.advance does second by second: a file may be years old."""
    ticks, fields["rtc_t_cycles"] = divmod(fields["rtc_t_cycles"] + t_cycles, hw.CLOCK_HZ)
    for name, last, size in (("rtc_seconds", 59, 0x40), ("rtc_minutes", 59, 0x40), ("rtc_hours", 23, 0x20)):
        fields[name], ticks = _count(fields[name], ticks, last, size)
    day = (fields["rtc_day_high"] << 8 | fields["rtc_day_low"]) + ticks
    fields["rtc_day_carry"] |= int(day > 0x1FF)
    fields["rtc_day_low"], fields["rtc_day_high"] = day & 0xFF, day >> 8 & 1


def _memory_row(values: Mapping[str, Any], cartridge: Cartridge) -> np.ndarray:
    """The memory row (hardware.py) from the file's blocks."""
    row = np.zeros(row_size(cartridge.ram_banks), np.uint8)
    for name, start in MEMORY.items():
        block = np.frombuffer(values[name], np.uint8)[:0x2000]
        row[start - hw.ROW_BASE :][: len(block)] = block
    banks = np.frombuffer(values["cartridge_ram"], np.uint8)
    row[hw.CART_RAM - hw.ROW_BASE :][: hw.RAM_BANK_SIZE] = banks[: hw.RAM_BANK_SIZE]
    row[hw.ROW_SIZE :] = banks[hw.RAM_BANK_SIZE :]
    return row


def _lcd_times(values: Mapping[str, Any], now: int) -> dict[str, int]:
    """Times of the LCD, relative to the moment of saving. Files before version 18 have the end of mode 0 in one
    change."""
    speed = values["double_speed"]
    zero = values.get("lcd_last", now) - now - (values["lcd_clock"] << speed)
    target = zero + (values["lcd_target"] << speed)
    times = {"lcd_zero": zero, "lcd_target": target, "lcd_last": values.get("lcd_last", now) - now}
    if not values["cgb"] and not values.get("lcd_transition") and values["lcd_next_mode"] == 2:
        times |= {"lcd_transition": 1, "lcd_target": times["lcd_target"] - 4}
    return times


def _timer(values: Mapping[str, Any], now: int) -> dict[str, int]:
    """The timer except timer_next."""
    last = values.get("timer_last", now) - now
    reload_count = values["tima_counter"] if values.get("tima_reload") else 0
    return {"div_zero": last - values["divider"] | ~0xFFFF, "timer_last": last, "tima_reload_count": reload_count}


def _derived(fields: Mapping[str, int], values: Mapping[str, Any], cartridge: Cartridge) -> dict[str, int]:
    """Fields that follow from registers, computed by the device code: banks, the timer's next event, the STAT line."""
    machine, cpu = one_env(cartridge, fields)
    mbc.restore(machine, cpu, values["rom_bank"], values["ram_bank"])
    timer.schedule(cpu)
    ppu.update_stat_line(cpu)  # may request an interrupt, which the file already has
    names = ("rom_low", "rom_high", "ram_bank", "ram_offset", "bank1", "timer_next", "stat_line")
    return {name: getattr(cpu, name) for name in names}


def _mapper_values(fields: Mapping[str, int], cartridge: Cartridge) -> dict[str, int]:
    """The file's bank registers."""
    bank = fields["rom_high"] // hw.ROM_BANK_SIZE + 1
    if bank > 0xFF:
        raise StateError(f"ROM bank {bank} is selected and PyBoy's format holds 0..255; save at another moment")
    values = {"rom_bank": bank, "bank1": fields["bank1"], "bank2": fields["bank2"]}
    if cartridge.has_rumble:
        values["rumble_supported"] = 1
    return values


def _serial_values(fields: Mapping[str, int], now: int) -> dict[str, int]:
    """The file's serial port."""
    is_active = fields["serial_end"] != hw.NEVER
    return {
        "serial_active": int(is_active),
        "serial_internal": fields["serial_control"] & 1,
        "serial_last": now,
        "serial_clock": now,
        "serial_event": fields["serial_end"] if is_active else CYCLES_NEVER,
        "serial_target": now + fields["serial_end"] if is_active else CYCLES_NEVER,
    }


def _screen(values: Mapping[str, Any]) -> np.ndarray:
    """The picture as shades, shape (144, 160), uint8; with another palette, the shades nearest in green."""
    if "pixels" in values:
        colors = np.frombuffer(values["pixels"], PIXEL)["color"]
    else:
        colors = np.frombuffer(values["old_pixels"], "<u4")
    green = (colors >> 8 & 0xFF).astype(np.int32)
    return ((255 - green + 42) // 85).astype(np.uint8).reshape(hw.SCREEN_HEIGHT, hw.SCREEN_WIDTH)


def _pixels(screen: np.ndarray) -> bytes:
    """A picture in PyBoy's standard palette; half a picture is doubled."""
    scale = hw.SCREEN_HEIGHT // screen.shape[0]
    pixels = np.zeros((hw.SCREEN_HEIGHT, hw.SCREEN_WIDTH), PIXEL)
    pixels["color"] = 0xFF000000 | LEVELS.astype(np.uint32)[screen.repeat(scale, 0).repeat(scale, 1)] * 0x010101
    return pixels.tobytes()
