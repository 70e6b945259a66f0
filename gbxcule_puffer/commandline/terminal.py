"""The width of the terminal."""

from __future__ import annotations

import shutil

WIDEST = 120  # columns of a page


def page_width() -> int:
    """Columns of a page: the terminal's, at most 120; 80 where there is no terminal."""
    return max(40, min(WIDEST, shutil.get_terminal_size().columns))
