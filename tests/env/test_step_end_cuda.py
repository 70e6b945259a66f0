"""What follows the frames of a step, on a GPU: the same bits as in NumPy, and so as on a CPU."""

from __future__ import annotations

import pytest

from tests.support.step_ends import check_against_numpy


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("obs", "k", "chain"), [("shades", 1, False), ("shades", 3, True), ("packed", 1, True), ("packed", 2, False)]
)
def test_the_end_of_a_step_is_as_in_numpy(cuda_device: str, obs: str, k: int, chain: bool) -> None:
    check_against_numpy(cuda_device, obs, k, chain)
