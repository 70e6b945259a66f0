"""Native code beside the interpreter, and how an emulator comes to it."""

from __future__ import annotations

import copy
import uuid
import warnings

import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.build import cache, interpreter
from gbxcule_puffer.emulator.pieces import native
from gbxcule_puffer.layout import ROMS
from tests.fuzz.pieces import BUS, FAULTS, PiecesOfRoms, cartridges_of, search, traces_of

ROM = ROMS / "homeward.gb"


@pytest.fixture(scope="module")
def roms() -> PiecesOfRoms:
    """The pieces of two random ROMs in one kernel."""
    cartridges = cartridges_of([1, 3], None, "dmg")
    return PiecesOfRoms(cartridges, [traces_of(cartridge) for cartridge in cartridges])


def test_random_programs_are_equal(roms: PiecesOfRoms) -> None:
    """All fields, memory and pictures after each step, on three schedules."""
    found, instructions = search(roms, 120)
    assert found == {}
    assert instructions > 1_000_000


def test_a_planted_fault_is_found(roms: PiecesOfRoms) -> None:
    """Flags that a piece loses."""
    assert FAULTS["flags are lost"].module == BUS
    assert search(PiecesOfRoms(roms.cartridges, roms.traces, [FAULTS["flags are lost"]]), 24)[0]


def test_a_run_finds_its_pieces_and_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process looks for them; later emulators, and copies, have them from their first step; a hook leaves pieces
    out; results are equal throughout."""
    name = f"pieces_test_{uuid.uuid4().hex}"
    monkeypatch.setattr(native, "_name", lambda cartridge: name)
    monkeypatch.setattr(native, "WORKER", "tests.emulator.pieces.named_worker")
    monkeypatch.setenv("PIECES_TEST_NAME", name)
    plain, first = Emulator(ROM, 4), Emulator(ROM, 4, native=True)
    buttons = torch.tensor([0, 16, 32, 128], dtype=torch.uint8)
    assert first._native is not None and first._native.source == ""
    for emulator in (plain, first):
        for _ in range(3):
            emulator.step(buttons)
    assert first._native.find_now(first._some_envs) and first._native.source
    first._cpu_steps.forget()
    later, copied = Emulator(ROM, 4, native=True), copy.deepcopy(first)
    later.load(first.save())
    marked = int((later._code < 0).sum())
    assert marked > 3
    begin = next(index for index in range(0x4000) if later._code[index] < 0)
    later.hook(0, begin)
    assert int((later._code < 0).sum()) < marked
    for emulator in (plain, first, later, copied):
        for _ in range(20):
            emulator.step(buttons)
        assert (emulator.state_hash() == plain.state_hash()).all()
    assert int(later.executions(0, begin).sum()) > 0
    assert first.kernel_version == plain.kernel_version
    cache._path_of(name, interpreter.makers()).unlink()


def test_a_search_that_fails_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter goes on."""
    monkeypatch.setattr(native, "_name", lambda cartridge: "pieces_of_nothing")
    monkeypatch.setattr(native, "WORKER", "gbxcule_puffer.no_such_module")
    emulator = Emulator(ROM, 1, native=True)
    assert emulator._native is not None
    with pytest.warns(UserWarning, match="native code could not be made, the interpreter goes on: .*no_such_module"):
        emulator._native.find_now(emulator._some_envs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not emulator._native.find_now(emulator._some_envs)
        emulator.step(torch.zeros(1, dtype=torch.uint8))
    emulator.close()
