"""benchmarks/kernel/cpu_parts.py: which part of a step a function of the kernel belongs to."""

from __future__ import annotations

import shutil

import pytest

from benchmarks.kernel.cpu_parts import PARTS, object_of, part_of, symbols_of
from gbxcule_puffer.emulator.build.variant import build


def test_parts_by_name() -> None:
    """The first beginning that fits counts."""
    names = {
        "gbxcule_pieces": "native code", "make_kernel__locals__run_0": "interpreter", "draw_lines_0": "drawing",
        "settle_changes_0": "LCD", "write_register_0": "registers", "write_any_0": "memory",
    }  # fmt: skip
    assert {name: part_of(name) for name in names} == names


@pytest.mark.kernel
@pytest.mark.skipif(shutil.which("nm") is None, reason="no binutils")
def test_the_kernel_s_functions_belong_to_parts() -> None:
    """Nearly all of its code has a name in the table: a function that is renamed is missed here."""
    path, symbol, _ = object_of(build("interpreter").step)
    sizes = dict.fromkeys(PARTS, 0)
    for _, size, name in symbols_of(path):
        if name != symbol:  # the step around the loop
            sizes[part_of(name)] += size
    assert sizes["the rest"] < 0.02 * sum(sizes.values())
    assert all(size for part, size in sizes.items() if part not in ("native code", "the rest"))
