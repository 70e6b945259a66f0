"""The kernels of a step: the interpreter, the data path and what draws its picture, and copies of them in which a
constant has another value.

A copy is made from a second set of the device code, so that the usual kernels do not pay for what they lack: accuracy
"hardware" and a Game Boy Color (hw/model.py), and counters (hw/counters.py).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from functools import cache as memoize
from pathlib import Path
from types import ModuleType

import warp as wp

from gbxcule_puffer.emulator import kernel_cache
from gbxcule_puffer.emulator.cpu import interpreter

EMULATOR = "gbxcule_puffer.emulator"
ROOMS = {"interpreter": ("hw", "cpu"), "datapath": ("hw", "cpu", "gpu")}  # the device code of each kernel
LOOPS = {"interpreter": "cpu.run", "datapath": "gpu.run"}
# What stands in these rooms and is no device code
HOST_CODE = (
    "interpreter",
    "single_step",
    "splice",
    "templates",
    "descriptor_table",
    "fusion",
)
# Opcodes in a chain of comparisons of `execute`: short for a GPU, which has to fetch the code
GROUP_SIZES = {"interpreter": interpreter.GROUP_SIZE, "datapath": 4}


@memoize
def kernel(name: str, accuracy: str = "pyboy", counted: bool = False, color: bool = False) -> wp.Kernel:
    """The kernel of one step, 'interpreter' or 'datapath', compiled where it is launched first; color: of a Game Boy
    Color."""
    package, generated = modules(name, accuracy, counted, color)
    run = importlib.import_module(f"{package}.{LOOPS[name]}")
    return run.make_kernel(generated.execute, generated.load, generated.store)


@memoize
def drawing(color: bool = False) -> wp.Kernel:
    """The kernel that draws the picture of the data path's step on a GPU."""
    return importlib.import_module(f"{modules('datapath', color=color)[0]}.hw.lcd.picture").kernel_draw


def modules(name: str, accuracy: str = "pyboy", counted: bool = False, color: bool = False) -> tuple[str, ModuleType]:
    """The package of a kernel's device code, and its generated `execute`, `load` and `store`."""
    assert not (color and accuracy == "hardware")
    constants = {}
    if color:
        constants["hw.model"] = ("\nCOLOR = False\n", "\nCOLOR = True\n")
    if accuracy == "hardware":
        constants["hw.model"] = ("\nHARDWARE = 0\n", "\nHARDWARE = 1\n")
    if counted:
        constants["hw.counters"] = ("\nON = 0\n", "\nON = 1\n")
    package, generated = EMULATOR, interpreter.module(GROUP_SIZES[name])
    if constants:
        label = "_".join(word for word in (accuracy, "counted" * counted, "color" * color) if word)
        package = kernel_cache.import_package(label, _copies(ROOMS[name], constants, color))
        source = _moved(interpreter.source(GROUP_SIZES[name], color=color), package, ROOMS[name], color)
        generated = kernel_cache.import_source(f"interpreter_{label}", source)
    return package, generated


def _moved(text: str, package: str, rooms: tuple[str, ...], color: bool = False) -> str:
    """Source whose imports of device code are those of another package; color: and whose Cpu is a Game Boy Color's."""
    if color:
        text = re.sub(rf"(?m)^(from {EMULATOR}\.state import .*)\bCpu\b", r"\1ColorCpu as Cpu", text)
    for room in rooms:
        text = text.replace(f"{EMULATOR}.{room}", f"{package}.{room}")
    return text


def _copies(rooms: tuple[str, ...], constants: Mapping[str, tuple[str, str]], color: bool = False) -> dict[str, str]:
    """Module name, below the package, to text of the device code with other constants: module -> (line, its copy)."""
    folder = Path(__file__).parent
    paths = [path for room in rooms for path in sorted((folder / room).rglob("*.py")) if path.stem not in HOST_CODE]
    texts = {".".join(path.relative_to(folder).with_suffix("").parts): path.read_text() for path in paths}
    for name, (default, chosen) in constants.items():
        assert default in texts[name]
        texts[name] = texts[name].replace(default, chosen)
    return {name: _moved(text, kernel_cache.PACKAGE, rooms, color) for name, text in texts.items()}
