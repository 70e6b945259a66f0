"""PPO's gradients and Adam's step by our kernels, against autograd in float32 and torch's Adam."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cleanrl_style.ppo_lite import Agent, Args, backward, empty_rollout
from gbxcule_puffer.tasks.observe.layout import ObservationLayout, shades_layout
from gbxcule_puffer.tasks.observe.pictures import PictureKind
from gbxcule_puffer.trainers.blocks import Adam, Replayed
from gbxcule_puffer.trainers.kernels import ClippedAdam, FastConvolutions, FusedGradients

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("cuda_device")]
PACKED = ObservationLayout(PictureKind("packed", "half", 72, 20, 3, pixels=4), 1)
CASES: dict[str, tuple[ObservationLayout, int, int, dict[str, Any]]] = {
    "the default": (shades_layout(1), 8, 4096, {}),
    "few, whose values are clipped": (shades_layout(1), 8, 77, {"value_clip": 0.05, "norm_adv": False}),
    "many actions": (shades_layout(2, 24, 28), 20, 100, {"entropy_coef": 0.5}),
    "the largest pictures": (shades_layout(4, 144, 160), 3, 130, {"value_clip": 0.2, "value_coef": 2.0}),
    "packed pictures": (PACKED, 8, 64, {}),
}


@pytest.fixture(autouse=True)
def exact():
    """No TF32 in what is compared with."""
    torch.backends.cudnn.allow_tf32, before = False, torch.backends.cudnn.allow_tf32
    yield
    torch.backends.cudnn.allow_tf32 = before


def likely_rollout(model: Agent, layout: ObservationLayout, args: Args, actions: int) -> dict[str, Tensor]:
    """A rollout with noise, whose policy differs a little from the model's, so that a few ratios are clipped."""
    rollout = empty_rollout(args, layout, torch.device("cuda"))
    rollout["obs"].random_(256 if layout.kind.pixels > 1 else 4)
    rollout["actions"].random_(actions)
    for name in ("advantages", "returns"):
        rollout[name].normal_()
    for step in range(args.num_steps):
        logits, values = model(rollout["obs"][step])
        rollout["values"][step] = values + 0.1 * torch.randn_like(values)
        rollout["logprobs"][step] = logits.log_softmax(1).gather(1, rollout["actions"][step][:, None]).squeeze(1)
    rollout["logprobs"].add_(torch.randn_like(rollout["logprobs"]), alpha=0.15)
    return rollout


def gradients_of(model: nn.Module) -> list[Tensor]:
    return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_autograd(case: str) -> None:
    layout, actions, count, flags = CASES[case]
    torch.manual_seed(1)
    args = Args(env="toy", num_steps=4, num_envs=-(-count // 3), **flags)
    exact = Agent(layout, actions).to("cuda", memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    with torch.no_grad():
        exact.policy.weight.mul_(10)
        rollout = likely_rollout(exact, layout, args, actions)
    fast = copy.deepcopy(exact)
    fast.convolutions = FastConvolutions(fast.convolutions)
    index = torch.randperm(args.num_steps * args.num_envs, device="cuda")[:count]
    expected = backward(exact, torch.optim.SGD(exact.parameters(), lr=1.0), rollout, args, index)
    assert FusedGradients.can_do(fast, count)
    work = FusedGradients(fast, rollout, args)
    losses = work(index).clone()
    found = gradients_of(fast)
    torch.testing.assert_close(losses, expected, rtol=0.02, atol=0.01)
    assert len(found) == len(list(exact.parameters()))
    for one, other in zip(found, gradients_of(exact), strict=True):
        assert torch.cosine_similarity(one.flatten(), other.flatten(), dim=0) > 0.99
        assert float(one.norm() / other.norm()) == pytest.approx(1, abs=0.05)
    assert torch.equal(work(index), losses)
    assert all(torch.equal(*pair) for pair in zip(found, gradients_of(fast), strict=True))


def test_recorded_gradients_are_the_same() -> None:
    """Also of a smaller minibatch between them, which is not recorded."""
    torch.manual_seed(1)
    layout, args = shades_layout(1), Args(env="toy", num_steps=4, num_envs=64)
    model = Agent(layout, 8).to("cuda", memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    model.convolutions = FastConvolutions(model.convolutions)
    with torch.no_grad():
        work = FusedGradients(model, likely_rollout(model, layout, args, 8), args)
    parts = torch.randperm(256, device="cuda").split([96, 96, 64])
    recorded = Replayed(work, warm_up=1)
    torch.cuda.synchronize()  # the stream below does not wait for this one
    with torch.cuda.stream(torch.cuda.Stream()):
        for index in parts * 3:
            losses, found = recorded(index).clone(), gradients_of(model)
            assert torch.equal(work(index), losses)
            assert all(torch.equal(*pair) for pair in zip(found, gradients_of(model), strict=True))
        torch.cuda.synchronize()
    assert recorded.graph is not None


def test_other_networks_are_left_to_autograd() -> None:
    fast = Agent(shades_layout(1), 8).to("cuda")
    assert not FusedGradients.can_do(fast, 64)  # torch's convolutions
    fast.convolutions = FastConvolutions(fast.convolutions)
    assert FusedGradients.can_do(fast, 64) and not FusedGradients.can_do(fast, 2**22)
    many = Agent(shades_layout(1), 32)
    many.convolutions = FastConvolutions(many.convolutions)
    assert not FusedGradients.can_do(many.to("cuda"), 64)
    vectors = ObservationLayout(shades_layout(1).kind, 1, {"position": (2,)})
    seeing = Agent(vectors, 8)
    seeing.convolutions = FastConvolutions(seeing.convolutions)
    assert not FusedGradients.can_do(seeing.to("cuda"), 64)


def test_a_step_is_that_of_torch() -> None:
    """Of weights of all sizes, in other orders than rows, with a norm above and below the limit; also resumed."""
    torch.manual_seed(1)
    layers = nn.Sequential(nn.Conv2d(3, 7, 3), nn.Linear(5, 3000), nn.Linear(1, 1))
    ours = layers.to("cuda", memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    theirs = copy.deepcopy(ours)
    models = (ours, theirs)
    optimizers = [Adam(model.parameters(), lr=1e-3, eps=1e-5) for model in models]
    step: ClippedAdam | None = None
    for turn in range(12):
        for one, other in zip(*(model.parameters() for model in models), strict=True):
            one.grad = torch.empty_like(one) if one.grad is None else one.grad
            one.grad.normal_().mul_(0.02 if turn % 3 else 0.0005)
            other.grad = one.grad.clone()
        if turn == 6:
            saved = optimizers[0].state_dict()
            optimizers[0] = Adam(ours.parameters(), lr=0.5, eps=1e-5)
            optimizers[0].load_state_dict(copy.deepcopy(saved))
            step = None
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"].mul_(1.1)
        step = step or ClippedAdam(optimizers[0], 0.5)
        losses = step(torch.arange(3.0, device="cuda"))
        norm = nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        optimizers[1].step()
        torch.testing.assert_close(losses, torch.tensor([0.0, 1.0, 2.0, float(norm)], device="cuda"))
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    for one, other in zip(*(optimizer.state_dict()["state"].values() for optimizer in optimizers), strict=True):
        assert float(one["step"]) == float(other["step"]) == 12
        for name in ("exp_avg", "exp_avg_sq"):
            torch.testing.assert_close(one[name], other[name], rtol=1e-4, atol=1e-8)
