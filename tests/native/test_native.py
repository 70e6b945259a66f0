"""libgbxcule beside GBxCuLEEnv: the same observations, rewards and ends, on a CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gbxcule_puffer.emulator.gpu.schedule.launch_shape import PACKED, TOGETHER, LaunchShape
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.games import load_game, make_game_env
from gbxcule_puffer.native.record import RecordedEnv, record
from tests.games.folders import game_text, write
from tests.native.library import Library

HOMEWARD = Path(__file__).parents[2] / "roms" / "homeward.gb"
NUM_ENVS = 5
SHAPES = {
    "packed": LaunchShape(8, 32, True, twins=PACKED),
    "together": LaunchShape(32, 32, True, twins=TOGETHER),
    "mixed": LaunchShape(2, 32, True),
    "in turn": LaunchShape(1, 32),
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "packed": ("packed", {"obs": "packed", "max_steps": 7}),
    "stack": ("together", {"obs": "shades", "stack_k": 3, "max_steps": 5}),
    "sampled": ("mixed", {"obs": "averaged", "max_steps": 6, "start_waits": 3, "sticky_actions": 0.5}),
    "lengths": ("in turn", {"action_codec": "NOOP:3,A,UP+B:40", "max_steps": 4}),
    "until": ("together", {"until": "C0A0&3!=1", "max_steps": 6, "blocked_actions": ("START",)}),
    "color": ("packed", {"model": "cgb", "obs": "luma", "max_steps": 8}),
    "choices": ("packed", {"action_codec": "multi_discrete", "max_steps": 9}),
}
LENGTHY = {"stack", "lengths", "choices"}  # for make test-long


@pytest.mark.kernel
@pytest.mark.parametrize("case", [pytest.param(case, marks=[pytest.mark.long] * (case in LENGTHY)) for case in CASES])
def test_steps_are_those_of_the_python_env(case: str, tmp_path: Path) -> None:
    shape, options = CASES[case]
    made = record(lambda number: RecordedEnv(HOMEWARD, number, **options), SHAPES[shape], lanes=1)
    library = Library(made, tmp_path, NUM_ENVS, seed=3, log_stride=64)
    env = GBxCuLEEnv(HOMEWARD, NUM_ENVS, info_mode="none", **options)
    expected = env.reset(3)[0]
    generator, ends = np.random.default_rng(1), 0
    for _ in range(24):
        np.testing.assert_array_equal(library.observations, expected.reshape(NUM_ENVS, -1))
        actions = _actions(env, generator)
        library.step(actions)
        expected, rewards, terminals, truncations, _ = env.step(actions)
        np.testing.assert_array_equal(library.rewards, rewards)
        np.testing.assert_array_equal(library.terminals, terminals | truncations)
        ends += int(library.terminals.sum())
    assert ends > 0 and library.logs[:, 6].sum() == ends
    env.close()
    library.close()


def _actions(env: GBxCuLEEnv, generator: np.random.Generator) -> np.ndarray:
    factors = env.codec.factors or (env.codec.num_actions,)
    actions = np.stack([generator.integers(0, size, NUM_ENVS) for size in factors], 1)
    return actions if env.codec.factors else actions[:, 0]


@pytest.mark.kernel
@pytest.mark.parametrize("name", ["orchard", pytest.param("storeroom", marks=pytest.mark.long)])
def test_terms_of_a_folder_are_those_of_python(name: str, tmp_path: Path) -> None:
    """With levels, rewards, and both ends."""
    game = load_game(name)

    def make(kind: Any, number: int, **options: Any) -> Any:
        return make_game_env(game, kind, number, max_steps=40, frames_per_step=12, release_after_frames=6, **options)

    library = Library(record(lambda number: make(RecordedEnv, number), SHAPES["mixed"], lanes=1), tmp_path, NUM_ENVS, 3)
    env = make(GBxCuLEEnv, NUM_ENVS, info_mode="none")
    expected, paid, ends = env.reset(3)[0], 0.0, 0
    generator = np.random.default_rng(2)
    for _ in range(100):
        np.testing.assert_array_equal(library.observations, expected.reshape(NUM_ENVS, -1))
        actions = _actions(env, generator)
        library.step(actions)
        expected, rewards, terminals, truncations, _ = env.step(actions)
        np.testing.assert_array_equal(library.rewards, rewards)
        np.testing.assert_array_equal(library.terminals, terminals | truncations)
        ends, paid = ends + int(library.terminals.sum()), paid + float(np.abs(rewards).sum())
    assert ends > 5 and paid != 0
    env.close()
    library.close()


TERMS = """
[numbers]
score = {address = "score"}
lives = {address = "lives"}
state = {address = "game_state"}
pair = {address = "C0A4", size = 2, order = "big"}
signed = {address = "C0A4", size = 3, read = "signed"}
money = {address = "C0A4", size = 2, read = "bcd"}
digits = {address = "FE08", size = 3, read = "digits", zero = 0x30}
flags = {address = "FE00", size = 32, read = "bits", mask = 0x5A}
equal = {address = "FE00", size = 16, every = 2, read = "count", of = 0}
clock = {address = "C0A8"}

[reward]
sums = "score.delta * 0.1 + lives.fall - lives.rise * 3 + pair % 7 - signed.delta // 3 % 11"
floats = "(pair / 3) % 1.7 + (signed * 0.5) // 1.3 % 9.0 + min(money, digits, 3) * 0.25"
nothing = "max(flags, 2) / (clock - clock) + pair % (clock - clock) + pair // (clock - clock)"
bits = "(pair & 255 | flags ^ 3) >> 2 if state.previous == 1 or not lives.start else -(~flags << (clock & 3))"
once = "once(clock & 64) * 5 + once_ever(clock & 128) * 7 + changed(clock & 16)"
counts = "bits(clock) * 0.01 + bit(clock, 3) + equal.delta"
total = "total(clock & 1) * 0.125 + total((clock & 6) / 4)"
more = "abs(signed.delta) * 1e-9 + clip(clock % 1000, 3, 500) * 1e-3 + (1 < (clock & 3) <= 2)"

[end]
success = "clock % 5 == 3 and pair.previous & 4 != 0"
failure = "clock % 5 == 3"
truncation = "clock % 7 == 2"

[variants.poked]
poke = [{address = "lives", value = 3, when = "always"}, {address = "C122", value = [0x12, 0x34]}]
"""


@pytest.mark.kernel
@pytest.mark.parametrize("variant", [pytest.param(None, marks=pytest.mark.long), "poked"])
def test_every_operation_of_terms_is_pythons(variant: str | None, tmp_path: Path) -> None:
    game = load_game(write(tmp_path / "game", game_text(TERMS), rom=True))

    def make(kind: Any, number: int, **options: Any) -> Any:
        options |= {"max_steps": 40, "frames_per_step": 3, "release_after_frames": 1, "start_waits": 9}
        return make_game_env(game, kind, number, variant=variant, **options)

    made = record(lambda number: make(RecordedEnv, number), SHAPES["mixed"], lanes=1)
    library, env = Library(made, tmp_path, NUM_ENVS, 3), make(GBxCuLEEnv, NUM_ENVS, info_mode="none")
    env.reset(3)
    generator, ends, paid = np.random.default_rng(2), 0, set[float]()
    for _ in range(90):
        actions = _actions(env, generator)
        library.step(actions)
        _, rewards, terminals, truncations, _ = env.step(actions)
        np.testing.assert_array_equal(library.rewards, rewards)
        np.testing.assert_array_equal(library.terminals, terminals | truncations)
        ends, paid = ends + int(library.terminals.sum()), paid | set(rewards.tolist())
    _, _, successes, truncated, *_ = library.logs.sum(0)
    assert len(paid) > 30 and min(successes, truncated, ends - successes - truncated) > 0
    env.close()
    library.close()
