"""libgbxcule on a CPU: its own code, with the kernels that Warp compiles for CPUs behind the driver's functions."""

from __future__ import annotations

import atexit
import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warp as wp

from gbxcule_puffer.native import export as native
from gbxcule_puffer.native.export import SOURCES, modules_of, write
from gbxcule_puffer.native.record import Record

HERE = Path(__file__).parent
ARRAYS = ("observations", "actions", "rewards", "terminals", "logs")


class Arrays(ctypes.Structure):
    """gbx_arrays."""

    _fields_ = [*((name, ctypes.c_void_p) for name in ARRAYS), ("log_stride", ctypes.c_size_t)]


@functools.cache
def compiled() -> tuple[Path, Path]:
    """The files of the library and of the driver for a CPU, as gcc compiles them, once for all tests of a process."""
    need("gcc")
    folder = Path(tempfile.mkdtemp(prefix="libgbxcule_"))
    atexit.register(shutil.rmtree, folder)
    driver, library = folder / "libdriver.so", folder / "libgbxcule.so"
    options = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-std=c11", "-D_GNU_SOURCE"]
    subprocess.run(["gcc", *options, "-o", driver, HERE / "driver.c"], check=True)
    subprocess.run(["gcc", *options, f'-DGBX_DRIVER="{driver}"', "-o", library, SOURCES[1], "-ldl"], check=True)
    return library, driver


def build(folder: Path) -> tuple[ctypes.CDLL, ctypes.CDLL]:
    """(the library, the driver for a CPU). The library is a copy in `folder`, and so has variables of its own."""
    library, driver = compiled()
    loaded = ctypes.CDLL(str(shutil.copy(library, folder)))
    loaded.gbx_message.restype = ctypes.c_char_p
    loaded.gbx_arrays_of.restype = ctypes.POINTER(Arrays)
    loaded.gbx_state_size.restype = ctypes.c_size_t
    return loaded, ctypes.CDLL(str(driver))


def need(compiler: str) -> None:
    """Skips the test where a compiler is not installed."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")


class Library:
    """An env of the library, of a record whose kernels run on a CPU."""

    def __init__(self, record: Record, folder: Path, num_envs: int, seed: int, log_stride: int = 0) -> None:
        write(record, folder, {(name, 90): name.encode() + b"\0" for name in modules_of(record)})
        self.library, driver = build(folder)
        self._kernels = {}
        for launch in (*record.resets, *record.steps):
            self._kernels[native._symbol(launch.kernel)] = launch
        self._launcher = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))(self._launch)
        driver.set_launcher(self._launcher)
        self.env, given = ctypes.c_void_p(), Arrays(log_stride=log_stride)
        self.check(
            self.library.gbx_create(ctypes.byref(self.env), str(folder).encode(), 0, num_envs, ctypes.byref(given))
        )
        found = self.library.gbx_arrays_of(self.env).contents
        env = record.env
        choices = len(env.codec.factors) or 1
        self.observations = _view(found.observations, np.uint8, (num_envs, env.layout.dtype.itemsize))
        self.actions = _view(found.actions, np.float32, (num_envs, choices))
        self.rewards = _view(found.rewards, np.float32, (num_envs,))
        self.terminals = _view(found.terminals, np.float32, (num_envs,))
        self.logs = _view(found.logs, np.float32, (num_envs, (log_stride or 28) // 4))
        self.reset(seed)

    def reset(self, seed: int) -> None:
        self.check(self.library.gbx_reset(self.env, ctypes.c_int64(seed), None))

    def step(self, actions: np.ndarray) -> None:
        self.actions[:] = actions.reshape(self.actions.shape)
        self.check(self.library.gbx_step(self.env, None))

    def save(self) -> bytes:
        state = ctypes.create_string_buffer(self.library.gbx_state_size(self.env))
        self.check(self.library.gbx_save(self.env, state, None))
        return state.raw

    def load(self, state: bytes) -> int:
        return self.library.gbx_load(self.env, state, ctypes.c_size_t(len(state)), None)

    def close(self) -> None:
        self.library.gbx_close(self.env)

    def check(self, error: int) -> None:
        assert error == 0, self.library.gbx_message()

    def _launch(self, name: bytes, arguments: Any) -> int:
        launch = self._kernels[name]
        raw = bytearray()
        for number, argument in enumerate(launch.arguments):
            size = len(argument.raw)
            raw += bytes(-len(raw) % (8 if size >= 8 else 4)) + ctypes.string_at(arguments[1 + number], size)
        packed = (ctypes.c_char * len(raw)).from_buffer(raw)
        module = launch.kernel.module.load(wp.get_device("cpu"), 1)  # as launches on a CPU, which share the object
        module.get_kernel_hooks(launch.kernel).forward(ctypes.c_void_p(arguments[0]), ctypes.byref(packed))
        return 0


def _view(address: int, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(memory, dtype).reshape(shape)
