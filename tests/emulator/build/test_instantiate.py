"""Instances of device code: what is changed is found in the syntax tree, and all else stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from gbxcule_puffer.emulator.build.cache import PACKAGE
from gbxcule_puffer.emulator.build.instantiate import DeviceCode, Edit, instantiate
from gbxcule_puffer.emulator.build.variant import CONSTANTS, Variant, build, device_code

LOOP = '''"""A loop."""
from machine.hw import (
    model,  # a comment
    unused as other,
)
from machine.state import Cpu, Machine


def run(m, c):
    # ON = 0 is no constant
    c.time = c.time + model.LENGTH  # é, whose bytes are two
    run_again(c.time + model.LENGTH)
'''
SOURCES = {
    "gpu/run.py": LOOP,
    "hw/model.py": "from machine.state import Cpu\n\nLENGTH = 4\nON: int = 0\n\n\ndef dots(c):\n    return c.time\n",
    "hw/unused.py": "LENGTH = 3\n",
    "hw/not_imported.py": "",
    "state.py": "",
}


@pytest.fixture
def code(tmp_path: Path) -> DeviceCode:
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return DeviceCode("machine", tmp_path, ("gpu.run",), {"made": "from machine.hw.model import LENGTH\n"})


def test_the_code_is_what_the_entries_import(code: DeviceCode) -> None:
    assert set(code.sources()) == {"gpu.run", "hw.model", "hw.unused", "made", "gpu.__init__", "hw.__init__"}


def test_only_imports_of_the_rooms_move(code: DeviceCode) -> None:
    made = instantiate(code)
    assert made["gpu.run"] == LOOP.replace("from machine.hw", f"from {PACKAGE}.hw")
    assert made["made"] == f"from {PACKAGE}.hw.model import LENGTH\n"


def test_constants_and_names(code: DeviceCode) -> None:
    made = instantiate(code, {"hw.model.LENGTH": 5}, {"Cpu": "ColorCpu"})
    assert "\nLENGTH = 5\n" in made["hw.model"] and "LENGTH = 3" in made["hw.unused"]
    assert "from machine.state import ColorCpu as Cpu, Machine\n" in made["gpu.run"]
    with pytest.raises(ValueError, match="no constant WIDTH"):
        instantiate(code, {"hw.model.WIDTH": 5})


@pytest.mark.parametrize(
    ("pattern", "replacement", "expected"),
    [
        ("c.time+model.LENGTH", "IT * 2", "c.time = ((c.time + model.LENGTH) * 2)  # é, whose bytes are two"),
        ("_ + model.LENGTH", "IT * 2", "run_again(((c.time + model.LENGTH) * 2))"),
        ("run_again(_)", "if m:\n    IT", "    if m:\n        run_again(c.time + model.LENGTH)\n"),
        ("c.time", "c.clock", "c.time = (c.clock) + model.LENGTH"),
    ],
)
def test_edits(code: DeviceCode, pattern: str, replacement: str, expected: str) -> None:
    """A pattern has its own spaces and parentheses; what is assigned to is no expression."""
    assert expected in instantiate(code, edits=[Edit("gpu.run", "run", pattern, replacement)])["gpu.run"]
    whole = instantiate(code, edits=[Edit("gpu.run", "", pattern, replacement)])
    assert expected in whole["gpu.run"] and "return c.time" in whole["hw.model"]


@pytest.mark.parametrize("function", ["run", "walk"])
def test_an_edit_that_changes_nothing_is_told(code: DeviceCode, function: str) -> None:
    with pytest.raises(ValueError, match=f"gpu.run.{function} has no 'c.time - 1'"):
        instantiate(code, edits=[Edit("gpu.run", function, "c.time - 1", "0")])


@pytest.mark.parametrize("variant", [Variant(color=True), Variant(hardware=True), Variant(color=True, counted=True)])
def test_a_variant_has_its_constants_alone(variant: Variant) -> None:
    usual, kernels = build("interpreter"), build("interpreter", variant)
    for name, (path, value) in CONSTANTS.items():
        module, _, constant = path.rpartition(".")
        default = getattr(usual.module(module), constant)
        assert getattr(kernels.module(module), constant) == (value if name in variant.names else default)
    cpu = "ColorCpu" if variant.color else "Cpu"
    assert kernels.module("hw.interrupts").Cpu.cls.__name__ == cpu
    assert kernels.module("hw.interrupts").Machine is usual.module("hw.interrupts").Machine


def test_host_code_is_not_copied() -> None:
    """What libcst reads, and the tables that NumPy makes."""
    names = set(device_code("datapath").sources())
    assert {"gpu.run", "cpu.fetch", "hw.lcd.picture", "interpreter"} < names
    assert not names & {"cpu.templates", "gpu.descriptor_table", "gpu.fusion", "build.splice"}
