"""Every format of file that may come from a stranger: a valid one made by our own code, and the code that reads it."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.workload import ROOT
from gbxcule_puffer.apps.verify.bundle import replayed, write_bundle
from gbxcule_puffer.apps.verify.verify import Options, Result, parse_region, read_actions
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.emulator.gpu import launch_shape
from gbxcule_puffer.emulator.saves.state_files import load_state_file, save_ram_banks, write_pyboy_state
from gbxcule_puffer.emulator.snapshot import MAGIC
from gbxcule_puffer.tasks.actions import get_codec
from gbxcule_puffer.tasks.goals import FORMAT as GOAL_FORMAT
from gbxcule_puffer.tasks.goals import GoalTemplate
from gbxcule_puffer.tasks.ram.quest import load_quest
from gbxcule_puffer.tasks.stage_list import StageFiles, load_stages, write_stages

from gbxcule_puffer.tasks.traces import Trace, read_actions as read_names  # isort: skip
from gbxcule_puffer.trainers.checkpoints import read_checkpoint
from tests.hostile.mutate import mutant, mutant_of_bytes, mutant_of_json

ROM = ROOT / "roms" / "homeward.gb"
CARTRIDGE = load_cartridge(ROM)
CODEC = get_codec("pokemonred_puffer_v1")
Mutate = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Format:
    """`make` writes a valid file or folder at a path, `read` reads it as our own commands do; `mutate` changes one of
    its files."""

    name: str
    make: Callable[[Path], object]
    read: Callable[[Path], object]
    mutate: Mutate = mutant


def signed_snapshot(data: bytes, generator: random.Random) -> bytes:
    """A snapshot whose header or content is changed and whose checksum is right again, so that it is looked into."""
    if generator.random() < 0.3:
        return mutant_of_bytes(data, generator)
    line, _, payload = data[len(MAGIC) :].partition(b"\n")
    header = json.loads(line)
    if generator.random() < 0.5:
        payload = zlib.compress(mutant_of_bytes(zlib.decompress(payload), generator))
    header["payload_sha256"] = hashlib.sha256(payload).hexdigest()
    text = json.dumps(header).encode()
    if generator.random() < 0.6:
        text = mutant_of_json({name: value for name, value in header.items() if name != "fields"}, generator)
        if generator.random() < 0.9 and text.endswith(b"}"):
            text = text[:-1] + b', "fields": ' + json.dumps(header["fields"]).encode() + b"}"
    return MAGIC + text + b"\n" + payload


def rezipped(data: bytes, generator: random.Random) -> bytes:
    """A checkpoint with one changed part, and the archive's checksums right again."""
    if generator.random() < 0.3:
        return mutant_of_bytes(data, generator)
    import io

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = generator.choice(sorted(parts))
    if generator.random() < 0.6:
        name = next(name for name in parts if name.endswith("data.pkl"))
    parts[name] = mutant_of_bytes(parts[name], generator)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", generator.choice((zipfile.ZIP_STORED,) * 9 + (zipfile.ZIP_DEFLATED,))) as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    return out.getvalue()


def snapshot() -> Any:
    """HOMEWARD's first state."""
    return Emulator(ROM, screen="full").save(0)


def make_save_ram(path: Path) -> None:
    path.write_bytes(bytes(8192 * CARTRIDGE.ram_banks))


def make_goal(path: Path) -> None:
    meta = {
        "format": GOAL_FORMAT, "rom_sha256": CARTRIDGE.sha256, "action_codec": CODEC.name, "frames_per_step": 24,
        "release_after_frames": 8, "stack_k": 1, "obs": "shades", "tau": 0.05, "k_consecutive": 4,
        "solve_actions": ["UP"] * 4, "calibration": {"distances": [0.5, 0.25, 0.0]},
    }  # fmt: skip
    GoalTemplate(np.zeros((2, 72, 80), np.uint8), meta).save(path)


def read_goal(path: Path) -> None:
    names = ("rom_sha256", "action_codec", "frames_per_step", "release_after_frames", "stack_k", "obs")
    config: dict[str, Any] = dict(zip(names, (CARTRIDGE.sha256, CODEC.name, 24, 8, 1, "shades"), strict=True))
    GoalTemplate.load(path).check(config, (72, 80))


def make_stages(path: Path) -> None:
    write_stages(path, CARTRIDGE.sha256, [StageFiles("one", path.parent / "a.state", path.parent / "goal", 128)])


def make_trace(path: Path) -> None:
    Trace(CARTRIDGE.sha256, 24, 8, "0" * 64, "1" * 64, ("UP", "A", "NOOP")).save(path)


def make_quest(path: Path) -> None:
    rows = [{"name": "key", "address": "C0A3", "test": ">=", "value": 5, "reward": 1.0}]
    rows.append({"name": "door", "address": "C0A4", "test": "!=", "value": 0, "mask": 4, "reward": 0.5})
    spec = {"format": "gbxcule-quest", "version": 1, "rom_sha256": CARTRIDGE.sha256, "conditions": rows}
    path.write_text(json.dumps(spec))


def make_checkpoint(path: Path) -> None:
    weights = {"layer.weight": torch.ones(4, 3), "layer.bias": torch.zeros(3)}
    state = {"exp_name": "a2c_streaming", "args": {"lr": 0.1, "seed": 1, "rom": None}, "model": weights}
    state |= {"counters": {"global_step": 10}, "env_config": {"rom_sha256": CARTRIDGE.sha256}, "processes": [{}]}
    torch.save(state, path)


def make_bundle(path: Path) -> None:
    start = snapshot()
    result = Result(Options(rom=str(ROM), start_state="x.state"), CARTRIDGE, CODEC, (0xC000, 0xE000), 8)
    result.start = result.oracle = result.emulator = start
    result.trace, result.differences = [1, 2, 3], {"b": {"oracle": 1, "emulator": 2}}
    write_bundle(result, path)
    for name in ("README.txt", "disassembly.txt", "oracle.png", "emulator.png", "difference.png", "diff.json"):
        (path / name).unlink()  # nothing reads them
    for name in ("oracle.state", "emulator.state", "before.state"):
        (path / name).unlink()


def read_bundle(path: Path) -> None:
    options = Options(rom=str(ROM), **replayed(path))
    parse_region(options.mem_region)
    read_actions(options.actions, options.steps, get_codec(options.action_codec))
    if options.start_state is not None:
        load_state_file(options.start_state, CARTRIDGE)


def make_shapes(path: Path) -> None:
    path.write_text(json.dumps({"NVIDIA H200": {"4096": [8, 32, True], "16384": [16, 32, True]}}))


def read_shapes(path: Path) -> None:
    before, launch_shape.table_path = launch_shape.table_path, lambda: path
    try:
        launch_shape.load_tables()
    finally:
        launch_shape.table_path = before


FORMATS = (
    Format("ROM", lambda path: shutil.copy(ROM, path), load_cartridge),
    Format("state", lambda path: snapshot().to_file(path), lambda p: load_state_file(p, CARTRIDGE), signed_snapshot),
    Format(
        "PyBoy's state",
        lambda path: write_pyboy_state(path, snapshot(), CARTRIDGE),
        lambda path: load_state_file(path, CARTRIDGE),
    ),
    Format("save RAM", make_save_ram, lambda path: save_ram_banks(path.read_bytes(), CARTRIDGE)),
    Format("goal", make_goal, read_goal),
    Format("stages.json", make_stages, lambda path: load_stages(path, CARTRIDGE.sha256)),
    Format("trace", make_trace, read_names),
    Format("quest", make_quest, lambda path: load_quest(path, CARTRIDGE.sha256)),
    Format("checkpoint", make_checkpoint, read_checkpoint, rezipped),
    Format("verify bundle", make_bundle, read_bundle),
    Format("launch shapes", make_shapes, read_shapes),
)
