"""A wheel is complete: built from the source archive, installed elsewhere, it trains, films and verifies by itself."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gbxcule_puffer import __version__

pytestmark = pytest.mark.kernel

ROOT = Path(__file__).parents[1]
# As a user would, in a folder of his own; one process, as importing torch takes longest.
SESSION = """
import sys
import gbxcule_puffer
from gbxcule_puffer import cli, env_creator
assert gbxcule_puffer.__file__.startswith(sys.argv[1]), gbxcule_puffer.__file__
for arguments in (
    "copy ppo",
    "copy homeward",
    "stage --stage roms/homeward/stages.json --out made",
    "train ppo --smoke --device cpu --rom roms/homeward.gb --symbols roms/homeward.sym --run-dir runs/errand"
    " --task roms/homeward/errand.py:Errand --start-state made/bring_parcel/start.state",
    "train a2c --smoke --device cpu --run-dir runs/first",
    "eval runs/first --episodes 2 --num-envs 2 --policy greedy",
    "record homeward --policy runs/first/checkpoint.pt --out film.gif --steps 3",
    "verify homeward --steps 2",
):
    assert cli.main(arguments.split()) == 0, arguments
env_creator("pyboy_puffer_single")("homeward", num_envs=1).close()
"""
# As pip installs it.
SCRIPT = """
import sys
from gbxcule_puffer.cli import main
if __name__ == "__main__":
    sys.exit(main())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `python -m build` makes by way of the source archive."""
    if importlib.util.find_spec("build") is None:
        pytest.skip("needs build: pip install build")
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the wheel is installed; what one test has imported is compiled for the next one."""
    folder = tmp_path_factory.mktemp("installed") / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_wheel_has_everything(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = f"gbxcule_puffer-{__version__}.dist-info"
        metadata, entries = (archive.read(f"{info}/{name}").decode() for name in ("METADATA", "entry_points.txt"))
    assert {name.split("/")[0] for name in names} == {"gbxcule_puffer", info}
    inside = {"py.typed", "roms/homeward.gb", "roms/homeward/stages.json", "integrations/pufferl/gbxcule.ini"}
    inside |= {"cleanrl_style/ppo_lite.py", "baselines/pyboy_machine.py", "roms/micro/alu_loop.gb"}
    inside |= {f"roms/{name}/game.toml" for name in ("gateward", "homeward", "orchard", "storeroom")}
    agents = "homeward", "orchard", "storeroom"
    inside |= {f"roms/{name}/agent.{suffix}" for name in agents for suffix in ("json", "safetensors")}
    arena = ROOT / "roms/arena"
    inside |= {f"roms/arena/{path.relative_to(arena).as_posix()}" for path in arena.glob("*/*") if path.is_file()}
    assert "roms/arena/2048/LICENSE.txt" in inside and wheel.stat().st_size < 10e6
    assert {f"gbxcule_puffer/{name}" for name in inside} <= set(names)
    kinds = (".py", ".html", ".js", ".css", ".svg", ".ini")
    files = [path for path in (ROOT / "gbxcule_puffer").rglob("*") if path.suffix in kinds]
    ours = {path.relative_to(ROOT).as_posix() for path in files}
    assert ours <= set(names)
    assert "puffer = gbxcule_puffer.cli:main" in entries and "gbxcule-puffer = gbxcule_puffer.cli:main" in entries
    assert "Description-Content-Type: text/markdown" in metadata and "# gbxcule-puffer" in metadata
    assert "License-Expression: MIT" in metadata and "Provides-Extra: record" in metadata


def test_wheel_is_used_outside_of_the_clone(site: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    result = subprocess.run(
        [sys.executable, "-c", SESSION, str(site)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert {path.name for path in folder.iterdir()} == {"ppo_lite.py", "runs", "film.gif", "roms", "made"}
    assert (folder / "ppo_lite.py").read_text() == (ROOT / "cleanrl_style/ppo_lite.py").read_text()
    assert '"git_sha": "unknown"' in (folder / "runs/first/manifest.json").read_text()


def test_no_process_takes_modules_from_the_current_folder(site: Path, tmp_path: Path) -> None:
    """In a clone, whose modules say so when they are imported, the README's own benchmark runs with what is
    installed: its worker processes, too."""
    clone, taken = tmp_path / "clone", tmp_path / "taken"
    shutil.copytree(ROOT / "gbxcule_puffer", clone / "gbxcule_puffer", ignore=shutil.ignore_patterns("__pycache__"))
    (clone / "gbxcule_puffer/__init__.py").write_text(f"import pathlib\npathlib.Path({str(taken)!r}).touch()\n")
    (tmp_path / "puffer").write_text(SCRIPT)
    words = "bench --vs pyboy_puffer_vec --warmup 2 --steps 4 --repeat 1 --num-envs 2 --vs-num-envs 2 --device cpu"
    result = subprocess.run(
        [sys.executable, str(tmp_path / "puffer"), *words.split(), "--out", str(tmp_path / "out")],
        cwd=clone,
        env=os.environ | {"PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / "out/records.json").exists() and not taken.exists()


def test_version_of_the_citation() -> None:
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
