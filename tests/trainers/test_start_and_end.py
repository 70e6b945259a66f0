"""What a training's process spends on its start and its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("script", ["a2c_streaming", "dqn_nstep", "ppo_lite", "pqn"])
def test_a_training_starts_and_ends_without_what_it_does_not_need(script: str, tmp_path: Path) -> None:
    """torch._dynamo takes a second, libcst, where the kernels' source has been generated before, a quarter, and the
    garbage collections at the end, of all that was imported, another second."""
    code = f"""
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count() > 100_000))  # after all that are registered later
from cleanrl_style import {script}
assert {script}.main(["--env", "toy", "--device", "cpu", "--smoke", "--run-dir", {str(tmp_path / "run")!r}]) == 0
print(sorted({{"torch._dynamo", "torch._inductor", "sympy", "libcst", "matplotlib"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["[]", "True"]
