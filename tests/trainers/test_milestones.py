"""A run's milestones: the lines, the states, restarts from them, their exchange, and stalls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from cleanrl_style import ppo_lite
from gbxcule_puffer import env_creator
from gbxcule_puffer.trainers.advice import PATIENCE, Stalls
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.milestones import share
from tests.games.events import EVENTS, write_events

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_events(tmp_path_factory.mktemp("events"))


def make(game: Path, num_envs: int = 4, **options: Any) -> Any:
    env = env_creator("gbxcule", game=game)(num_envs, io="torch", **{"milestone_slots": 2, **options})
    env.reset(seed=1)
    return env


def press(env: Any, steps: int) -> None:
    for step in range(steps):
        env.step(torch.full((env.num_envs,), step % 2))


def test_a_run_writes_lines_and_states_and_goes_on(game: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    flags = [
        "--game",
        str(game),
        "--num-envs",
        "8",
        "--num-steps",
        "16",
        "--num-minibatches",
        "1",
        "--log-interval",
        "1",
    ]
    flags += ["--eval-every-steps", "100000", "--eval-envs", "2", "--eval-episodes", "2", "--update-epochs", "1"]
    flags += ["--milestone-slots", "2", "--swarm-steps", "16", "--coverage", "--run-dir", str(run), "--total-env-steps"]
    assert ppo_lite.main([*flags, "512"]) == 0
    lines = [json.loads(line) for line in (run / "milestones.jsonl").read_text().splitlines()]
    assert [line["name"] for line in lines] == [f"event{event}" for event in range(len(lines))] and len(lines) > 1
    assert [line["step"] for line in lines] == sorted(line["step"] for line in lines) and lines[0]["step"] <= 256
    states = sorted((run / "milestones").iterdir())
    assert [path.name for path in states] == [f"{line['number']:03}-{line['name']}.state" for line in lines]
    assert (run / "media/coverage_000000000512.png").is_file()
    env = make(game, 1, start_state=str(states[1]), milestone_slots=0)
    assert env.ram["wEventFlags"].tolist() == [3], "an episode begins behind the second milestone"
    # A resumed run forgets what came behind its checkpoint, and knows what is there; its seconds go on.
    text = (run / "milestones.jsonl").read_text()
    (run / "milestones.jsonl").write_text(text + '{"name": "later", "number": 4, "step": 5000, "seconds": 1.0}\n')
    assert ppo_lite.main(["--resume", str(run), "--total-env-steps", "1024"]) == 0
    after = [json.loads(line) for line in (run / "milestones.jsonl").read_text().splitlines()]
    names = [line["name"] for line in after]
    assert (
        after[: len(lines)] == lines and len(set(names)) == len(names) and all(line["step"] <= 1024 for line in after)
    )
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    seconds = [record["charts/seconds"] for record in records if "charts/seconds" in record]
    assert len(seconds) >= 8 and seconds == sorted(seconds)


def test_envs_of_a_process_share_their_states(game: Path) -> None:
    ahead, behind = make(game), make(game)
    press(ahead, 7)
    share([ahead.milestones, behind.milestones], World())
    for env in (ahead, behind):
        assert [row["kept"] for row in env.milestones.table()] == [1, 0, 0, 0, 0]
    assert (behind.milestones.newest("event0").memory == ahead.milestones.newest("event0").memory).all()
    env = make(game, milestone_share=0.0, swarm_steps=4, swarm_share=1.0)
    share([env.milestones, behind.milestones], World())
    for _ in range(4):
        env.step(torch.zeros(4, dtype=torch.int64))
    assert env.ram["wEventFlags"].tolist() == [1] * 4, "the swarm goes on from a state of another env"


def test_a_stall_is_said_once_and_again_behind_the_next_milestone(
    game: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = make(game, max_steps=100)
    press(env, 7)
    watch, reached = Stalls(env), "env/milestones/reached"
    for step in (1_000, PATIENCE, PATIENCE + 1_000, 3 * PATIENCE):
        assert watch.look(step, {reached: 1.0}) is None
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "warning: no new milestone after event0 in 1,000,000 steps (1 of 5 reached, next event1): play on"
    )
    press(env, 7)
    watch.look(4 * PATIENCE, {reached: 2.0})
    watch.look(7 * PATIENCE, {reached: 2.0})
    assert not capsys.readouterr().err, "what came took longer than that"
    watch.look(8 * PATIENCE, {reached: 2.0})
    assert "no new milestone after event1 in 4,000,000 steps" in capsys.readouterr().err
    assert watch.look(9 * PATIENCE, {reached: float(EVENTS)}) == "", "there is nothing to come"
