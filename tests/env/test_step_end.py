"""What follows the frames of a step: libcst's kernels against slow NumPy, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from gbxcule_puffer.env.step_end import kernels
from tests.support.step_ends import SHAPE, MadeUpStep, check_against_numpy, make_task

pytestmark = pytest.mark.kernel

PARTS = ("observe", "score", "keep", "count", "restore", "begin")


def test_a_sequence_is_its_parts_in_order() -> None:
    for name, parts in kernels.SEQUENCES.items():
        lines = [line.strip() for line in kernels.source(name).splitlines()]
        calls = [line for line in lines if line.startswith("parts.")]
        assert calls == [f"parts.{part}(e, env, lane, lanes)" for part in parts]
        assert "PARTS" not in lines
    assert kernels.SEQUENCES["full_step"] == PARTS
    pieces = [part for name in ("end", "count", "start") for part in kernels.SEQUENCES[name]]
    assert pieces == list(PARTS), "in pieces it is the same"


@pytest.mark.parametrize(
    ("obs", "k", "chain"), [("shades", 1, False), ("shades", 3, True), ("packed", 1, True), ("packed", 2, False)]
)
def test_the_end_of_a_step_is_as_in_numpy(obs: str, k: int, chain: bool) -> None:
    check_against_numpy("cpu", obs, k, chain)


def test_without_a_goal_only_time_ends_an_episode() -> None:
    task = make_task([np.zeros((1, *SHAPE), np.uint8)], [0.5], [1], [2])
    task[0].goal = None
    end = MadeUpStep(task, [0], 3, "cpu")
    end.envs.limit.fill_(2)
    lengths = []
    for _ in range(4):
        end.step_end.run("full_step")
        assert not end.envs.terminals.any()
        lengths.append(int(end.envs.length[0]) if end.envs.truncations.all() else 0)
    assert lengths == [0, 2, 0, 2]
