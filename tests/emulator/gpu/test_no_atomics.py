"""What would make the data path's loop slower without any other test seeing it."""

from __future__ import annotations

from gbxcule_puffer.emulator.build.variant import device_code


def test_a_step_has_no_atomic_of_warps() -> None:
    """One in the data path's loop makes the lanes of a warp yield in each turn (operations.count_one says why). Counts
    are off but for `puffer profile`."""
    sources = device_code("datapath").sources()
    assert {name for name, text in sources.items() if "wp.atomic_" in text} == {"hw.counters"}
