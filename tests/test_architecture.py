"""The shape of the code: imports go to lower layers only, files stay short, importing the package stays cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "gbxcule_puffer"
MAX_LINES = 400
# A file or folder imports from its own layer and those before it. A new file gets its place here.
LAYERS = [
    {"errors", "hardware", "cartridge", "isa", "disassembler", "actions"},
    {"device", "state", "snapshot", "pyboy_layout", "pyboy_state", "state_files"},
    {"hw", "ops"},
    {"codegen"},
    {"emulator", "lane_order"},
    {
        "launch",
        "randomness",
        "observations",
        "buffers",
        "episode_stats",
        "pool",
        "epilog",
        "ram_watch",
        "traces",
        "screenshot",
    },
    {"goals", "stages", "stage_list", "quest", "progress", "action_input", "toy"},
    {"task", "scoring", "starts", "exploration", "incentives", "archive", "curriculum", "episodes", "env"},
    {"calibrate", "session", "play", "play_terminal", "play_window"},
    {"policies", "gym", "sb3"},
    {"trainers"},
    # The report is of codegen by its subject; it compiles every kernel, the pool's too.
    {
        "verify",
        "verify_bundle",
        "record",
        "film",
        "pufferl",
        "bench",
        "commands",
        "cli",
        "__main__",
        "codegen/report",
    },
]
PURE = {"warp", "torch", "pyboy", "pufferlib", "gymnasium"}  # what the first layer does without
TRAINER_IMPORTS = {"gbxcule_puffer", "torch", "numpy", "tyro", "tensorboard"} | set(sys.stdlib_module_names)


def layer_of(name: str, *inner: str) -> int:
    for number, names in enumerate(LAYERS):
        if "/".join([name, *inner]) in names:
            return number
    if inner:
        return layer_of(name)
    pytest.fail(f"gbxcule_puffer/{name} has no layer: give it one in {Path(__file__).name}")


def imports(path: Path) -> Iterator[str]:
    """Dotted names of everything a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_to_lower_layers(path: Path) -> None:
    own = layer_of(*path.relative_to(PACKAGE).with_suffix("").parts)
    for name in imports(path):
        root, *rest = name.split(".")
        if own == 0:
            assert root not in PURE, f"{path.name} is of the first layer and imports {name}"
        if root == "gbxcule_puffer" and not rest[0].startswith("__") and rest != ["env_creator"]:
            assert layer_of(*rest[:2]) <= own, f"{path.name} imports {name}, which is of a higher layer"


@pytest.mark.parametrize("path", sorted((ROOT / "cleanrl_style").glob("*.py")), ids=lambda path: path.name)
def test_trainers_import_little(path: Path) -> None:
    assert {name.split(".")[0] for name in imports(path)} <= TRAINER_IMPORTS


def test_files_are_short() -> None:
    folders = ("gbxcule_puffer", "cleanrl_style", "baselines", "benchmarks", "roms", "tests")
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
    }
    assert lengths
    assert {path: length for path, length in lengths.items() if length > MAX_LINES} == {}


def test_importing_the_package_is_cheap() -> None:
    code = f"import gbxcule_puffer, sys; print(sorted({PURE!r} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
