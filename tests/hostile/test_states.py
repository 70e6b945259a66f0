"""A state holds only what a step may leave, whichever way it comes in; what is let in stays within its env."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.saves import pyboy_layout, pyboy_state
from gbxcule_puffer.emulator.saves.state_files import load_state_file
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.emulator.state import FIELDS, INDEX, first_fault
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.saved_state import RANGES
from gbxcule_puffer.errors import ConfigError, StateError
from tests.hostile.states import refused_values

ROOT = Path(__file__).parents[2]
ROM = ROOT / "roms" / "homeward.gb"
BANKS = ROOT / "roms" / "micro" / "mbc1_banks.gb"


@pytest.fixture(scope="module")
def emulator() -> Emulator:
    return Emulator(BANKS, 2, screen="full")


def copy_of(snapshot: Snapshot, **arrays: np.ndarray) -> Snapshot:
    parts: dict[str, Any] = {name: getattr(snapshot, name).copy() for name in ("state", "memory", "screen")}
    parts |= arrays
    return Snapshot(snapshot.rom_sha256, **parts)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_a_field_beyond_its_range_is_refused(field: Any, emulator: Emulator, tmp_path: Path) -> None:
    start, hashes = emulator.save(0), emulator.state_hash()
    values = refused_values(field, emulator.cartridge)
    assert values or field.low < -(2**30)
    for number, value in enumerate(values):
        bad = copy_of(start)
        bad.state[INDEX[field.name]] = value
        ways: list[Callable[[], object]] = [lambda bad=bad: emulator.load(bad, 1), lambda bad=bad: emulator.pool([bad])]
        if number == 0:
            bad.to_file(tmp_path / "bad.state")
            ways.append(lambda: load_state_file(tmp_path / "bad.state", emulator.cartridge))
        for way in ways:
            with pytest.raises(StateError, match=rf"{field.name} of env 0 is {value}\)"):
                way()
        with pytest.raises(ConfigError, match=field.name):
            emulator.set_registers(1, **{field.name: value})
    assert (emulator.state_hash() == hashes).all(), "nothing was changed"


def test_arrays_of_other_shapes_types_and_shades_are_refused(emulator: Emulator) -> None:
    start = emulator.save(0)
    bad = [
        copy_of(start, memory=start.memory[:, :1].copy()), copy_of(start, memory=start.memory.astype(np.int32)),
        copy_of(start, state=start.state[:1].copy()), copy_of(start, state=start.state.astype(np.float32)),
        copy_of(start, state=start.state[:, :0].copy()), copy_of(start, state=start.state[:, 0].copy()),
        copy_of(start, screen=start.screen[:, :9].copy()), copy_of(start, screen=start.screen + np.uint8(4)),
        copy_of(start, screen=start.screen[0].copy()),
    ]  # fmt: skip
    for snapshot in bad:
        with pytest.raises(StateError, match="the snapshot is damaged, or of another program"):
            emulator.load(snapshot)


def test_a_state_of_pyboy_is_refused_like_ours(emulator: Emulator) -> None:
    data = bytearray(pyboy_state.to_bytes(emulator.save(0), emulator.cartridge))
    values = {"lcd_next_mode": 7, "ly": 200, "dma_index": 255}
    found = pyboy_layout.read(bytes(data), emulator.cartridge, "state")
    for name, value in values.items():
        with pytest.raises(StateError, match=name):
            pyboy_state.from_bytes(pyboy_layout.write(found | {name: value}, emulator.cartridge), emulator.cartridge)
    with pytest.raises(StateError, match="lcd_zero of env 0"):
        late = pyboy_layout.write(found | {"lcd_last": 2**31 - 1}, emulator.cartridge)
        pyboy_state.from_bytes(late, emulator.cartridge)


def test_what_is_let_in_stays_within_its_env() -> None:
    """In a process of its own: an access to a guard page ends it. More of them: python -m tests.hostile.states."""
    command = [sys.executable, "-m", "tests.hostile.states", "--first", "7", "--roms", "2", "--envs", "24"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "48 states, 2 kernels: no access outside of an env" in result.stdout


@pytest.fixture(scope="module")
def env() -> GBxCuLEEnv:
    made = GBxCuLEEnv(ROM, 2, archive_slots=4, visit_bonus=0.1, io="torch")
    made.reset(seed=1)
    for _ in range(4):
        made.step(torch.tensor([3, 4]))
    return made


def test_every_tensor_of_a_saved_state_is_checked(env: GBxCuLEEnv) -> None:
    hashes = env.emulator.state_hash()
    for name, tensor in env.state_dict()["tensors"].items():
        assert name in RANGES or name.startswith("pool_") or "." in name or "/" in name, f"{name} has no range"
        bad = [tensor[None], tensor.double() if tensor.dtype != torch.float64 else tensor.float(), None]
        if name in RANGES and tensor.dtype != torch.bool:
            low, high = RANGES[name]
            extremes = [-1] if low > -(2**62) else []
            extremes += [2**31 - 1] if isinstance(high, str) and tensor.dtype == torch.int64 else []
            extremes += [float("nan"), float("inf")] if tensor.dtype.is_floating_point else []
            bad += [torch.full_like(tensor, value) for value in extremes if tensor.dtype != torch.uint8]
        for value in bad:
            state = env.state_dict()
            state["tensors"][name] = value
            with pytest.raises(StateError, match=name):
                env.load_state_dict(state)
    assert (env.emulator.state_hash() == hashes).all(), "nothing was changed"
    env.load_state_dict(env.state_dict())


@pytest.mark.parametrize("changes", [
    {"machines": {}}, {"machines": 3}, {"machines": {"state": 1, "memory": 2, "screen": 3}}, {"steps": -1},
    {"seed": "x"}, {"steps": 2**70}, {"config": None}, {"tensors": None}, {"tensors": []},
])  # fmt: skip
def test_a_saved_state_of_other_things_is_refused(env: GBxCuLEEnv, changes: dict[str, Any]) -> None:
    with pytest.raises(StateError, match="saved env state"):
        env.load_state_dict(env.state_dict() | changes)


def test_machines_of_a_saved_state_and_of_the_archive_are_checked(env: GBxCuLEEnv) -> None:
    state = env.state_dict()
    state["machines"]["state"][INDEX["pc"], 1] = 0x10000
    with pytest.raises(StateError, match="pc of env 1 is 65536"):
        env.load_state_dict(state)
    state = env.state_dict()
    filled = state["tensors"]["spare_filled"]
    filled[:] = True
    state["tensors"]["pool_state"] = env.state_dict()["machines"]["state"][:, :1].repeat(1, len(filled))
    for name in ("pool_memory", "pool_screen"):
        state["tensors"][name] = state["tensors"][name][:1].expand(len(filled), -1, *state["tensors"][name].shape[2:])
    state["tensors"]["pool_state"][INDEX["rom_high"], 2] = 2**30
    with pytest.raises(StateError, match=r"the archive is damaged.*rom_high of env 2"):
        env.load_state_dict(state)


def test_slots_that_there_are_not_restore_nothing(emulator: Emulator) -> None:
    pool, everyone = emulator.pool([emulator.save(0)]), torch.ones(2, dtype=torch.bool)
    for slots in ([0, 1], [-1, 0], [0, 2**31 - 1]):
        with pytest.raises(StateError, match="give 0 to 0"):
            pool.reset(everyone, torch.tensor(slots, dtype=torch.int32))
    with pytest.raises(StateError, match="mask and slots are"):
        pool.reset(everyone, torch.zeros(2, dtype=torch.int64))


def test_what_a_step_leaves_can_be_loaded(emulator: Emulator) -> None:
    for buttons in (0, 1, 16, 255):
        emulator.step(torch.full((2,), buttons, dtype=torch.uint8))
        assert first_fault(emulator.save().state, emulator.cartridge) == ""
