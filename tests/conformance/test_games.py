"""The eight reference games and the corpus: 40 steps each must give PyBoy's pictures (full and half) and RAM."""

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.references import (
    HRAM,
    WRAM,
    GameReference,
    game_reference,
    step_hashes,
)
from benchmarks.workload import GAMES, shared_folder
from gbxcule_puffer.emulator import Emulator
from tests.support.oracle import differing_steps
from tests.support.shared import cases

SHARED = shared_folder()
CORPUS = sorted(path.stem for path in (SHARED / "roms/corpus").glob("*.gb")) if SHARED else []


@pytest.mark.parametrize("game", GAMES)
def test_40_steps_give_the_reference_hashes(shared: Path, game: str) -> None:
    assert_as_reference(game_reference(shared, game), Emulator(game_reference(shared, game).rom, 1, screen="full"))


@pytest.mark.parametrize("game", cases(CORPUS))
def test_40_steps_of_the_corpus(shared: Path, game: str) -> None:
    reference = game_reference(shared, game, "corpus")
    assert_as_reference(reference, Emulator(reference.rom, 1, screen="full"))


@pytest.mark.parametrize(
    "game", cases([pytest.param(game, marks=[pytest.mark.long] * (at % 4 > 0)) for at, game in enumerate(CORPUS)])
)
def test_40_steps_of_the_corpus_in_the_data_path(shared: Path, game: str) -> None:
    """Its table is compared for all of them by test_rom_tables.py."""
    reference = game_reference(shared, game, "corpus")
    assert_as_reference(reference, Emulator(reference.rom, 1, screen="full", kernel="datapath"))


def assert_as_reference(reference: GameReference, emulator: Emulator) -> None:
    """Plays the reference's steps and compares the hashes of each."""
    found = []
    for buttons in reference.buttons:
        emulator.step(torch.tensor([buttons], dtype=torch.uint8))
        wram, hram = emulator.read_memory(0, *WRAM), emulator.read_memory(0, *HRAM)
        found.append(step_hashes(wram, hram, emulator.screen[0].numpy()))
    assert not (report := differing_steps(reference, found)), report


@pytest.mark.parametrize("game", ["tobu", "libbet"])
def test_the_half_and_packed_pictures_are_the_full_one_thinned(shared: Path, game: str) -> None:
    reference = game_reference(shared, game)
    full = Emulator(reference.rom, 1, "cpu", screen="full")
    half = Emulator(reference.rom, 1, "cpu", screen="half")
    for step, buttons in enumerate(reference.buttons[:10]):
        mask = torch.tensor([buttons], dtype=torch.uint8)
        full.step(mask)
        half.step(mask)
        thinned = full.screen[0].numpy()[::2, ::2]
        assert np.array_equal(half.screen[0].numpy(), thinned), f"{game}: screen='half' differs at step {step}"
        assert np.array_equal(full.render("half")[0].numpy(), thinned), f"{game}: render('half') differs at step {step}"
        assert np.array_equal(unpack(half.render("packed")[0].numpy()), thinned), f"{game}: packed, step {step}"
    assert len(np.unique(thinned)) > 1, "the comparison needs a picture that is not blank"


def unpack(packed: np.ndarray) -> np.ndarray:
    """Four pixels a byte, leftmost in bits 7-6 -> one pixel a byte."""
    pixels = packed[..., None] >> np.array([6, 4, 2, 0], dtype=np.uint8) & 3
    return pixels.reshape(packed.shape[0], packed.shape[1] * 4)
