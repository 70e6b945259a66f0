"""Two processes that torchrun starts, with gloo: averaged gradients, equal weights, steps counted over both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.trainers.checkpoints import read_checkpoint
from gbxcule_puffer.trainers.distributed import World
from tests.support.training_runs import records, toy_run

ROOT = Path(__file__).parents[2]

WORKER = """
import sys
from pathlib import Path
import torch
from cleanrl_style import a2c_streaming as a2c
from gbxcule_puffer.trainers.distributed import World

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

models = []
make = a2c.PixelActorCriticCNN
a2c.PixelActorCriticCNN = lambda *args: models.append(make(*args)) or models[-1]
for argv in sys.argv[1].split(";"):
    assert a2c.main(argv.split()) == 0
weights = torch.cat([p.detach().flatten() for p in models[-1].parameters()])
both = world.gather(weights)
assert all(torch.equal(both[0], other) for other in both)
world.leave()
threads = [Path(task, "comm").read_text() for task in Path("/proc/self/task").glob("*")]
assert not [name for name in threads if "gloo" in name], f"threads of the left group may abort the exit: {threads}"
"""


def torchrun(tmp_path: Path, argument: str) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command += [str(tmp_path / "worker.py"), argument]
    result = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr[-4000:]


def test_two_processes_learn_together_and_resume(tmp_path: Path) -> None:
    """A run in one go, and one in two parts: the same records; all of them by the first process."""
    parts = toy_run(tmp_path / "parts", total_env_steps=512, checkpoint_every=128)
    rest = ["--resume", str(tmp_path / "parts"), "--total-env-steps", "1024"]
    whole = toy_run(tmp_path / "whole", total_env_steps=1024, checkpoint_every=128)
    torchrun(tmp_path, ";".join(" ".join(flags) for flags in (whole, parts, rest)))
    first = records(tmp_path / "whole")[0]
    assert first["global_step"] == 2 * 8 * 8, "two processes of 8 envs, 8 steps"
    checkpoint = read_checkpoint(tmp_path / "whole/checkpoint.pt")
    assert checkpoint["counters"]["global_step"] == 1024
    assert len(checkpoint["processes"]) == 2
    envs = [process["envs"][0]["tensors"]["walker"] for process in checkpoint["processes"]]
    assert not torch.equal(*envs), "each process has envs of its own"
    again = [row for row in records(tmp_path / "parts") if row["global_step"] > 512]
    assert again == [row for row in records(tmp_path / "whole") if row["global_step"] > 512]


def test_the_environment_of_torchrun() -> None:
    assert World.from_environment({}) == World(0, 0, 1)
    assert World.from_environment({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4"}) == World(3, 1, 4)
    for broken in ({"WORLD_SIZE": "2"}, {"RANK": "2", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}):
        with pytest.raises(ConfigError, match="torchrun"):
            World.from_environment(broken)
