"""The environment and the policies as PuffeRL uses them; these need no full PufferLib."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.pufferl.env import make_env
from gbxcule_puffer.integrations.pufferl.policies import PixelCNN, PixelLSTM
from gbxcule_puffer.tasks.actions import DEFAULT_CODEC, get_codec
from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.observe.pictures import observation_kind
from tests.support.envs import make_test_task, random_actions


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory):
    return make_test_task(tmp_path_factory.mktemp("stage"))


@pytest.mark.parametrize("io", ["numpy", "torch"])
def test_steps_equal_the_env_s_with_both_ends_in_terminals(task, io: str) -> None:
    """Rewards and observations are GBxCuLEEnv's; `terminals` holds goals and cuts, `truncations` only cuts."""
    actions = np.stack([random_actions(40, 1)[:, 0], np.resize(task.solution, 40)], axis=1)
    plain = GBxCuLEEnv(**task.kwargs, num_envs=2, max_steps=20)
    env = make_env(**task.kwargs, num_envs=2, max_steps=20, io=io)
    plain.reset(seed=7)
    env.async_reset(7)
    seen = np.zeros(2, int)
    for row in actions:
        observations, rewards, terminals, truncations, _ = plain.step(row)
        env.send(row)
        parts = env.recv()
        kind = torch.Tensor if io == "torch" else np.ndarray
        assert all(isinstance(part, kind) for part in parts[:4])
        assert isinstance(parts[6], np.ndarray)
        np.testing.assert_array_equal(np.asarray(parts[0]), observations)
        np.testing.assert_array_equal(np.asarray(parts[1]), rewards)
        np.testing.assert_array_equal(np.asarray(parts[2]), terminals | truncations)
        np.testing.assert_array_equal(np.asarray(parts[3]), truncations)
        seen += [terminals.sum(), truncations.sum()]
    assert (seen > 0).all(), "the actions have to reach both kinds of end"


def test_without_a_goal_an_end_is_one_step_long(task) -> None:
    """Nothing but max_steps ends an episode then, and nothing else clears what the step before has merged."""
    from gbxcule_puffer.integrations.pufferl.env import PuffeRLEnv

    env = PuffeRLEnv(task.kwargs["rom"], num_envs=2, max_steps=2)
    env.reset()
    ends = [env.step(np.zeros(2, int))[2].tolist() for _ in range(4)]
    assert ends == [[False] * 2, [True] * 2, [False] * 2, [True] * 2]


def test_the_stage_is_the_default_task(task) -> None:
    env = make_env(num_envs=1)
    env.reset()
    assert any(env.step(np.array([action]))[2][0] for action in task.solution)
    with pytest.raises(ConfigError, match=r"--env\.rom needs --env\.goal-dir"):
        make_env(rom="x.gb")


def test_render(task) -> None:
    env = make_env(**task.kwargs, num_envs=1, io="numpy")
    env.reset()
    text = env.render()
    assert isinstance(text, str)
    assert len(text.splitlines()) == 37
    assert all(line.count("\u2580") == 80 for line in text.splitlines()[:36])
    env.render_mode = "frames"
    picture = env.render()
    assert isinstance(picture, np.ndarray)
    assert picture.shape == (288, 320, 3)
    levels = np.array([255, 153, 85, 0])[env.observations[0, 0]]
    np.testing.assert_array_equal(picture[::4, ::4, 1], levels)


def made_up_env(obs: str, stack_k: int, vectors: dict[str, tuple[int, ...]] | None = None) -> Any:
    layout = ObservationLayout(observation_kind(obs), stack_k, vectors)
    spaces = {"single_observation_space": layout.box, "single_action_space": types.SimpleNamespace(n=8)}
    return types.SimpleNamespace(layout=layout, codec=get_codec(DEFAULT_CODEC), **spaces)


@pytest.mark.parametrize("vectors", [{}, {"ram": (3,), "visited": (9, 9)}])
@pytest.mark.parametrize(
    "obs, stack_k", [("shades", 1), ("packed", 2), ("averaged", 1), ("full", 1), ("tiles", 2), ("objects", 1)]
)
def test_policies_take_every_observation(obs: str, stack_k: int, vectors: dict[str, tuple[int, ...]]) -> None:
    env = made_up_env(obs, stack_k, vectors)
    space = env.layout.box
    cnn = PixelCNN(env, hidden_size=32)
    most = {"packed": 256, "tiles": 3, "objects": 2}.get(obs, 4)
    pictures = torch.randint(0, most, (6, *space.shape), dtype=env.layout.kept_dtype)
    for name in vectors:
        env.layout.split(pictures)[name].uniform_()
    logits, values = cnn(pictures)
    assert (tuple(logits.shape), tuple(values.shape)) == ((6, 8), (6, 1))
    assert logits.abs().max() < 0.2, "the first policy tries every button"

    lstm = PixelLSTM(env, PixelCNN(env, hidden_size=32), input_size=32, hidden_size=32)
    sequence, _ = lstm(pictures.view(2, 3, *space.shape), {"lstm_h": None, "lstm_c": None})
    state = {"lstm_h": torch.zeros(2, 32), "lstm_c": torch.zeros(2, 32)}
    steps = [lstm.forward_eval(pictures.view(2, 3, *space.shape)[:, step], state)[0] for step in range(3)]
    torch.testing.assert_close(torch.stack(steps, 1).flatten(0, 1), sequence)


def test_packed_observations_are_the_same_picture() -> None:
    shades, packed = PixelCNN(made_up_env("shades", 1)), PixelCNN(made_up_env("packed", 1))
    packed.load_state_dict(shades.state_dict())
    pictures = torch.randint(0, 4, (3, 1, 72, 80), dtype=torch.uint8)
    quads = pictures.unflatten(3, (20, 4)).int()
    bytes_ = (quads[..., 0] << 6 | quads[..., 1] << 4 | quads[..., 2] << 2 | quads[..., 3]).to(torch.uint8)
    torch.testing.assert_close(packed(bytes_)[0], shades(pictures)[0], rtol=0, atol=0)


def test_a_game_of_a_folder_has_its_own_options() -> None:
    """Defaults of the .ini, which are there without a flag, leave the folder's; other values replace them."""
    env = make_env(game="orchard", levels="test", num_envs=2, frames_per_step=24, max_steps="auto", alpha=1.0)
    assert env.max_steps == 256 and env.schedule.frames_per_step == 24
    assert make_env(game="orchard", variant="one_life", num_envs=1, max_steps=9).max_steps == 9
    env.reset()
    assert env.task is not None and (env.task.level >= 0x8000).all()  # pyright: ignore[reportAttributeAccessIssue]
