"""The folder of `puffer native`: equal each time, compiled by gcc, g++ and nvcc, refused if of two versions."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gbxcule_puffer import cli
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import MEASURED
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.native.export import SOURCES, digest, modules_of, write
from gbxcule_puffer.native.launches import evenly
from gbxcule_puffer.native.record import Record, RecordedEnv, record, shape_for
from tests.native.library import Arrays, Library, build, need
from tests.support.pages import blocks

ROOT = Path(__file__).parents[2]
HOMEWARD = ROOT / "roms" / "homeward.gb"
pytestmark = pytest.mark.kernel


def made(**options: Any) -> Record:
    return record(lambda number: RecordedEnv(HOMEWARD, number, **options), shape_for(64), lanes=1)


@pytest.fixture(scope="module")
def homeward() -> Record:
    return made(obs="packed", max_steps=3)


@pytest.fixture
def library(homeward: Record, tmp_path: Path) -> Library:
    return Library(homeward, tmp_path, 4, seed=1)


def texts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_two_exports_are_equal(homeward: Record, tmp_path: Path) -> None:
    cubins = {(name, 90): name.encode() for name in modules_of(homeward)}
    write(homeward, tmp_path / "first", cubins)
    write(made(obs="packed", max_steps=3), tmp_path / "second", cubins)
    write(made(obs="packed", max_steps=4), tmp_path / "other", cubins)
    assert texts(tmp_path / "first") == texts(tmp_path / "second")
    assert texts(tmp_path / "first")["game.h"] != texts(tmp_path / "other")["game.h"]


def test_a_state_goes_on_equally(library: Library) -> None:
    actions = np.random.default_rng(0).integers(0, 8, (8, 4))
    for row in actions[:4]:
        library.step(row)
    state, seen = library.save(), []
    for _ in range(2):
        assert library.load(state) == 0
        for row in actions[4:]:
            library.step(row)
        seen.append((library.observations.copy(), library.rewards.copy(), library.terminals.copy(), library.save()))
    assert all(np.array_equal(first, second) for first, second in zip(*seen, strict=True))
    assert library.load(state[:-1]) != 0 and b"bytes" in library.library.gbx_message()
    library.close()


def test_actions_out_of_range_are_counted(library: Library) -> None:
    library.step(np.array([7, 8, -1, 2.5]))
    assert library.logs[:, 5].tolist() == [0, 1, 1, 1]
    library.close()


def damaged(folder: Path) -> None:
    content = bytearray((folder / "game.gbx").read_bytes())
    content[-5] ^= 1
    (folder / "game.gbx").write_bytes(content)


def of_another_kernel(folder: Path) -> None:
    (folder / "step.sm_90.cubin").write_bytes(b"other")


def without_kernels(folder: Path) -> None:
    (folder / "step.sm_90.cubin").unlink()


def of_another_version(folder: Path) -> None:
    (folder / "game.gbx").write_bytes(b"gbxcule native 0" + (folder / "game.gbx").read_bytes()[16:])


REFUSED: dict[Callable[[Path], None], str] = {
    damaged: "game.gbx is damaged",
    of_another_kernel: "is not of this game.gbx",
    without_kernels: "cannot be read",
    of_another_version: "is not of this version",
}


@pytest.mark.parametrize("change", REFUSED)
def test_mixed_folders_are_refused(library: Library, tmp_path: Path, change: Callable[[Path], None]) -> None:
    library.close()
    change(tmp_path)
    assert REFUSED[change] in refusal(library.library, tmp_path)


def test_a_header_of_another_folder_is_refused(library: Library, tmp_path: Path) -> None:
    library.close()
    assert "compile again" in refusal(library.library, tmp_path, digest=1)
    assert "give 1 to" in refusal(library.library, tmp_path, num_envs=0)


def test_a_gpu_without_kernels_is_refused(homeward: Record, tmp_path: Path) -> None:
    write(homeward, tmp_path, {(name, 100): b"?" for name in modules_of(homeward)})
    library, _ = build(tmp_path)
    assert "write it with --arch 90" in refusal(library, tmp_path)


def refusal(library: ctypes.CDLL, folder: Path, digest: int = 0, num_envs: int = 4) -> str:
    env = ctypes.c_void_p(1)
    arguments = ctypes.byref(env), str(folder).encode(), ctypes.c_uint64(digest), num_envs, ctypes.byref(Arrays())
    assert library.gbx_create(*arguments) != 0
    return library.gbx_message().decode()


PYTHON = {
    "reward_scale": {"reward_scale": 2.0},
    "visit_bonus": {"visit_bonus": 1.0},
    "obs 'tiles'": {"obs": "tiles"},
    "beside pictures": {"action_obs": 1},
    "curriculum": {"curriculum": "by_env"},
    "task": {"task": "gbxcule_puffer.suite.homeward:Homeward"},
}


@pytest.mark.parametrize("words", PYTHON)
def test_what_needs_python_is_refused(words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        made(**PYTHON[words])


WRONG = {
    "--arch 9x": "compute capabilities with commas",
    "--arch 71": "architecture 71 is unknown",
    "--arch 90 --to FILE": "not a folder",
    "--arch 90 --blocked-actions JUMP": "blocked_actions has 'JUMP'",
}


@pytest.mark.parametrize("flags", WRONG)
def test_bad_input_ends_in_one_line(flags: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    words = ["native", "homeward", "--to", str(tmp_path / "new"), *flags.split()]
    words = [str(tmp_path / "file") if word == "FILE" else word for word in words]
    assert cli.main(words) == 2
    error = capsys.readouterr().err
    assert WRONG[flags] in error and error.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_numbers_that_do_not_grow_evenly_are_refused() -> None:
    assert evenly((32, 64, 160), (35, 67, 163)) == (3, 1)
    with pytest.raises(ConfigError, match="evenly"):
        evenly((32, 64, 160), (1, 1, 2))


def test_every_shape_that_is_measured_can_be_launched() -> None:
    """gbxcule.c knows no head."""
    assert all(shape.head == 0 for shape in MEASURED.values())


def test_the_digest_is_fnv_1a() -> None:
    assert digest(b"") == 0xCBF29CE484222325 and digest(b"a") == 0xAF63DC4C8601EC8C


@pytest.mark.parametrize("compiler", ["gcc -std=c11 -pedantic -x c", "g++ -std=c++17 -x c++"])
def test_the_header_compiles(compiler: str, homeward: Record, tmp_path: Path) -> None:
    need(compiler.split()[0])
    write(homeward, tmp_path, {})
    sources = ROOT / "gbxcule_puffer" / "native"
    (tmp_path / "program.c").write_text('#include "gbxcule.h"\n#include "game.h"\nint sizes[] = GBX_ACTION_SIZES;\n')
    flags = ["-Wall", "-Wextra", "-Werror", "-c", "-o", str(tmp_path / "program.o"), "-I", str(sources)]
    for source in (tmp_path / "program.c", sources / "gbxcule.c"):
        subprocess.run([*compiler.split(), *flags, str(source)], check=True)


def test_the_pages_program_compiles(homeward: Record, tmp_path: Path) -> None:
    """The program of docs/native.md, with the command beside it."""
    need("gcc")
    (program,) = (block.text for block in blocks(ROOT / "docs" / "native.md") if block.language == "c")
    (tmp_path / "play.c").write_text(program)
    folder = tmp_path / "homeward-native"
    write(homeward, folder, {})
    for source in SOURCES:
        shutil.copy(source, folder)
    (command,) = re.findall(r"^gcc .*", (ROOT / "docs" / "native.md").read_text(), re.M)
    subprocess.run([*command.split(), "-Wall", "-Wextra", "-Werror"], cwd=tmp_path, check=True)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_pufferlibs_env_compiles(homeward: Record, tmp_path: Path) -> None:
    from gbxcule_puffer.integrations import pufferlib5
    from tests.integrations.pufferlib5.compare import HERE, compile_host

    write(homeward, tmp_path, {})
    for source in (*SOURCES, *pufferlib5.SOURCES):
        shutil.copy(source, tmp_path)
    compile_host(tmp_path, tmp_path / "host", "sm_90")
    assert subprocess.run([tmp_path / "host"]).returncode == 2  # without arguments
    # With pictures that puf_render does not print, such as luma:
    header = (tmp_path / "game.h").read_text()
    (tmp_path / "game.h").write_text(re.sub(r"(GBX_PIXELS) \d+", r"\1 0", header))
    flags = ["-Werror", "all-warnings", "-I", str(HERE), "-c", "-o", str(tmp_path / "gbxcule.o")]
    subprocess.run(["nvcc", *flags, str(tmp_path / "gbxcule.cu")], check=True)
