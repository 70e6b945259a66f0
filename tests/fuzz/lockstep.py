"""One ROM on the emulator and on PyBoy, frame by frame; the first difference in any part of the state is reported."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.emulator import Cartridge, Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.state import row_size
from tests.fuzz import pyboy_state
from tests.fuzz.generator import has_sound, model_of
from tests.support.oracle import PyBoyOracle
from tests.support.sound import emulator_sound, pyboy_sound_of

CHECK_EVERY = 20
"""Frames between two comparisons of the whole state: reading PyBoy's takes as long as 30 steps of a quiet game.
Registers and picture are compared after each step."""
SCHEDULES = (1, 4, 1, 24)
"""Frames a step, by seed: only a step's last frame is drawn, and buttons change within a step."""
HOST_TIME_T_CYCLES = hw.CLOCK_HZ
"""PyBoy's clock chip adds the host's time where it is looked at twice in one cycle: some microseconds each time."""
RTC_TIME = ("rtc_t_cycles", "rtc_seconds", "rtc_minutes", "rtc_hours", "rtc_day_low", "rtc_day_high")
REGIONS = {"VRAM": (0x8000, 0x2000), "WRAM": (0xC000, 0x2000), "OAM": (0xFE00, 0xA0), "unusable": (0xFEA0, 0x60),
           "HRAM": (0xFF80, 0x7F)}  # fmt: skip


@dataclass
class Result:
    """What a comparison found."""

    frames: int
    """Frames that both ran."""
    instructions: int
    """Instructions that the emulator executed in the frames compared, over all envs."""
    locked: bool = False
    """An illegal opcode ended the run early."""
    difference: list[str] = field(default_factory=list)
    """One line for each part that differs; empty if nothing does."""


def random_buttons(seed: int, frames: int, num_envs: int) -> np.ndarray:
    """Buttons for each frame: none most of the time, else one or several; shape (frames, num_envs), uint8."""
    generator = np.random.default_rng(seed)
    shape = (frames, num_envs)
    one = np.left_shift(1, generator.integers(0, 8, shape))
    many = generator.integers(0, 256, shape)
    choice = generator.random(shape)
    return np.where(choice < 0.5, 0, np.where(choice < 0.85, one, many)).astype(np.uint8)


def compare_seed(rom: bytes, seed: int, frames: int, num_envs: int = 1, device: str = "cpu") -> Result:
    """`compare` with the buttons and the schedule of a seed, for at least `frames` frames."""
    frames_per_step = SCHEDULES[seed % len(SCHEDULES)]
    steps = -(-frames // frames_per_step)
    check_every = max(1, CHECK_EVERY // frames_per_step)
    return compare(rom, random_buttons(seed, steps, num_envs), check_every, frames_per_step, device=device)


def emulator_values(emulator: Emulator, env: int) -> dict[str, Any]:
    """The emulator's state under the names of pyboy_state.parse."""
    fields = emulator.registers(env)
    values: dict[str, Any] = dict(fields)
    values["cycles"] = fields["cycles_low"] + (fields["cycles_high"] << 30)
    divider = -fields["div_zero"]
    values["divider"] = divider & 0xFFFF
    if fields["tac"] & 4 and not fields["tima_reload"]:
        period = (1024, 16, 64, 256)[fields["tac"] & 3]
        values["tima"] += divider // period - (fields["timer_last"] + divider) // period
    values["serial_end"] = None if fields["serial_end"] == hw.NEVER else fields["serial_end"]
    values["rom_bank"] = fields["rom_high"] // hw.ROM_BANK_SIZE + 1
    row = emulator.memory[env].cpu().numpy()
    for name, (start, size) in REGIONS.items():
        values[name] = row[start - hw.ROW_BASE :][:size]
    base = row_size(emulator.cartridge.ram_banks)
    ram = [row[hw.CART_RAM - hw.ROW_BASE :][: hw.RAM_BANK_SIZE], row[hw.ROW_SIZE : base]]
    values["cartridge RAM"] = np.concatenate(ram)
    if emulator.model == "cgb":
        values["WRAM"] = np.concatenate([values["WRAM"], row[base + hw.COLOR_WRAM : base + hw.COLOR_PALETTES]])
        values["VRAM bank 1"] = row[base : base + hw.COLOR_WRAM]
        values["palettes"] = row[base + hw.COLOR_PALETTES : base + hw.COLOR_SIZE]
    return values | emulator_sound(row, emulator.model) if emulator.sound else values


def _rtc_t_cycles(values: dict[str, Any]) -> int:
    """The clock chip's counters in T-cycles."""
    days = values["rtc_day_high"] << 8 | values["rtc_day_low"]
    minutes = (days * 24 + values["rtc_hours"]) * 60 + values["rtc_minutes"]
    return (minutes * 60 + values["rtc_seconds"]) * hw.CLOCK_HZ + values["rtc_t_cycles"]


def differences(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """One line for each value that differs."""
    lines = []
    if "rtc_seconds" in expected and 0 <= _rtc_t_cycles(expected) - _rtc_t_cycles(found) < HOST_TIME_T_CYCLES:
        expected = {name: value for name, value in expected.items() if name not in RTC_TIME}
    for name, value in expected.items():
        other = found[name]
        if isinstance(value, np.ndarray):
            at = np.flatnonzero(value != other)
            if len(at):
                first = ", ".join(f"+{i:04X} {value[i]:02X}, not {other[i]:02X}" for i in at[:6])
                lines.append(f"{name}: {len(at)} bytes differ: {first}")
        elif value != other:
            lines.append(f"{name}: {value}, not {other}")
    return lines


class Oracle(PyBoyOracle):
    """PyBoy with its whole state parsed."""

    def __init__(self, emulator: Emulator) -> None:
        cartridge = emulator.cartridge
        super().__init__(
            cartridge.data,
            emulator.frames_per_step,
            emulator.release_after_frames,
            model=emulator.model,
            sound=emulator.sound,
        )
        self._cartridge = cartridge
        mapper_bytes = len(cartridge.mapper.state_registers.split()) + cartridge.has_rumble
        self._shape = (cartridge.ram_banks, cartridge.has_rtc, mapper_bytes)
        self._rom_banks = cartridge.rom_banks
        self._sets_bank_late, self._rom_only_hidden = cartridge.mapper.maps_low_bank, cartridge.type == 0

    def values(self) -> dict[str, Any]:
        """Everything comparable."""
        if self._shape[1]:
            self.pyboy.memory[0x6000] = 0xFF  # no command, but PyBoy brings its clock chip up to date
        state = self._state()
        values = pyboy_state.parse(state, *self._shape, is_color=self.model == "cgb")
        if self._cartridge.sound:
            values |= pyboy_sound_of(state, self._cartridge)
        values["rom_bank"] %= self._rom_banks  # 1 on a cartridge of one bank, too
        if self._sets_bank_late:
            del values["ram_bank"]  # PyBoy sets it when RAM is used
        if self._rom_only_hidden:
            del values["cartridge RAM"]  # type 00 stores what can never be read
        return values


def compare(
    rom: bytes | Cartridge,
    buttons: np.ndarray,
    check_every: int = CHECK_EVERY,
    frames_per_step: int = 1,
    with_datapath: bool = True,
    device: str = "cpu",
    num_oracles: int | None = None,
    model: str | None = None,
    sound: bool | None = None,
) -> Result:
    """Run env i of the emulator and a PyBoy each with buttons[:, i]; shape (steps, num_envs). The first `num_oracles`
    envs have a PyBoy, all by default.

    The emulator goes first: where an illegal opcode locks an env, PyBoy would never come back, so the run ends before.
    An env that differs is not compared any more; the run ends where none is left.
    model: 'dmg' or 'cgb'; sound: whether the sound unit works. By default what the ROM is made for, if it is one of the
    fuzzer's.
    with_datapath: the kernel with the data path runs along, and has to have the same state bit by bit.
    check_every: steps between two comparisons of the whole state. Registers and picture are compared after each.
    """
    num_envs = buttons.shape[1]
    release = min(8, frames_per_step)
    data = rom if isinstance(rom, bytes) else rom.data
    model, sound = model or model_of(data), has_sound(data) if sound is None else sound
    kernels = ("interpreter", "datapath") if with_datapath else ("interpreter",)
    emulators = [
        Emulator(
            rom, num_envs, device, screen="full", frames_per_step=frames_per_step, release_after_frames=release,
            num_threads=1, kernel=kernel, model=model, sound=sound,
        )
        for kernel in kernels
    ]  # fmt: skip
    result = Result(0, 0)
    has_oracles = not emulators[0].locked.any()
    oracles = [Oracle(emulators[0]) for _ in range(num_envs)[:num_oracles]] if has_oracles else []
    try:
        run_all(emulators, oracles, buttons, check_every, result)
    finally:
        for oracle in oracles:
            oracle.close()
    return result


def run_all(
    emulators: list[Emulator], oracles: list[Oracle], buttons: np.ndarray, check_every: int, result: Result
) -> None:
    """The loop of `compare`."""
    steps = len(buttons)
    emulator = emulators[0]
    alive = list(range(len(oracles)))
    for step in range(steps):
        for one in emulators:
            one.step(torch.from_numpy(buttons[step]).to(one.device))
        locked = np.any([one.locked.cpu().numpy() for one in emulators], axis=0)
        alive = [env for env in alive if not locked[env]]
        result.locked |= bool(locked.any())
        for env in alive:
            oracles[env].step(int(buttons[step, env]))
            result.instructions += emulator.registers(env)["instructions"]
        result.frames = step + 1
        is_whole = not alive or (step + 1) % check_every == 0 or step + 1 == steps
        lines = {env: _env_differences(emulator, oracles[env], env, is_whole) for env in alive}
        result.difference += [f"env {env}: {line}" for env, found in lines.items() for line in found]
        alive = [env for env in alive if not lines[env]]
        if is_whole and len(emulators) == 2 and not np.array_equal(emulator.state_hash(), emulators[1].state_hash()):
            result.difference.append("the data path's state is not the interpreter's")
            return
        if not alive:
            return


def _env_differences(emulator: Emulator, oracle: Oracle, env: int, is_whole: bool) -> list[str]:
    """What differs between an env and its PyBoy: the picture and the registers, or all of the state."""
    if is_whole:
        found = differences(oracle.values(), emulator_values(emulator, env))
    else:
        found = differences(oracle.cpu(), dict(emulator.registers(env)))
    pixels = np.argwhere(oracle.picture() != emulator.screen[env].cpu().numpy())
    if emulator.model == "cgb":
        pixels = np.argwhere(oracle.colors() != emulator.colors[env].cpu().numpy())
    if len(pixels):
        (top, left), (bottom, right) = pixels.min(axis=0), pixels.max(axis=0)
        found.append(f"picture: {len(pixels)} pixels, lines {top}..{bottom}, columns {left}..{right}")
    return found
