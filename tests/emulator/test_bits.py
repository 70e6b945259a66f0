"""Bit fields: what is put into a word comes out of it, and a record's fields do not overlap."""

from __future__ import annotations

import numpy as np
import pytest

from gbxcule_puffer.emulator.bits import Bits, check

LENGTH, KIND, OTHER_WORD = Bits("LENGTH", 0, 0, 10), Bits("KIND", 0, 10, 22), Bits("OTHER_WORD", 1, 5, 3)


def test_values_come_back() -> None:
    check((LENGTH, KIND, OTHER_WORD))
    kinds = np.array([0, 3, KIND.most], np.int64)
    words = LENGTH.put(1023) | KIND.put(kinds)
    np.testing.assert_array_equal(KIND.get(words), kinds)
    np.testing.assert_array_equal(LENGTH.get(words), 1023)


@pytest.mark.parametrize("value", [-1, 1024])
def test_a_value_that_does_not_fit_is_an_error(value: int) -> None:
    with pytest.raises(ValueError, match=r"LENGTH is .* hold 0 to 1023"):
        LENGTH.put(value)
    with pytest.raises(ValueError, match=r"LENGTH is .* hold 0 to 1023"):
        LENGTH.put(np.array([0, value]))


@pytest.mark.parametrize("other", [Bits("OTHER", 0, 9, 1), Bits("OTHER", 2, 30, 3)])
def test_fields_that_overlap_are_an_error(other: Bits) -> None:
    with pytest.raises(ValueError, match="OTHER shares bits"):
        check((LENGTH, other))
