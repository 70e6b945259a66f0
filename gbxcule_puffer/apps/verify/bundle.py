"""The repro bundle of `puffer verify`: a folder with everything that reproduces a difference, except the ROM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gbxcule_puffer.apps.verify import verify
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.cpu.disassembler import disassemble, listing
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import Kind, new_folder, read_object, write_json, write_text
from gbxcule_puffer.pictures import LEVELS, to_rgb, write_png

LINES_BEFORE, LINES_AFTER = 8, 16
BYTES_BEFORE = 3 * LINES_BEFORE
REPLAYED = {"frames_per_step": int, "release_after_frames": int, "action_codec": str, "mem_region": str}
REPLAYED |= {"rom_sha256": str, "device": str, "header": str, "model": str, "sound": bool}
FORMAT, VERSION = "gbxcule-verify", 1
BUNDLE_FILE = Kind("verify bundle", ConfigError, "give a bundle that `puffer verify` wrote")
README = """What puffer verify found: see diff.json and, at PC, disassembly.txt.

    puffer verify ROM --replay THIS_FOLDER

shows it again.

start.state      state that both began with
actions.txt      actions played since, by name
before.state     the emulator before the last of them
emulator.state   the emulator after it
oracle.state     PyBoy after it
oracle.png, emulator.png, difference.png
summary.json     what was compared, with which versions

The .state files are snapshots of this program (gbxcule_puffer.emulator.snapshot).
"""


def replayed(bundle: Path) -> dict[str, Any]:
    """The options of a bundle's comparison, except the ROM.

    Raises: ConfigError for a folder that is not a bundle.
    """
    path = bundle / "summary.json"
    summary = read_object(path, BUNDLE_FILE, FORMAT, VERSION)
    options: dict[str, Any] = {}
    summary.setdefault("model", "dmg")  # older bundles have none
    summary.setdefault("sound", False)
    for name, kind in REPLAYED.items():
        if not isinstance(summary.get(name), kind) or (isinstance(summary[name], bool) and kind is not bool):
            raise BUNDLE_FILE.bad(path, f"{name} is missing or not of type {kind.__name__}")
        options[name] = summary[name]
    if summary.get("start_state") is not None:
        options["start_state"] = str(bundle / "start.state")
    if summary.get("steps_compared") == 0:  # both differed before the first step
        return options | {"steps": 1}
    return options | {"actions": str(bundle / "actions.txt")}


def write_bundle(result: verify.Result, folder: Path) -> Path:
    """Writes the bundle into a new folder, whose name gets a number if it already exists; completely or not at all.
    Returns its path."""
    assert result.start is not None and result.oracle is not None and result.emulator is not None
    target, number = folder, 1
    while target.exists():
        number += 1
        target = folder.with_name(f"{folder.name}-{number}")
    before = result.before or result.start
    ends = result.oracle, result.emulator
    oracle, emulator = (each.screen[0] if each.model == "dmg" else each.colors[0] for each in ends)
    with new_folder(target) as part:
        result.start.to_file(part / "start.state")
        result.oracle.to_file(part / "oracle.state")
        result.emulator.to_file(part / "emulator.state")
        before.to_file(part / "before.state")
        write_text(part / "actions.txt", "\n".join(result.codec.actions[action] for action in result.trace) + "\n")
        write_json(part / "diff.json", _diff(result))
        write_text(part / "disassembly.txt", _disassembly(result, before))
        for name, picture in (("oracle", oracle), ("emulator", emulator)):
            write_png(part / f"{name}.png", LEVELS[picture] if picture.dtype == np.uint8 else to_rgb(picture))
        write_png(part / "difference.png", difference_picture(oracle, emulator))
        write_text(part / "README.txt", README)
        summary = {"format": FORMAT, "version": VERSION, **result.summary(Path(target.name))}
        write_json(part / "summary.json", summary)
    return target


def _diff(result: verify.Result) -> dict:
    """Every field of both, and the fields that differ."""
    assert result.oracle is not None and result.emulator is not None
    oracle, emulator = result.oracle.fields(), result.emulator.fields()
    fields = {
        name: {"oracle": value, "emulator": emulator[name], "compared": name not in verify.NOT_COMPARED}
        for name, value in oracle.items()
    }
    return {"step": len(result.trace), "differences": result.differences, "fields": fields}


def _disassembly(result: verify.Result, before: Snapshot) -> str:
    """The code around PC, before the step and after it in both machines."""
    assert result.oracle is not None and result.emulator is not None
    parts = []
    for name, snapshot in (("before", before), ("oracle", result.oracle), ("emulator", result.emulator)):
        parts += [f"{name}: PC {snapshot.fields()['pc']:04X}", *around_pc(snapshot, result.cartridge), ""]
    return "\n".join(parts)


def around_pc(snapshot: Snapshot, cartridge: Cartridge) -> list[str]:
    """A listing in which the line at PC is marked. It begins with the longest run of instructions that ends at PC."""
    memory, pc = snapshot.bus(cartridge).tobytes(), snapshot.fields()["pc"]
    begin = max(0, pc - BYTES_BEFORE)
    while begin < pc and _end_of_run(memory, begin, pc) != pc:
        begin += 1
    count, at = 0, begin
    while at < pc:
        at += disassemble(memory[at : at + 3], at)[1]
        count += 1
    total = min(count, LINES_BEFORE) + LINES_AFTER
    lines = listing(memory[begin:], begin, count + LINES_AFTER)[-total:]
    marked = min(count, LINES_BEFORE)
    return [("> " if i == marked else "  ") + line for i, line in enumerate(lines)]


def _end_of_run(memory: bytes, at: int, pc: int) -> int:
    """Address of the first instruction at or after `pc` when code is decoded from `at`."""
    while at < pc:
        at += disassemble(memory[at : at + 3], at)[1]
    return at


def difference_picture(oracle: np.ndarray, emulator: np.ndarray) -> np.ndarray:
    """The oracle's picture, pale, with differing pixels in red; shape (144, 160, 3), uint8."""
    picture = 192 + to_rgb(oracle) // 4
    picture[oracle != emulator] = (255, 0, 0)
    return picture
