"""The launch shape for a game, chosen by what a run's own steps took."""

from __future__ import annotations

import pytest

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.gpu.autotuner import ROUNDS, Trial
from gbxcule_puffer.emulator.gpu.launch_shape import LANES, LaunchShape
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.default_task import default_rom
from gbxcule_puffer.trainers.flags import GraphFlags, parse_flags

USUAL = LaunchShape(16, 32, True)


def best(cost: dict[int, float], growth: float = 0.0, late: dict[int, float] | None = None) -> LaunchShape:
    """The choice where a step takes `cost` of its lanes, each step a share `growth` more than the one before; late:
    single steps that took as many times as long."""
    trial = Trial(USUAL)
    times = [cost[shape.lanes] * (1 + growth * step) for step, shape in enumerate(trial.measured)]
    for step, factor in (late or {}).items():
        times[step] *= factor
    return trial.best(times)


@pytest.mark.parametrize("fastest", LANES)
def test_the_fastest_is_chosen_also_where_steps_become_longer(fastest: int) -> None:
    cost = {lanes: 1.0 if lanes == fastest else 1.05 for lanes in LANES}
    for growth in (0.0, 0.2, -0.02):
        assert best(cost, growth) == LaunchShape(fastest, USUAL.block_dim, USUAL.grouped)


def test_one_slow_step_decides_nothing() -> None:
    assert best({8: 1.0, 16: 1.1, 32: 1.2}, late={0: 50.0}).lanes == 8


def test_the_usual_shape_stays_where_all_are_as_good() -> None:
    assert best({8: 1.0, 16: 1.0, 32: 1.0}) == USUAL


def test_all_shapes_are_measured_equally_often() -> None:
    lanes = [shape.lanes for shape in Trial(USUAL).measured]
    assert {each: lanes.count(each) for each in LANES} == dict.fromkeys(LANES, 2 * ROUNDS)


def test_a_cpu_has_nothing_to_tune() -> None:
    for make in (Emulator, GBxCuLEEnv):
        with pytest.raises(ConfigError, match=r"autotune .* give device 'cuda'"):
            make(default_rom(), 1, "cpu", autotune=True)


def test_what_a_graph_replays_is_not_measured() -> None:
    flags = parse_flags(GraphFlags, "prog", None, ["--autotune", "--cuda-graph", "--device", "cuda"])
    with pytest.raises(ConfigError, match="give only one of them"):
        flags.check()
