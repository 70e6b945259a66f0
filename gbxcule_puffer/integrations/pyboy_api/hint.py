"""A hint for scripts that were written for one PyBoy."""

from __future__ import annotations

import sys
import warnings


class BatchAxisWarning(UserWarning):
    """GameBoys of one Game Boy is used, whose results have an axis that PyBoy's do not have."""


class AxisHint:
    """Warns once that results have an axis of Game Boys, where there is one alone: the indices of a script for PyBoy
    would mean other axes."""

    def __init__(self, num_envs: int) -> None:
        self._is_due = num_envs == 1

    def say(self) -> None:
        """Warns in the line outside of this package that asked."""
        if not self._is_due:
            return
        self._is_due, frame, level = False, sys._getframe(1), 2
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(__package__ or "-"):
            frame, level = frame.f_back, level + 1
        warnings.warn(
            "GameBoys has an axis of Game Boys first, also with one alone: memory[first:end] is (1, end - first), "
            "screen.ndarray (1, 144, 160, 4): write memory[first:end][0] and screen.ndarray[0] for what PyBoy has, "
            "and warnings.simplefilter('ignore', BatchAxisWarning) to hide this line",
            BatchAxisWarning,
            stacklevel=level,
        )
