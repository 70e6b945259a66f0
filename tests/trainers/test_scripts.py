"""What holds of every script in cleanrl_style/, also of one that is added."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "cleanrl_style").glob("*.py"))
ORDER = """
import os, runpy, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print(os.environ.get("OMP_WAIT_POLICY"))
            raise SystemExit
sys.meta_path.insert(0, Watch())
runpy.run_path(sys.argv[1])
"""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_torch_s_threads_wait_without_spinning(script: Path) -> None:
    """OpenMP reads the variable while torch is imported, which therefore comes after the package."""
    env = {"PATH": "/usr/bin", "PYTHONPATH": str(ROOT)}
    result = subprocess.run([sys.executable, "-c", ORDER, str(script)], env=env, capture_output=True, text=True)
    assert result.stdout == "PASSIVE\n", result.stderr


@pytest.mark.parametrize("script", [path for path in SCRIPTS if path.stem != "evaluate"], ids=lambda path: path.name)
def test_train_fits_on_a_screen(script: Path) -> None:
    functions = {node.name: node for node in ast.parse(script.read_text()).body if isinstance(node, ast.FunctionDef)}
    assert {"train", "main", "load_policy"} <= functions.keys()
    train = functions["train"]
    assert (train.end_lineno or 0) - train.lineno < 60
