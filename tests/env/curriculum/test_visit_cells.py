"""benchmarks.training.visit_cells: which cells of pictures stand for several states of the game."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.training.visit_cells import play, summary

pytestmark = pytest.mark.kernel


def test_pixels_tell_apart_what_means_do_not(tmp_path: Path) -> None:
    found = {kind: summary(cells) for kind, cells in play(32, 60, tmp_path).items()}
    coarse, fine = found["picture"], found["pixels"]
    assert coarse["cells of RAM"] == fine["cells of RAM"] > 100
    assert coarse["several of facing"] > 20 and fine["several of facing"] == 0
    assert fine["cells"] > coarse["cells"]


def test_a_cell_that_shows_several_states_is_counted_once() -> None:
    cells = {
        1: {(0, 1, 2, 3, 0)},
        2: {(0, 1, 2, 3, 0), (0, 1, 2, 2, 0)},
        3: {(0, 4, 2, 0, 1), (0, 4, 2, 1, 3), (0, 4, 2, 2, 3)},
    }
    assert summary(cells) == {
        **{"cells": 3, "cells of RAM": 5, "cells of one of RAM": 1.2, "several of map": 0, "several of column": 0},
        **{"several of row": 0, "several of facing": 2, "several of quest": 1},
    }
