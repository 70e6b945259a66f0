"""Two processes of a SLURM job, with gloo: averaged gradients, equal weights, steps counted over both."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import torch

from cleanrl_style import ppo_lite
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.trainers.checkpoints import read_checkpoint
from gbxcule_puffer.trainers.distributed import World
from tests.games.events import write_events
from tests.support.clusters import SLURM, slurm_job
from tests.support.training_runs import records, toy_run

NETWORKS = {"a2c_streaming": "Agent", "ppo_lite": "Agent", "pqn": "QNetwork"}
PARTS = {"parts": 512, "whole": 1024}
WORKER = """
import functools, importlib, json, sys
from pathlib import Path
import torch
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.milestones import share
from tests.trainers.test_milestones import make, press

world = World.from_environment()
world.join("cpu")
assert world.size == 2
model = torch.nn.Linear(3, 1)
world.share_weights(model)
assert len(set(map(str, world.gather(model.weight.tolist())))) <= 1
model(torch.full((1, 3), 1.0 + world.rank)).sum().backward()
world.average_gradients(model)
assert model.weight.grad.tolist() == [[1.5, 1.5, 1.5]], model.weight.grad
assert world.tell(world.rank) == 0
assert world.gather(world.rank * 10) == ([0, 10] if world.rank == 0 else [])

env = make(Path(sys.argv[2]), max_steps=100)
if world.rank == 1:
    press(env, 13)
share([env.milestones], world)
kept = [row["kept"] for row in env.milestones.table()]
Path(sys.argv[2], f"found{world.rank}").write_text(f"{kept} {int(env.milestones.newest('event1').memory.sum())}")

def recorded(network, models, *args, **options):
    models.append(network(*args, **options))
    return models[-1]

for name, network, runs in json.loads(sys.argv[1]):
    script, models = importlib.import_module(f"cleanrl_style.{name}"), []
    setattr(script, network, functools.partial(recorded, getattr(script, network), models))
    for argv in runs:
        assert script.main(argv) == 0
    weights = torch.cat([p.detach().flatten() for p in models[-1].parameters()])
    both = world.gather(weights)
    assert all(torch.equal(both[0], other) for other in both)
world.leave()
threads = [Path(task, "comm").read_text() for task in Path("/proc/self/task").glob("*")]
assert not [name for name in threads if "gloo" in name], f"threads of the left group may abort the exit: {threads}"
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of runs of all trainers, made by two processes one after the other: A2C in one go and in two parts."""
    folder = tmp_path_factory.mktemp("runs")
    rest = ["--resume", str(folder / "parts"), "--total-env-steps", "1024"]
    seldom = {"eval_every_steps": 512, "eval_episodes": 4, "media_every": 100_000}
    parts, whole = (toy_run(folder / name, total_env_steps=steps, **seldom) for name, steps in PARTS.items())
    flags = {"a2c_streaming": [whole, parts, rest]}
    seldom |= {"total_env_steps": 1024, "num_steps": 16, "num_minibatches": 4, "log_interval": 1}
    for name in ("ppo_lite", "pqn"):
        flags[name] = [toy_run(folder / name, **seldom)]
    (folder / "worker.py").write_text(WORKER)
    env = slurm_job(folder, ["localhost"], "2", 'exec "$@"')
    command = ["bash", str(SLURM), str(folder / "worker.py")]
    command.append(json.dumps([(name, NETWORKS[name], flags[name]) for name in NETWORKS]))
    command.append(str(write_events(folder)))
    result = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=240)
    assert result.returncode == 0, result.stderr[-4000:]
    assert result.stdout.count("success rate") == 5, "one process reports, of each run"
    return folder


def test_two_processes_learn_together_and_resume(runs: Path) -> None:
    """A run in one go, and one in two parts: the same records; all of them by the first process."""
    first = records(runs / "whole")[0]
    assert first["global_step"] == 2 * 8 * 8, "two processes of 8 envs, 8 steps"
    again = [row for row in records(runs / "parts") if row["global_step"] > 512]
    assert again == [row for row in records(runs / "whole") if row["global_step"] > 512]


def test_they_share_the_states_of_milestones(runs: Path) -> None:
    """Only the second process has reached some."""
    found = [(runs / f"found{rank}").read_text() for rank in range(2)]
    assert found[0] == found[1] and found[0].startswith("[1, 1, 0, 0, 0]")


@pytest.mark.parametrize("name", ["whole", "ppo_lite", "pqn"])
def test_steps_are_counted_over_both_processes(runs: Path, name: str) -> None:
    checkpoint = read_checkpoint(runs / name / "checkpoint.pt")
    assert checkpoint["counters"]["global_step"] == 1024
    assert json.loads((runs / name / "manifest.json").read_text())["processes"] == 2
    one, other = (process["envs"][0]["tensors"]["walker"] for process in checkpoint["processes"])
    assert not torch.equal(one, other), "each process has envs of its own"
    if name != "whole":
        steps = [record["global_step"] for record in records(runs / name) if "losses/grad_norm" in record]
        assert steps == [256, 512, 768, 1024], "a rollout is 128 steps of each process"


def test_one_process_does_not_go_on_with_a_run_of_two(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ppo_lite.main(["--resume", str(runs / "ppo_lite"), "--total-env-steps", "2048"]) == 2
    assert "is of 2 processes, not 1" in capsys.readouterr().err


def test_the_environment_of_torchrun() -> None:
    assert World.from_environment({}) == World(0, 0, 1)
    assert World.from_environment({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4"}) == World(3, 1, 4)
    for broken in ({"WORLD_SIZE": "2"}, {"RANK": "2", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}):
        with pytest.raises(ConfigError, match="torchrun"):
            World.from_environment(broken)
