"""The command `puffer verify` and its repro bundle: a folder with all that shows a difference again, except the ROM."""

from __future__ import annotations

import json
import shlex
import struct
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from gbxcule_puffer.apps.verify import verify
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.disassembler import disassemble, listing
from gbxcule_puffer.emulator.saves.state_files import write_file
from gbxcule_puffer.emulator.snapshot import Snapshot

SHADES = np.array([255, 153, 85, 0], np.uint8)
LINES_BEFORE, LINES_AFTER = 8, 16
BYTES_BEFORE = 3 * LINES_BEFORE
README = """What puffer verify found: see diff.json and, at PC, disassembly.txt.

start.state      state that both began with
actions.txt      actions played since, by name
before.state     the emulator before the last of them
emulator.state   the emulator after it
oracle.state     PyBoy after it
oracle.png, emulator.png, difference.png
summary.json     what was compared, with which versions
repro.sh         sh repro.sh ROM shows the difference again (set PYTHON for another Python)

The .state files are snapshots of this program (gbxcule_puffer.emulator.snapshot).
"""


def run(options: dict[str, Any], *, bundle: bool, out: str | None, json_path: str | None) -> int:
    """The command: compare, report, write the bundle of a difference and the JSON summary; returns the exit code.

    Raises: RomError, StateError, ActionError, ConfigError or DeviceError.
    """
    bar = verify.ProgressBar()
    result = verify.verify(verify.Options(**options), bar)
    bar.end()
    print("\n".join(verify.describe(result)), file=sys.stderr)
    folder = None
    if bundle and not result.equal:
        default = Path("runs", "verify", f"{Path(result.options.rom).stem}-step{len(result.trace)}")
        folder = write_bundle(result, default if out is None else Path(out))
        print(f"repro bundle: {folder}; sh {folder}/repro.sh ROM shows it again", file=sys.stderr)
    summary = json.dumps(result.summary(folder), indent=1) + "\n"
    if json_path is None:
        sys.stdout.write(summary)
    else:
        write_file(json_path, summary.encode())
    return 0 if result.equal else 1


def write_bundle(result: verify.Result, folder: Path) -> Path:
    """Write the bundle into a new folder, with a number added to its name if there is one already; complete or not
    there. Returns its path."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    part.chmod(0o755)
    assert result.start is not None and result.oracle is not None and result.emulator is not None
    result.start.to_file(part / "start.state")
    result.oracle.to_file(part / "oracle.state")
    result.emulator.to_file(part / "emulator.state")
    before = result.before or result.start
    before.to_file(part / "before.state")
    names = [result.codec.actions[action] for action in result.trace]
    (part / "actions.txt").write_text("\n".join(names) + "\n")
    (part / "diff.json").write_text(json.dumps(_diff(result), indent=1) + "\n")
    (part / "disassembly.txt").write_text(_disassembly(result, before))
    oracle, emulator = result.oracle.screen[0], result.emulator.screen[0]
    write_png(part / "oracle.png", SHADES[oracle])
    write_png(part / "emulator.png", SHADES[emulator])
    write_png(part / "difference.png", difference_picture(oracle, emulator))
    (part / "repro.sh").write_text(_script(result))
    (part / "repro.sh").chmod(0o755)
    (part / "README.txt").write_text(README)
    target, number = folder, 1
    while target.exists():
        number += 1
        target = folder.with_name(f"{folder.name}-{number}")
    (part / "summary.json").write_text(json.dumps(result.summary(Path(target.name)), indent=1) + "\n")
    part.rename(target)
    return target


def _diff(result: verify.Result) -> dict:
    """Every field of both, and which differ."""
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
    """A listing whose line at PC is marked; what precedes it is the longest run of instructions that ends at PC."""
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
    """Address of the first instruction at or behind `pc` when code is read from `at`."""
    while at < pc:
        at += disassemble(memory[at : at + 3], at)[1]
    return at


def difference_picture(oracle: np.ndarray, emulator: np.ndarray) -> np.ndarray:
    """The oracle's picture, pale, with the pixels that differ in red; shape (144, 160, 3), uint8."""
    pale = (192 + SHADES[oracle] // 4).astype(np.uint8)
    picture = np.repeat(pale[:, :, None], 3, axis=2)
    picture[oracle != emulator] = (255, 0, 0)
    return picture


def write_png(path: Path, picture: np.ndarray) -> None:
    """A PNG file of a picture uint8, grey (height, width) or RGB (height, width, 3)."""
    height, width = picture.shape[:2]
    color_type = 2 if picture.ndim == 3 else 0

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + np.ascontiguousarray(row).tobytes() for row in picture)
    header = struct.pack(">IIBBBBB", width, height, 8, color_type, 0, 0, 0)
    image = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + image)


def _script(result: verify.Result) -> str:
    """repro.sh."""
    options = result.options
    arguments = {
        "--rom-sha256": result.cartridge.sha256,
        "--frames-per-step": str(options.frames_per_step),
        "--release-after-frames": str(result.release_after_frames),
        "--action-codec": options.action_codec,
        "--device": options.device,
        "--mem-region": options.mem_region,
    }
    flags = " ".join(f"{name} {shlex.quote(value)}" for name, value in arguments.items())
    start = ' --start-state "$here/start.state"' if options.start_state is not None else ""
    actions = '--actions "$here/actions.txt"' if result.trace else "--steps 1"
    return f"""#!/bin/sh
# Shows the difference again: sh repro.sh ROM
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
[ $# -ge 1 ] || {{ echo "usage: sh repro.sh ROM, the one with SHA-256 {result.cartridge.sha256}" >&2; exit 2; }}
exec "${{PYTHON:-python3}}" -m gbxcule_puffer verify "$1"{start} {actions} \\
  {flags} --no-bundle
"""
