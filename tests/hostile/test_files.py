"""A few hundred damaged files of every format are accepted or refused in one line, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.formats import FORMATS, Format
from tests.hostile.run import fuzz

pytestmark = pytest.mark.kernel

MUTANTS = {"resuming": 8}  # which are slow; 160 of the others


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_damaged_files_are_refused_in_one_line(one: Format, tmp_path: Path) -> None:
    mutants = MUTANTS.get(one.name, 160)
    tally = fuzz(one, tmp_path, range(mutants))
    assert tally.others == []
    assert (tally.tried == mutants and tally.refused > mutants // 20) or one.name == "save RAM"
