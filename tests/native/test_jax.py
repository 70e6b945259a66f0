"""docs/jax_steps.py: JAX's arrays are the env's memory, and the steps are those of NumPy."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.env import GBxCuLEEnv

EXAMPLE = Path(__file__).parents[2] / "docs" / "jax_steps.py"
NUM_ENVS = 4
jax: Any = pytest.importorskip("jax", reason="JAX is not installed")
pytestmark = pytest.mark.kernel


def example() -> Any:
    """The module docs/jax_steps.py."""
    spec = importlib.util.spec_from_file_location("jax_steps", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_nothing_is_copied_and_steps_are_numpys(device: str) -> None:
    if device == "cuda" and jax.default_backend() != "gpu":
        pytest.skip("this JAX has no CUDA")
    env = example().JaxEnv("homeward", NUM_ENVS, device, max_steps=5)
    plain = GBxCuLEEnv("homeward", NUM_ENVS, device, max_steps=5)
    found, expected, ends = (env.reset(1),), plain.reset(1)[:1], 0
    generator = np.random.default_rng(0)
    for _ in range(12):
        for array, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(array), wanted)
        actions = generator.integers(0, 8, NUM_ENVS, dtype=np.int32)
        given = jax.device_put(actions, env.device)
        assert torch.from_dlpack(jax.device_put(given, env.device)).data_ptr() == given.unsafe_buffer_pointer()
        found, expected = env.step(given), plain.step(actions)[:4]
        ends += int(expected[3].sum())
    own = env.env.observations, env.env.rewards, env.env.terminals, env.env.truncations
    assert [array.unsafe_buffer_pointer() for array in found] == [tensor.data_ptr() for tensor in own]
    assert ends == 2 * NUM_ENVS
    plain.close()
    env.env.close()


def test_arrays_of_another_device_follow_the_env() -> None:
    """JAX's default device need not be the env's; here each is one of two that JAX sees on a CPU."""
    code = f"import sys; sys.path.insert(0, {str(EXAMPLE.parent)!r}); import jax, jax_steps\n"
    code += (
        "jax.config.update('jax_default_device', jax.devices()[1]); jax_steps.main(['--num-envs', '2', '--steps', '2'])"
    )
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "PYTHONPATH": str(EXAMPLE.parents[1])}
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, env={**os.environ, **flags}, capture_output=True, text=True)
    assert "2 Game Boys on cpu" in result.stdout, result.stderr


def test_a_policy_in_jax_plays(capsys: pytest.CaptureFixture[str]) -> None:
    example().main(["--num-envs", "4", "--steps", "5"])
    assert "4 Game Boys on cpu" in capsys.readouterr().out
