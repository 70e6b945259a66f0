"""The walk that looks for a start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.layout import ROMS
from gbxcule_puffer.scan import find_start
from gbxcule_puffer.scan.play import LOOK_FRAMES
from gbxcule_puffer.scan.result import Start

pytestmark = pytest.mark.kernel
WALKERS = 8


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(find_start, "STEPS", 21)
    yield


def start_of(copies: int) -> Start:
    """The start that some walkers find, with so many Game Boys each."""
    emulator = Emulator(
        ROMS / "orchard.gb",
        WALKERS * copies,
        screen="full",
        frames_per_step=LOOK_FRAMES,
        release_after_frames=LOOK_FRAMES,
    )
    try:
        return find_start.find_start(emulator, 3, copies)
    finally:
        emulator.close()


@pytest.mark.parametrize(  # six buttons: a test of four and two, or of all at once
    "copies", [pytest.param(4, marks=pytest.mark.long), len(find_start.TESTED)]
)
def test_copies_change_no_result(copies: int) -> None:
    one, other = start_of(1), start_of(copies)
    assert one.moves and one.actions == other.actions
    assert (one.state.memory == other.state.memory).all() and (one.state.state == other.state.state).all()
