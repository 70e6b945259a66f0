"""The part of a start that needs no Python, in threads while Python imports: torch's libraries, and CUDA."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread

DRIVER = "libcuda.so.1"
FIRST_TO_LOAD = "lib/libtorch.so"  # in torch's folder; it takes those that are large with it


def named(words: Sequence[str], default: str) -> str:
    """The device in a command line, before it is checked; cpu where it asks for help, and where PyBoy plays."""
    if {"-h", "--help"} & set(words) or any("pyboy" in word for word in words):
        return "cpu"
    for word, following in itertools.zip_longest(words, words[1:], fillvalue=""):
        flag, is_whole, value = word.partition("=")
        if flag == "--device":
            default = value if is_whole else following
    return default


def begin(device: str) -> None:
    """Begins to load torch's libraries and, unless `device` is the CPU, to start CUDA. What fails here is said where
    torch does it again. Meanwhile this imports Warp, which does not need torch."""
    _in_a_thread(_load_torch)
    if device != "cpu":
        os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")  # as torch does before it starts CUDA
        number = device.partition(":")[2] or os.environ.get("LOCAL_RANK", "0")
        _in_a_thread(lambda: _start_cuda(int(number) if number.isdecimal() else 0))
    importlib.import_module("warp")


def _in_a_thread(work: Callable[[], object]) -> None:
    """Not a daemon: the process must not end within a library's start."""
    Thread(target=work).start()


def _load_torch() -> None:
    """By the C library's function, which, unlike an import, does not hold Python's lock."""
    found = importlib.util.find_spec("torch")
    load = getattr(ctypes.CDLL(None), "dlopen", None)
    if found is not None and found.origin is not None and load is not None:
        load.restype = ctypes.c_void_p
        load(os.fsencode(Path(found.origin).parent / FIRST_TO_LOAD), os.RTLD_NOW)


def _start_cuda(number: int) -> None:
    """Makes the context of a GPU, which torch and Warp then use: it is the same for all of a process."""
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError:  # no GPU
        return
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), number) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
