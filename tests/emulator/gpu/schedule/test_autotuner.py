"""The launch shape for a game, chosen by what a run's own steps took."""

from __future__ import annotations

import pytest

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.gpu.schedule.autotuner import GAIN, OTHERS, ROUNDS, Trial, candidates
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import LANES, LaunchShape
from gbxcule_puffer.tasks.source import default_rom

USUAL = LaunchShape(16, 32, True)
SHAPES = candidates(USUAL)


def best(cost: dict[LaunchShape, float], growth: float = 0.0, late: dict[int, float] | None = None) -> LaunchShape:
    """The choice where a step takes `cost` of its shape, each step a share `growth` more than the one before; late:
    single steps that took as many times as long."""
    trial = Trial(USUAL)
    times = [cost[shape] * (1 + growth * step) for step, shape in enumerate(trial.measured)]
    for step, factor in (late or {}).items():
        times[step] *= factor
    return trial.best(times)


@pytest.mark.parametrize("fastest", SHAPES)
def test_the_fastest_is_chosen_also_where_steps_become_longer(fastest: LaunchShape) -> None:
    cost = {shape: 1.0 if shape == fastest else 1.2 for shape in SHAPES}
    for growth in (0.0, 0.2, -0.02):
        assert best(cost, growth) == fastest


def test_the_usual_shape_stays_where_another_is_hardly_faster() -> None:
    faster = {shape: 1.0 if shape == USUAL else GAIN + 0.01 for shape in SHAPES}
    assert best(dict.fromkeys(SHAPES, 1.0)) == best(faster) == USUAL
    assert best({shape: 1.0 if shape == USUAL else GAIN - 0.01 for shape in SHAPES}) != USUAL


def test_all_shapes_are_measured_equally_often() -> None:
    measured = Trial(USUAL).measured
    assert {shape: measured.count(shape) for shape in SHAPES} == dict.fromkeys(SHAPES, 2 * ROUNDS)


def test_all_usual_shapes_have_others() -> None:
    assert set(OTHERS) == set(LANES)
    assert all(len(candidates(LaunchShape(lanes, 32, True))) > 1 for lanes in LANES)


@pytest.mark.parametrize("lanes", OTHERS)
def test_each_env_has_a_lane_in_every_shape(lanes: int) -> None:
    for shape in candidates(LaunchShape(lanes, 32, True)):
        for num_envs in (1, 7, 100, 4_096, 131_072):
            first, warps = shape.warps(num_envs)
            after_it = num_envs - first * shape.head_lanes
            assert 0 <= after_it <= (warps - first) * shape.lanes < after_it + shape.lanes
            assert not first or first * shape.head_lanes <= num_envs // shape.head


def test_a_cpu_has_nothing_to_tune() -> None:
    assert Emulator(default_rom(), 1, "cpu", autotune=True).launches is None
