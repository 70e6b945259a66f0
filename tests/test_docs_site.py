"""The documentation as a site: it builds without a warning, and the notebook prints what it shows."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
needs_mkdocs = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("material", "mkdocstrings", "mkdocs_jupyter")),
    reason="needs the documentation's tools: pip install -e .[docs]",
)


def build(config: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(out)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@needs_mkdocs
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """A broken link, a page that the navigation lacks and a public name without a docstring are warnings."""
    result = build(ROOT / "mkdocs.yml", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Thousands of Game Boys" in (tmp_path / "index.html").read_text()
    assert "gbxcule_puffer.emulator.emulator.Emulator.step" in (tmp_path / "reference.html").read_text()


@pytest.mark.kernel
def test_the_notebook_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in json.loads((ROOT / "docs/quickstart.ipynb").read_text())["cells"] if "outputs" in cell]
    shown = 0
    for cell in cells:
        source = "".join(cell["source"])
        body = ast.parse(source).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        assert last is None or isinstance(last, ast.Expr)
        exec(compile(ast.Module(body, []), "quickstart.ipynb", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "quickstart.ipynb", "eval"), names) if last else None
        for output in cell["outputs"]:
            if output["output_type"] == "execute_result" and "image/png" not in output["data"]:
                text = "".join(output["data"]["text/plain"])
                assert "".join(repr(value).split()) == "".join(text.split())
                shown += 1
    assert shown >= 3
    assert Path("runs/quickstart/agent.gif").stat().st_size > 1000
