"""The trainers' optimizers are torch's, to the bit, and a start imports nothing of torch.compile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gbxcule_puffer.trainers import blocks

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("own", "torchs"), [(blocks.Adam, torch.optim.Adam), (blocks.RAdam, torch.optim.RAdam)])
def test_steps_and_states_are_torchs(own: type, torchs: type) -> None:
    found = []
    for kind in (own, torchs):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 2))
        optimizer = kind(model.parameters(), lr=3e-3, eps=1e-5)
        steps = []
        optimizer.register_step_post_hook(lambda *_, steps=steps: steps.append(1))
        for _ in range(8):
            optimizer.zero_grad()
            model(torch.randn(16, 5)).square().mean().backward()
            optimizer.step()
        state = optimizer.state_dict()
        again = kind(model.parameters(), lr=1.0)
        again.load_state_dict(state)
        assert len(steps) == 8 and again.param_groups[0]["lr"] == 3e-3
        assert all(parameter.requires_grad for parameter in model.parameters())
        found.append(([parameter.detach() for parameter in model.parameters()], state))
    (ours, state), (theirs, other) = found
    assert all(torch.equal(one, two) for one, two in zip(ours, theirs, strict=True))
    assert state["param_groups"] == other["param_groups"]
    for number, parts in other["state"].items():
        assert all(torch.equal(state["state"][number][name], part) for name, part in parts.items())


@pytest.mark.parametrize("script", ["a2c_streaming", "dqn_nstep", "ppo_lite", "pqn"])
def test_a_training_imports_no_compiler(script: str, tmp_path: Path) -> None:
    """torch._dynamo takes a second, and libcst, where the kernels' source has been generated before, a quarter."""
    code = f"""
import sys
from cleanrl_style import {script}
assert {script}.main(["--env", "toy", "--device", "cpu", "--smoke", "--run-dir", {str(tmp_path / "run")!r}]) == 0
print(sorted({{"torch._dynamo", "torch._inductor", "sympy", "libcst", "matplotlib"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
