"""Gymnasium: its checker, its own vector env as the reference, its wrappers, both autoreset modes, and SB3."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

pytest.importorskip("gymnasium.vector", reason="needs gymnasium 1.1 or newer")
if not hasattr(gymnasium.vector, "AutoresetMode"):
    pytest.skip("needs gymnasium 1.1 or newer, and PufferLib 3.0.0 holds it at 0.29.1", allow_module_level=True)

from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FrameStackObservation, ResizeObservation
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from gbxcule_puffer.errors import ActionError, ConfigError
from gbxcule_puffer.integrations import gym as window
from gbxcule_puffer.integrations.gym import make, make_vec
from gbxcule_puffer.integrations.window import QUIT, Event, Window
from gbxcule_puffer.pictures import LEVELS
from gbxcule_puffer.tasks.observe.pictures import area_averaged
from tests.support.envs import NUM_ACTIONS, Task, host, make_test_task, random_actions

ID = "gbxcule_puffer.integrations.gym:GBxCuLE-v0"


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return make_test_task(tmp_path_factory.mktemp("stage"))


def test_gymnasium_s_checker_is_content(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the env that gymnasium.make gives, rendered too; a warning of the checker fails the test."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # for the mode human
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(ID, **task.kwargs, start_waits=3, render_mode="rgb_array")
        check_env(env.unwrapped)
        env.close()


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_a_vector_env_equals_gymnasium_s_own(task: Task, mode: AutoresetMode) -> None:
    """Two Game Boys in one VectorEnv play what a SyncVectorEnv of two single ones does, final observations included."""
    options = {**task.kwargs, "max_steps": 20}
    reference = SyncVectorEnv([lambda: make(**options)] * 2, autoreset_mode=mode)
    given: dict[str, Any] = {} if mode is AutoresetMode.SAME_STEP else {"autoreset_mode": mode}
    envs = gymnasium.make_vec(ID, num_envs=2, **options, **given)
    assert envs.metadata["autoreset_mode"] == mode
    assert envs.single_observation_space == reference.single_observation_space
    assert envs.action_space == reference.action_space
    first, _ = envs.reset(seed=3)
    np.testing.assert_array_equal(first, reference.reset(seed=3)[0])
    assert first in envs.observation_space
    actions = np.stack([random_actions(45, 1)[:, 0], np.resize(task.solution, 45)], axis=1)
    ends = np.zeros(2, int)
    for row in actions:
        *parts, info = envs.step(row)
        *expected, expected_info = reference.step(row)
        for part, other in zip(parts, expected, strict=True):
            np.testing.assert_array_equal(part, np.asarray(other, part.dtype))
        assert ("final_obs" in info) == ("final_obs" in expected_info)
        if "final_obs" in info:
            np.testing.assert_array_equal(info["_final_obs"], expected_info["_final_obs"])
            for last, other in zip(info["final_obs"], expected_info["final_obs"], strict=True):
                assert (last is None) == (other is None)
                np.testing.assert_array_equal(last, other)
        ends += [parts[2].sum(), parts[3].sum()]
    assert (ends > 0).all(), "the actions have to reach both kinds of end"


@pytest.mark.parametrize("name", ["pyboy_puffer_single", "pyboy_puffer_vec"])
def test_the_baselines_are_the_same_vector_env(task: Task, name: str) -> None:
    options = {**task.kwargs, "num_envs": 2, "max_steps": 5}
    envs, baseline = make_vec(**options), make_vec(name, **options)
    np.testing.assert_array_equal(envs.reset(seed=1)[0], baseline.reset(seed=1)[0])
    for row in random_actions(12, 2):
        for part, other in zip(envs.step(row)[:4], baseline.step(row)[:4], strict=True):
            np.testing.assert_array_equal(part, other)
    baseline.close()


def test_returned_arrays_are_not_overwritten(task: Task) -> None:
    for io in ("numpy", "torch"):
        envs = make_vec(**task.kwargs, num_envs=2, max_steps=3, io=io)
        kept = [envs.reset(seed=1)[0]]
        copies = [host(kept[0])]
        for row in random_actions(8, 2):
            parts = envs.step(row if io == "numpy" else torch.from_numpy(row))[:4]
            kept += parts
            copies += [host(part) for part in parts]
        for part, copy in zip(kept, copies, strict=True):
            np.testing.assert_array_equal(host(part), copy)
    bare = make_vec(**task.kwargs, num_envs=2, copy=False)
    assert bare.reset()[0] is bare.env.observations


def test_torch_equals_numpy(task: Task) -> None:
    options = {**task.kwargs, "num_envs": 3, "max_steps": 5}
    numpy, tensors = make_vec(**options), make_vec(**options, io="torch")
    numpy.reset(seed=2)
    assert isinstance(tensors.reset(seed=2)[0], torch.Tensor)
    for row in random_actions(12, 3):
        *parts, info = numpy.step(row)
        *others, other = tensors.step(torch.from_numpy(row))
        for part, tensor in zip(parts, others, strict=True):
            np.testing.assert_array_equal(part, tensor.numpy())
        for index in np.flatnonzero(other["_final_obs"].numpy()):
            np.testing.assert_array_equal(info["final_obs"][index], other["final_obs"][index].numpy())


def test_record_episode_statistics(task: Task) -> None:
    """Gymnasium's wrapper counts what the env counts on the device."""
    envs = RecordEpisodeStatistics(make_vec(**task.kwargs, num_envs=4, max_steps=9, info_mode="stats", log_interval=36))
    envs.reset(seed=0)
    for row in random_actions(36, 4):
        info = envs.step(row)[4]
    assert envs.episode_count == info["stats"]["episodes"] == 16
    assert np.mean(envs.return_queue) == pytest.approx(info["stats"]["episode_return"], abs=1e-5)
    assert set(envs.length_queue) == {9}


@pytest.mark.parametrize("io", ["numpy", "torch"])
def test_disabled_autoreset(task: Task, io: str) -> None:
    """Ended envs wait, with their last observation, for the mask; others can be reset by it and the rest play on."""
    convert = torch.from_numpy if io == "torch" else np.asarray
    plain = make_vec(**task.kwargs, num_envs=3, max_steps=4)
    envs = make_vec(**task.kwargs, num_envs=3, max_steps=4, io=io, autoreset_mode="Disabled")
    start, _ = plain.reset(seed=5)
    np.testing.assert_array_equal(host(envs.reset(seed=5)[0]), start)
    rows = random_actions(6, 3, seed=4)
    plain.step(rows[0])
    envs.step(convert(rows[0]))
    early = np.array([True, False, False])
    observations, _ = envs.reset(options={"reset_mask": convert(early)})
    np.testing.assert_array_equal(host(observations)[0], start[0])
    for row in rows[1:4]:
        *_, truncations, info = plain.step(row)
        observations, *_, truncated, other = envs.step(convert(row))
        assert "final_obs" not in other
    assert truncations.all()
    assert host(truncated).tolist() == [False, True, True], "env 0 began a step later"
    for index in (1, 2):
        np.testing.assert_array_equal(host(observations)[index], info["final_obs"][index])
    with pytest.raises(ConfigError, match="reset_mask"):
        envs.step(convert(rows[4]))
    waiting, _ = envs.reset(options={"reset_mask": convert(np.array([False, True, False]))})
    np.testing.assert_array_equal(host(waiting)[1], start[1])
    np.testing.assert_array_equal(host(waiting)[2], host(observations)[2])
    with pytest.raises(ConfigError, match="reset_mask"):
        envs.step(convert(rows[4]))
    envs.reset(options={"reset_mask": convert(np.array([False, False, True]))})
    assert host(envs.step(convert(rows[4]))[3]).tolist() == [True, False, False]


def test_seeds(task: Task) -> None:
    """The same seed gives the same episodes, a reset without one gives others."""
    envs = make_vec(rom=task.kwargs["rom"], num_envs=8, max_steps=1, start_waits=15)

    def episodes(seed: int | None) -> list[list[int]]:
        envs.reset(seed=seed)
        return [envs.step(np.zeros(8, int))[0].sum((1, 2, 3)).tolist() for _ in range(4)]

    assert episodes(1) == episodes(1)
    first, second = episodes(1), episodes(None)
    again = episodes(1), episodes(None)
    assert (first, second) == again


def test_render(task: Task) -> None:
    levels = np.array([255, 153, 85, 0])
    for obs in ("shades", "packed", "full"):
        envs = make_vec(rom=task.kwargs["rom"], num_envs=2, obs=obs, max_steps=1, render_mode="rgb_array")
        envs.reset()
        final = envs.step(np.ones(2, int))[4]["final_obs"]
        pictures = envs.render()
        assert pictures is not None
        if obs != "packed":
            np.testing.assert_array_equal(pictures[0][::2, ::2, 0], levels[final[0][0]])
        assert pictures[1].shape == ((288, 320, 3) if obs == "full" else (144, 160, 3))


@pytest.mark.parametrize("io", ["numpy", "torch"])
def test_next_step_in_both_kinds(task: Task, io: str) -> None:
    """Tensors as arrays: the last observation, then the first with a reward of 0, whatever the action."""
    envs = make_vec(**task.kwargs, num_envs=2, max_steps=2, io=io, autoreset_mode="NextStep")
    start = host(envs.reset(seed=1)[0])
    convert = torch.from_numpy if io == "torch" else np.asarray
    rows = [envs.step(convert(row)) for row in random_actions(6, 2)]
    assert [host(row[3]).tolist() for row in rows] == [[False] * 2, [True] * 2, [False] * 2] * 2
    np.testing.assert_array_equal(host(rows[2][0]), start)
    assert host(rows[2][1]).tolist() == [0, 0] and (host(rows[1][1]) != 0).all()
    assert not np.array_equal(host(rows[1][0]), start)


def test_send_and_recv(task: Task) -> None:
    """As `step`, with the actions in any order of the envs."""
    plain, pool = (make_vec(**task.kwargs, num_envs=3, max_steps=4) for _ in range(2))
    plain.reset(seed=1)
    pool.async_reset(seed=1)
    for row in random_actions(6, 3):
        env_id = pool.recv()[4]["env_id"][[2, 0, 1]]
        pool.send(row[env_id], env_id)
        expected = plain.step(row)
    for part, other in zip(pool.recv()[:4], expected[:4], strict=True):
        np.testing.assert_array_equal(part, other)
    with pytest.raises(ConfigError, match="recv before send"):
        pool.recv()
    with pytest.raises(ActionError, match="each of the 3 envs once"):
        pool.send(np.zeros(2, int), np.array([0, 1]))


def test_a_window_for_people(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """The console's steps a second; once the window is closed the env goes on without it."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr(window, "why_no_window", lambda: "")
    shown, events = list[np.ndarray](), [None, Event(""), Event(QUIT)]
    now = [0.0]

    def event(_: Window, milliseconds: int) -> Event | None:
        now[0] += milliseconds / 3000
        return events.pop(0) if len(shown) == 3 else None

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    show = Window.show
    monkeypatch.setattr(Window, "show", lambda self, picture: (shown.append(picture), show(self, picture)))
    monkeypatch.setattr(Window, "event", event)
    envs = make_vec(**task.kwargs, num_envs=3, render_mode="human")
    envs.reset(seed=1)
    for row in random_actions(2, 3):
        envs.step(row)
    assert now[0] == pytest.approx(2 * 24 / 59.7275, abs=0.02)
    for row in random_actions(3, 3):
        envs.step(row)
    assert len(shown) == 3 and shown[0].shape == (145, 161, 3) and envs.render() is None
    envs.close()


def test_bad_input(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="'LastStep' is unknown: give one of 'NextStep', 'SameStep', 'Disabled'"):
        make_vec(**task.kwargs, autoreset_mode="LastStep")
    with pytest.raises(ConfigError, match="render mode 'ansi' is unknown"):
        make_vec(**task.kwargs, render_mode="ansi")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match=r"'human': no window can be opened here .*: give 'rgb_array'"):
        make_vec(**task.kwargs, render_mode="human")
    with pytest.raises(ConfigError, match="environment 'nonesuch' is unknown"):
        make_vec("nonesuch", **task.kwargs)
    with pytest.raises(ConfigError, match="not for a single env"):
        make(**task.kwargs, io="torch")
    envs = make_vec(**task.kwargs, num_envs=2)
    with pytest.raises(ConfigError, match="call reset first"):
        envs.step(np.zeros(2, int))
    envs.reset()
    with pytest.raises(ActionError, match=r"reset_mask must be a ndarray of bool with shape \(2,\)"):
        envs.reset(options={"reset_mask": np.zeros(3, bool)})
    with pytest.raises(ActionError, match="out of range"):
        envs.step(np.full(2, NUM_ACTIONS))
    envs.close()
    envs.close()


def test_a_grey_picture_is_gymnasium_s_image(task: Task) -> None:
    """Rows and columns, as AtariPreprocessing gives them: for its wrappers that stack; a stack of the env's own too."""
    options = {"rom": task.kwargs["rom"], "max_steps": 9}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(ID, **options, obs="grey")
        check_env(env.unwrapped, skip_render_check=True)
    assert env.observation_space == gymnasium.spaces.Box(0, 255, (84, 84), np.uint8)
    stacked = FrameStackObservation(env, 4)
    own = make(**options, obs="grey", stack_k=4)
    assert stacked.observation_space == own.observation_space and own.observation_space.shape == (4, 84, 84)
    np.testing.assert_array_equal(stacked.reset(seed=1)[0][-1], own.reset(seed=1)[0][-1])
    for action in random_actions(8, 1)[:, 0]:
        mine, theirs = own.step(action), stacked.step(action)
    np.testing.assert_array_equal(mine[0], theirs[0])
    envs, whole = make_vec(num_envs=2, **options, obs="grey", action_obs=2), make_vec(num_envs=2, **options, obs="full")
    assert envs.single_observation_space["picture"].shape == (84, 84)  # pyright: ignore[reportIndexIssue]
    pictures, screens = envs.reset(seed=1)[0]["picture"], whole.reset(seed=1)[0]
    for row in random_actions(9, 2):
        for picture, screen in zip(pictures, screens, strict=True):
            np.testing.assert_array_equal(picture, area_averaged(LEVELS[screen[0]], 84, 84))
        observations, *_, info = envs.step(row)
        pictures, screens = observations["picture"], whole.step(row)[0]
    assert observations in envs.observation_space and info["final_obs"][1] in envs.single_observation_space
    tensors = make_vec(num_envs=2, **options, obs="grey", io="torch")
    assert tensors.reset(seed=1)[0].shape == (2, 84, 84)


def test_gymnasium_resizes_it(task: Task) -> None:
    pytest.importorskip("cv2", reason="needs OpenCV: pip install opencv-python-headless")
    env = FrameStackObservation(ResizeObservation(make(rom=task.kwargs["rom"], obs="grey"), (42, 36)), 4)
    assert env.reset(seed=1)[0].shape == env.observation_space.shape == (4, 42, 36)


@pytest.mark.parametrize(
    ("options", "shape", "values"),
    [
        ({}, (1, 72, 80), {0, 85, 153, 255}),
        ({"obs": "full"}, (1, 144, 160), {0, 85, 153, 255}),
        ({"stack_k": 2}, (2, 72, 80), {0, 85, 153, 255}),
        ({"obs": "grey"}, (1, 84, 84), None),
        ({"obs": "grey_64x96", "stack_k": 3}, (3, 64, 96), None),
        ({"obs": "rgb", "model": "cgb"}, (3, 72, 80), None),
        ({"obs": "objects"}, (1, 40, 10), None),
        ({"action_obs": 2}, (1, 72, 80), {0, 85, 153, 255}),
        ({"obs": "grey", "action_obs": 2}, (1, 84, 84), None),
    ],
)
def test_stable_baselines3_stacks_channels(
    task: Task, options: dict[str, Any], shape: tuple[int, ...], values: set[int] | None
) -> None:
    """VecFrameStack finds them first, whatever is observed; the last observation of an episode is an image, too."""
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env", reason="pip install stable-baselines3")
    from gbxcule_puffer.integrations.sb3 import StableVecEnv

    rom = {"rom": task.kwargs["rom"], "max_steps": 3, "frames_per_step": 60, "release_after_frames": 8}
    plain, envs = (StableVecEnv(make_vec(num_envs=2, **rom, **options)) for _ in range(2))
    stacked = vec_env.VecFrameStack(envs, 4)

    def picture(observations: Any) -> Any:
        return observations["picture"] if "action_obs" in options else observations

    assert picture(plain.observation_space).shape == shape
    space = picture(stacked.observation_space)
    assert space == gymnasium.spaces.Box(0, 255, (4 * shape[0], *shape[1:]), np.uint8)
    for env in (plain, stacked):
        env.seed(1)
        env.reset()
    for step in range(3):
        first, second = (env.step(np.array([3, step])) for env in (plain, stacked))
        np.testing.assert_array_equal(picture(first[0]), picture(second[0])[:, -shape[0] :])
        assert all(one in picture(plain.observation_space) for one in picture(first[0]))
        assert values is None or set(np.unique(picture(first[0])).tolist()) <= values
    assert first[2].all()
    for info, other in zip(first[3], second[3], strict=True):
        last, stack = picture(info["terminal_observation"]), picture(other["terminal_observation"])
        assert last in picture(plain.observation_space) and stack in space
        np.testing.assert_array_equal(last, stack[-shape[0] :])


@pytest.mark.parametrize("obs", ["packed", "averaged", "rgb555", "tiles"])
def test_what_is_no_image_to_stable_baselines3(task: Task, obs: str) -> None:
    pytest.importorskip("stable_baselines3", reason="needs stable-baselines3: pip install stable-baselines3")
    from gbxcule_puffer.integrations.sb3 import StableVecEnv

    with pytest.raises(ConfigError, match=f"obs '{obs}' is not an image to stable-baselines3: give obs='grey'"):
        StableVecEnv(make_vec(rom=task.kwargs["rom"], obs=obs))


def test_stable_baselines3_runs_10_000_steps(task: Task) -> None:
    """PPO of stable-baselines3, unmodified: the episodes it counts are the env's, and its policy changes."""
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3: pip install stable-baselines3")
    from gbxcule_puffer.integrations.sb3 import StableVecEnv

    torch.set_num_threads(1)
    envs = StableVecEnv(make_vec(**task.kwargs, num_envs=16, max_steps=64))
    options = {"n_steps": 128, "batch_size": 512, "n_epochs": 1}
    model = sb3.PPO("CnnPolicy", envs, seed=1, device="cpu", **options)
    before = [weights.clone() for weights in model.policy.parameters()]
    model.learn(10_000)
    assert model.num_timesteps >= 10_000
    assert any((old != new).any() for old, new in zip(before, model.policy.parameters(), strict=True))
    episodes = list(model.ep_info_buffer or [])
    assert len(episodes) > 50
    assert all(0 < episode["l"] <= 64 for episode in episodes)


def test_a_game_of_a_folder_is_an_environment() -> None:
    env: Any = gymnasium.make("gbxcule_puffer.integrations.gym:GBxCuLE-v0", game="orchard", levels=2, max_steps=3)
    first, _ = env.reset(seed=1)
    assert first.shape == (1, 72, 80) and env.unwrapped.env.task.level.item() in (0, 1)
    assert [env.step(0)[3] for _ in range(3)] == [False, False, True]
