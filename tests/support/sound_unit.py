"""The sound unit by itself beside PyBoy's: its device code as plain Python, and PyBoy's source, uncompiled.

No kernel is compiled. Time passes as on a bus: accesses, ends of PyBoy's batches (some of which our machine passes
over), HALTs and VRAM DMA of any length, speed switches.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import random
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import sound_fields
from gbxcule_puffer.emulator.build.cache import import_package
from gbxcule_puffer.emulator.build.instantiate import DeviceCode, Edit, instantiate
from gbxcule_puffer.emulator.build.variant import EMULATOR, FOLDER
from gbxcule_puffer.emulator.saves import pyboy_sound

ENTRIES = ("hw.sound.registers", "hw.sound.unit")
CHANNELS = dict(zip(sound_fields.CHANNELS, ("sweepchannel", "tonechannel", "wavechannel", "noisechannel"), strict=True))
# Attributes of PyBoy's channels by the names of ours
COMMON = {"enable": "enable", "length": "lengthtimer", "length_enable": "length_enable", "period": "period",
          "period_timer": "periodtimer"}  # fmt: skip
TONE = {"duty": "wave_duty", "pending_duty": "pending_wave_duty", "duty_update": "duty_update_pending"}
PLAYED = {"frame": "waveframe", "sound_period": "sound_period", "suppressed": "sample_suppressed"}
ENVELOPE = {"volume": "volume", "envelope_timer": "envelopetimer"}
OWN = {
    "sweep": {"timer": "sweeptimer", "check": "sweepchecktimer", "calculation": "sweepcalctimer", "on": "sweepenable",
              "hold": "sweep_restart_hold", "negated": "sweep_negate_used", "shadow": "shadow"},
    "wave": {"dac": "dacpow", "level": "volreg", "shift": "volumeshift", "restart": "restart_pending",
             "sample_frame": "sampleframe"},
    "noise": {"register": "shiftregister", "counter": "counter", "countdown": "counter_countdown",
              "alignment": "alignment", "running": "counter_running"},
}  # fmt: skip
SWEEPS, LENGTHS, ENVELOPES = (
    (0x11, 0x19, 0x17, 0x79, 0x10, 0x1F, 0x08),
    (0xFF, 0xFE, 0x3F, 0xBD),
    (0xF0, 0xF8, 0xF3, 0xA1),
)
TELLING = (0, 0x80, 0xFF, 0xF0, 0x08, 0x87, 0xC7, 0xC0, 0x77, 0x11, 0x19, 0x78, 0x10, 0x01, 0x0F)


def _store_word(row: bytearray, offset: int, value: int) -> None:
    row[offset : offset + 4] = value.to_bytes(4, "little", signed=True)


@cache
def device_code(is_color: bool, faults: tuple[Edit, ...] = ()) -> dict[str, ModuleType]:
    """The modules of the sound unit, as functions that Python calls on a bytearray; faults: planted in them."""
    constants = {"hw.model.SOUND": True, "hw.model.COLOR": is_color}
    sources = instantiate(DeviceCode(EMULATOR, FOLDER, ENTRIES, {}), constants, edits=faults)
    package = import_package(f"sound_on_host_{'cgb' if is_color else 'dmg'}", sources)
    modules = {name: importlib.import_module(f"{package}.{name}") for name in sources if not name.endswith("__init__")}
    plain = SimpleNamespace(where=lambda test, yes, no: yes if test else no, min=min, max=max, func=wp.func)
    for module in modules.values():
        for name, value in vars(module).copy().items():
            if isinstance(value, wp.Function):
                setattr(module, name, value.func)
        vars(module)["wp"] = plain
    intrinsics: Any = modules["hw.intrinsics"]
    intrinsics.load_byte = lambda row, offset: row[offset]
    intrinsics.store_byte = lambda row, offset, value: row.__setitem__(offset, value & 0xFF)
    intrinsics.load_word = lambda row, offset: int.from_bytes(row[offset : offset + 4], "little", signed=True)
    intrinsics.store_word = _store_word
    return modules


@cache
def _pyboy() -> Any:
    """PyBoy's class Sound, of its source."""
    spec = importlib.util.find_spec("pyboy")
    assert spec is not None and spec.origin is not None
    text = (Path(spec.origin).parent / "core" / "sound.py").read_text()
    names: dict[str, Any] = {"double_to_uint64_ceil": math.ceil, "__name__": "sound"}
    exec(compile(text, "sound.py", "exec"), names)
    return names["Sound"]


class Pair:
    """Both units, at the same time, with a DIV each can see."""

    def __init__(self, is_color: bool, chance: random.Random, faults: tuple[Edit, ...] = ()) -> None:
        self.is_color, self.chance = is_color, chance
        code: dict[str, Any] = dict(device_code(is_color, faults))
        self.unit, self.registers, self.words = (code[f"hw.sound.{name}"] for name in ("unit", "registers", "words"))
        self.theirs = _pyboy()(100, True, None, is_color)
        self.theirs.disable_sampling = True
        self.theirs.last_power_off_cycles = self.theirs.last_div_write_cycles = -100_000
        div_zero = -chance.randrange(0, 0x10000, 4)
        self.cpu = SimpleNamespace(row=bytearray(0x10000), now=0, double_speed=0, div_zero=div_zero, ei_delay=0)
        self.cpu.serial_end = self.cpu.timer_next = hw.NEVER
        self.cpu.settle_from = self.cpu.previous = 0
        fields = sound_fields.NEUTRAL | {"sound_sequencer": 8192}
        for name, value in fields.items():
            self.words.store(self.cpu, sound_fields.AT[name], value)
        self.cpu.row[hw.WAVE_RAM : hw.WAVE_RAM_END] = b"\xff" * 16
        self.batch = 0  # when PyBoy's batch began
        code["hw.sound.writes"].batches = SimpleNamespace(has_just_ended=lambda pair, cpu: pair.batch == cpu.now)
        self.timer = 0  # when PyBoy's timer was last brought up to date

    @property
    def is_exact(self) -> bool:
        """True while our batches end where PyBoy's end."""
        return self.words.is_exact(self.cpu)

    def end_batch(self, is_ours: bool) -> None:
        """A batch of PyBoy's ends; is_ours: for certain one of ours, too."""
        self.theirs.tick(self.cpu.now)
        self.timer = self.batch = self.cpu.now
        if is_ours or self.is_exact or self.chance.random() < 0.5:
            self.unit.note_end(self.cpu)
            self.unit.end_batch(self.cpu, 0)

    def pass_time(self, t_cycles: int) -> None:
        """A batch that is not made of instructions: HALT, or VRAM DMA."""
        self.end_batch(False)
        self.unit.end_batch(self.cpu, t_cycles)
        self.cpu.now += t_cycles
        self.end_batch(True)

    def pass_instructions(self, t_cycles: int) -> None:
        """Instructions within a batch of PyBoy's; ours ends where it has to, before theirs."""
        end, exact_from = self.cpu.now + t_cycles, self.words.load(self.cpu, self.words.EXACT_FROM)
        if self.is_color and self.cpu.now < exact_from <= end:
            self.cpu.now += exact_from - self.cpu.now + 3 & ~3
            self.unit.end_batch(self.cpu, 0)
        self.cpu.now = end

    def access_timer(self) -> None:
        """An access to DIV, TIMA, TMA or TAC."""
        self.words.access_timer(self.cpu, self.cpu.now)
        self.timer = self.cpu.now

    def write_div(self) -> None:
        """DIV."""
        self.access_timer()
        is_edge = (self.cpu.now - self.cpu.div_zero >> 8 & 0xFF) & (16 << self.theirs.speed_shift)
        self.theirs.tick(self.cpu.now)
        if is_edge:
            self.theirs.apu_poweron_after_div_write, self.theirs.last_div_write_cycles = True, self.theirs.cycles
        self.theirs.reset_apu_div(is_edge)
        self.unit.write_div(self.cpu, self.cpu.now)
        self.cpu.div_zero = self.cpu.now
        self.end_batch(True)

    def switch_speed(self) -> None:
        """STOP, which also clears DIV."""
        self.theirs.tick(self.cpu.now)
        self.unit.advance(self.cpu, self.cpu.now)
        self.cpu.double_speed ^= 1
        self.theirs.speed_shift = self.cpu.double_speed
        self.write_div()

    def read(self, address: int) -> tuple[int, int]:
        """(PyBoy's byte, ours)."""
        self.theirs.tick(self.cpu.now)
        if address >= hw.PCM12:
            ours = self.registers.read_pcm_unit(self.cpu, address, self.cpu.now)
            return self.theirs.pcm12() if address == hw.PCM12 else self.theirs.pcm34(), ours
        return int(self.theirs.get(address - hw.NR10)), self.registers.read_unit(self, self.cpu, address, self.cpu.now)

    def write(self, address: int, value: int) -> None:
        """FF10-FF3F, with what PyBoy's bus does around it."""
        unit, speed = self.theirs, self.theirs.speed_shift
        unit.tick(self.cpu.now)
        divider = self.timer - self.cpu.div_zero & 0xFFFF
        switches_on = address == hw.NR52 and value >= 0x80
        if switches_on and not unit.poweron:
            if self.is_color:
                unit.apu_poweron_after_div_write = unit.cycles - unit.last_div_write_cycles < 8192
            is_near = self.is_color and unit.cycles - unit.last_power_off_cycles < 8192
            is_high = divider >> 8 & 16 << speed
            unit.div_apu_counter = 2 if (is_near or unit.apu_poweron_after_div_write) and is_high else 0
        unit.set(address - hw.NR10, value)
        if address == hw.NR14:
            unit.apu_poweron_after_div_write = False
        if switches_on and unit.div_apu_counter:
            unit.div_apu, period = 1, 0x2000 << speed
            unit.cycles_target_512Hz = unit.cycles + (period - (divider & period - 1) >> speed)
        self.registers.write_unit(self, self.cpu, address, value, self.cpu.now)
        ends = self.is_exact or self.chance.random() < 0.5
        self.pass_instructions(4 * self.chance.randrange(3))
        self.end_batch(ends)

    def expected(self) -> dict[str, int]:
        """PyBoy's unit under the names of sound_fields.py."""
        found = {}
        for name, attribute in CHANNELS.items():
            channel = getattr(self.theirs, attribute)
            names = COMMON | OWN.get(name, {}) | (PLAYED if name != "noise" else {})
            names |= (ENVELOPE if name != "wave" else {}) | (TONE if name in ("sweep", "tone") else {})
            found |= {f"{name}_{ours}": int(getattr(channel, theirs)) for ours, theirs in names.items()}
            if name != "wave":
                nibbles = channel.envelope_volume << 4 | channel.envelope_direction << 3
                found[f"{name}_envelope"] = nibbles | channel.envelope_pace
        sweep, noise, unit = self.theirs.sweepchannel, self.theirs.noisechannel, self.theirs
        found["sweep_on"] = int(sweep.sweepenable != 0)
        found["sweep_control"] = sweep.sweep_pace << 4 | sweep.sweep_direction << 3 | sweep.sweep_magnitude
        found["noise_control"] = noise.clkpow << 4 | noise.regwid << 3 | noise.clkdiv
        found |= {"sound_on": unit.poweron >> 7, "nr50": unit.NR50, "sound_div": unit.div_apu & 7}
        found |= {"sound_div_counter": unit.div_apu_counter, "sound_div_written": unit.apu_poweron_after_div_write}
        found["sound_sequencer"] = int(unit.cycles_target_512Hz - unit.cycles)
        if self.is_color:
            del found["noise_period_timer"]  # which nothing uses
        return found

    def differences(self) -> list[str]:
        """One line for each field in which they differ. Ours is read as if there were an access now, and stays."""
        cpu = SimpleNamespace(**vars(self.cpu) | {"row": bytearray(self.cpu.row)})
        self.unit.advance(cpu, cpu.now)
        words = {name: self.words.load(cpu, at) for name, at in sound_fields.AT.items()}
        found = pyboy_sound.settled(words)
        expected = self.expected().items()
        lines = [f"{name}: {value}, not {found[name]}" for name, value in expected if value != found[name]]
        wave = bytes(self.theirs.wavechannel.wavetable)
        return lines + ["wave RAM"] * (wave != cpu.row[hw.WAVE_RAM : hw.WAVE_RAM_END])


def _address(pair: Pair, reads: bool) -> int:
    """An address for an access."""
    chance = pair.chance
    if reads and pair.is_color and chance.random() < 0.2:
        return chance.choice((hw.PCM12, hw.PCM34))
    most = hw.WAVE_RAM_END if reads or chance.random() < 0.3 else hw.NR52
    triggers = (hw.NR14, 0xFF19, 0xFF1E, 0xFF23)
    anywhere = [chance.randrange(hw.NR10, most) for _ in range(4)]
    return chance.choice((hw.NR52, *anywhere, *triggers[: 0 if reads else 4]))


def _play(pair: Pair) -> list[str]:
    """Begin a sound, mostly a short one; returns what was written."""
    chance, channel = pair.chance, pair.chance.randrange(4)
    values = [
        chance.choice(SWEEPS),
        chance.choice(LENGTHS),
        chance.choice(ENVELOPES),
        chance.choice((0x55, chance.randrange(256))),
    ]
    values[0] = values[0] | 0x80 if channel == 2 else values[0]
    first = hw.NR10 + 5 * channel
    writes = [
        (hw.NR52, 0x80),
        *enumerate(values, first),
        (first + 4, chance.choice((0xC7, 0xC0, 0x87, 0x84, 0x85, 0xC3))),
    ]
    for address, value in writes:
        pair.write(address, value)
    return [f"write {address:04X} {value:02X}" for address, value in writes]


def compare(seed: int, is_color: bool, operations: int, faults: tuple[Edit, ...] = ()) -> list[str]:
    """What differs first in a random sequence of operations, with what came before; empty if nothing does."""
    chance, done = random.Random(seed), list[str]()
    pair = Pair(is_color, chance, faults)
    for _ in range(operations):
        way = chance.random()
        if way < 0.12 and is_color:
            t_cycles = chance.choice((206, chance.randrange(1, 3000)))
            done.append(f"{t_cycles} T-cycles")
            pair.pass_time(t_cycles)
        elif way < 0.14 and is_color:
            done.append("speed switch")
            pair.switch_speed()
        elif way < 0.18:
            done.append("DIV")
            pair.write_div()
        elif way < 0.2:
            pair.access_timer()
        elif way < 0.45:
            pair.pass_instructions(
                4 * chance.choice((1, 1, 2, 3, 4, 5, 6, 10, 30, 100, 600, chance.randrange(1, 5000)))
            )
            if chance.random() < 0.6:
                pair.end_batch(False)
        elif way < 0.7:
            address = _address(pair, True)
            theirs, ours = pair.read(address)
            done.append(f"read {address:04X}: {theirs:02X}")
            if theirs != ours:
                return [*done[-8:], f"read {address:04X}: {theirs:02X}, not {ours:02X}"]
        elif way < 0.78:
            done += _play(pair)
        else:
            address = _address(pair, False)
            value = chance.choice((*TELLING, *[chance.randrange(256)] * 6))
            value |= 0x80 if address == hw.NR52 and chance.random() < 0.6 else 0
            done.append(f"write {address:04X} {value:02X} at {pair.cpu.now}")
            pair.write(address, value)
        if pair.theirs.last_cycles == pair.cpu.now and (found := pair.differences()):
            return [*done[-8:], *found]
    return []
