"""PufferLib 5's env beside GBxCuLEEnv on a GPU: 10,000 steps in CUDA graphs, bit for bit."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.games import load_game, make_game_env
from tests.integrations.pufferlib5.compare import compile_host, env_steps, first_difference, host_steps
from tests.support.envs import make_test_stages

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")]
HOMEWARD = Path(__file__).parents[3] / "roms" / "homeward.gb"
EXACT = ["--frames-per-step", "4", "--release-after-frames", "2", "--obs", "packed", "--stack-k", "2"]
EXACT += ["--start-waits", "3", "--sticky-actions", "0.25", "--max-steps", "50"]


def native(folder: Path, *flags: str) -> Path:
    """The program of host.cu with the env of `puffer native`."""
    import torch

    arch = "".join(map(str, torch.cuda.get_device_capability()))
    command = [sys.executable, "-m", "gbxcule_puffer", "native", "--to", str(folder), "--arch", arch]
    subprocess.run([*command, *flags], check=True)
    compile_host(folder, folder / "host")
    return folder / "host"


def test_10_000_steps_are_equal(tmp_path: Path, cuda_device: str) -> None:
    host = native(tmp_path, "homeward", "--num-envs", "64", *EXACT)
    found, printed = host_steps(host, 64, 10_000, 7)
    options = {"obs": "packed", "stack_k": 2, "start_waits": 3, "sticky_actions": 0.25, "max_steps": 50}
    options |= {"frames_per_step": 4, "release_after_frames": 2}
    env = GBxCuLEEnv(HOMEWARD, 64, cuda_device, io="torch", info_mode="none", **options)
    assert len(found.digests) == 10_001 and "episodes 12800" in printed
    assert first_difference(found, env_steps(env, 10_000, 7)) == ""


@pytest.mark.parametrize("num_envs", [1, 300, 4096])
def test_stages_are_equal(num_envs: int, tmp_path: Path, cuda_device: str) -> None:
    stages = make_test_stages(tmp_path)["stages"]
    host = native(tmp_path / "native", "homeward", "--stages", stages, "--max-steps", "64", "--num-envs", str(num_envs))
    found, _ = host_steps(host, num_envs, 200, 3)
    options = {"stages": stages, "max_steps": 64}
    env = GBxCuLEEnv(HOMEWARD, num_envs, cuda_device, io="torch", info_mode="none", **options)
    assert first_difference(found, env_steps(env, 200, 3)) == ""


@pytest.mark.parametrize("name", ["orchard", "storeroom"])
def test_terms_are_equal(name: str, tmp_path: Path, cuda_device: str) -> None:
    host = native(tmp_path, "--game", name, "--num-envs", "512", "--max-steps", "100")
    found, _ = host_steps(host, 512, 400, 5)
    options = {"io": "torch", "info_mode": "none", "max_steps": 100}
    env = make_game_env(load_game(name), GBxCuLEEnv, 512, cuda_device, **options)
    assert first_difference(found, env_steps(env, 400, 5)) == ""


@pytest.mark.parametrize(("num_envs", "steps"), [(16_384, 310), (131_072, 110)])
def test_it_is_as_fast(num_envs: int, steps: int, tmp_path: Path, cuda_device: str) -> None:
    """Within 3 % of the same launches from Python."""
    host = native(tmp_path, "homeward", "--num-envs", str(num_envs), "--obs", "packed")
    found, _ = host_steps(host, num_envs, steps, 7, timed=True)
    options = {"obs": "packed", "autotune": False}
    env = GBxCuLEEnv(HOMEWARD, num_envs, cuda_device, io="torch", info_mode="none", **options)
    python = env_steps(env, steps, 7, timed=True)
    assert first_difference(found, python) == ""
    assert found.sps > 0.97 * python.sps
