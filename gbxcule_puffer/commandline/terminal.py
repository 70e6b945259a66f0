"""The terminal: its width, and a line on stderr before seconds of silence."""

from __future__ import annotations

import shutil
import sys

WIDEST = 120  # columns of a page


def page_width() -> int:
    """Columns of a page: the terminal's, at most 120; 80 where there is no terminal."""
    return max(40, min(WIDEST, shutil.get_terminal_size().columns))


def progress(line: str) -> None:
    """Says on stderr what comes next, where a command is then silent for seconds."""
    print(f"... {line}", file=sys.stderr, flush=True)
