"""Evaluations in a share of the time, by a clock of the test's own: what they take, when they come, what they leave
out; and what a run shows as its speed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from cleanrl_style import ppo_lite
from gbxcule_puffer.env.options import EnvOptions
from gbxcule_puffer.env.protocol import PlayedEnv, Policy
from gbxcule_puffer.tasks.actions import get_codec
from gbxcule_puffer.toy import CELL, ToyEnv
from gbxcule_puffer.trainers.evaluation import (
    GIVEN_UP,
    Evaluations,
    Play,
    PolicyMaker,
    lowest_success,
    random_policy,
)
from gbxcule_puffer.trainers.evaluator import LEAST_SECONDS, PLAYED, RESERVE, Evaluator
from gbxcule_puffer.trainers.meters import Budget, Recent
from gbxcule_puffer.trainers.report import report
from tests.support.training_runs import merged, read, records, same_checkpoints, toy_run

SECOND = 0.5  # of a step of SlowEnv
MOVES = get_codec(EnvOptions().action_codec).actions


class Clock:
    """Shows the seconds that the test lets pass."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class SlowEnv(ToyEnv):
    """A toy whose steps take time, and whose episodes are as long as a user likes."""

    def __init__(self, clock: Clock, num_envs: int = 4, max_steps: int = 1000) -> None:
        super().__init__(num_envs=num_envs, max_steps=max_steps)
        self.clock, self.taken, self.second = clock, 0, SECOND

    def step(self, actions: torch.Tensor) -> Any:
        self.clock.now += self.second
        self.taken += 1
        return super().step(actions)


class Flags:
    """Of the run, those that an Evaluator reads."""

    eval_share, eval_episodes, eval_every_steps, stop_at_success, stop_greedy = 0.05, 8, None, 0.95, True


def stands(env: PlayedEnv, greedy: bool, seed: int) -> Policy:
    """NOOP: an episode ends with its limit only."""
    return lambda obs, starts=None: torch.zeros(len(obs), dtype=torch.int64)


def evaluator(clock: Clock, max_steps: int = 1000, **flags: Any) -> Evaluator:
    args: Any = Flags()
    vars(args).update(flags)
    env: Any = SlowEnv(clock, max_steps=max_steps)
    return Evaluator(args, Evaluations(env, 4, 8, 1, clock), clock)


def test_long_episodes_take_no_larger_share() -> None:
    """A thousand steps of half a second are 25 minutes of evaluation: after two hours of training in records of two
    seconds it has not ended, and has had its share, less what is put aside for the last one."""
    clock = Clock()
    own = evaluator(clock)
    for record in range(3600):
        clock.now += 2
        assert own.some(stands, record, last=False) == {}
    assert 0.04 < own.budget.taken <= 0.05 + 1e-3
    assert own.budget.spent == pytest.approx(0.05 * (clock.now - own.budget.begun), abs=RESERVE + 2 * SECOND)


def test_an_evaluation_goes_on_over_records_and_counts_whole_episodes() -> None:
    clock = Clock()
    own, found = evaluator(clock, max_steps=20), []
    for record in range(1200):
        clock.now += 2
        result = own.some(stands, record, last=False)
        found += [result] if result else []
    assert len(found) >= 2
    assert all(result["eval/episodes"] == 8 and "eval/cut_at" not in result for result in found)
    assert own.budget.taken <= 0.05 + 1e-3


def test_the_beginning_of_a_run_is_not_evaluated() -> None:
    """For a minute the share is what the last evaluation will take."""
    clock = Clock()
    own = evaluator(clock)
    clock.now += 59
    assert own.some(stands, 1, last=False) == {} and own.budget.spent == 0
    clock.now += 11
    own.some(stands, 1, last=False)
    assert own.budget.spent > 0


@pytest.mark.parametrize(("max_steps", "episodes", "cut"), [(1, 8, False), (2, 4, False), (1000, 4, True)])
def test_the_last_evaluation_ends_within_its_seconds(max_steps: int, episodes: int, cut: bool) -> None:
    """Whole episodes, as many of each row, if there is the time; else the first ones, up to the same step."""
    clock = Clock()
    own = evaluator(clock, max_steps)
    clock.now += 100
    result = own.some(stands, 1, last=True)
    random = own.of_random()
    share = 0.05 * 100 * PLAYED
    assert own.budget.spent <= share + 3 * SECOND, "sampled, greedy and random, each a step too long at most"
    assert result["eval/episodes"] == episodes and ("eval/cut_at" in result) == cut == ("cut_at" in random)
    if cut:
        assert result["eval/cut_at"] * SECOND <= share / 3 + SECOND
        assert result["eval/success_rate"] == 0 and "eval/greedy_cut_at" in result
        text = report(Path("run"), result, random, {}, {}, "")
        assert text.count("no time for whole ones") == 3 and "in training" not in text, "nothing was recorded"
        text = report(Path("run"), result, random, {"charts/SPS": 99.0}, {}, "", 46)
        assert "in training    no episode has ended in 46 steps of each Game Boy" in text
    else:
        assert lowest_success(result, greedy=True) == 0


def test_the_shortest_runs_are_evaluated_for_a_moment() -> None:
    clock = Clock()
    own = evaluator(clock)
    clock.now += 2
    assert own.some(stands, 1, last=True)["eval/cut_at"] == 1
    own.of_random()
    assert own.budget.spent <= 2 * LEAST_SECONDS + 3 * SECOND


@pytest.mark.parametrize("seconds", [25, 75, 300])
@pytest.mark.parametrize("success", [0.5, 1.0])
def test_runs_of_any_length_are_evaluated_in_the_share(seconds: int, success: float) -> None:
    """Also those that succeed in training from the first record on, whose last evaluation may be long over, and whose
    evaluations take longer than that."""
    clock = Clock()
    own = evaluator(clock, max_steps=1000)
    own.evaluations.env.second = 0.01  # pyright: ignore[reportAttributeAccessIssue]
    for record in range(seconds):
        clock.now += 1
        own.count(success, 100)
        own.some(stands, record, last=record == seconds - 1)
    own.of_random()
    share = 0.05 * (clock.now - own.budget.begun)
    assert share / 2 <= own.budget.spent <= share + LEAST_SECONDS + 3 * 0.01


def test_cut_episodes_are_those_of_all_rows_up_to_the_same_step() -> None:
    """Beside a slow count: rows with short episodes do not count more often than rows with long ones."""
    env: Any = ToyEnv(num_envs=16, max_steps=50)
    play = Play([lambda part: random_policy(part, 3)], env, 16, [32], 5)
    for _ in range(9):
        play._step()
    (result,) = play.results()
    again: Any = ToyEnv(num_envs=16, max_steps=50)
    obs, _ = again.reset(seed=5)
    policy, total, ended = random_policy(again, 3), torch.zeros(16), torch.zeros(16, dtype=torch.bool)
    won = torch.zeros(16, dtype=torch.bool)
    for _ in range(9):
        obs, rewards, terminals, truncations, _ = again.step(policy(obs))
        total += rewards * ~ended
        won |= terminals & ~ended
        ended |= terminals | truncations
    assert 0 < int(ended.sum()) < 16, "some are cut"
    assert result["cut_at"] == 9 and result["episodes"] == 16
    assert result["return"] == pytest.approx(float(total.mean()))
    assert result["success_rate"] == float(won.double().mean())


def test_success_in_training_is_looked_into_at_once() -> None:
    """With the seconds that were put aside for the last evaluation, but for a moment; not ahead of the share."""
    clock = Clock()
    own = evaluator(clock)
    clock.now += 40
    own.count(0.9, 100)
    assert own.some(stands, 1, last=False) == {} and own.budget.spent == 0
    own.count(0.97, 8)
    for record in range(10):
        own.some(stands, record, last=False)
    assert own.budget.spent == pytest.approx(0.05 * 40 - LEAST_SECONDS, abs=SECOND)


def walks(obs: torch.Tensor, starts: torch.Tensor | None = None) -> torch.Tensor:
    """The shortest way to the middle of each board."""
    cell = (obs[:, 0, ::CELL, ::CELL] == 3).flatten(1).int().argmax(1)
    row, column = cell // 5 - 2, cell % 5 - 2
    across = torch.where(column > 0, MOVES.index("LEFT"), MOVES.index("RIGHT"))
    down = torch.where(row > 0, MOVES.index("UP"), MOVES.index("DOWN"))
    return torch.where(row != 0, down, across)


def walks_when(policies: Sequence[bool]) -> PolicyMaker:
    """A policy that walks to the goal; the greedy one, too, or not: one of the policies each."""
    left = iter(policies)

    def make(env: PlayedEnv, greedy: bool, seed: int) -> Policy:
        return walks if not greedy or next(left) else stands(env, greedy, seed)

    return make


def test_an_evaluation_that_cannot_pass_is_given_up() -> None:
    """Its greedy policy plays first, and fails: no record, and the time goes to the next policy. Two that pass have the
    results that they have otherwise."""
    clock = Clock()
    own, play = evaluator(clock, max_steps=20), walks_when([False, False, True, True])
    own.count(1.0, 100)
    clock.now += 1000
    assert own.some(play, 1, last=False) == {GIVEN_UP: 1.0}
    assert own.budget.spent == 20 * SECOND and not own.evaluations.running and not own.filmed
    assert lowest_success({GIVEN_UP: 1.0}) < 0, "it counts as one that has failed"
    assert own.some(play, 2, last=False) == {GIVEN_UP: 1.0}
    found = own.some(play, 3, last=False)
    assert lowest_success(found, greedy=True) == 1 and own.filmed
    whole = evaluator(Clock(), max_steps=20).whole(walks_when([True]), 3)
    assert found == whole
    own.args.stop_greedy = False
    assert own.some(walks_when([False]), 4, last=False)["eval/greedy_success"] == 0, "which does not matter then"


def test_the_last_evaluation_is_not_given_up() -> None:
    clock = Clock()
    own = evaluator(clock, max_steps=20)
    own.count(1.0, 100)
    clock.now += 4000
    assert own.some(walks_when([False]), 1, last=True)["eval/greedy_success"] == 0


def test_no_share_leaves_the_last_evaluation() -> None:
    clock = Clock()
    own = evaluator(clock, max_steps=1, eval_share=0.0)
    own.count(1.0, 100)
    clock.now += 1e6
    assert own.some(stands, 1, last=False) == {}
    assert own.some(stands, 1, last=True)["eval/episodes"] == 4


def test_meters() -> None:
    clock, recent = Clock(), Recent(10)
    budget = Budget(0.1, 1.0, clock)
    clock.now += 30
    assert budget.left == pytest.approx(2.0)
    with pytest.raises(KeyError), budget.spend():
        clock.now += 6
        raise KeyError
    assert (budget.spent, budget.taken) == (6, pytest.approx(1 / 6))
    assert math.isnan(recent.mean)
    for mean, episodes in ((0.0, 6), (1.0, 4), (0.5, 8)):
        recent.add(mean, episodes)
    assert recent.mean == pytest.approx((4 + 4) / 12), "the oldest are not needed for ten"


def test_flags_that_are_given_evaluate_whole_episodes_at_their_steps(tmp_path: Path) -> None:
    """As they always did: equal runs have equal records."""
    for name in ("one", "other"):
        assert ppo_lite.main(toy_run(tmp_path / name, num_steps=8, num_minibatches=4, eval_episodes=16)) == 0
    one, other = records(tmp_path / "one"), records(tmp_path / "other")
    assert one == other
    found = [row for row in one if "eval/return" in row]
    assert [row["global_step"] for row in found] == [256, 512]
    assert all(row["eval/episodes"] >= 16 for row in found)


def test_by_default_a_short_run_is_evaluated_at_its_end(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert ppo_lite.main(toy_run(run, num_steps=8, num_minibatches=4, eval_every_steps=None, media_every=10**9)) == 0
    found = [row for row in records(run) if "eval/return" in row]
    assert [row["global_step"] for row in found] == [512]
    last = merged(run)
    assert last["charts/SPS"] == pytest.approx(512 / last["charts/seconds"], rel=0.2), "by wall time since the start"
    assert last["charts/SPS_learner"] >= last["charts/SPS"]
    assert (run / "checkpoint.pt").exists() and list((run / "media").iterdir())


def test_a_resumed_run_learns_the_same_whatever_the_clock_shows(tmp_path: Path) -> None:
    """Evaluations come by time then, but what is learned does not depend on them."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    sizes = {"num_steps": 8, "num_minibatches": 4, "eval_every_steps": None, "checkpoint_every": 128}
    flags = [word for word in toy_run(whole, **sizes, keep_checkpoints=4) if not word.startswith("--run-dir")]
    assert ppo_lite.main([*flags, f"--run-dir={whole}"]) == 0
    parts.mkdir()
    (parts / "checkpoint.pt").write_bytes((whole / "checkpoint.2.pt").read_bytes())
    assert read(parts / "checkpoint.pt")["counters"]["global_step"] == 256
    assert ppo_lite.main([*flags, f"--run-dir={parts}", f"--resume={parts}"]) == 0
    same_checkpoints(whole / "checkpoint.pt", parts / "checkpoint.pt")
