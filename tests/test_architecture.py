"""The shape of the code: imports go one way, files are short, importing is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import HERE, QUICK, SLOW, is_slow

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "gbxcule_puffer"
MAX_LINES = 400
# The rooms from the ground up: a file imports from its own room, those before it, and the files beside all rooms.
ROOMS = [
    {"closing", "errors", "commandline", "device", "files", "kernel_objects", "layout", "lazily", "provenance"}
    | {"pictures", "progress", "shipped_kernels"},
    {"emulator"},
    {"tasks"},
    {"env", "toy"},
    {"baselines"},
    {"games", "scan"},
    {"suite"},
    {"registry"},
    {"native"},
    {"trainers", "integrations"},
    {"apps", "cli", "__main__"},
]
# Of the emulator, without any of PURE.
TABLES = {"cartridge", "cpu.disassembler", "hardware", "isa", "mappers", "registers", "schedule"}
# Parameters whose type a signature has to say, and those that it cannot, with the reason.
PARTS = {"env", "envs", "emulator", "model", "network", "policy", "task", "pool", "runner", "launches", "kernel"}
UNTYPED: dict[str, str] = {}
UNTYPED_ROOMS = {"apps"}
CODE = ("gbxcule_puffer", "cleanrl_style", "baselines")
MOST_UNTYPED = 14  # signatures with Any alone, without *args and **options handed on
PURE = {"warp", "torch", "pyboy", "pufferlib", "gymnasium"}
TRAINER_IMPORTS = {"gbxcule_puffer", "torch", "numpy", "tyro", "tensorboard"} | set(sys.stdlib_module_names)


def rank(room: str) -> int:
    """How high a room stands."""
    for number, rooms in enumerate(ROOMS):
        if room in rooms:
            return number
    pytest.fail(f"gbxcule_puffer/{room} is no room: put the file into one")


@cache
def imports(path: Path) -> list[str]:
    """Dotted names of everything a file imports, also inside functions."""
    found = list[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def name_of(path: Path) -> str:
    """The dotted name of a file below the package, of a folder for its __init__.py."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    """Every file of the package but its own __init__.py, by name."""
    return {name_of(path): path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"}


def imported_modules(path: Path, known: Iterable[str]) -> set[str]:
    """The modules of the package that a file imports: `from a.b import c` is a.b.c where that is a module, else a.b."""
    found = set()
    for name in imports(path):
        rest = name.removeprefix("gbxcule_puffer.")
        if rest != name:
            found |= {part for part in (rest, rest.rpartition(".")[0]) if part in known and part != name_of(path)}
    longest = {name for name in found if not any(other.startswith(f"{name}.") for other in found)}
    return longest


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Names that lead back to the first of them; empty where the graph has no circle."""
    done: set[str] = set()

    def follow(name: str, above: list[str]) -> list[str]:
        if name in above:
            return above[above.index(name) :]
        if name not in done:
            for other in sorted(graph.get(name, ())):
                if found := follow(other, [*above, name]):
                    return found
            done.add(name)
        return []

    return next((found for name in graph if (found := follow(name, []))), [])


@pytest.mark.parametrize("name", modules())
def test_no_import_goes_up(name: str) -> None:
    path, room = modules()[name], name.split(".")[0]
    for other in imports(path):
        root, *rest = other.split(".")
        if root == "gbxcule_puffer" and not rest[0].startswith("__version"):
            assert rank(rest[0]) <= rank(room), f"{name} imports {other}, which stands above it"
        if name.removeprefix("emulator.") in TABLES:
            assert root not in PURE, f"{name} is a table and imports {other}"


def test_no_circle_among_files() -> None:
    known = modules()
    rooms = {name for name, path in known.items() if path.stem == "__init__"}  # doors: they only hand on
    graph = {name: imported_modules(path, known) for name, path in known.items() if name not in rooms}
    assert circle(graph) == []


def test_no_circle_among_rooms() -> None:
    """Rooms inside of one room: hw, cpu, gpu and saves of the emulator, and so on."""
    known = modules()
    for parent in {name.rpartition(".")[0] for name, path in known.items() if path.stem == "__init__"} - {""}:
        inner = {name for name, path in known.items() if path.stem == "__init__" and name.startswith(f"{parent}.")}
        graph: dict[str, set[str]] = {name: set() for name in inner}
        for name, path in known.items():
            own = next((room for room in inner if name.startswith(f"{room}.")), "")
            for other in imported_modules(path, known) if own else ():
                graph[own] |= {room for room in inner if other.startswith(f"{room}.") and room != own}
        nested = {room: {o for o in others if not o.startswith(f"{room}.")} for room, others in graph.items()}
        assert circle(nested) == []


@pytest.mark.parametrize("folder", ["gbxcule_puffer", "cleanrl_style", "benchmarks"])
def test_nothing_imports_the_tests(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        assert "tests" not in {name.split(".")[0] for name in imports(path)}, path


@pytest.mark.parametrize("path", sorted((ROOT / "cleanrl_style").glob("*.py")), ids=lambda path: path.name)
def test_trainers_import_little(path: Path) -> None:
    assert {name.split(".")[0] for name in imports(path)} <= TRAINER_IMPORTS


def test_files_are_short() -> None:
    folders = ("gbxcule_puffer", "cleanrl_style", "benchmarks", "roms", "tests")
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
    }
    assert lengths
    assert {path: length for path, length in lengths.items() if length > MAX_LINES} == {}


def test_signatures_name_the_parts_of_a_step() -> None:
    """A Protocol or a class, so that an editor can follow a step from the trainer to the kernel's launch."""
    package = ROOT / "gbxcule_puffer"
    paths = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in UNTYPED_ROOMS]
    found = {f"{path.relative_to(package)}:{name}" for path in paths for name in untyped(ast.parse(path.read_text()))}
    assert found == UNTYPED.keys(), "name a type, or the reason why none can stand there"


def test_few_signatures_say_any() -> None:
    """A type, a Protocol, a TypeVar, or object for what is checked, says more."""
    found = []
    for path in (each for folder in CODE for each in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                several = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                for hint in (*(each.annotation for each in several), node.returns):
                    if isinstance(hint, ast.Name) and hint.id == "Any":
                        found.append(f"{path.relative_to(ROOT)}:{node.name}")
    assert len(found) <= MOST_UNTYPED, found


def untyped(tree: ast.AST) -> Iterator[str]:
    """'function:parameter' of the parameters in PARTS that are annotated with Any."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                if each.arg in PARTS and each.annotation is not None and ast.unparse(each.annotation) == "Any":
                    yield f"{node.name}:{each.arg}"


@pytest.mark.parametrize("module", ["trainers.wall.process", "trainers.flags", "env.options", "commandline"])
def test_importing_is_cheap(module: str) -> None:
    """What a command line needs before it runs anything is imported without what takes seconds."""
    code = f"import gbxcule_puffer.{module}, sys; print(sorted({PURE!r} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_tests_that_are_left_out_as_slow_are_there() -> None:
    """One that was moved would be quick without a word."""
    assert [name for name in SLOW if not (HERE / name).exists()] == []
    quick = [HERE / "trainers" / f"test_{name}.py" for name in QUICK]
    assert all(path.exists() and not is_slow(path) for path in quick) and not is_slow(Path(__file__))
    assert all(is_slow(HERE / folder / "test_x.py") for folder in ("trainers", "fuzz", "suite"))
