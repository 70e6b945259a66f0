"""Makes a failing ROM small: replaces as many bytes as possible by NOPs, as long as it still fails."""

from __future__ import annotations

import numpy as np

from tests.fuzz.lockstep import compare

HEADER = range(0x100, 0x150)


def shrink(
    rom: bytes, buttons: np.ndarray, frames_per_step: int = 1, most_runs: int = 1500, with_datapath: bool = True
) -> tuple[bytes, np.ndarray]:
    """A ROM of the same size that still fails, with as many bytes 00 as could be found, and the buttons that it needs.

    Delta debugging: blocks of 8 KiB first, then halves, down to single bytes. Addresses stay what they were.
    Raises: ValueError where the ROM does not fail.
    """

    def is_failing(image: bytes, held: np.ndarray) -> bool:
        return bool(compare(image, held, 1, frames_per_step, with_datapath).difference)

    first = compare(rom, buttons, 1, frames_per_step, with_datapath)
    if not first.difference:
        raise ValueError("the ROM does not fail: nothing to shrink")
    buttons = buttons[: first.frames]
    if is_failing(rom, np.zeros_like(buttons)):
        buttons = np.zeros_like(buttons)
    best = bytearray(rom)
    size, runs = min(0x2000, len(rom) // 2), 0
    while size >= 1 and runs < most_runs:
        for begin in range(0, len(best), size):
            candidate = bytearray(best)
            for index in range(begin, min(begin + size, len(best))):
                if index not in HEADER:
                    candidate[index] = 0
            if candidate == best or runs >= most_runs:
                continue
            runs += 1
            if is_failing(bytes(candidate), buttons):
                best = candidate
        size //= 2
    return bytes(best), buttons


def code_left(rom: bytes) -> int:
    """Bytes that are not 00, without the header."""
    return sum(1 for index, value in enumerate(rom) if value and index not in HEADER)
