"""The stored CPU hashes, with which the CUDA kernel is compared, are what the CPU kernel gives now."""

import pytest

from benchmarks.cpu_state_hashes import CHECKPOINTS, NUM_ENVS, STEPS, load_stored, run_game
from benchmarks.workload import GAMES

pytestmark = pytest.mark.kernel

WIDTH = 8
"""Environments run here; env i does not depend on how many there are."""


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("game", GAMES)
def test_the_stored_hashes_are_current(game: str) -> None:
    step = CHECKPOINTS[0]
    stored = load_stored()["games"][game]["hashes"][str(step)]["states"].split()[:WIDTH]
    found = run_game(game, "cpu", num_envs=WIDTH, last_step=step)[str(step)]["states"].split()
    assert found == stored, f"{game} differs from the store at step {step}: run python -m benchmarks.cpu_state_hashes"


def test_the_store_is_whole_and_its_environments_diverged() -> None:
    """Every game with all environments, which must have gone different ways: else they compare one state 64 times."""
    stored = load_stored()
    assert stored["num_envs"] == NUM_ENVS and stored["steps"] == STEPS and stored["device"] == "cpu"
    assert set(stored["games"]) == set(GAMES)
    for game, entry in stored["games"].items():
        assert set(entry["hashes"]) == {str(step) for step in CHECKPOINTS}
        final = entry["hashes"][str(STEPS)]["states"].split()
        assert len(final) == NUM_ENVS
        assert len(set(final)) > NUM_ENVS // 2, f"{game}: the environments did not diverge"
