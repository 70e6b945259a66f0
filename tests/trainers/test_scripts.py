"""What holds of every script in cleanrl_style/, also of one that is added: its form, and a run of it from its flags to
its checkpoints."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from gbxcule_puffer.env.options import EnvOptions
from gbxcule_puffer.layout import SCRIPTS, trainer_scripts
from gbxcule_puffer.tasks.observe.layout import shades_layout
from gbxcule_puffer.trainers.blocks import rollout_memory
from gbxcule_puffer.trainers.flags import RESUMABLE_OPTIONS, RunFlags
from gbxcule_puffer.trainers.trained import load_script
from tests.support.training_runs import (
    assert_ends_where_not_finite,
    assert_refused,
    assert_repeats_from,
    smoke,
    words,
)

ROOT = Path(__file__).parents[2]
TRAINERS = [pytest.param(load_script(path), id=name) for name, path in trainer_scripts().items()]
SHORT = words("--env toy --device cpu --max-steps 16 --eval-episodes 4 --eval-envs 4 --stop-at-success 2")
SHORT += words("--keep-checkpoints 4")
# Sizes of a trainer whose defaults are for longer runs, and steps of which each fourth part is saved.
SIZES: dict[str, tuple[str, int]] = {
    "dqn_nstep": ("--num-envs 8 --buffer-size 1024 --learning-starts 200 --batch-size 32 --target-every 5", 768),
    "ppo_lite": ("--num-envs 16 --num-steps 8 --num-minibatches 4 --anneal-lr", 768),
    "ppo_recurrent": ("--num-envs 8 --num-steps 8 --num-minibatches 2 --log-interval 2", 768),
    "pqn": ("--num-envs 32 --num-steps 4 --eps-steps 1000", 768),
    "pqn_recurrent": ("--num-envs 8 --num-steps 8 --num-minibatches 2 --log-interval 2 --eps-steps 400", 768),
}
# Flags with which a run keeps more than otherwise, and so has more to go on with, all that it keeps without them too.
MORE = {
    "a2c_overlap": ["--env-groups 2 --recurrent gru --td-lambda 0.9 --reuse-values"],
    "dqn_nstep": ["--priority-alpha 0.5 --stack-k 2", "--recurrent gru --sequence-length 4 --burn-in 2"],
    "ppo_lite": ["", "--no-anneal-lr --noise-scale --rnd-coef 0.5 --residual"],
    "ppo_recurrent": ["--recurrent lstm --anneal-lr"],
    "pqn_recurrent": ["--recurrent lstm"],
}
REFUSED = {
    "a2c_overlap": [
        ("--num-envs 9 --env-groups 2", "--num-envs 9 must be a multiple of --env-groups 2"),
        ("--td-lambda 0.9 --update-every 1", "--td-lambda looks over the steps of a round"),
        ("--reuse-values --update-every 1", "--reuse-values is for rounds of several steps"),
        ("--num-envs 2 --env-groups 2", "--num-envs 2 leaves one advantage"),
    ],
    "a2c_streaming": [
        ("--num-envs 1", "--num-envs 1 leaves one advantage, which cannot be normalised: give --no-norm-adv"),
        ("--adv-floor 0", "--adv-floor 0.0 must be at least 1e-06"),
        ("--cuda-graph", "--cuda-graph needs an env on a GPU"),
    ],
    "dqn_nstep": [
        ("--n-step 0", "--n-step 0 must be at least 1"),
        ("--buffer-size 50", "--buffer-size 50 must be at least 200 with these flags"),
        ("--recurrent gru --priority-alpha 0.5", "--priority-alpha weighs transitions, not sequences"),
        ("--eps-start 5", "--eps-start 5.0 must be from 0 to 1"),
        ("--recurrent nosuch", "nosuch"),
    ],
    "ppo_lite": [
        ("--num-steps 0", "--num-steps 0 must be at least 1"),
        ("--num-envs 2 --num-steps 2 --num-minibatches 4", "--num-minibatches 4 leaves minibatches of under 2 of 4"),
        ("--action-codec nosuch", "nosuch"),
        ("--env nosuch", "nosuch"),
    ],
    "ppo_recurrent": [
        ("--num-envs 4 --num-minibatches 8", "--num-minibatches 8 share 4 sequences: give fewer"),
        ("--recurrent none", "none"),
    ],
    "pqn_recurrent": [("--num-envs 4 --num-minibatches 8", "--num-minibatches 8 share 4 sequences: give fewer")],
    "pqn": [
        ("--num-envs 1 --num-steps 2 --num-minibatches 4", "--num-minibatches 4 leaves minibatches of under 1 of 2"),
        ("--eps-steps 0", "--eps-steps 0 must be at least 1"),
        ("--q-lambda 1.5", "--q-lambda 1.5 must be from 0 to 1"),
    ],
}
EVERY = [
    ("--num-envs 0", "--num-envs 0 must be at least 1"),
    ("--nosuch", "nosuch"),
    ("--lr -1", "--lr -1.0 must be at least 0"),
    ("--resume /nosuch/checkpoint.pt", "/nosuch/checkpoint.pt"),
]
ORDER = """
import os, runpy, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print(os.environ.get("OMP_WAIT_POLICY"))
            raise SystemExit
sys.meta_path.insert(0, Watch())
runpy.run_path(sys.argv[1])
"""


def short(script: ModuleType) -> tuple[list[str], int]:
    """(flags of a short run on the toy that saves six checkpoints, its steps)."""
    size, steps = SIZES.get(script.EXP_NAME, ("--num-envs 8 --log-interval 8", 768))
    every = f"--total-env-steps {steps} --eval-every-steps {steps // 3} --checkpoint-every {steps // 6}"
    return [*SHORT, *words(size), *words(every)], steps


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.name)
def test_torch_s_threads_wait_without_spinning(script: Path) -> None:
    """OpenMP reads the variable while torch is imported, which therefore comes after the package."""
    env = {"PATH": "/usr/bin", "PYTHONPATH": str(ROOT)}
    result = subprocess.run([sys.executable, "-c", ORDER, str(script)], env=env, capture_output=True, text=True)
    assert result.stdout == "PASSIVE\n", result.stderr


@pytest.mark.parametrize("script", TRAINERS)
def test_the_script_shows_the_loop(script: ModuleType) -> None:
    """The loss's backward pass and the optimizer's step stand in it, and its `train` fits on a screen."""
    text = Path(str(script.__file__)).read_text()
    functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert {"train", "main", "load_policy"} <= functions.keys()
    train = functions["train"]
    assert (train.end_lineno or 0) - train.lineno < 60
    for line in ("nn.Sequential(", ".backward()", "clip_grad_norm_(", "optimizer.step()", "# Fast and special"):
        assert line in text, line


@pytest.mark.parametrize("script", TRAINERS)
def test_every_flag_has_a_help(script: ModuleType) -> None:
    assert not [each.name for each in fields(script.Args) if not each.metadata.get("help")]
    own, shared = script.Args.__dataclass_fields__["total_env_steps"], RunFlags.__dataclass_fields__["total_env_steps"]
    assert own.metadata["help"] == shared.metadata["help"] and own.metadata["least"] == 1


def test_options_that_a_resumed_run_may_change_exist() -> None:
    assert {each.name for each in fields(EnvOptions)} >= RESUMABLE_OPTIONS


@pytest.mark.parametrize("script", TRAINERS)
def test_smoke_goes_through_everything(script: ModuleType, tmp_path: Path) -> None:
    counters = smoke(script.main, tmp_path)
    assert counters["global_step"] == script.Args.__dataclass_fields__["total_env_steps"].metadata["smoke"]
    assert counters.get("updates", 11) > 10


@pytest.mark.parametrize(
    ("script", "more"),
    [
        pytest.param(load_script(path), more, id=f"{name} {more}".strip())
        for name, path in trainer_scripts().items()
        for more in MORE.get(name, [""])
    ],
)
def test_a_resumed_run_is_the_same_run(script: ModuleType, more: str, tmp_path: Path) -> None:
    """With its memories and its replay."""
    flags, steps = short(script)
    assert_repeats_from(steps // 2, script.main, [*flags, *words(more)], tmp_path)


@pytest.mark.parametrize("script", TRAINERS)
def test_numbers_that_are_not_finite_end_the_run(script: ModuleType, tmp_path: Path, capsys: Any) -> None:
    assert_ends_where_not_finite(script.main, short(script)[0], tmp_path, capsys)


@pytest.mark.parametrize("script", TRAINERS)
def test_bad_input_is_one_line(script: ModuleType, tmp_path: Path, capsys: Any) -> None:
    for flags, message in [*EVERY, *REFUSED.get(script.EXP_NAME, [])]:
        assert_refused(script.main, [*short(script)[0], *words(flags)], tmp_path / "run", message, capsys)


@pytest.mark.parametrize("name", ["ppo_lite", "pqn"])
def test_the_memory_estimate_is_what_is_allocated(name: str) -> None:
    script = load_script(trainer_scripts()[name])
    args = script.Args(env="toy", num_envs=16, num_steps=32, stack_k=2)
    network = script.Agent if name == "ppo_lite" else script.QNetwork
    rollout = script.empty_rollout(args, shades_layout(2, 20, 20), torch.device("cpu"))
    estimate = rollout_memory(args, script.empty_rollout, network)
    assert estimate["rollout"] == sum(part.nbytes for part in rollout.values())
    assert {part.shape[:2] for name, part in rollout.items() if name != "values"} == {(32, 16)}
    assert estimate["minibatch"] > 512 // args.num_minibatches * 20 * 20
