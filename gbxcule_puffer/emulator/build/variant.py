"""Variants of the step's kernels. The differences are constants of the device code, so no kernel pays for another's
options.

The usual kernels come from the device code itself, the others from an instance with other constants.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache as memoize
from functools import cached_property
from pathlib import Path
from types import ModuleType

import warp as wp

from gbxcule_puffer.emulator.build import cache, interpreter
from gbxcule_puffer.emulator.build.instantiate import DeviceCode, Edit, instantiate

EMULATOR = "gbxcule_puffer.emulator"
FOLDER = Path(__file__).parents[1]
# The module of each kernel; its imports are the device code
ENTRIES = {"interpreter": ("cpu.run",), "datapath": ("gpu.run", "hw.lcd.picture")}
# Opcodes per chain of comparisons in `execute`: short for a GPU, which has to fetch the code
GROUP_SIZES = {"interpreter": interpreter.GROUP_SIZE, "datapath": 4}
CONSTANTS = {
    "color": ("hw.model.COLOR", True), "hardware": ("hw.model.HARDWARE", 1), "counted": ("hw.counters.ON", 1),
    "sound": ("hw.model.SOUND", True), "samples": ("hw.model.SAMPLES", True),
}  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """The options of a kernel.

    color: a Game Boy Color; hardware: accuracy "hardware", only of the interpreter; counted: counts for `puffer
    profile`; sound: the sound registers work (hw/sound/); samples: and samples are made.
    """

    color: bool = False
    hardware: bool = False
    counted: bool = False
    sound: bool = False
    samples: bool = False

    @property
    def names(self) -> list[str]:
        """The options that are set."""
        return [name for name, is_set in asdict(self).items() if is_set]


@dataclass(frozen=True)
class Kernels:
    """The kernels of a variant, each compiled at its first launch.

    package: of the device code; generated: its `execute`, `load` and `store`.
    """

    package: str
    generated: ModuleType
    loop: str

    @cached_property
    def step(self) -> wp.Kernel:
        """One step of all envs."""
        generated = self.generated
        return self.module(self.loop).make_kernel(generated.execute, generated.load, generated.store)

    @cached_property
    def draw(self) -> wp.Kernel:
        """The picture of the data path's step, on a GPU."""
        return self.module("hw.lcd.picture").make_kernel(self.generated.load)

    def module(self, name: str) -> ModuleType:
        """A module of the device code, 'gpu.run'."""
        return importlib.import_module(f"{self.package}.{name}")


def device_code(kernel: str, color: bool = False) -> DeviceCode:
    """The device code of a kernel ('interpreter' or 'datapath') and the module that is generated for it."""
    generated = {"interpreter": interpreter.source(GROUP_SIZES[kernel], color=color)}
    return DeviceCode(EMULATOR, FOLDER, ENTRIES[kernel], generated)


@memoize
def build(kernel: str, variant: Variant = Variant(), edits: Sequence[Edit] = ()) -> Kernels:
    """The kernels of a variant; 'interpreter' or 'datapath'. edits: a tuple, for tests that plant faults."""
    loop = ENTRIES[kernel][0]
    if variant == Variant() and not edits:
        return Kernels(EMULATOR, interpreter.module(GROUP_SIZES[kernel]), loop)

    def make() -> str:
        constants = dict(CONSTANTS[name] for name in variant.names)
        rename = {"Cpu": "ColorCpu"} if variant.color else {}
        return json.dumps(instantiate(device_code(kernel, variant.color), constants, rename, edits))

    name = "_".join([kernel, *variant.names])
    made = make() if edits else cache.remembered(name, interpreter.makers(), make)
    package = cache.import_package(name, json.loads(made))
    return Kernels(package, importlib.import_module(f"{package}.interpreter"), loop)
