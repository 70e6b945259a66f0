"""The convolutions of Triton against torch's, in float32 with the same rounded inputs."""

import subprocess
import sys

import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d, relu

from cleanrl_style.ppo_lite import Agent
from gbxcule_puffer.layout import child_environment
from gbxcule_puffer.tasks.observe.layout import shades_layout
from gbxcule_puffer.trainers.kernels import FastConvolutions, ahead, convolutions

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("cuda_device")]
SHAPES = [(37, 1, 72, 80), (5, 2, 72, 80), (3, 3, 144, 160), (9, 4, 20, 20), (1, 1, 24, 28)]


@pytest.fixture(autouse=True)
def exact():
    """No TF32 in what is compared with."""
    torch.backends.cudnn.allow_tf32, before = False, torch.backends.cudnn.allow_tf32
    yield
    torch.backends.cudnn.allow_tf32 = before


def rounded(*shape: int) -> Tensor:
    """Random numbers that bfloat16 has."""
    return torch.randn(shape, device="cuda").to(torch.bfloat16).float()


def assert_close(found: Tensor, expected: Tensor, share: float) -> None:
    assert found.shape == expected.shape
    assert float((found.float() - expected).detach().abs().max()) <= share * float(expected.detach().abs().max())


@pytest.mark.parametrize("shape", SHAPES)
def test_pixels(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    pixels = torch.randint(0, 256, shape, dtype=torch.uint8, device="cuda")
    weight, bias = rounded(16, 16 * shape[1], 2, 2).requires_grad_(), rounded(16).requires_grad_()
    patches = torch.nn.functional.pixel_unshuffle(pixels.float(), 4)
    expected = relu(conv2d(patches, weight, bias)).permute(0, 2, 3, 1)
    output = convolutions.on_pixels(pixels, weight, bias)
    assert_close(output, expected, 0.01)
    gradient = rounded(*output.shape)
    wanted = torch.autograd.grad(expected, (weight, bias), gradient * (output > 0) * (expected > 0))
    # bfloat16 may round an output of almost 0 to it, and the gradient there is 0 then
    found = convolutions.on_pixels_backward(pixels, output, (gradient * (expected > 0)).to(torch.bfloat16))
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, 1e-4)
    again = convolutions.on_pixels_backward(pixels, output, (gradient * (expected > 0)).to(torch.bfloat16))
    assert all(torch.equal(one, other) for one, other in zip(found, again, strict=True))


@pytest.mark.parametrize("shape", SHAPES)
def test_features(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    high, wide = shape[2] // 4 - 1, shape[3] // 4 - 1
    features = rounded(shape[0], high, wide, 16).requires_grad_()
    weight, bias = rounded(32, 16, 4, 4).requires_grad_(), rounded(32).requires_grad_()
    expected = relu(conv2d(features.permute(0, 3, 1, 2), weight, bias, stride=2))
    output = convolutions.on_features(features.to(torch.bfloat16), weight, bias)
    assert_close(output, expected, 0.01)
    gradient = rounded(*output.shape) * ((output > 0) & (expected > 0))
    wanted = torch.autograd.grad(expected, (features, weight, bias), gradient)
    low = (features.detach().to(torch.bfloat16), weight.detach(), output, gradient.to(torch.bfloat16))
    found = convolutions.on_features_backward(*low)
    for one, other, share in zip(found, wanted, (0.01, 1e-4, 1e-4), strict=True):
        assert_close(one, other, share)
    assert all(torch.equal(*pair) for pair in zip(found, convolutions.on_features_backward(*low), strict=True))


def test_a_first_call_imports_nothing_of_torch_compile() -> None:
    """Which takes seconds of a run's start."""
    code = """import sys, torch
from gbxcule_puffer.trainers.kernels import convolutions
shape = (2, 17, 19, 16)
zeros = torch.zeros(shape, dtype=torch.bfloat16, device="cuda")
convolutions.on_features(zeros, torch.zeros(32, 16, 4, 4, device="cuda"), torch.zeros(32, device="cuda"))
print("torch._dynamo" in sys.modules)"""
    found = subprocess.run([sys.executable, "-c", code], env=child_environment(), capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "False\n"), found.stderr


@pytest.mark.parametrize("compiled", [False, True])
def test_the_layers_with_them_in_bfloat16_are_those_in_float32(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    layout = shades_layout(2, 72, 80)
    agent = Agent(layout, 8)
    model = torch.nn.Sequential(FastConvolutions(agent.convolutions), agent.hidden)
    model = model.to("cuda", memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    observations = torch.randint(0, 4, (64, *layout.picture_shape), dtype=torch.uint8, device="cuda")
    calls: list[bool] = []
    usual = convolutions.can_do

    def can_do(*inputs: object) -> bool:
        calls.append(usual(*inputs))  # pyright: ignore[reportArgumentType]
        return calls[-1]

    monkeypatch.setattr(convolutions, "can_do", can_do)
    expected = model(observations)
    expected.square().mean().backward()
    wanted = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    with torch.autocast("cuda", torch.bfloat16):
        found = (torch.compile(model) if compiled else model)(observations)
    found.float().square().mean().backward()
    assert calls == [False, True]
    assert_close(found, expected, 0.03)
    for parameter, other in zip(model.parameters(), wanted, strict=True):
        assert parameter.grad is not None
        assert torch.cosine_similarity(parameter.grad.flatten(), other.flatten(), dim=0) > 0.999


def test_kernels_that_are_compiled_ahead_serve_all_numbers_of_pictures() -> None:
    kernels = convolutions._kernels()
    names = ("pixels_forward", "pixels_weights", "features_forward", "features_weights", "features_data", "column_sums")
    ahead.begin(torch.device("cuda", torch.cuda.current_device()), (3, 40, 48))
    ahead.finish()
    counts = [len(getattr(kernels, name).device_caches[torch.cuda.current_device()][0]) for name in names]
    for count in (1, 2, 37, 64):
        test_pixels((count, 3, 40, 48))
        test_features((count, 3, 40, 48))
    assert counts == [len(getattr(kernels, name).device_caches[torch.cuda.current_device()][0]) for name in names]
    assert min(counts) >= 1
