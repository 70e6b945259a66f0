"""Native code beside the interpreter, and how an emulator comes to it."""

from __future__ import annotations

import copy
import json
import math
import subprocess
import sys
import time
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gbxcule_puffer.apps.bench.contenders import make_contender
from gbxcule_puffer.apps.bench.workload import Workload
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.build import cache, interpreter
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.emulator.pieces import native
from gbxcule_puffer.emulator.pieces.worker import checked, compile_pieces, find_traces
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.layout import ROMS, child_environment
from tests.emulator.pieces.waits import cartridge_of_vram, cartridge_of_waits
from tests.fuzz.generator import LOGO
from tests.fuzz.pieces import FAULTS, PiecesOfRoms, cartridges_of, search, traces_of

ROM = ROMS / "homeward.gb"
FEW_PIECES = ROMS / "micro/joy_diverge_persist.gb"  # which compile in half a second; buttons lead to different code


@pytest.fixture(autouse=True)
def name(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Turns native code on, without searches in the background. What a test keeps and recalls has a name of its own, by
    which nothing was kept before; it is removed afterwards."""
    monkeypatch.delenv(native.OFF)  # conftest.py has set it
    monkeypatch.setattr(native, "START_SECONDS", math.inf)
    name = f"pieces_test_{uuid.uuid4().hex}"
    monkeypatch.setattr(native, "_name", lambda cartridge: name)
    yield name
    for path in cache.directory().glob(f"*{name}*"):
        path.unlink()


@pytest.fixture(scope="module")
def roms() -> PiecesOfRoms:
    """The pieces of a random ROM, whose pieces compile sooner than those of others."""
    return pieces_of_seed(1)


def pieces_of_seed(seed: int) -> PiecesOfRoms:
    """The pieces of a random program."""
    (cartridge,) = cartridges_of([seed], "program", "dmg")
    return PiecesOfRoms([cartridge], [traces_of(cartridge)])


def test_random_programs_are_equal(roms: PiecesOfRoms) -> None:
    """All fields, memory and pictures after each step, on three schedules."""
    found, instructions = search(roms, 96)
    assert found == {}
    assert instructions > 400_000


@pytest.mark.long
def test_a_longer_random_program_is_equal() -> None:
    """One that has twice as many pieces."""
    assert search(pieces_of_seed(3), 120)[0] == {}


@pytest.fixture(scope="module")
def waits() -> PiecesOfRoms:
    """The pieces of a ROM of loops that wait."""
    cartridge = cartridge_of_waits()
    return PiecesOfRoms([cartridge], [traces_of(cartridge)])


def test_a_planted_fault_is_found(waits: PiecesOfRoms) -> None:
    """Flags that a piece loses."""
    assert search(waits, 24, FAULTS["flags are lost"])[0]


def test_rounds_that_change_nothing_are_skipped(waits: PiecesOfRoms) -> None:
    """All fields, memory and pictures stay equal; the interpreter skips none of these rounds."""
    assert search(waits, 60)[0] == {}
    emulators = [Emulator(waits.cartridges[0], 2, native=native) for native in (True, False)]
    assert emulators[0].native is not None
    emulators[0].native.take(waits.pieces(0))
    for emulator in emulators:
        emulator.step(torch.zeros(2, dtype=torch.uint8))
    assert int(emulators[0].skipped[0]) > 10_000 > 1_000 > int(emulators[1].skipped[0])


FAULTS_OF_ROUNDS = list(FAULTS)[list(FAULTS).index("a round is skipped although A changed") :][:11]


@pytest.mark.parametrize(
    "fault", [pytest.param(each, marks=[pytest.mark.long] * (each != "... memory")) for each in FAULTS_OF_ROUNDS]
)
def test_a_round_that_is_skipped_wrongly_is_found(waits: PiecesOfRoms, fault: str) -> None:
    """Rounds that are not like the one before."""
    assert search(waits, 120, FAULTS[fault])[0]


@pytest.fixture(scope="module")
def vram() -> PiecesOfRoms:
    """The pieces of a ROM that accesses VRAM in all modes of the LCD."""
    cartridge = cartridge_of_vram()
    return PiecesOfRoms([cartridge], [traces_of(cartridge)])


def test_accesses_to_a_vram_that_is_locked_at_times_are_equal(vram: PiecesOfRoms) -> None:
    """All fields, memory and pictures."""
    assert vram.pieces(0) is not None
    assert search(vram, 60)[0] == {}


FAULTS_OF_VRAM = list(FAULTS)[list(FAULTS).index("the LCD stands still") :][:5]


@pytest.mark.parametrize(
    "fault",
    [pytest.param(each, marks=[pytest.mark.long] * (each != "VRAM is read in mode 3")) for each in FAULTS_OF_VRAM],
)
def test_an_access_that_ignores_the_lock_is_found(vram: PiecesOfRoms, fault: str) -> None:
    """Reads, writes, and lines that are drawn too late."""
    assert search(vram, 120, FAULTS[fault])[0]


def test_pieces_that_differ_are_not_kept(waits: PiecesOfRoms) -> None:
    """The process that compiles them runs them beside the interpreter."""
    cartridge = waits.cartridges[0]
    emulator = Emulator(cartridge, 4)
    emulator.step(torch.zeros(4, dtype=torch.uint8))
    usual, wrong = waits.pieces(0), waits.pieces(0, FAULTS["flags are lost"])
    assert usual is not None and wrong is not None
    assert checked(cartridge, emulator.save(), usual).compiled == usual.compiled
    with pytest.raises(StateError, match="does not do what the interpreter does"):
        checked(cartridge, emulator.save(), wrong)


def test_pieces_that_do_not_pay_are_not_called() -> None:
    """`rst 30` at 0030, whose stack runs through all of memory, is left to the interpreter each time: native code would
    be slower."""
    rom = bytearray(0x8000)
    rom[0x30] = 0xF7
    rom[0x100:0x103] = bytes.fromhex("c3 30 00")
    rom[0x104:0x134] = LOGO
    rom[0x14D] = -sum(rom[0x134:0x14D]) - 25 & 0xFF
    cartridge = load_cartridge(bytes(rom))
    states = Emulator(cartridge, 2).save()
    traces = find_traces(cartridge, states)
    pieces = compile_pieces(cartridge, traces)
    assert pieces.entries
    assert checked(cartridge, states, pieces) == native.Pieces([], [], [], None)


def test_a_run_finds_its_pieces_and_keeps_them(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A process looks for them; later emulators, and copies, have them from their first step; a hook leaves pieces
    out; results are equal throughout."""
    monkeypatch.setattr(native, "WORKER", "tests.emulator.pieces.named_worker")
    monkeypatch.setenv("PIECES_TEST_NAME", name)
    plain, first = Emulator(FEW_PIECES, 4), Emulator(FEW_PIECES, 4, native=True)
    buttons = torch.tensor([0, 16, 32, 128], dtype=torch.uint8)
    assert first.native is not None and first.native.pieces is None
    for emulator in (plain, first):
        for _ in range(3):
            emulator.step(buttons)
    first.native.find_now()
    assert first.native.pieces is not None
    # Warp generates the source of a kernel to know whether it has changed, which would pause the run for seconds.
    with monkeypatch.context() as patch:
        patch.setattr("warp._src.context.Module._compile", refuse_to_compile)
        later, copied = Emulator(FEW_PIECES, 4, native=True), copy.deepcopy(first)
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
    contender = make_contender("gbxcule", Workload(FEW_PIECES, native=True, warmup=2, steps=1, repeat=1), 4, cores=1)
    contender.start()
    contender.run(slice(0, 2))
    assert contender.facts()["native"]
    contender.close()
    kept = cache._path_of(name, interpreter.makers())
    sha256 = found_digest(kept)
    cache.keep(name, interpreter.makers(), kept.read_text().partition("\n")[2].replace(sha256, 64 * "0"))
    changed = Emulator(FEW_PIECES, 4, native=True).native
    assert changed is not None and changed.pieces is None  # to be looked for again


def test_a_game_without_pieces_has_the_interpreter() -> None:
    """Code that runs in RAM only is in no trace."""
    pieces = compile_pieces(load_cartridge(ROM), [])
    assert pieces == native.Pieces([], [], [], None)
    emulator = Emulator(ROM, 2, native=True)
    plain = Emulator(ROM, 2)
    assert emulator.native is not None
    emulator.native.take(pieces)
    for each in (emulator, plain):
        each.step(torch.zeros(2, dtype=torch.uint8))
    assert (emulator.state_hash() == plain.state_hash()).all()


def test_kept_pieces_do_not_stop_a_search(roms: PiecesOfRoms) -> None:
    """Another process may keep pieces, or their object may be in the cache again, while a search checks its own."""
    cartridge, pieces = roms.cartridges[0], roms.pieces(0)
    assert pieces is not None and pieces.entries
    emulator = Emulator(cartridge, 2)
    marked = Emulator(cartridge, 2, native=True)._code.clone()
    native.keep(cartridge, pieces)
    again = Emulator(cartridge, 2, native=True)
    assert again.native is not None and again.native.pieces is not None and not torch.equal(again._code, marked)
    assert checked(cartridge, emulator.save(), pieces).compiled == pieces.compiled
    again.native.take(native.Pieces([], [], [], None))
    assert torch.equal(again._code, marked), "no mark of other pieces stays"


def test_a_variable_turns_native_code_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """For all tests but those of this file, and for the processes that they start."""
    assert Emulator(ROM, 1, native=True).native is not None
    monkeypatch.setenv(native.OFF, "1")
    assert Emulator(ROM, 1, native=True).native is None


def refuse_to_compile(*_: object, **__: object) -> None:
    """In place of Warp's code generation."""
    raise AssertionError("a kernel's source was generated")


def found_digest(kept: Path) -> str:
    """The digest of the object of what was found."""
    return str(json.loads(kept.read_text().partition("\n")[2])["compiled"]["sha256"])


def test_one_of_several_processes_searches() -> None:
    """The others wait for what it finds."""
    first, second = (Emulator(ROM, 1, native=True).native for _ in range(2))
    assert first is not None and second is not None
    assert first._has_lock() and not second._has_lock()
    first.close()
    assert second._has_lock()
    second.close()


def test_a_search_that_fails_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter goes on."""
    monkeypatch.setattr(native, "WORKER", "gbxcule_puffer.no_such_module")
    emulator = Emulator(ROM, 1, native=True)
    assert emulator.native is not None
    with pytest.warns(
        UserWarning, match="native code could not be compiled; the interpreter continues: .*no_such_module"
    ):
        emulator.native.find_now()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        emulator.native.find_now()
        emulator.step(torch.zeros(1, dtype=torch.uint8))
    emulator.close()


RUN = """
import sys, time
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.pieces import native
native.WORKER, native.START_SECONDS, native.LOOK_SECONDS = "tests.emulator.pieces.named_worker", 0, 0
emulator = Emulator(sys.argv[1], 1, native=True)
emulator.native.look()
print(emulator.native._search.pid, emulator.native._folder.name, flush=True)
time.sleep(600)
"""


def test_a_search_ends_with_its_run(name: str) -> None:
    """Also one that is killed: no process goes on, and no folder stays."""
    environment = child_environment() | {"PIECES_TEST_NAME": name}
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(ROM)], stdout=subprocess.PIPE, text=True, env=environment
    ) as run:
        assert run.stdout is not None
        worker, folder = run.stdout.readline().split()
        assert Path(folder, "envs.state").is_file() and runs(worker)
        run.kill()
    end = time.monotonic() + 60
    while runs(worker) and time.monotonic() < end:
        time.sleep(0.1)
    assert not runs(worker) and not Path(folder).exists()


def runs(process: str) -> bool:
    """True for the number of a process that has not ended."""
    try:
        return Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
