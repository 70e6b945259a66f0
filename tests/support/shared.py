"""Parameters from the folder of shared ROMs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.workload import SHARED_VARIABLE

NONE = f"no shared references: put them beside the repository as ../shared or set {SHARED_VARIABLE}"


def cases(found: Sequence[Any], names: int = 1) -> Sequence[Any]:
    """The parameters that were found; names: how many a test has. Without any, one that is skipped and says why."""
    return found or [pytest.param(*[None] * names, marks=pytest.mark.skip(NONE), id="none")]
