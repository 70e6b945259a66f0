"""sound=True beside PyBoy with sound_emulated=True: programs about sound, a game, states in and out."""

from __future__ import annotations

import io
import random
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch

from gbxcule_puffer.apps.verify.command import Verify
from gbxcule_puffer.apps.verify.verify import verify
from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.emulator import Emulator, Snapshot, sound_fields
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.saves import pyboy_sound
from gbxcule_puffer.emulator.saves.pyboy_state import from_bytes, to_bytes
from gbxcule_puffer.errors import StateError
from tests.fuzz.generator import header, make_rom, model_of
from tests.fuzz.lockstep import Oracle, Result, random_buttons, run_all

HOMEWARD = Path(__file__).parents[2] / "roms" / "homeward.gb"
# The interpreter for a DMG and the data path for a Game Boy Color: each kernel that is compiled takes half a minute
KERNELS = {"dmg": "interpreter", "cgb": "datapath"}


def lockstep(rom: bytes, model: str, buttons: np.ndarray, frames_per_step: int = 1, check_every: int = 4) -> list[str]:
    """What differs first from PyBoy in steps with `buttons` (steps, 1)."""
    release = min(8, frames_per_step)
    emulator = Emulator(
        rom, 1, screen="full", frames_per_step=frames_per_step, release_after_frames=release, num_threads=1,
        kernel=KERNELS[model], model=model, sound=True,
    )  # fmt: skip
    oracle, result = Oracle(emulator), Result(0, 0)
    run_all([emulator], [oracle], buttons, check_every, result)
    oracle.close()
    return result.difference


@pytest.mark.parametrize("kind", ["sound", "color-sound"])
@pytest.mark.parametrize("seed", [0, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in (3, 4))])
def test_programs_about_sound(kind: str, seed: int) -> None:
    """Every word of the sound unit, and what the program has read."""
    rom = make_rom(seed, kind).data
    assert lockstep(rom, model_of(rom), random_buttons(seed, 16, 1)) == []


@pytest.mark.parametrize("model", ["dmg", "cgb"])
def test_a_game(model: str) -> None:
    assert lockstep(HOMEWARD.read_bytes(), model, random_buttons(1, 12, 1), 24, 1) == []


def rom_of(code: bytes) -> bytes:
    """A ROM of 32 KiB that begins with `code`."""
    rom = bytearray(0x8000)
    header(rom, 0, 0)
    rom[0x100:0x104] = bytes((0x00, 0xC3, 0x50, 0x01))
    rom[0x150 : 0x150 + len(code)] = code
    return bytes(rom)


def test_a_loop_that_polls_nr52_ends_with_the_sound() -> None:
    """With sound muted it never ends, and is skipped."""
    # channel 2 with a length of 2, then: ldh a,[NR52] / and 2 / jr nz; inc b and again
    code = "F3 06 00  3E F0 E0 17 3E 3E E0 16 3E C7 E0 19  F0 26 E6 02 20 FA  04 78 EA 00 C0 18 E7"
    rom = rom_of(bytes.fromhex(code))
    assert lockstep(rom, "dmg", np.zeros((20, 1), np.uint8)) == []
    emulator = Emulator(rom, sound=True, num_threads=1)
    emulator.run(20)
    assert emulator.read_memory(0, 0xC000, 1)[0] > 10


def test_a_write_to_rom_across_the_end_of_a_frame() -> None:
    """While a Game Boy Color's channel 1 sweeps, it ends PyBoy's batch, and so may the LCD within the instruction."""
    # channel 1 sweeps a period of 0, which never changes; then ld (hl),a to 2000 on and on
    code = "F3 3E 80 E0 26 3E F0 E0 12 3E 77 E0 10 AF E0 13 3E 80 E0 14  21 00 20 3E 01" + " 77" * 24 + " 18 E6"
    assert lockstep(rom_of(bytes.fromhex(code)), "cgb", np.zeros((8, 1), np.uint8)) == []


# Channel 3 plays a sample every 2 T-cycles, and hl points to its wave RAM
WAVE_PLAYS = "3E 80 E0 1A 3E 20 E0 1C 3E FF E0 1D 3E 87 E0 1E 21 37 FF"
# Instructions of all lengths, and those that end PyBoy's batch but not ours (they write SCX, P1, a bank, NR21), end
# ours but not PyBoy's (EI), read the LCD, or begin a loop that is skipped
PADDING = ("00", "03", "34", "C5 C1", "CD 08 00", "CF", "E0 43", "E0 00", "EA 00 20", "F0 41", "F0 44", "FB",
           "F3", "E0 16", "3E 05 3D 20 FD", "FA 00 C0", "CB 46", "08 00 C0")  # fmt: skip
WAVE_READ = "7E A8 07 47"  # ld a,[hl] / xor b / rlca / ld b,a


@pytest.mark.parametrize("seed", range(3))
def test_wave_ram_around_the_ends_of_batches(seed: int) -> None:
    """Each read at an instruction's begin finds FF on a DMG where PyBoy's batch has just ended, else a sample."""
    chance = random.Random(seed)
    waves = " ".join(f"3E {chance.randrange(255):02X} E0 {register:02X}" for register in range(0x30, 0x40))
    body = (WAVE_READ if chance.random() < 0.5 else chance.choice(PADDING) for _ in range(1200))
    code = f"F3 AF E0 1A {waves} 3E 01 EA FF FF {WAVE_PLAYS} {' '.join(body)} C3 50 01"
    rom = bytearray(rom_of(bytes.fromhex(code)))
    rom[0x08], rom[0x40] = 0xC9, 0xD9  # ret, and reti from VBlank
    assert lockstep(bytes(rom), "dmg", random_buttons(seed, 12, 1)) == []


CHANNEL_1_SWEEPS = "3E F0 E0 12 3E 77 E0 10 3E 00 E0 13 3E 81 E0 14"
PLAYS = {"dmg": WAVE_PLAYS, "cgb": CHANNEL_1_SWEEPS}


@pytest.mark.parametrize("model", PLAYS)
def test_a_sound_that_plays_leaves_waiting_loops_to_be_skipped(model: str) -> None:
    """They would not be skipped beyond each change of the LCD if batches ended where PyBoy's end."""
    emulator = Emulator(
        rom_of(bytes.fromhex(f"F3 3E 80 E0 26 {PLAYS[model]} FA 00 C0 B7 28 FA")), num_threads=1, frames_per_step=24,
        kernel=KERNELS[model], model=model, sound=True,
    )  # fmt: skip
    emulator.run(2)
    executed = int(emulator.registers(0)["instructions"]) - int(emulator.skipped[0])
    fields = sound_fields.read(emulator.memory[0].numpy())
    assert fields["wave_enable" if model == "dmg" else "sweep_enable"]
    assert executed < 24 * 154  # instructions in a step of 24 frames, fewer than there are lines


# Channel 3 plays, channel 1 sweeps, channel 4 has a width of 7; then NR52 and DIV to C000 on and on
BUSY = """F3 3E 80 E0 1A E0 1D E0 1C 3E 87 E0 1E  3E 17 E0 10 3E F3 E0 12 3E 86 E0 14  3E A7 E0 21 3E 2B E0 22
          3E 80 E0 23  21 00 C0 F0 26 22 F0 04 22 F0 30 22 7C FE D0 20 F2 18 ED"""


def test_states_in_and_out() -> None:
    rom = rom_of(bytes.fromhex(BUSY))
    ours = Emulator(rom, screen="full", num_threads=1, sound=True)
    theirs = PyBoyEmulator(rom, screen="full", sound=True)
    idle = torch.zeros(1, dtype=torch.uint8)
    for _ in range(2):
        ours.step(idle)
    theirs.load(from_bytes(to_bytes(ours.save(0), ours.cartridge), ours.cartridge))
    pyboys = io.BytesIO(to_bytes(theirs.save(0), theirs.cartridge)).getvalue()
    ours.load(from_bytes(pyboys, ours.cartridge))
    for _ in range(2):
        ours.step(idle)
        theirs.step(idle)
        first, second = ours.save(0), theirs.save(0)
        assert to_bytes(first, ours.cartridge) == to_bytes(second, theirs.cartridge)


def test_verify_compares_the_sound_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verify(Verify(rom=str(HOMEWARD), steps=3, sound=True)).equal
    numbers = count()
    monkeypatch.setattr(pyboy_sound, "comparable", lambda fields, model: {"noise_register": next(numbers)})
    assert list(verify(Verify(rom=str(HOMEWARD), steps=3, sound=True)).differences) == ["noise_register"]


@pytest.mark.parametrize("sound", [False, True])
def test_the_baselines_take_it(sound: bool) -> None:
    env = PyBoyPufferSingle(HOMEWARD, 1, sound=sound)
    env.reset()
    assert env.emulator.machines[0].pyboy.memory[hw.NR52] == (0x70 if sound else 0)  # it switches sound off
    env.close()


def test_a_state_belongs_to_its_kind(tmp_path: Path) -> None:
    muted, loud = Emulator(HOMEWARD), Emulator(HOMEWARD, sound=True, num_threads=1)
    loud.save(0).to_file(tmp_path / "loud.state")
    for emulator, snapshot in ((muted, Snapshot.from_file(tmp_path / "loud.state")), (loud, muted.save(0))):
        with pytest.raises(StateError, match="sound=True"):
            emulator.load(snapshot)
    damaged = loud.save(0)
    damaged.memory[:, 0x6400:0x6600] = 0xEE
    with pytest.raises(StateError, match="sound_on of env 0"):
        loud.load(damaged)
