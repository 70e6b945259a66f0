"""PuffeRL and Gymnasium on a GPU: observations never leave it, and are those that the NumPy buffers get."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch

from gbxcule_puffer.integrations.pufferl import has_trainer
from gbxcule_puffer.integrations.pufferl.config import settle
from gbxcule_puffer.integrations.pufferl.env import make_env
from gbxcule_puffer.integrations.pufferl.policies import PixelCNN
from tests.support.envs import Task, host, make_test_task, random_actions

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def task(cuda_device: str, tmp_path_factory: pytest.TempPathFactory) -> Task:
    return make_test_task(tmp_path_factory.mktemp("stage"), device=cuda_device)


def test_observations_stay_on_the_gpu(task: Task, cuda_device: str) -> None:
    """What PuffeRL receives are the env's own tensors, and the same numbers as in the NumPy buffers."""
    options = {**task.kwargs, "num_envs": 64, "max_steps": 8, "device": cuda_device}
    env, reference = make_env(**options, io="torch"), make_env(**options, io="numpy")
    env.async_reset(1)
    reference.async_reset(1)
    policy = PixelCNN(env).to(cuda_device)
    for row in random_actions(20, 64):
        observations, *others, masks = env.recv()
        expected, *rest, _ = reference.recv()
        assert observations.device == torch.device(cuda_device)
        assert observations.data_ptr() == env.observations.data_ptr()
        assert isinstance(masks, np.ndarray), "PuffeRL counts them each step, on the host"
        np.testing.assert_array_equal(host(observations), host(expected))
        for part, other in zip(others[:3], rest[:3], strict=True):
            np.testing.assert_array_equal(host(part), host(other))
        assert policy(observations)[0].device == observations.device
        env.send(row)
        reference.send(row)


def test_each_rank_takes_its_gpu(cuda_device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    last = torch.cuda.device_count() - 1
    monkeypatch.setenv("LOCAL_RANK", str(last))
    current = torch.cuda.current_device()
    args = {
        "train": {
            "device": "",
            "total_timesteps": "auto",
            "minibatch_size": "auto",
            "bptt_horizon": 32,
            "data_dir": "x",
        },
        "env": {"device": "", "num_envs": "auto"},
        "vec": {"backend": "PufferEnv", "num_envs": 1},
        "rnn_name": "",
        "load_model_path": None,
    }
    try:
        settle(args, "train")
        assert torch.cuda.current_device() == last
        assert torch.zeros(1, device=args["train"]["device"]).device.index == last
        assert make_env(num_envs=4, device=args["env"]["device"]).device.index == last
    finally:
        torch.cuda.set_device(current)


@pytest.mark.skipif(not has_trainer(), reason="only pufferlib-core is installed")
def test_pufferl_trains(cuda_device: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gbxcule_puffer import cli

    monkeypatch.chdir(tmp_path)
    arguments = ["--env.num-envs", "256", "--train.total-timesteps", "20000", "--train.minibatch-size", "4096"]
    assert cli.main(["train", "gbxcule", *arguments]) == 0
    assert len(list(tmp_path.glob("runs/pufferl/*.pt"))) == 1


@pytest.mark.skipif(not hasattr(gymnasium.vector, "AutoresetMode"), reason="needs gymnasium 1.1 or newer")
def test_gymnasium_tensors(task: Task, cuda_device: str) -> None:
    from gbxcule_puffer.integrations.gym import make_vec

    options = {**task.kwargs, "num_envs": 64, "max_steps": 8, "device": cuda_device}
    envs, reference = make_vec(**options, io="torch"), make_vec(**options)
    assert envs.reset(seed=1)[0].device == torch.device(cuda_device)
    reference.reset(seed=1)
    for row in random_actions(20, 64):
        *parts, info = envs.step(torch.from_numpy(row).to(cuda_device))
        *others, expected = reference.step(row)
        for part, other in zip(parts, others, strict=True):
            assert part.device == torch.device(cuda_device)
            np.testing.assert_array_equal(host(part), other)
        for index in np.flatnonzero(host(info["_final_obs"])):
            np.testing.assert_array_equal(host(info["final_obs"][index]), expected["final_obs"][index])
