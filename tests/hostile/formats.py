"""Every format of file that may come from a stranger: a valid one made by our own code, and the code that reads it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
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
from cleanrl_style import a2c_overlap
from gbxcule_puffer.apps.arena.records import read_record
from gbxcule_puffer.apps.bench import baseline
from gbxcule_puffer.apps.plot.plot import experiments, read_run
from gbxcule_puffer.apps.verify.bundle import replayed, write_bundle
from gbxcule_puffer.apps.verify.command import Verify
from gbxcule_puffer.apps.verify.verify import Result, action_indices, parse_region
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.cartridge import Cartridge, load_cartridge
from gbxcule_puffer.emulator.gpu.schedule import launch_shape
from gbxcule_puffer.emulator.saves import pyboy_layout
from gbxcule_puffer.emulator.saves.state_files import load_state_file, save_ram_banks, write_pyboy_state
from gbxcule_puffer.emulator.snapshot import MAGIC
from gbxcule_puffer.env.fields import EnvTensors
from gbxcule_puffer.env.options import EnvOptions
from gbxcule_puffer.env.score import GoalScore
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.games import load_game
from gbxcule_puffer.tasks.actions import all_buttons_of, get_codec
from gbxcule_puffer.tasks.goals.recipe import GoalRecipe
from gbxcule_puffer.tasks.goals.template import FORMAT as GOAL_FORMAT
from gbxcule_puffer.tasks.goals.template import MAX_STEPS, GoalTemplate
from gbxcule_puffer.tasks.goals.traces import Trace, read_actions
from gbxcule_puffer.tasks.ram.addresses import parse_address
from gbxcule_puffer.tasks.ram.symbols import Symbols
from gbxcule_puffer.tasks.stages.list import StageFiles, load_stages, write_stages
from gbxcule_puffer.tasks.stages.open import Stage
from gbxcule_puffer.trainers.checkpoints import find_resumed, read_checkpoint
from gbxcule_puffer.trainers.flags import flags_of
from gbxcule_puffer.trainers.folder import CHECKPOINT, MANIFEST, METRICS
from gbxcule_puffer.trainers.weights import read_weights, write_weights
from tests.conformance.test_game_boy_color import picture_rom
from tests.hostile.mutate import mutant, mutant_of_bytes, mutant_of_json, mutant_of_number

ROM = ROOT / "roms" / "homeward.gb"
ARENA = ROOT / "benchmarks" / "arena" / "homeward__ppo__2.json"
CARTRIDGE = load_cartridge(ROM)
COLOR, COMPATIBLE = load_cartridge(picture_rom(1, 0xC0), model="cgb"), load_cartridge(ROM, model="cgb")
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


def snapshot(cartridge: Cartridge = CARTRIDGE) -> Any:
    """A cartridge's first state."""
    return Emulator(cartridge, screen="full").save(0)


def pyboy_format(name: str, cartridge: Cartridge) -> Format:
    """A state of PyBoy; two thirds of its mutants have other values by name."""

    def mutate(data: bytes, generator: random.Random) -> bytes:
        if generator.random() < 0.3:
            return mutant_of_bytes(data, generator)
        result = bytearray(data)
        form = pyboy_layout.Variant(True, True, True, pyboy_layout.machine_of(cartridge))
        entries = pyboy_layout.layout(pyboy_layout.VERSION, cartridge, form, pyboy_layout.NEUTRAL["sound_samples"])
        ends = list(itertools.accumulate(entry.size for entry in entries))
        for index in generator.choices(
            [i for i, entry in enumerate(entries) if entry.size <= 8], k=generator.choice((1, 1, 2, 4))
        ):
            at, size = ends[index] - entries[index].size, entries[index].size
            result[at : at + size] = mutant_of_number(bytes(result[at : at + size]), generator)
        return bytes(result)

    def make(path: Path) -> None:
        write_pyboy_state(path, snapshot(cartridge), cartridge)

    return Format(name, make, lambda path: load_state_file(path, cartridge), mutate)


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
    names = ("rom_sha256", "action_codec", "frames_per_step", "release_after_frames", "obs")
    config: dict[str, Any] = dict(zip(names, (CARTRIDGE.sha256, CODEC.name, 24, 8, "shades"), strict=True))
    goal = GoalTemplate.load(path)
    goal.check(config, (72, 80))
    limits = goal.meta["tau"], goal.meta["k_consecutive"], goal.meta.get("max_steps", MAX_STEPS)
    GoalScore([Stage("goal", [], goal, *limits)], EnvOptions(), EnvTensors(1, torch.device("cpu")))
    for way in (goal.meta.get("solve_actions", []), *goal.meta.get("more_ways", [])):
        all_buttons_of(way)


def make_stages(path: Path) -> None:
    write_stages(path, CARTRIDGE.sha256, [StageFiles("one", path.parent / "a.state", path.parent / "goal", 128)])


def make_trace(path: Path) -> None:
    Trace(CARTRIDGE.sha256, 24, 8, "0" * 64, "1" * 64, ("UP", "A", "NOOP")).save(path)


GAME = f"""format = "gbxcule-game"
version = 1
name = "mine"
[rom]
sha256 = "{CARTRIDGE.sha256}"
[env]
frames_per_step = 24
position = "x, C0A1"
[numbers]
x = "C0A3"
money = {{address = "C0A4", size = 3, read = "bcd", order = "big"}}
digit = {{address = "C0B0", size = 2, read = "digits", zero = 0x30, mask = 0x7F}}
[reward]
key = "once(x >= 5) * 2 - money.delta / 10"
cells = {{value = "first_visit(x, bits(money))", weight = 0.1}}
[end]
success = ["x & 4 != 0 and money > 0", "abs(-x) << 2 == max(x, 3)"]
[levels]
write = "x"
bytes = ["level & 255", 7]
train = [0, 64]
[variants.easy]
poke = [{{address = "money", value = 9, when = "always"}}]
patch = [{{offset = 0x150, bytes = "00 FF"}}]
"""


def make_game(path: Path) -> None:
    path.write_text(GAME)


def read_game(path: Path) -> None:
    folder = path.with_name("game")
    folder.mkdir(exist_ok=True)
    shutil.copy(path, folder / "game.toml")
    load_game(folder)


def make_checkpoint(path: Path) -> None:
    weights = {"layer.weight": torch.ones(4, 3), "layer.bias": torch.zeros(3)}
    state = {"exp_name": "a2c_overlap", "args": {"lr": 0.1, "seed": 1, "rom": None}, "model": weights}
    state |= {"counters": {"global_step": 10}, "env_config": {"rom_sha256": CARTRIDGE.sha256}, "processes": [{}]}
    torch.save(state, path)


def make_bundle(path: Path) -> None:
    start = snapshot()
    result = Result(Verify(rom=str(ROM), start_state="x.state"), CARTRIDGE, CODEC, (0xC000, 0xE000), 8)
    result.start = result.oracle = result.emulator = start
    result.trace, result.differences = [1, 2, 3], {"b": {"oracle": 1, "emulator": 2}}
    write_bundle(result, path)
    for name in ("README.txt", "disassembly.txt", "oracle.png", "emulator.png", "difference.png", "diff.json"):
        (path / name).unlink()  # nothing reads them
    for name in ("oracle.state", "emulator.state", "before.state"):
        (path / name).unlink()


def read_bundle(path: Path) -> None:
    options = Verify(rom=str(ROM), **replayed(path))
    parse_region(options.mem_region)
    action_indices(options.actions, options.steps, get_codec(options.action_codec))
    if options.start_state is not None:
        load_state_file(options.start_state, CARTRIDGE)


def make_run(path: Path) -> None:
    path.mkdir()
    values = {"charts/SPS": 1e4, "env/stage/one/success": 0.5, "env/x": "inf"}
    records = [{"global_step": 64 * i, **values} for i in range(9)]
    (path / METRICS).write_text("".join(json.dumps(record) + "\n" for record in records))
    facts = {"exp_name": "a2c_overlap", "config": {"lr": 0.1, "seed": 1, "rom": "../a.gb"}}
    (path / MANIFEST).write_text(json.dumps(facts))


def read_run_folder(path: Path) -> None:
    """As `puffer plot` and --resume do."""
    experiments([read_run(path)])
    resumed = find_resumed(str(path), None, path, "a2c_overlap")
    assert resumed is not None
    flags_of(a2c_overlap.Args, resumed.flags, path, "a2c_overlap")


def make_weights(path: Path) -> None:
    facts = {"exp_name": "pqn", "args": {"seed": 1}, "counters": {"global_step": 9}, "env_config": {}}
    write_weights(path, {**facts, "model": torch.nn.Linear(4, 2).state_dict()})


def make_records(path: Path) -> None:
    record = dict.fromkeys(baseline.SAME, "x") | {"num_envs": 16, "rom": "homeward", "sps": 1234.5}
    path.write_text(json.dumps([record, record | {"stage": "obs_only"}]))


def read_records(path: Path) -> None:
    records = baseline.load(path)
    baseline.losses(records, records, 0.05)


def make_symbols(path: Path) -> None:
    lines = [f"{i % 4:02X}:{0xC000 + i:04X} wPlace{i}" for i in range(40)]
    path.write_text("\n".join(["; made by hand", "[labels]", *lines, "BOOT:0000 start"]) + "\n")


def read_symbols(path: Path) -> None:
    symbols = Symbols.load(path)
    for text in ("wPlace3 + 2", "wPlac9"):
        with contextlib.suppress(ConfigError):
            parse_address(text, "test", symbols)


def make_recipe(path: Path) -> None:
    path.write_text(json.dumps({"rom": "homeward.gb", "start_actions": ["A"], "solve_actions": ["UP"], "max_steps": 8}))


class Resuming:
    """A short run of A2C on the toy, and its checkpoint to go on from."""

    def make(self, path: Path) -> None:
        flags = ["--smoke", "--env", "toy", "--device", "cpu", "--num-envs", "2", "--total-env-steps", "16"]
        flags += ["--eval-episodes", "1", "--eval-envs", "1", "--media-every", "1000000", "--recurrent", "gru"]
        assert self._run([*flags, "--run-dir", str(path.parent / "run")])[0] == 0
        shutil.copy(path.parent / "run" / CHECKPOINT, path)

    def read(self, path: Path) -> None:
        """Raises: StateError with the line, where the trainer ends with exit code 2; AssertionError for another end."""
        out = path.parent / "on"
        code, text = self._run(["--resume", str(path), "--total-env-steps", "32", "--run-dir", str(out)])
        shutil.rmtree(out, ignore_errors=True)
        errors = [line for line in text.splitlines() if line.startswith(("a2c_overlap:", "losses/", "weights"))]
        if code in (1, 2) and len(errors) == 1:
            raise StateError(errors[0])
        assert code == 0 and not errors, f"exit code {code}: {text[-200:]}"

    @staticmethod
    def _run(flags: list[str]) -> tuple[int, str]:
        text = io.StringIO()
        with contextlib.redirect_stderr(text), contextlib.redirect_stdout(io.StringIO()):
            try:
                return a2c_overlap.main(flags), text.getvalue()
            except SystemExit as end:
                return int(str(end.code)), text.getvalue()


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
        "state in colour",
        lambda path: snapshot(COLOR).to_file(path),
        lambda path: load_state_file(path, COLOR),
        signed_snapshot,
    ),
    pyboy_format("PyBoy's state", CARTRIDGE),
    pyboy_format("PyBoy's in colour", COLOR),
    pyboy_format("PyBoy's DMG game in colour", COMPATIBLE),
    Format("save RAM", make_save_ram, lambda path: save_ram_banks(path.read_bytes(), CARTRIDGE)),
    Format("goal", make_goal, read_goal),
    Format("stages.json", make_stages, lambda path: load_stages(path, CARTRIDGE.sha256)),
    Format("trace", make_trace, read_actions),
    Format("game", make_game, read_game),
    Format("checkpoint", make_checkpoint, read_checkpoint, rezipped),
    Format("verify bundle", make_bundle, read_bundle),
    Format("launch shapes", make_shapes, read_shapes),
    Format("run folder", make_run, read_run_folder),
    Format("bench records", make_records, read_records),
    Format("arena record", lambda path: shutil.copy(ARENA, path), read_record),
    Format("agent", make_weights, read_weights),
    Format("symbols", make_symbols, read_symbols),
    Format("stage", make_recipe, GoalRecipe.load),
    Format("resuming", Resuming().make, Resuming().read, rezipped),
)
