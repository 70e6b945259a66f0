"""What a training's process spends on its start and its end: it imports nothing that only torch.compile needs, which
takes as long as all else."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from gbxcule_puffer.layout import child_environment, trainer_scripts
from gbxcule_puffer.trainers.blocks import Adam, RAdam
from gbxcule_puffer.trainers.kernels import ahead, convolutions

Optimizers = Callable[..., torch.optim.Optimizer]
LOOK = """
import atexit, gc, runpy, sys
atexit.register(lambda: print("frozen", gc.get_freeze_count() > 100_000))  # after all that are registered later
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    found = {name.split(".")[0] for name in sys.modules} & {"sympy", "matplotlib", "triton", "libcst"}
    print("imported", *sorted(found), *[name for name in sys.modules if name in ("torch._dynamo", "torch._inductor")])
"""


def test_a_run_imports_no_compiler_and_ends_at_once(tmp_path: Path) -> None:
    """From the start of the process to its end, with a checkpoint. libcst, where the kernels' source has been generated
    before, takes a quarter of a second, and the garbage collections at the end, of all that was imported, a second."""
    words = ["--env", "toy", "--smoke", "--run-dir", str(tmp_path / "run")]
    command = [sys.executable, "-c", LOOK, str(trainer_scripts()["ppo_lite"]), *words]
    found = subprocess.run(command, env=child_environment(), capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[-2:] == ["imported", "frozen True"]
    assert (tmp_path / "run/checkpoint.pt").exists()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(Adam, partial(torch.optim.Adam, fused=True)), (RAdam, partial(torch.optim.RAdam, foreach=True))],
)
def test_the_optimizers_are_torch_s(ours: Optimizers, theirs: Optimizers) -> None:
    """The same weights and state after the same gradients and with the same changes of the learning rate, also from a
    saved state, in which it is a number."""
    start = torch.nn.Linear(5, 3)
    models = [copy.deepcopy(start) for _ in range(2)]
    kinds = ours, theirs
    optimizers = [kind(model.parameters(), lr=0.1) for kind, model in zip(kinds, models, strict=True)]
    for step in range(8):
        for index, (optimizer, model) in enumerate(zip(optimizers, models, strict=True)):
            optimizer.zero_grad()
            model(torch.arange(5.0) + step).square().sum().backward()
            optimizer.step()
            group = optimizer.param_groups[0]
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].mul_(1.1)  # in place, as a CUDA graph needs it
            else:
                group["lr"] *= 1.1
            if step == 4:
                saved = optimizer.state_dict()
                assert type(saved["param_groups"][0]["lr"]) is float
                optimizers[index] = kinds[index](model.parameters(), lr=0.5)
                rate = optimizers[index].param_groups[0]["lr"]
                optimizers[index].load_state_dict(saved)
                assert ours is not Adam or index or optimizers[index].param_groups[0]["lr"] is rate
    rates = [optimizer.state_dict()["param_groups"][0]["lr"] for optimizer in optimizers]
    assert rates[0] == rates[1] > 0.2
    assert all(torch.equal(a, b) for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(models[0].parameters(), start.parameters(), strict=True))
    assert models[0].weight.requires_grad


def test_a_training_goes_on_where_triton_cannot_compile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As without a C compiler: here there is no GPU for its kernels."""
    monkeypatch.setattr(convolutions, "HAS_TRITON", True)
    with monkeypatch.context() as patch:
        patch.setattr(convolutions, "has_kernels", lambda *_: True)
        ahead.begin(torch.device("meta"), (1, 72, 80))
        ahead.finish()
    said = capsys.readouterr().err
    assert said.startswith("warning: Triton cannot compile (") and said.count("\n") == 1
    assert not convolutions.HAS_TRITON
    ahead.begin(torch.device("meta"), (1, 72, 80))  # the next run of the process, or one that finds no compiler
    assert "(it needs a C compiler and Python's headers)" in capsys.readouterr().err


def test_the_operators_have_shapes_and_gradients_without_a_gpu() -> None:
    """Tensors without data go through both convolutions and back, as torch.compile sends them."""
    pixels = torch.zeros((3, 1, 72, 80), dtype=torch.uint8, device="meta")
    shapes = (16, 16, 2, 2), (16,), (32, 16, 4, 4), (32,)
    weight, bias, second, second_bias = weights = [
        torch.zeros(*shape, device="meta").requires_grad_() for shape in shapes
    ]
    seen = convolutions.on_pixels(pixels, weight, bias)
    output = convolutions.on_features(seen, second, second_bias)
    assert (seen.shape, output.shape, output.dtype) == ((3, 17, 19, 16), (3, 32, 7, 8), torch.bfloat16)
    gradients = torch.autograd.grad(output.sum(), weights)
    assert [gradient.shape for gradient in gradients] == list(shapes)
