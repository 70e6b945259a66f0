"""Memory as the container limits it, and one user at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from gbxcule_puffer import device
from gbxcule_puffer.device import UNLIMITED, OneUser, free_in_groups, room_for
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.errors import ActionError, ConfigError, DeviceError
from gbxcule_puffer.layout import child_environment

ROM = Path(__file__).parents[1] / "roms" / "homeward.gb"
GIB = 2**30


def group(folder: Path, limit: int | str, used: int, version: int, inactive: int = 0) -> None:
    names = ("memory.max", "memory.current", "inactive_file")
    if version == 1:
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\n{names[2]} {inactive}\n")


@pytest.mark.parametrize(("version", "line"), [(1, "4:cpu,memory:/a/b"), (2, "0::/a/b")])
def test_the_tightest_control_group_counts(version: int, line: str, tmp_path: Path) -> None:
    membership, root = tmp_path / "cgroup", tmp_path / "fs"
    membership.write_text(f"9:pids:/x\n{line}\n")
    top = root / "memory" if version == 1 else root
    assert free_in_groups(membership, root) == UNLIMITED, "no group is to be seen"
    group(top, 9 * GIB, 2 * GIB, version)
    assert free_in_groups(membership, root) == 7 * GIB
    group(top / "a" / "b", 4 * GIB, 3 * GIB, version, inactive=GIB)
    assert free_in_groups(membership, root) == 2 * GIB, "the page cache is given up"
    if version == 2:
        group(top / "a", "max", 3 * GIB, version)
        assert free_in_groups(membership, root) == 2 * GIB
    group(top / "a", GIB, 3 * GIB, version)
    assert free_in_groups(membership, root) == 0
    assert free_in_groups(tmp_path / "none", root) == UNLIMITED


def test_envs_beyond_the_container_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "free_in_groups", lambda *_: 2**20)
    with pytest.raises(
        DeviceError, match=r"num_envs 100 needs .* of memory on cpu, of which 1.0 MiB is free: use fewer"
    ):
        Emulator(ROM, 100)


def test_an_allocation_that_fails_is_one_line() -> None:
    with pytest.raises(DeviceError, match="an allocation failed: use fewer"), room_for(0, "cpu", "it", "use fewer"):
        torch.empty(2**60, dtype=torch.uint8)


def test_one_thread_one_process_until_it_is_closed() -> None:
    user, told = OneUser("it"), []

    def other() -> None:
        with pytest.raises(ConfigError) as error, user:
            pass
        told.append(str(error.value))

    with user:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert told == ["it runs in another thread at this moment: give each thread its own"]
    child = os.fork()
    if child == 0:
        try:
            with user:
                os._exit(1)
        except ConfigError as error:
            os._exit(0 if "fork" in str(error) else 2)
    assert os.waitpid(child, 0)[1] == 0
    user.closed = True
    with pytest.raises(ConfigError, match="it is closed"), user:
        pass


def test_an_emulator_refuses_what_it_cannot_do() -> None:
    emulator = Emulator(ROM, 2)
    lists: Any = [0, 0]
    for buttons in (lists, torch.zeros(3, dtype=torch.uint8), torch.zeros(2), torch.zeros((2, 1), dtype=torch.uint8)):
        with pytest.raises(ActionError, match="buttons are"):
            emulator.step(buttons)
    for env in (-1, 2):
        for call in (emulator.save, emulator.registers, emulator.save_ram, emulator.read_serial):
            with pytest.raises(ConfigError, match=f"env {env} does not exist: give 0 to 1"):
                call(env)
    with pytest.raises(ConfigError, match="there is no such field"):
        emulator.set_registers(nothing=1)
    emulator.close()
    with pytest.raises(ConfigError, match="this Emulator is closed"):
        emulator.step(torch.zeros(2, dtype=torch.uint8))


def test_an_empty_variable_is_no_cache_folder(tmp_path: Path) -> None:
    """Warp would keep compiled kernels in the folder in which the command was started."""
    code = "from gbxcule_puffer.emulator.build.cache import directory; print(directory())"
    environment = child_environment() | {"WARP_CACHE_PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and Path(done.stdout.strip()).is_absolute(), done.stderr
    assert tmp_path not in Path(done.stdout.strip()).parents and not list(tmp_path.iterdir())
