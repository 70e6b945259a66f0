"""The bytes of a PyBoy .state file: the order of its values, for versions 9 to 29 of the format, as one table. A Game
Boy Color's file, which has more values, only for version 29.

A token `name:size@first-last~written` is a little-endian number (or, above 8 bytes, a block) that PyBoy 2.8.1 reads for
the versions `first` to `last`. PyBoy reads some values for every version although files have them only since version
`written`. Both forms are understood here; the length of the file distinguishes them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.saves import pyboy_checks
from gbxcule_puffer.emulator.state import COLOR_FIELDS, FIELDS, Field
from gbxcule_puffer.errors import StateError

VERSION = 29
OLDEST_VERSION = 9
UNLIKELY_VERSION = 64  # from here on the first byte of other files
LAST_RELEASE = 17  # the newest version that a release before 2.8 wrote
PIXELS = hw.SCREEN_HEIGHT * hw.SCREEN_WIDTH
CYCLES_NEVER = 1 << 31  # PyBoy's "never", as hw.NEVER is ours

HDMA = "hdma1 hdma2 hdma3 hdma4 hdma5 hdma_active hdma_source:2 hdma_target:2"
COLOR_LCD = """
vram1:8192 vram_bank bg_index bg_increments bg_color bg_high bg_palettes:64
obj_index obj_increments obj_color obj_high obj_palettes:64
"""
START = """
version bootrom_enabled key0@16 key1 double_speed cgb {hdma}
a f b c d e hl:2 sp:2 pc:2 ime ei_delay@19 halted stopped interrupt_enable interrupt_queued interrupt_flag cycles:8@12
dma_active@19 dma_reading@19 dma_source@19 dma_index@19 dma_start:8@19
vram:8192 oam:160 lcdc bgp obp0 obp1 stat ly lyc scy scx wy wx object_priority@16 scanlines:720@11
lcd_cgb lcd_downgraded@17 lcd_speed frame_done@13 lcd_first_frame@13 lcd_restart@13
lcd_last:8@12 lcd_clock:8 lcd_target:8 lcd_next_mode lcd_transition~18
{lcd}
sound_cycles:16@13-13 sound_head:8@14 sound_samples:8@14
"""
TONE = """
{0}_duty@13 {0}_init_length@13 {0}_envelope:3@13 {0}_sound_period:2@13 {0}_length_enable@13 {0}_enable@13
{0}_length:8@13 {0}_envelope_timer:8@13 {0}_period_timer:8@13 {0}_period:8@13 {0}_frame:8@13 {0}_volume:8@13
{0}_suppressed@23 {0}_pending_duty@23 {0}_duty_update@23
"""
SOUND = f"""
sound_period:8@14 sound_buffer:{{buffer}}@14 sound_speed@14 sound_target:8@14 sound_sequencer:8@14 sound_event:8@14
sound_clock:8@14 sound_last:8@14 sound_div_counter:8@14 sound_div:8@14 sound_div_written@22 sound_on@14
sound_sampling_off@14 sound_panning:8@14 nr50@14~15
{TONE.format("sweep")}
sweep_pace@13 sweep_direction@13 sweep_magnitude@13 sweep_timer:8@13 sweep_check:8@13~18 sweep_calculation:8@27
sweep_hold:8@28 sweep_negated@13~18 sweep_on@13 sweep_shadow:8@13
{TONE.format("tone")}
wave_table:16@13 wave_dac@13 wave_init_length@13 wave_level@13 wave_sound_period:2@13 wave_length_enable@13
wave_enable@13 wave_length:8@13 wave_period_timer:8@13 wave_period:8@13 wave_frame:8@13 wave_suppressed@13~18
wave_shift:8@13 wave_access@13~18 wave_restart@24 wave_sample_frame:8@25
noise_init_length@13 noise_envelope:3@13 noise_clock@13 noise_width@13 noise_divider@13 noise_length_enable@13
noise_enable@13 noise_length:8@13 noise_period_timer:8@13 noise_envelope_timer:8@13 noise_period:8@13
noise_register:8@13 noise_feedback:8@13 noise_volume:8@13 noise_counter:8@26 noise_countdown:8@26 noise_alignment:8@26
noise_running@26
"""
REST = f"""
old_scanlines:720@9-10 old_pixels:{4 * PIXELS}@9-9 pixels:{5 * PIXELS}@10 window_hit@18
wram:{{wram}} unusable:96 io_ports:76 hram:127 old_high_io:52@9-15 wram_bank@16
div tima divider:2 tima_counter:2 tma tac tima_reload@20 timer_last:8@12 timer_event:8@13
rom_bank ram_bank ram_enabled banking_mode cartridge_ram:{{ram}}
"""
RTC = """
rtc_old_epoch:4@9-12 rtc_epoch:8@13 rtc_old_halt rtc_old_day_carry rtc_seconds@21 rtc_minutes@21 rtc_hours@21
rtc_day_low@21 rtc_day_high@21 rtc_halt@21 rtc_day_carry@21 rtc_t_cycles:8@21 rtc_saved_at:8@21
"""
END = """
directional standard
sb serial_control@15 serial_active@15 serial_internal@15 serial_last:8@15 serial_event:8@15 serial_clock:8@15
serial_target:8@15
sgb:7@23 sgb_joypads:4@23 sgb_tiles:8192@23 sgb_map:2048@23 sgb_palettes:128@23
""".replace("sb ", "sb@15 ")
TOKEN = re.compile(r"(?P<name>\w+)(:(?P<size>\d+))?(@(?P<first>\d+)(-(?P<last>\d+))?)?(~(?P<written>\d+))?$")

# Values of a machine without sound emulation, where zero would not be valid.
NEUTRAL: dict[str, Any] = {
    "version": VERSION, "object_priority": 0xFF, "frame_done": 1, "sb": 0xFF,
    "sound_samples": 804, "sound_period": struct.unpack("<Q", struct.pack("<d", hw.CLOCK_HZ / 48_000))[0],
    "sound_target": struct.unpack("<Q", struct.pack("<d", CYCLES_NEVER))[0],
    "sound_sequencer": struct.unpack("<Q", struct.pack("<d", CYCLES_NEVER))[0],
    "sound_event": CYCLES_NEVER, "sound_div": 3, "sweep_length": 64, "sweep_period": 4, "tone_length": 64,
    "tone_period": 4, "wave_table": b"\xff" * 16, "wave_length": 256, "wave_period": 4, "noise_length": 64,
    "noise_period": 8, "noise_register": 1, "noise_feedback": 0x4000, "sgb": bytes([0, 0, 1, 0, 0, 0, 0]),
    "sgb_joypads": b"\xff" * 4,
}  # fmt: skip
# The largest value of each number: anything above is damage.
LARGEST = {
    "ime": 1, "ei_delay": 1, "halted": 1, "interrupt_flag": 0x1F, "cycles": 1 << 45, "dma_active": 1,
    "dma_index": 0xA0, "ly": hw.LAST_LINE, "frame_done": 1, "lcd_first_frame": 1, "lcd_restart": 1,
    "lcd_clock": 2 * hw.FRAME_T_CYCLES, "lcd_target": 2 * hw.FRAME_T_CYCLES, "lcd_next_mode": 3, "lcd_transition": 2,
    "window_hit": 1, "tac": 7, "tima_reload": 2, "ram_enabled": 1, "banking_mode": 1, "bank1": 0x1F, "bank2": 3,
    "directional": 0x0F, "standard": 0x0F, "rtc_seconds": 0x3F, "rtc_minutes": 0x3F, "rtc_hours": 0x1F,
    "rtc_day_high": 1, "rtc_halt": 1, "rtc_day_carry": 1, "rtc_t_cycles": hw.CLOCK_HZ - 1, "rumble_supported": 1,
}  # fmt: skip


def _same_fields(text: str, fields: Iterable[Field]) -> tuple[str, ...]:
    """Those of `fields` that a part of the file has under the same name with the same value: all except times and
    members that exist only during a step."""
    names = {re.split("[:@~]", token)[0] for token in text.split()}
    return tuple(f.name for f in fields if f.name in names and not f.is_time and f.name != "frame_done")


SAME_FIELDS = _same_fields(START + REST + END, FIELDS)
SAME_RTC_FIELDS = _same_fields(RTC, FIELDS)
SAME_COLOR_FIELDS = _same_fields(HDMA + START + COLOR_LCD + REST, COLOR_FIELDS)
DMG, COLOR, COMPATIBLE = "dmg", "color", "compatible"  # COMPATIBLE: a Game Boy Color that runs a DMG's cartridge

LARGEST_OF_COLOR = LARGEST | {
    "lcd_transition": 3, "key1": 0xFF, "double_speed": 1, "lcd_speed": 1, "vram_bank": 1, "wram_bank": 7,
    "hdma_active": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One value of the file."""

    name: str
    size: int


@dataclass(frozen=True)
class Variant:
    """The doubtful values of a file: for each group, True if it has all that a reader expects, False if only those that
    were `written`."""

    as_read: bool
    rumble: bool
    nr50: bool
    machine: str = DMG


def _start(machine: str) -> str:
    """START for a machine."""
    return START.format(hdma=HDMA * (machine != DMG), lcd=COLOR_LCD * (machine == COLOR))


def _entries(text: str, version: int, variant: Variant) -> list[Entry]:
    """The values of tokens in one version."""
    entries = []
    for token in text.split():
        match = TOKEN.match(token)
        assert match is not None, token
        first, last, written = (int(match[part] or default) for part, default in
                                (("first", OLDEST_VERSION), ("last", VERSION), ("written", 0)))  # fmt: skip
        missing = not variant.as_read and version < written
        if match["name"] == "nr50":
            missing = not variant.as_read and not variant.nr50
        if match["name"].startswith("rumble"):
            missing = not variant.rumble
        if first <= version <= last and not missing:
            entries.append(Entry(match["name"], int(match["size"] or 1)))
    return entries


def layout(version: int, cartridge: Cartridge, variant: Variant, samples: int) -> list[Entry]:
    """All values of a file in order; `samples`: sound samples per frame."""
    wram = 0x2000 if variant.machine == DMG else 0x8000
    ram = cartridge.ram_banks * hw.RAM_BANK_SIZE
    text = _start(variant.machine) + SOUND.format(buffer=2 * (samples + 1)) + REST.format(ram=ram, wram=wram)
    if cartridge.has_rtc:
        text += RTC
    text += cartridge.mapper.state_registers
    if cartridge.has_rumble:
        text += f" {cartridge.mapper.rumble_register}"
    return _entries(text + END, version, variant)


def machine_of(cartridge: Cartridge) -> str:
    """DMG, COLOR or COMPATIBLE."""
    if cartridge.model == "dmg":
        return DMG
    return COLOR if cartridge.is_for_color else COMPATIBLE


def variants(version: int, machine: str = DMG) -> list[Variant]:
    """The possible forms of a file of this version."""
    forms = [Variant(True, True, True, machine), Variant(True, False, True, machine)]
    if version <= LAST_RELEASE:
        forms += [Variant(False, False, True), Variant(False, False, False)]
    return forms


def size(entries: list[Entry]) -> int:
    """Bytes of a file."""
    return sum(entry.size for entry in entries)


def oam_offset(cartridge: Cartridge) -> int:
    """The offset of OAM in a file of PyBoy 2.8.1."""
    machine = machine_of(cartridge)
    entries = _entries(_start(machine), VERSION, Variant(True, True, True, machine))
    return size(entries[: [entry.name for entry in entries].index("oam")])


def read(data: bytes, cartridge: Cartridge, name: str) -> dict[str, Any]:
    """The values of a file by name: numbers, or bytes for blocks.

    Raises: StateError if it is of another version, machine or cartridge, cut off or damaged.
    """
    version = data[0] if data else 0
    if not OLDEST_VERSION <= version <= VERSION:
        if 1 < version < UNLIKELY_VERSION and len(data) >= 4 * PIXELS:
            writer = f"of a newer PyBoy than 2.8.1, which writes {VERSION}" if version > VERSION else "of an old PyBoy"
            raise StateError(
                f"{name}: a PyBoy state of version {version}, {writer}: give one of version {OLDEST_VERSION} to "
                f"{VERSION}, as PyBoy 2.8.1 saves it"
            )
        raise StateError(
            f"{name}: neither a snapshot of this program nor a PyBoy state of version {OLDEST_VERSION} to {VERSION} "
            f"({f'the first byte is {version}' if data else 'it is empty'})"
        )
    machine = machine_of(cartridge)
    values = unpack(data, _entries(_start(machine), version, Variant(True, True, True)))
    _check_machine(values, machine, version, name)
    samples = values.get("sound_samples", 0)
    forms = [
        layout(version, cartridge, variant, samples) for variant in variants(version, machine) if samples < 1 << 20
    ]
    if version <= LAST_RELEASE and machine == DMG:  # one byte less comes before the number of samples
        start = size(_entries(_start(DMG), version, Variant(False, False, False)))
        older = int.from_bytes(data[start - 8 : start], "little") if version >= 14 else 0
        forms += [layout(version, cartridge, variant, older) for variant in variants(version)[2:] if older < 1 << 20]
    entries = next((form for form in forms if size(form) == len(data)), None)
    if entries is None:
        raise StateError(_explain_size(data, cartridge, forms, name, version))
    values = unpack(data, entries)
    _check(values, cartridge, name)
    return values


def _check_machine(values: Mapping[str, object], machine: str, version: int, name: str) -> None:
    """Refuse a state of another model, and an old state of a Game Boy Color."""
    is_color = bool(values.get("cgb") or values.get("double_speed"))
    if is_color and machine == DMG:
        raise StateError(
            f"{name}: a state of a Game Boy Color; this is a DMG: give model='cgb' (--model cgb), or one of "
            "PyBoy(..., cgb=False)"
        )
    if machine != DMG and not is_color:
        raise StateError(
            f"{name}: a state of a DMG; this is a Game Boy Color: give model='dmg', or one of PyBoy(..., cgb=True)"
        )
    if machine != DMG and version != VERSION:
        raise StateError(
            f"{name}: a state of a Game Boy Color of version {version}: save it with PyBoy 2.8.1 (version {VERSION})"
        )


def _explain_size(data: bytes, cartridge: Cartridge, forms: list[list[Entry]], name: str, version: int) -> str:
    """An explanation of a length that fits no form."""
    sizes = [size(form) for form in forms] or [0]
    for banks in (1, 4, 8, 16):
        if any(len(data) == length + (banks - cartridge.ram_banks) * hw.RAM_BANK_SIZE for length in sizes):
            return (
                f"{name}: a PyBoy state with {banks} banks of cartridge RAM, the ROM has {cartridge.ram_banks}; use "
                "the state that was saved with this ROM"
            )
    return (
        f"{name}: {len(data)} bytes, a PyBoy state of version {version} has {sizes[0]} with this cartridge; it is "
        "cut off, damaged or of another cartridge"
    )


def unpack(data: bytes, entries: list[Entry]) -> dict[str, Any]:
    """Values from bytes; values after the end are 0."""
    values: dict[str, Any] = {}
    at = 0
    for entry in entries:
        part = data[at : at + entry.size]
        values[entry.name] = int.from_bytes(part, "little") if entry.size <= 8 else part
        at += entry.size
    return values


def _check(values: Mapping[str, Any], cartridge: Cartridge, name: str) -> None:
    """Refuse values that no machine has."""
    machine = machine_of(cartridge)
    is_as_expected = values["lcd_cgb"] == (machine == COLOR) and values.get("lcd_downgraded", 0) == (
        machine == COMPATIBLE
    )
    if not is_as_expected and not values["bootrom_enabled"]:
        other = "a DMG's cartridge in it" if machine == COLOR else "a Game Boy Color's picture"
        raise StateError(f"{name}: a state of a Game Boy Color with {other}: use one that was saved with this ROM")
    if values["bootrom_enabled"]:
        raise StateError(f"{name}: saved while the boot ROM ran; save it once the cartridge runs")
    for key, largest in (LARGEST if machine == DMG else LARGEST_OF_COLOR).items():
        if values.get(key, 0) > largest:
            raise StateError(f"{name}: damaged, {key} is {values[key]} and at most {largest}")
    if values["rom_bank"] >= max(cartridge.rom_banks, 2):  # 1 with an image of 16 KiB, too
        raise StateError(
            f"{name}: selects ROM bank {values['rom_bank']}, the ROM has {cartridge.rom_banks}; use the state that was "
            "saved with this ROM"
        )
    fault = pyboy_checks.disagreement(values, cartridge) if values["version"] == VERSION else ""
    if fault:
        raise StateError(f"{name}: damaged, {fault}")


def write(values: Mapping[str, Any], cartridge: Cartridge) -> bytes:
    """A file of version 29 from values by name; values that are not given are neutral."""
    samples, machine = NEUTRAL["sound_samples"], machine_of(cartridge)
    neutral, parts = NEUTRAL, []
    if machine != DMG:
        is_color = int(machine == COLOR)
        neutral = NEUTRAL | {"cgb": 1, "key0": 4 - 4 * is_color, "lcd_cgb": is_color, "lcd_downgraded": 1 - is_color}
        neutral |= {"hdma5": 0xFF}
    for entry in layout(VERSION, cartridge, Variant(True, True, True, machine), samples):
        value = values.get(entry.name, neutral.get(entry.name, 0))
        if isinstance(value, int | np.integer):
            value = int(value).to_bytes(entry.size, "little")
        elif not value:
            value = bytes(entry.size)
        assert len(value) == entry.size, entry
        parts.append(value)
    return b"".join(parts)
