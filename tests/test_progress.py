"""Lines about loops that take long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gbxcule_puffer import progress


@pytest.fixture
def lines() -> Iterator[list[str]]:
    said: list[str] = []
    progress.listen(said.append)
    yield said
    progress.listen(None)


def test_a_long_loop_says_how_far_it_is(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(0, 1000, 4))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(seconds))
    assert list(progress.counted(8, "steps")) == list(range(8))
    assert lines == ["2 of 8 steps, at most 36 s left", "5 of 8 steps, at most 14 s left"]


def test_a_short_loop_says_nothing(lines: list[str]) -> None:
    assert list(progress.counted(3, "steps")) == [0, 1, 2] and not lines
