"""A few hundred damaged files of every format are accepted or refused in one line, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.formats import FORMATS, Format
from tests.hostile.run import fuzz

MUTANTS = 300


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_damaged_files_are_refused_in_one_line(one: Format, tmp_path: Path) -> None:
    tally = fuzz(one, tmp_path, range(MUTANTS))
    assert tally.others == []
    assert (tally.tried == MUTANTS and tally.refused > MUTANTS // 10) or one.name == "save RAM"
