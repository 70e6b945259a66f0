"""The first two convolutions of all networks, each with its ReLU, as operators of torch. In bfloat16 on a GPU they are
Triton kernels, which take a third of cuDNN's time for so few channels (docs/scale.md).

Gradients are sums in a fixed order: equal inputs give equal results, bit for bit.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch.autograd.function import BackwardCFunction


def _triton_can_compile() -> bool:
    """True where Triton is, a part of torch with CUDA, and the C compiler and Python's headers that it needs."""
    scheme = sysconfig.get_default_scheme().replace("posix_local", "posix_prefix")
    has_headers = Path(sysconfig.get_path("include", scheme), "Python.h").exists()
    has_compiler = any(map(shutil.which, (os.environ.get("CC") or "gcc", "gcc", "clang")))
    return importlib.util.find_spec("triton") is not None and has_headers and has_compiler


Function = TypeVar("Function", bound=Callable[..., Any])
LIBRARY = "gbxcule"  # of operators
HAS_TRITON = _triton_can_compile()
TENSOR_CORES_OF_BFLOAT16 = 8  # compute capability of the first GPUs with bfloat16 tensor cores
MOST_ELEMENTS = 2**31 - 1  # limit of a tensor: the kernels count in 32 bits
# (rows of a block, warps of a program) and, for sums, programs; stages of a pipeline. Measured with 16,384 pictures on
# an H200, those for sums with 4,096 on an H100.
PIXELS_FORWARD, PIXELS_WEIGHTS, STAGES = (128, 2), (32, 1, 2112), 2
FEATURES_FORWARD, FEATURES_WEIGHTS, FEATURES_DATA = (64, 8), (64, 8, 264), (128, 4)
SUMS = 128, 16, 4  # rows and columns of a block of `column_sums`, warps


@cache
def _kernels() -> ModuleType:
    """The Triton kernels, imported at their first use."""
    return importlib.import_module("gbxcule_puffer.trainers.kernels.triton_kernels")


@cache
def learning_kernels() -> ModuleType:
    """Those of losses and of optimizers."""
    return importlib.import_module("gbxcule_puffer.trainers.kernels.triton_learning")


def can_do(pixels: Tensor, channels: tuple[int, int]) -> bool:
    """True if `on_pixels` and `on_features` can do the convolutions of these pixels, with these numbers of output
    channels, under autocast in bfloat16."""
    if not pixels.is_cuda or pixels.dtype != torch.uint8:
        return False
    if not torch.is_autocast_enabled("cuda") or torch.get_autocast_dtype("cuda") != torch.bfloat16:
        return False
    count, _, rows, columns = pixels.shape
    elements = max(pixels.numel(), count * (rows // 4) * (columns // 4) * max(channels))
    return has_kernels(pixels.device, rows, columns) and elements <= MOST_ELEMENTS


def has_kernels(device: torch.device, rows: int, columns: int) -> bool:
    """True if there are kernels for a GPU and pictures of this size."""
    if not HAS_TRITON or torch.cuda.get_device_properties(device).major < TENSOR_CORES_OF_BFLOAT16:
        return False
    return rows % 4 == 0 and columns % 4 == 0 and min(rows, columns) >= 20


def _blocks(positions: int, shape: tuple[int, int, int]) -> tuple[int, int]:
    """(programs, blocks of each) of a sum over all positions."""
    block, _, programs = shape
    steps = -(-positions // (block * programs))
    return -(-positions // (block * steps)), steps


def _pixel_sizes(pixels: Tensor, output: Tensor) -> tuple[int, ...]:
    """The sizes for the kernels: OH, OW, COUNT, ROWS, WORDS, COLS, O."""
    _, pictures, rows, columns = pixels.shape
    _, high, wide, channels = output.shape
    return high, wide, pictures, rows, columns // 4, max(16, 1 << (16 * pictures - 1).bit_length()), channels


def by_word(weight: Tensor) -> Tensor:
    """A view of a weight (O, 16 * k, 2, 2) as the kernels for pixels have it: byte of a word; picture, 8 rows, word;
    O."""
    channels, inputs = weight.shape[:2]
    return weight.reshape(channels, inputs // 16, 4, 4, 2, 2).permute(3, 1, 4, 2, 5, 0)


def by_place(weight: Tensor) -> Tensor:
    """A view of a weight (O, C, 4, 4) as the kernels for features have it: 4 rows, 4 columns, C, O."""
    return weight.permute(2, 3, 1, 0)


def _low(weight: Tensor) -> Tensor:
    """A contiguous copy in bfloat16, by one kernel."""
    return torch.empty(weight.shape, dtype=torch.bfloat16, device=weight.device).copy_(weight)


def column_sums(
    partials: Tensor, out: Tensor | None = None, target: Tensor | None = None, scales: Tensor | None = None
) -> Tensor:
    """The sums of partials (rows, columns) over the rows, always in the same order; times `scales` (columns,) at the
    indices `target` (columns,) of `out`, if these are given."""
    count, columns = partials.shape
    sums = torch.empty(columns, device=partials.device) if out is None else out
    high, wide, warps = SUMS
    grid = (-(-columns // wide),)
    _kernels().column_sums[grid](partials, target, scales, sums, count, columns, high, wide, num_warps=warps)
    return sums


def pixels_forward(pixels: Tensor, weight: Tensor, bias: Tensor, index: Tensor | None = None) -> Tensor:
    """`on_pixels` of pixels[index], (len(index), ...) int64, without a copy of them; by default of all pixels."""
    n, channels = len(pixels if index is None else index), weight.shape[0]
    _, _, rows, columns = pixels.shape
    shape = (n, rows // 4 - 1, columns // 4 - 1, channels)
    output = torch.empty(shape, dtype=torch.bfloat16, device=pixels.device)
    positions, (block, warps) = output.numel() // channels, PIXELS_FORWARD
    inputs = (pixels.view(torch.int32), index, _low(by_word(weight)), bias.float(), output, positions)
    sizes = _pixel_sizes(pixels, output)
    _kernels().pixels_forward[(-(-positions // block),)](*inputs, *sizes, block, num_warps=warps)
    return output


def pixels_backward(pixels: Tensor, output: Tensor, gradient: Tensor, index: Tensor | None = None) -> Tensor:
    """Partial sums (rows, columns) of the gradients of weight and bias, from the gradient of the output of
    `pixels_forward`: columns of `by_word` of the weight, then of the bias."""
    pictures, channels = pixels.shape[1], output.shape[3]
    positions = output.numel() // channels
    programs, steps = _blocks(positions, PIXELS_WEIGHTS)
    partials = torch.empty((programs, (64 * pictures + 1) * channels), device=pixels.device)
    sizes, (block, warps, _) = _pixel_sizes(pixels, output), PIXELS_WEIGHTS
    inputs = (pixels.view(torch.int32), index, output, gradient.contiguous(), partials, positions, steps)
    _kernels().pixels_weights[(programs,)](*inputs, *sizes, block, num_warps=warps, num_stages=STAGES)
    return partials


def features_backward(features: Tensor, weight: Tensor, output: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """(gradient of features, bfloat16; partial sums of the gradients of weight and bias) from the gradient of the
    output of `on_features`. The columns of the sums are those of `by_place` of the weight, then of the bias."""
    n, high, wide, count = features.shape
    channels = weight.shape[0]
    positions = output.numel() // channels
    sizes = (high, wide, *output.shape[2:], count, channels)
    programs, steps = _blocks(positions, FEATURES_WEIGHTS)
    partials = torch.empty((programs, (16 * count + 1) * channels), device=features.device)
    before_relu = torch.empty_like(output)
    block, warps, _ = FEATURES_WEIGHTS
    inputs = (features, output, gradient.contiguous(), before_relu, partials, positions, steps)
    _kernels().features_weights[(programs,)](*inputs, *sizes, block, num_warps=warps)
    parities = _low(weight.reshape(channels, count, 2, 2, 2, 2).permute(3, 5, 2, 4, 0, 1))
    of_features = torch.empty_like(features)
    positions, (block, warps) = n * -(-high // 2) * -(-wide // 2), FEATURES_DATA
    _kernels().features_data[(-(-positions // block), 4)](
        before_relu, parities, of_features, positions, *sizes, block, num_warps=warps
    )
    return of_features, partials


def _operator(function: Function) -> Function:
    """A function of tensors on a GPU as an operator of torch, which torch.compile takes as a whole. Not by custom_op of
    torch.library: its first call imports all that torch.compile needs, 800 modules."""
    name = f"{LIBRARY}::{function.__name__}"
    torch.library.define(name, torch.library.infer_schema(function, mutates_args=()), tags=torch.Tag.pt2_compliant_tag)
    torch.library.impl(name, "cuda", function)
    operator: Any = getattr(getattr(torch.ops, LIBRARY), function.__name__).default
    return operator


@_operator
def on_pixels(pixels: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """ReLU of the 8x8 convolution with stride 4 that `weight` (O, 16 * k, 2, 2) is for the 4x4 blocks of pixels (n, k,
    rows, columns), uint8 and contiguous: (n, rows / 4 - 1, columns / 4 - 1, O), bfloat16."""
    return pixels_forward(pixels, weight, bias)


@_operator
def on_pixels_backward(pixels: Tensor, output: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of weight and bias, float32, from the gradient of the output."""
    pictures, channels = pixels.shape[1], output.shape[3]
    sums = column_sums(pixels_backward(pixels, output, gradient))
    of_weight = sums[:-channels].view(4, pictures, 2, 4, 2, channels).permute(5, 1, 3, 0, 2, 4)
    return of_weight.reshape(channels, 16 * pictures, 2, 2), sums[-channels:].clone()


@_operator
def on_features(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """ReLU of the 4x4 convolution with stride 2 of features (n, h, w, C), bfloat16 and contiguous, with weight (O, C,
    4, 4): (n, O, h // 2 - 1, w // 2 - 1), bfloat16, in the order of the layers after it."""
    n, high, wide, count = features.shape
    channels = weight.shape[0]
    shape = (n, channels, high // 2 - 1, wide // 2 - 1)
    output = torch.empty(shape, dtype=torch.bfloat16, device=features.device)
    positions, (block, warps) = output.numel() // channels, FEATURES_FORWARD
    sizes = (high, wide, *shape[2:], count, channels)
    _kernels().features_forward[(-(-positions // block),)](
        features, _low(by_place(weight)), bias.float(), output, positions, *sizes, block, num_warps=warps
    )
    return output


@_operator
def on_features_backward(
    features: Tensor, weight: Tensor, output: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of features, bfloat16, weight and bias, float32, from the gradient of the output."""
    channels = weight.shape[0]
    of_features, partials = features_backward(features, weight, output, gradient)
    sums = column_sums(partials)
    of_weight = sums[:-channels].view(4, 4, features.shape[3], channels).permute(3, 2, 0, 1)
    return of_features, of_weight.contiguous(), sums[-channels:].clone()


@torch.library.register_fake(f"{LIBRARY}::on_pixels")
def _(pixels: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    n, _, rows, columns = pixels.shape
    return pixels.new_empty((n, rows // 4 - 1, columns // 4 - 1, weight.shape[0]), dtype=torch.bfloat16)


@torch.library.register_fake(f"{LIBRARY}::on_pixels_backward")
def _(pixels: Tensor, output: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    channels = output.shape[3]
    of_weight = output.new_empty((channels, 16 * pixels.shape[1], 2, 2), dtype=torch.float32)
    return of_weight, output.new_empty(channels, dtype=torch.float32)


@torch.library.register_fake(f"{LIBRARY}::on_features")
def _(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    n, high, wide, _ = features.shape
    return features.new_empty((n, weight.shape[0], high // 2 - 1, wide // 2 - 1))


@torch.library.register_fake(f"{LIBRARY}::on_features_backward")
def _(features: Tensor, weight: Tensor, output: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    of_weight = features.new_empty(weight.shape, dtype=torch.float32)
    return torch.empty_like(features), of_weight, features.new_empty(weight.shape[0], dtype=torch.float32)


def _keep_pixels(ctx: BackwardCFunction, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], output)


def _of_pixels(ctx: BackwardCFunction, gradient: Tensor) -> tuple[Tensor | None, ...]:
    pixels, output = list(ctx.saved_tensors)
    return None, *on_pixels_backward(pixels, output, gradient)


def _keep_features(ctx: BackwardCFunction, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], inputs[1], output)


def _of_features(ctx: BackwardCFunction, gradient: Tensor) -> tuple[Tensor, ...]:
    features, weight, output = list(ctx.saved_tensors)
    return on_features_backward(features, weight, output, gradient)


torch.library.register_autograd(f"{LIBRARY}::on_pixels", _of_pixels, setup_context=_keep_pixels)
torch.library.register_autograd(f"{LIBRARY}::on_features", _of_features, setup_context=_keep_features)
