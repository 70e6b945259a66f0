"""`puffer verify`: a ROM on the emulator and on PyBoy in lockstep, everything compared after every step."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch

from gbxcule_puffer.apps.flags import plain_codec
from gbxcule_puffer.apps.verify.flags import VerifyFlags
from gbxcule_puffer.apps.verify.oracle import Oracle, with_clock
from gbxcule_puffer.device import room_for
from gbxcule_puffer.emulator import Emulator, sound_fields
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge, load_cartridge
from gbxcule_puffer.emulator.saves import pyboy_sound, pyboy_state
from gbxcule_puffer.emulator.saves.state_files import load_state_file
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.emulator.state import row_size
from gbxcule_puffer.errors import ConfigError, RomError, printable
from gbxcule_puffer.provenance import versions
from gbxcule_puffer.tasks.actions import ActionCodec
from gbxcule_puffer.tasks.goals.traces import read_actions

DEFAULT_STEPS = 500
BYTES_OF_ACTION = 16  # in the array that is drawn, and in the list made of it
REGIONS = {"VRAM": (0x8000, 0xA000), "OAM": (0xFE00, 0xFEA0), "HRAM": (0xFF80, 0xFFFF)}
# Fields that PyBoy does not show, or that it keeps in another form with the same meaning.
NOT_COMPARED = {
    "halted_after_ei", "lyc_written_off", "stat_mode_hidden", "window_line", "window_first", "frame_done", "locked",
    "lcd_last", "timer_last", "timer_next", "mode3_extra", "serial_count", "instructions", "rtc_last", "rtc_latched",
    "rtc_latch_seconds", "rtc_latch_minutes", "rtc_latch_hours", "rtc_latch_day_low", "rtc_latch_day_high",
    "frames_left", "release_at", "render", "next_line", "drawing", "executed", "now",
}  # fmt: skip


@dataclass
class Result:
    """The result of a comparison."""

    options: VerifyFlags
    cartridge: Cartridge
    codec: ActionCodec
    region: tuple[int, int]
    release_after_frames: int
    trace: list[int] = field(default_factory=list)
    """Actions played, the one of the differing step included."""
    differences: dict[str, Any] = field(default_factory=dict)
    """Field, region or picture to what differs in it; empty where all is equal."""
    ended: str | None = None
    """Why the run ended before its last step without a difference."""
    seconds: float = 0.0
    host_seconds: float = 0.0
    """The host's time that PyBoy's clock chip added and the emulator's was given too."""
    start: Snapshot | None = None
    before: Snapshot | None = None
    """The emulator before the last step played."""
    oracle: Snapshot | None = None
    emulator: Snapshot | None = None

    @property
    def equal(self) -> bool:
        """True where nothing differed."""
        return not self.differences

    def summary(self, bundle: Path | None = None) -> dict[str, Any]:
        """The result for JSON."""
        return {
            "equal": self.equal,
            "rom": Path(self.options.rom).name,
            "title": self.cartridge.title,
            "rom_sha256": self.cartridge.sha256,
            "device": self.options.device,
            "header": self.options.header,
            "model": self.cartridge.model,
            "sound": self.cartridge.sound,
            "steps_compared": len(self.trace),
            "first_difference_step": None if self.equal else len(self.trace),
            "differences": self.differences,
            "ended": self.ended,
            "frames_per_step": self.options.frames_per_step,
            "release_after_frames": self.release_after_frames,
            "action_codec": self.codec.name,
            "action_codec_version": self.codec.version,
            "actions": _file_name(self.options.actions),
            "start_state": None if self.options.start_state is None else Path(self.options.start_state).name,
            "mem_region": f"{self.region[0]:04X}:{self.region[1]:04X}",
            "seconds": round(self.seconds, 3),
            "host_seconds_in_clock": round(self.host_seconds, 6),
            "versions": versions(),
            "bundle": None if bundle is None else str(bundle),
        }


def verify(
    options: VerifyFlags,
    progress: Callable[[int, int], None] = lambda done, steps: None,
    make_emulator: Callable[..., Emulator] | None = None,
) -> Result:
    """Run both until the first difference or the last step; `progress` is called with (steps done, steps).

    Raises: RomError, StateError, ActionError, ConfigError or DeviceError, before anything runs.
    """
    cartridge = load_cartridge(options.rom, options.header, options.model, options.sound)
    if options.rom_sha256 not in (None, cartridge.sha256):
        raise RomError(f"{options.rom}: its SHA-256 is {cartridge.sha256}, not {options.rom_sha256}: give that ROM")
    codec, region = plain_codec(options.action_codec), parse_region(options.mem_region)
    actions = action_indices(options.actions, options.steps, codec)
    release = options.release_after_frames
    if release is None:
        release = max(1, options.frames_per_step // 3)
    schedule: dict[str, Any] = {"frames_per_step": options.frames_per_step, "release_after_frames": release}
    start = None if options.start_state is None else load_state_file(options.start_state, cartridge)
    if start is not None and start.num_envs != 1:
        raise ConfigError(f"start state {options.start_state} holds {start.num_envs} envs; give one of a single env")
    emulator = (make_emulator or Emulator)(cartridge, 1, options.device, screen="full", num_threads=1, **schedule)
    result = Result(options, cartridge, codec, region, release)
    began = time.perf_counter()
    if start is not None:
        emulator.load(start)
    result.start = emulator.save(0)
    if result.start.fields()["locked"]:
        result.ended = "an illegal opcode stops the machine for good before the first step, and PyBoy with it"
        return result
    with Oracle(cartridge, screen="full", **schedule) as oracle:
        if start is not None:
            oracle.load(start)
        _run(emulator, oracle, actions, result, progress)
    result.seconds = time.perf_counter() - began
    return result


def _run(
    emulator: Emulator, oracle: Oracle, actions: list[int], result: Result, progress: Callable[[int, int], None]
) -> None:
    """The lockstep. The emulator goes first, because PyBoy would never return from an illegal opcode."""
    found = result.start
    assert found is not None
    for step in range(len(actions) + 1):
        if step:
            buttons = torch.tensor([result.codec.to_buttons(actions[step - 1])], dtype=torch.uint8)
            result.before = found
            emulator.step(buttons.to(emulator.device))
            found = emulator.save(0)
            if found.fields()["locked"]:
                result.ended = f"an illegal opcode in step {step} stops the machine for good, and PyBoy with it"
                return
            result.trace.append(actions[step - 1])
            oracle.step(buttons)
        expected = oracle.save()
        if result.cartridge.has_rtc and (lead := oracle.host_time(expected, found)):
            result.host_seconds += lead / hw.CLOCK_HZ
            found = with_clock(found, expected)
            emulator.load(found)
        result.differences = differences(expected, found, result.cartridge, result.region)
        result.oracle, result.emulator = expected, found
        progress(step, len(actions))
        if result.differences:
            return


def differences(
    expected: Snapshot, found: Snapshot, cartridge: Cartridge, region: tuple[int, int] = (0xC000, 0xE000)
) -> dict[str, Any]:
    """Every field, memory region and picture in which two single-env snapshots differ; `region` is [first, end)."""
    result: dict[str, Any] = {}
    first, second = comparable(expected, cartridge), comparable(found, cartridge)
    for name, value in first.items():
        if second[name] != value:
            result[name] = {"oracle": value, "emulator": second[name]}
    buses = expected.bus(cartridge), found.bus(cartridge)
    for name, (begin, end) in {f"{region[0]:04X}:{region[1]:04X}": region, **REGIONS}.items():
        at = np.flatnonzero(buses[0][begin:end] != buses[1][begin:end]) + begin
        if len(at):
            cells = {f"{i:04X}": {"oracle": int(buses[0][i]), "emulator": int(buses[1][i])} for i in at.tolist()}
            result[name] = {"bytes": len(at), "at": cells}
    pixels = np.argwhere(expected.screen[0] != found.screen_for(expected.screen.shape[1:])[0])
    if cartridge.model == "cgb":
        result |= bank_differences(expected, found, cartridge)
        pixels = np.argwhere(expected.colors[0] != found.colors[0])
    if len(pixels):
        low, high = pixels.min(axis=0).tolist(), pixels.max(axis=0).tolist()
        lines, columns = [low[0], high[0]], [low[1], high[1]]
        result["picture"] = {"pixels": len(pixels), "lines": lines, "columns": columns}
    return result


def bank_differences(expected: Snapshot, found: Snapshot, cartridge: Cartridge) -> dict[str, Any]:
    """Banks and palettes of a Game Boy Color in which two single-env snapshots of full screens differ; PyBoy has the
    palettes only with a cartridge for it."""
    start = row_size(cartridge.ram_banks)
    parts = {"WRAM banks 2 to 7": (hw.COLOR_WRAM, hw.COLOR_PALETTES), "VRAM bank 1": (0, hw.COLOR_WRAM)}
    if cartridge.is_for_color:
        parts |= {"palettes": (hw.COLOR_PALETTES, hw.COLOR_SIZE)}
    result: dict[str, Any] = {}
    for name, (begin, end) in parts.items():
        first, second = (snapshot.memory[0, start + begin : start + end] for snapshot in (expected, found))
        at = np.flatnonzero(first != second).tolist()
        if at:
            cells = {f"+{i:04X}": {"oracle": int(first[i]), "emulator": int(second[i])} for i in at}
            result[name] = {"bytes": len(at), "at": cells}
    return result


def comparable(snapshot: Snapshot, cartridge: Cartridge) -> dict[str, int]:
    """The fields that PyBoy also has, in one form."""
    fields = snapshot.fields()
    values = {name: value for name, value in fields.items() if name not in NOT_COMPARED}
    values["tima"] = pyboy_state.tima(fields, cartridge)
    values["div_zero"] |= ~0xFFFF
    if not fields["dma_active"]:
        del values["dma_start"], values["dma_index"]
    if not fields["tima_reload"]:
        del values["tima_reload_count"]
    if not fields["ram_enabled"]:
        del values["ram_bank"], values["ram_offset"]
    if cartridge.model == "cgb" and not cartridge.is_for_color:  # not in PyBoy's states
        del values["bg_index"], values["obj_index"]
    if cartridge.sound:
        values |= pyboy_sound.comparable(sound_fields.read(snapshot.memory[0]), cartridge.model)
        values |= {"wave_ram": int.from_bytes(snapshot.memory[0, pyboy_sound.WAVE_RAM].tobytes(), "big")}
    if cartridge.has_rtc:  # PyBoy's cycle counter starts at 0, otherwise its clock chip would jump
        del values["cycles_low"], values["cycles_high"]
    return values


def parse_region(text: str) -> tuple[int, int]:
    """`C000:E000` -> (0xC000, 0xE000); the end is not included.

    Raises: ConfigError for anything else.
    """
    try:
        begin, end = (int(part, 16) for part in text.split(":"))
    except ValueError:
        begin, end = 0, 0
    if not 0 <= begin < end <= 0x10000:
        raise ConfigError(f"memory region {text!r}: give FIRST:END in hex with FIRST < END <= 10000, e.g. C000:E000")
    return begin, end


def action_indices(source: str, steps: int | None, codec: ActionCodec) -> list[int]:
    """Action indices from random:SEED or a file of action names; `steps` of them, or 500 or the whole file.

    Raises: ConfigError, ActionError or DeviceError.
    """
    if steps is not None and steps < 1:
        raise ConfigError(f"steps {steps} must be at least 1")
    kind, _, seed = source.partition(":")
    if kind == "random" and seed.isdecimal():
        generator, count = np.random.Generator(np.random.PCG64(int(seed))), steps or DEFAULT_STEPS
        with room_for(BYTES_OF_ACTION * count, "cpu", f"steps {count:,}", "compare fewer"):
            return generator.integers(0, codec.num_actions, size=count).tolist()
    if kind == "random" and not Path(source).exists():
        raise ConfigError(f"actions {source!r}: give random:SEED with a whole number, or a file of action names")
    actions = codec.parse(read_actions(source)[0])
    if steps is not None and steps > len(actions):
        raise ConfigError(
            f"actions {source} has {len(actions)} actions, {steps} steps were asked for: "
            f"give --steps {len(actions)} at most"
        )
    if not actions:
        raise ConfigError(f"actions {source} is empty: give action names such as {' '.join(codec.actions[:3])}")
    return actions[:steps]


def compared(result: Result) -> str:
    """The two machines and the parts of them that were compared, in one line."""
    cartridge, region = result.cartridge, f"{result.region[0]:04X}:{result.region[1]:04X}"
    machine = "Game Boy Color" if cartridge.model == "cgb" else "Game Boy"
    name = printable(Path(result.options.rom).name)
    parts = f"registers, memory {region}, {', '.join(REGIONS)}, picture"
    return f"{name} as a {machine} on {result.options.device} and in PyBoy {version('pyboy')}: {parts}"


def describe(result: Result, limit: int = 6) -> list[str]:
    """The result in a few lines of text."""
    if result.equal:
        line = f"equal: {len(result.trace)} steps of {result.options.frames_per_step} frames"
        if result.host_seconds:
            line += f"; PyBoy's clock chip counted {result.host_seconds:.3g} s of the host's time, and ours with it"
        return [line if result.ended is None else f"{line}; {result.ended}"]
    lines = [f"different after step {len(result.trace)}:"]
    for name, what in result.differences.items():
        if "at" in what:
            cells = [f"{at} {v['oracle']:02X}, not {v['emulator']:02X}" for at, v in list(what["at"].items())[:limit]]
            lines.append(f"  {name}: {what['bytes']} bytes, PyBoy has {'; '.join(cells)}")
        elif name == "picture":
            (top, bottom), (left, right) = what["lines"], what["columns"]
            lines.append(f"  picture: {what['pixels']} pixels, lines {top}..{bottom}, columns {left}..{right}")
        else:
            lines.append(f"  {name}: PyBoy has {what['oracle']}, not {what['emulator']}")
    return lines


class ProgressBar:
    """Steps done on one line, redrawn; on a stream that is not a terminal, a line for every tenth."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self._began, self._drawn, self._tenth = time.perf_counter(), 0.0, 0

    def __call__(self, done: int, steps: int) -> None:
        now = time.perf_counter()
        rate = done / max(now - self._began, 1e-9)
        if self.stream.isatty():
            if now - self._drawn > 0.1 or done == steps:
                self._drawn = now
                bar = "#" * (30 * done // steps)
                self.stream.write(f"\r[{bar:<30}] {done}/{steps} steps, {rate:.0f} steps/s ")
                self.stream.flush()
        elif done * 10 // steps > self._tenth:
            self._tenth = done * 10 // steps
            self.stream.write(f"{done}/{steps} steps equal, {rate:.0f} steps/s\n")

    def end(self) -> None:
        """Ends the line."""
        if self.stream.isatty():
            self.stream.write("\n")


def _file_name(actions: str) -> str:
    return actions if actions.startswith("random:") else Path(actions).name
