"""The env's option model: a Game Boy Color behind the same spaces, in shades, beside its PyBoy baseline."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.observe.pictures import PICTURES
from tests.conformance.test_game_boy_color import picture_rom, rom_of
from tests.emulator.test_model_cgb import PROGRAM
from tests.fuzz.generator import make_rom

SEED = 4  # of a program that shows a picture


def of_pyboy(screen: np.ndarray, kind: str, size: str = "half") -> np.ndarray:
    """PyBoy's picture, RGBA, as an observation in colour."""
    step = 1 if size == "full" else 2
    red, green, blue = np.moveaxis(screen[::step, ::step, :3] & 0xF8, -1, 0).astype(int)
    if kind == "luma":
        return ((2 * red + 5 * green + blue) // 8)[None].astype(np.uint8)
    if kind == "rgb":
        return np.stack([red, green, blue]).astype(np.uint8)
    return (red >> 3 | green >> 3 << 5 | blue >> 3 << 10)[None].astype(np.uint16)


@pytest.mark.parametrize(
    ("obs", "model"),
    [
        pytest.param(obs, model, marks=[pytest.mark.long] * (model == "dmg" and obs not in ("packed", "rgb555_full")))
        for obs in PICTURES
        for model in ("cgb", "dmg")
    ],
)
def test_the_same_observations_as_from_pyboy(obs: str, model: str) -> None:
    """And as PyBoy's colours say, also of a DMG."""
    options = {"obs": obs, "model": model, "max_steps": 6, "frames_per_step": 4, "release_after_frames": 2}
    options["stack_k"] = 2 if "rgb" in obs else 1
    rom, shown = picture_rom(1, 0xC0 if model == "cgb" else 0), set()
    pyboy = PyBoyPufferSingle(rom, 2, **options)
    envs = [GBxCuLEEnv(rom, 2, **options), pyboy]
    for env in envs:
        env.reset(seed=3)
    for actions in np.random.default_rng(1).integers(0, 8, (14, 2)):
        found, expected = (env.step(actions) for env in envs)
        for ours, theirs in zip(found[:4], expected[:4], strict=True):
            np.testing.assert_array_equal(ours, theirs)
        shown.add(found[0].tobytes())
        if obs.partition("_")[0] in ("luma", "rgb", "rgb555") and not found[3].any():
            for observation, machine in zip(found[0], pyboy.emulator.machines, strict=True):
                newest = of_pyboy(machine.pyboy.screen.ndarray, *obs.split("_"))
                np.testing.assert_array_equal(observation[-len(newest) :], newest)
                assert observation.dtype == newest.dtype
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


def test_colours_are_a_view_where_they_can_be() -> None:
    env = GBxCuLEEnv(rom_of(PROGRAM), 2, io="torch", model="cgb", obs="rgb555")
    observations, _ = env.reset(seed=1)
    assert observations.data_ptr() == env.emulator.colors.data_ptr()
    assert env.step(torch.zeros(2, dtype=torch.int64))[0] is observations
    assert torch.equal(observations[:, 0], env.emulator.colors)


@pytest.mark.parametrize("options", [{}, {"stack_k": 3}, {"action_obs": 2}, {"start_waits": 2, "visit_bonus": 0.1}])
@pytest.mark.parametrize("obs", ["luma", "rgb", "rgb555"])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_torch_io_equals_numpy_io(device: str, obs: str, options: dict[str, Any]) -> None:
    """Stacks, vectors beside the pictures, final observations; and what people are shown."""
    options = {"obs": obs, "model": "cgb", "max_steps": 4, "frames_per_step": 4, "release_after_frames": 2, **options}
    ours, theirs = (GBxCuLEEnv(picture_rom(1, 0xC0), 2, device, io=io, **options) for io in ("torch", "numpy"))
    oracle = GBxCuLEEnv(picture_rom(1, 0xC0), 2, **options)
    for env in (ours, theirs, oracle):
        env.reset(seed=2)
    for step in range(6):
        actions = np.array([step, 1])
        ours.step(torch.from_numpy(actions).to(device))
        theirs.step(actions)
        oracle.step(actions)
        for name in ("observations", "final_observation", "rewards"):
            np.testing.assert_array_equal(getattr(ours, name).cpu().numpy(), getattr(oracle, name))
            np.testing.assert_array_equal(getattr(theirs, name), getattr(oracle, name))
        assert torch.equal(ours.pictures(), ours.emulator.colors)
        newest = ours.layout.newest(ours.observations)
        if obs != "luma":
            assert torch.equal(newest, ours.emulator.colors)
        assert torch.equal(newest.cpu(), theirs.layout.newest(torch.from_numpy(theirs.observations)))
    assert ours.layout.split(ours.observations)["picture"].dtype == (torch.uint16 if obs == "rgb555" else torch.uint8)


def test_rgb_and_rgb555_are_the_same_to_a_network() -> None:
    channels = np.random.default_rng(1).integers(0, 32, (2, 3, 3, 72, 80)).astype(np.uint16)
    rgb = (channels << 3).reshape(2, 9, 72, 80).astype(np.uint8)
    rgb555 = channels[:, :, 0] | channels[:, :, 1] << 5 | channels[:, :, 2] << 10
    both = zip(("rgb", "rgb555"), (rgb, rgb555), strict=True)
    one, other = (ObservationLayout(PICTURES[obs], 3).pictures(torch.from_numpy(made)) for obs, made in both)
    assert torch.equal(one, other) and one.shape == (2, 9, 72, 80) and (one.min(), one.max()) == (0, 1)


def test_final_pictures_are_in_colour_whatever_is_observed() -> None:
    """Of the step that ended an episode, not of the next one's start."""
    options = {"model": "cgb", "max_steps": 3, "frames_per_step": 4, "release_after_frames": 2, "io": "torch"}
    kept, colors = (GBxCuLEEnv(picture_rom(1, 0xC0), 2, obs=obs, **options) for obs in ("shades", "rgb555"))
    for env in (kept, colors):
        env.reset(seed=1)
    kept.keep_pictures()
    for _ in range(7):
        for env in (kept, colors):
            env.step(torch.zeros(2, dtype=torch.int64))
        assert torch.equal(kept.final_pictures(), colors.final_observation[:, 0])
        assert torch.equal(kept.pictures(), colors.observations[:, 0])
    before = kept.final_pictures()[1].clone()
    kept.reset_envs(torch.tensor([True, False]))
    assert torch.equal(kept.final_pictures()[1], before)
    assert torch.equal(kept.final_pictures(slice(1)), kept.pictures(slice(1)))


def test_a_saved_state_in_colour() -> None:
    envs = [GBxCuLEEnv(picture_rom(1, 0xC0), 2, io="torch", model="cgb", obs="rgb555", stack_k=2) for _ in range(2)]
    envs[0].reset(seed=1)
    for _ in range(3):
        envs[0].step(torch.zeros(2, dtype=torch.int64))
    envs[1].load_state_dict(envs[0].state_dict())
    assert torch.equal(envs[0].observations, envs[1].observations)
    damaged = envs[0].state_dict()
    damaged["tensors"]["observations"].fill_(-1)
    with pytest.raises(StateError, match="observations is -1"):
        envs[1].load_state_dict(damaged)


def test_a_saved_state_of_the_other_model() -> None:
    """Without machines, too, which would tell."""
    envs = {model: GBxCuLEEnv(picture_rom(1, 0x80), 2, io="torch", model=model) for model in ("dmg", "cgb")}
    states = {}
    for model, env in envs.items():
        env.reset()
        states[model] = env.state_dict(machines=False)
    for own, other, message in (("dmg", "cgb", "model 'cgb', not None"), ("cgb", "dmg", "model None, not 'cgb'")):
        with pytest.raises(StateError, match=message):
            envs[own].load_state_dict(states[other])
