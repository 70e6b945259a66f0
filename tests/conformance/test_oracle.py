"""The oracle harness itself: our PyBoy run gives the stored references, so that a difference is the emulator's."""

from pathlib import Path

import pytest

from benchmarks.references import HRAM, WRAM, game_reference, step_hashes
from benchmarks.workload import GAMES, V1_BUTTONS
from gbxcule_puffer.tasks.actions import DEFAULT_CODEC, get_codec
from tests.support.oracle import PyBoyOracle, differing_steps


@pytest.mark.parametrize("game", GAMES)
def test_pyboy_gives_the_reference_hashes(shared: Path, game: str) -> None:
    reference = game_reference(shared, game)
    oracle = PyBoyOracle(reference.rom)
    found = []
    for buttons in reference.buttons:
        oracle.step(int(buttons))
        found.append(step_hashes(oracle.memory(*WRAM), oracle.memory(*HRAM), oracle.picture()))
    oracle.close()
    assert not (report := differing_steps(reference, found)), f"{game}\n{report}"


def test_a_view_does_not_disturb_the_oracle(shared: Path) -> None:
    """Lockstep reads a view after each step: the run must go on as if nobody had looked."""
    reference = game_reference(shared, "tobu")
    oracle = PyBoyOracle(reference.rom)
    found = []
    for buttons in reference.buttons:
        oracle.step(int(buttons))
        view = oracle.view()
        assert view.picture is not None
        found.append(step_hashes(view.memory["WRAM"][1], view.memory["HRAM"][1], view.picture))
    oracle.close()
    assert not (report := differing_steps(reference, found)), report


def test_the_references_actions_are_the_default_codec() -> None:
    codec = get_codec(DEFAULT_CODEC)
    assert [codec.to_buttons(action) for action in range(codec.num_actions)] == V1_BUTTONS.tolist()
