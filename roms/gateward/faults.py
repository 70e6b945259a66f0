"""Faults in the game's text files: one line with file, line and what is wrong."""

from __future__ import annotations

from pathlib import Path


class Fault(Exception):
    """What is wrong with a text file."""


class Lines:
    """The lines of a text file without comments, and where each stands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Fault(f"{path}: cannot be read: {error}") from None
        numbered = enumerate(text.splitlines(), 1)
        self.lines = [(number, line.rstrip()) for number, line in numbered if not line.startswith(";")]

    def __iter__(self):
        return iter(self.lines)

    def fault(self, number: int, text: str) -> Fault:
        """The Fault of a line."""
        return Fault(f"{self.path.parent.name}/{self.path.name}:{number}: {text}")
