"""The faults of color_faults.py: each is still in the code, and a few random programs find half of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gbxcule_puffer.emulator import kernels
from tests.fuzz.planted import OF_KERNELS, faults_of, plant, search


@pytest.mark.parametrize("kernel", OF_KERNELS)
def test_each_fault_changes_the_code(kernel: str) -> None:
    """A text that occurs no more ends in a line that names the fault; names are told apart."""
    faults = faults_of(kernel)
    modules = {fault.module for fault in faults}
    folder = Path(kernels.__file__).parent
    texts = {module: (folder / f"{module.replace('.', '/')}.py").read_text() for module in modules}
    planted = plant(texts, faults)
    assert all(planted[module] != texts[module] for module in modules)
    assert all(f"(c.env == {env})" in planted[fault.module] for env, fault in enumerate(faults, start=1))
    assert len({fault.name for fault in faults}) == len(faults) >= 12
    with pytest.raises(ValueError, match=faults[0].name):
        plant({**texts, faults[0].module: ""}, faults)


def test_random_programs_find_planted_faults() -> None:
    """In three seeds of each kind; where nothing is planted nothing differs."""
    result = search([0, 1, 2], [], frames=40, steps=0)
    assert not result.sound
    found = [name for name, by in result.found.items() if by]
    assert len(found) > len(result.faults) // 2, found
