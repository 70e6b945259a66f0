"""What would make the data path's loop slower without any other test seeing it."""

from __future__ import annotations

from pathlib import Path

import gbxcule_puffer.emulator
from gbxcule_puffer.emulator import kernels

FOLDER = Path(str(gbxcule_puffer.emulator.__file__)).parent


def test_a_step_has_no_atomic_of_warps() -> None:
    """One in the data path's loop makes the lanes of a warp yield in each turn (operations.count_one says why). Counts
    are off but for `puffer profile`."""
    paths = [path for room in kernels.ROOMS["datapath"] for path in (FOLDER / room).rglob("*.py")]
    found = {path.name for path in paths if "wp.atomic_" in path.read_text()}
    assert found == {"counters.py"}
