"""Other libraries and the PyBoy workers with a Game Boy Color: observations and pictures in colour."""

from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.integrations import gym
from gbxcule_puffer.integrations.pufferl.env import PuffeRLEnv
from gbxcule_puffer.integrations.pufferl.policies import PixelCNN
from gbxcule_puffer.pictures import to_rgb
from tests.conformance.test_game_boy_color import picture_rom

ROM = picture_rom(1, 0xC0)
OPTIONS: dict[str, Any] = {"model": "cgb", "max_steps": 3, "frames_per_step": 4, "release_after_frames": 2}


@pytest.mark.parametrize("obs", ["shades", "rgb"])
@pytest.mark.parametrize("env", ["gbxcule", "pyboy_puffer_single"])
def test_gymnasium_renders_in_colour(env: str, obs: str) -> None:
    """Where the last step led, also where it ended an episode."""
    envs = gym.make_vec(env, 2, rom=ROM, render_mode="rgb_array", obs=obs, **OPTIONS)
    colors = GBxCuLEEnv(ROM, 2, obs="rgb555", **OPTIONS)
    single = gym.make(env, rom=ROM, render_mode="rgb_array", obs=obs, **OPTIONS)
    for each in (envs, colors, single):
        each.reset(seed=1)
    for step in range(4):
        envs.step(np.zeros(2, int))
        colors.step(np.zeros(2, int))
        expected = [to_rgb(picture, 2) for picture in colors.final_observation[:, 0]]
        np.testing.assert_array_equal(envs.render(), expected)
        if step < 3:
            single.step(0)
            np.testing.assert_array_equal(single.render(), expected[0])
    assert (expected[0] != expected[0][..., :1]).any()
    space = envs.single_observation_space
    assert isinstance(space, gym.gymnasium.spaces.Box)
    assert space.shape == ((3, 72, 80) if obs == "rgb" else (1, 72, 80)) and space.dtype == np.uint8


@pytest.mark.parametrize("obs", ["rgb555", "rgb"])
def test_pyboys_in_workers_observe_the_same(obs: str) -> None:
    options = {**OPTIONS, "obs": obs, "stack_k": 2}
    ours, theirs = GBxCuLEEnv(ROM, 4, **options), PyBoyPufferVec(ROM, 4, num_workers=2, **options)
    for env in (ours, theirs):
        env.reset(seed=3)
    for step in range(5):
        actions = np.full(4, step % 3)
        for found, expected in zip(ours.step(actions)[:4], theirs.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(ours.final_observation, theirs.final_observation)
        assert torch.equal(theirs.final_pictures(), ours.layout.newest(torch.from_numpy(ours.final_observation)))
    theirs.close()


@pytest.mark.parametrize("obs", ["luma", "rgb", "rgb555"])
def test_pufferl_sees_and_renders_colours(obs: str) -> None:
    env = PuffeRLEnv(ROM, 2, render_mode="rgb_array", obs=obs, stack_k=2, **OPTIONS)
    env.reset(seed=1)
    env.step(np.zeros(2, int))
    np.testing.assert_array_equal(env.render(), to_rgb(env.emulator.colors[0].numpy(), 4))
    logits, values = PixelCNN(env)(torch.from_numpy(env.observations))
    assert logits.shape == (2, 8) and values.shape == (2, 1)


@pytest.mark.parametrize("obs", ["rgb", "rgb555"])
def test_torchrl_is_content(obs: str) -> None:
    """It compares no uint16: 15 bits are int16 there."""
    pytest.importorskip("torchrl", reason="needs TorchRL: pip install torchrl")
    from torchrl.envs.utils import check_env_specs  # pyright: ignore[reportMissingImports]

    from gbxcule_puffer.integrations.torchrl import GameBoyTorchRL

    env = GameBoyTorchRL(rom=ROM, num_envs=2, obs=obs, **OPTIONS)
    check_env_specs(env, seed=1)
    pixels = env.rollout(2)["next", "pixels"]
    assert pixels.dtype == (torch.int16 if obs == "rgb555" else torch.uint8)
    env.close()
