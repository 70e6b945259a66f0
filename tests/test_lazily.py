"""Doors of packages: names that are imported when they are asked for."""

from __future__ import annotations

import gc
import sys

import pytest

from gbxcule_puffer import emulator
from gbxcule_puffer.emulator import schedule
from gbxcule_puffer.lazily import door

MODULE = "gbxcule_puffer.emulator.schedule"


def test_a_name_is_imported_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is imported is left out of garbage collections, which go on afterwards."""
    monkeypatch.setattr(emulator, "schedule", schedule)  # which the import replaces
    monkeypatch.delitem(sys.modules, MODULE)
    find, before = door("package", {"MOST_FRAMES": "emulator.schedule"}), gc.get_freeze_count()
    assert MODULE not in sys.modules
    assert find("MOST_FRAMES") == schedule.MOST_FRAMES and MODULE in sys.modules
    assert gc.isenabled() and (frozen := gc.get_freeze_count()) > before
    assert find("MOST_FRAMES") == schedule.MOST_FRAMES and gc.get_freeze_count() <= frozen, "only the first time"


def test_what_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'package' has no attribute 'other'"):
        door("package", {})("other")
    with pytest.raises(ModuleNotFoundError):
        door("package", {"other": "nowhere"})("other")
    assert gc.isenabled()
