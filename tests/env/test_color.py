"""The env's option model: a Game Boy Color behind the same spaces, in shades, beside its PyBoy baseline."""

from pathlib import Path

import numpy as np
import pytest
import torch

from baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError, StateError
from tests.conformance.test_color import picture_rom, rom_of
from tests.emulator.test_color import PROGRAM
from tests.fuzz.generator import make_rom

SEED = 4  # of a program that shows a picture


@pytest.mark.parametrize("obs", ["shades", "packed", "averaged", "full"])
def test_the_same_observations_as_from_pyboy(obs: str) -> None:
    options = {"obs": obs, "model": "cgb", "max_steps": 6, "frames_per_step": 4, "release_after_frames": 2}
    rom, shown = picture_rom(1, 0xC0), set()
    envs = [kind(rom, 2, **options) for kind in (GBxCuLEEnv, PyBoyPufferSingle)]
    for env in envs:
        env.reset(seed=3)
    for actions in np.random.default_rng(1).integers(0, 8, (14, 2)):
        found, expected = (env.step(actions) for env in envs)
        for ours, theirs in zip(found[:4], expected[:4], strict=True):
            np.testing.assert_array_equal(ours, theirs)
        shown.add(found[0].tobytes())
    assert len(shown) > 2, "the picture hardly changes"


def test_auto_is_by_the_header_and_the_colours_are_the_emulators() -> None:
    env = GBxCuLEEnv(rom_of(PROGRAM), 2, io="torch", model="auto")
    env.reset(seed=1)
    env.step(torch.zeros(2, dtype=torch.int64))
    assert env.emulator.model == "cgb" and env.emulator.colors.unique().numel() == 1
    assert GBxCuLEEnv(rom_of(PROGRAM, 0), io="torch", model="auto").emulator.model == "dmg"


def test_bad_models() -> None:
    with pytest.raises(ConfigError, match="model 'sgb' is unknown: give one of dmg, cgb, auto"):
        GBxCuLEEnv(rom_of(PROGRAM), model="sgb")


def test_a_start_of_the_other_model_is_refused(tmp_path: Path) -> None:
    env = GBxCuLEEnv(rom_of(PROGRAM, 0), io="torch", model="cgb")
    env.emulator.save(0).to_file(tmp_path / "x.state")
    with pytest.raises(StateError, match=r"x\.state is of model 'cgb', this Game Boy of 'dmg'"):
        GBxCuLEEnv(rom_of(PROGRAM, 0), io="torch", start_state=tmp_path / "x.state")
    started = GBxCuLEEnv(rom_of(PROGRAM, 0), io="torch", start_state=tmp_path / "x.state", model="cgb")
    started.reset(seed=1)
    assert started.emulator.registers()["pc"] == env.emulator.registers()["pc"]


def test_a_saved_state_goes_on() -> None:
    """With an archive of live envs, whose memory has the banks."""
    options = {"io": "torch", "model": "cgb", "archive_slots": 4, "visit_bonus": 0.1, "max_steps": 5}
    first, second = (GBxCuLEEnv(make_rom(SEED, "color").data, 4, **options) for _ in range(2))
    first.reset(seed=1)
    actions = torch.from_numpy(np.random.default_rng(2).integers(0, 8, (12, 4)))
    for step in range(6):
        first.step(actions[step])
    second.reset(seed=1)
    second.load_state_dict(first.state_dict())
    for step in range(6, 12):
        ours, theirs = first.step(actions[step]), second.step(actions[step])
        for one, other in zip(ours[:4], theirs[:4], strict=True):
            assert torch.equal(one, other)
    assert torch.equal(first.emulator.memory, second.emulator.memory)
