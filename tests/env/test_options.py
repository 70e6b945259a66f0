"""The environment's options: declared once, found everywhere; wrong ones are one line."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.pages import option_table
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.options import STEP_COST, EnvOptions
from gbxcule_puffer.errors import ConfigError

ROOT = Path(__file__).parents[2]
ROM = ROOT / "roms/homeward.gb"
# Everywhere that options are listed; run in a copy of the package that has one more.
LISTS = """
import inspect, json
import numpy as np
import gbxcule_puffer.baselines.pyboy_puffer_vec as vec, benchmarks.pages.option_table as table
from gbxcule_puffer import env_creator
from gbxcule_puffer.env.fields import Episode
from gbxcule_puffer.integrations import gym
from gbxcule_puffer.integrations.pufferl import config
from gbxcule_puffer.trainers.envs import make_env
from gbxcule_puffer.commandline import parse
from gbxcule_puffer.trainers.flags import TaskFlags

ini = config.own_config()
signatures = {name: inspect.signature(env_creator(name)) for name in ("gbxcule", "pyboy_puffer_vec")}
signatures |= {"make": inspect.signature(gym.make), "make_vec": inspect.signature(gym.make_vec)}
env = env_creator("gbxcule")("roms/homeward.gb", luck=0.5)
flags = parse(TaskFlags, "prog", None, ["--luck", "0.75"])
trained = make_env(flags, 2, "cpu", {"rom": "roms/homeward.gb"}, 0)
found = {name: signature.parameters["luck"].default for name, signature in signatures.items()}
found |= {"flag": flags.luck, "trained": trained.options.luck, "ini": ini["env"]["luck"]}
found |= {"kernels": "luck" in Episode.vars}
env.reset()
found |= {"reward": float(env.step(np.zeros(1, np.int64))[1][0])}
found |= {"value": env.options.luck, "row": next(row for row in table.table().splitlines() if "`luck`" in row)}
print(json.dumps(found))
"""


@pytest.mark.long
def test_an_option_is_added_in_one_place(tmp_path: Path) -> None:
    """One more field of EnvOptions: keyword, flag with its help, ini key, Gymnasium keyword, row of the docs, and what
    the kernels read, where one line makes it a term of the reward."""
    for folder in ("gbxcule_puffer", "benchmarks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("results"))
    path = tmp_path / "gbxcule_puffer/env/options.py"
    text = path.read_text()
    added = '    luck: float = option(0.25, "how lucky", TASK, least=0, most=1, weight=True)\n    goal_bonus:'
    path.write_text(text.replace("    goal_bonus:", added, 1))
    path = tmp_path / "gbxcule_puffer/env/step_end/parts.py"
    text = path.read_text()
    path.write_text(text.replace("    if reached:", "    reward = reward + e.luck\n    if reached:", 1))
    (tmp_path / "roms").symlink_to(ROOT / "roms")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", LISTS]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found.pop("row") == "| `luck` | `0.25` | how lucky | a finite number, from 0 to 1 |"
    assert (found.pop("flag"), found.pop("trained"), found.pop("ini"), found.pop("value")) == (0.75, 0.75, "0.25", 0.5)
    assert found.pop("kernels"), "a weight of a reward's term is a member of Episode"
    assert found.pop("reward") == pytest.approx(0.5 + STEP_COST)
    assert found == dict.fromkeys(("gbxcule", "pyboy_puffer_vec", "make", "make_vec"), 0.25)


def test_the_table_in_the_docs_is_this_one() -> None:
    text = option_table.PAGE.read_text()
    assert option_table.page(text) == text, "run `python -m benchmarks.pages.option_table`"


def test_the_signature_shows_every_option() -> None:
    parameters = inspect.signature(GBxCuLEEnv).parameters
    assert list(parameters)[:4] == ["rom", "num_envs", "device", "buf"]
    assert {name: p.default for name, p in list(parameters.items())[4:]} == asdict(EnvOptions())
    assert "self" not in parameters and "options" not in parameters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_step": 3}, "option 'max_step' is unknown: did you mean max_steps?"),
        ({"num_env": 3}, "option 'num_env' is unknown: did you mean num_envs?"),
        ({"teleport": 1}, "option 'teleport' is unknown: give one of obs, stack_k"),
        ({"io": "jax"}, "io 'jax' is unknown: give one of numpy, torch"),
        ({"obs": "rgba"}, "obs 'rgba' is unknown: give one of shades, packed"),
        ({"info_mode": "all"}, "info_mode 'all' is unknown"),
        ({"action_codec": "v7"}, "action_codec 'v7' is unknown"),
        ({"curriculum": "hard"}, "curriculum 'hard' is unknown"),
        ({"curriculum": 3}, "curriculum 3 must be one of uniform"),
        ({"stack_k": 0}, "stack_k 0 must be from 1 to 256"),
        ({"stack_k": 10**20}, "stack_k 100000000000000000000 must be from 1 to 256"),
        ({"archive_slots": 10**20}, "archive_slots 100000000000000000000 must be from 0 to 16,777,216"),
        ({"seed": 10**20}, "seed 100000000000000000000 must be from -4,611,686,018,427,387,904 to"),
        ({"stack_k": 1.5}, "stack_k 1.5 must be"),
        ({"stack_k": True}, "stack_k True must be"),
        ({"max_steps": 1e3}, "max_steps 1000.0 must be a whole number, from 1 to 2,147,483,647"),
        ({"frames_per_step": "8"}, "frames_per_step '8' must be a whole number, from 1 to 20,000"),
        ({"num_envs": 0}, "num_envs 0 must be at least 1"),
        ({"num_envs": 2.0}, "num_envs 2.0 must be a whole number"),
        ({"max_steps": 0}, "max_steps 0 must be from 1"),
        ({"k_consecutive": 0}, "k_consecutive 0 must be from 1"),
        ({"k_consecutive": 2**31}, "k_consecutive 2147483648 must be from 1"),
        ({"start_waits": 10_000_000}, "start_waits 10000000 must be from 0 to 10,000"),
        ({"sticky_actions": 1.0}, "sticky_actions 1.0 must be at least 0 and below 1"),
        ({"archive_share": -0.5}, "archive_share -0.5 must be at least 0 and below 1"),
        ({"archive_slots": -1}, "archive_slots -1 must be from 0 to 16,777,216"),
        ({"first_env": -1}, "first_env -1 must be from 0"),
        ({"alpha": float("nan")}, "alpha nan must be from -1,000,000,000"),
        ({"step_cost": float("inf")}, "step_cost inf must be"),
        ({"goal_bonus": 1e300}, "goal_bonus 1e[+]300 must be"),
        ({"goal_bonus": 10**400}, "goal_bonus 1000000"),
        ({"start_state": ""}, "start_state '' must be a path"),
        ({"reward_scale": "2"}, "reward_scale '2' must be"),
        ({"tau": float("nan")}, "tau nan must be from 0 to 1"),
        ({"tau": 1.5}, "tau 1.5 must be from 0 to 1"),
        ({"chain": 1}, "chain 1 must be True or False"),
        ({"start_state": 5}, "start_state 5 must be a path or a list of paths"),
        ({"blocked_actions": 5}, "blocked_actions 5 must be names"),
        ({"frames_per_step": 7}, "release_after_frames 8 must be from 1 to frames_per_step 7"),
        ({"io": "torch", "buf": {}}, "leave buf out"),
    ],
)
def test_wrong_options_are_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        GBxCuLEEnv(ROM, **options)
    assert "\n" not in str(error.value)


def test_values_become_plain_python() -> None:
    """NumPy's numbers, paths and lists, as a program hands them on."""
    options = EnvOptions(
        stack_k=np.int64(2),  # pyright: ignore[reportArgumentType]
        alpha=np.float32(0.5),  # pyright: ignore[reportArgumentType]
        goal_bonus=1,
        chain=np.True_,  # pyright: ignore[reportArgumentType]
        blocked_actions=["START"],  # pyright: ignore[reportArgumentType]
        start_state=[Path("a"), "b"],
        seed=np.int64(2**40),  # pyright: ignore[reportArgumentType]
    )
    plain = {"stack_k": 2, "alpha": 0.5, "goal_bonus": 1.0, "chain": True, "blocked_actions": ("START",)}
    plain |= {"start_state": ("a", "b"), "seed": 2**40}
    assert {name: getattr(options, name) for name in plain} == plain
    assert all(type(getattr(options, name)) is type(value) for name, value in plain.items())
    assert EnvOptions(blocked_actions="START").blocked_actions == ("START",)  # pyright: ignore[reportArgumentType]
    assert {option.name for option in fields(EnvOptions)} >= plain.keys()
