"""The faults of color_faults.py: each is still in the code, and a few random programs find half of them."""

from __future__ import annotations

import pytest

from gbxcule_puffer.emulator.build.instantiate import instantiate
from gbxcule_puffer.emulator.build.variant import device_code
from tests.fuzz.planted import OF_KERNELS, edits, faults_of, search


@pytest.mark.parametrize("kernel", OF_KERNELS)
def test_each_fault_changes_the_code(kernel: str) -> None:
    """Each by itself, too; names are told apart."""
    faults, code = faults_of(kernel), device_code(kernel, color=True)
    usual, planted = code.sources(), instantiate(code, edits=edits(faults))
    assert all(planted[fault.edit.module] != usual[fault.edit.module] for fault in faults)
    assert all(f"(c.env == {env})" in planted[fault.edit.module] for env, fault in enumerate(faults, start=1))
    assert len({fault.name for fault in faults}) == len(faults) >= 12


@pytest.mark.kernel
@pytest.mark.long
def test_random_programs_find_planted_faults() -> None:
    """In three seeds of each kind; where nothing is planted nothing differs."""
    result = search([0, 1, 2], [], frames=40, steps=0)
    assert not result.sound
    found = [name for name, by in result.found.items() if by]
    assert len(found) > len(result.faults) // 2, found
