"""What a training's process spends on its start and its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_training_starts_and_ends_without_what_it_does_not_need(tmp_path: Path) -> None:
    """libcst, where the kernels' source has been generated before, takes a quarter of a second, and the garbage
    collections at the end, of all that was imported, a second."""
    code = f"""
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count() > 100_000))  # after all that are registered later
from cleanrl_style import ppo_lite
assert ppo_lite.main(["--env", "toy", "--device", "cpu", "--smoke", "--run-dir", {str(tmp_path / "run")!r}]) == 0
print(sorted({{"libcst", "matplotlib"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["[]", "True"]
