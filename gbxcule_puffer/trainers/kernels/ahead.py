"""Kernels compiled while a run opens its envs: at the first start on a machine they take seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from gbxcule_puffer.trainers.blocks.optimizers import Adam
from gbxcule_puffer.trainers.kernels import convolutions, heads, steps

CHANNELS = 16, 32  # outputs of the two convolutions of all networks
HIDDEN = 256  # of the hidden layer of ppo_lite.py
_begun: list[Future[None]] = []


def begin(device: torch.device, picture_shape: tuple[int, int, int], ppo: bool = False) -> None:
    """Starts to compile the kernels for pictures (channels, rows, columns), and those for PPO's minibatches, in threads
    of their own. `finish` waits for them. Where Triton lacks what it needs, a line says so.

    Before its first kernel, Triton reads and hashes its own 400 MB: one work begins alone, else each thread would do
    that, and the run's own start wait for Python's lock each time that one of them goes on.
    """
    if not convolutions.HAS_TRITON:
        _warn("it needs a C compiler and Python's headers")
    elif convolutions.has_kernels(device, *picture_shape[1:]):
        works = [partial(_use_pixels, picture_shape, ppo), partial(_use_features, picture_shape)]
        works += [_use_heads, _use_steps] if ppo else []
        pool = ThreadPoolExecutor(len(works))
        first = pool.submit(_on, device, _use_sums)
        _begun.extend([first, *(pool.submit(_on, device, work, behind=first) for work in works)])
        pool.shutdown(wait=False)


def finish() -> None:
    """Waits until all are compiled. Where Triton fails, a line says so, and torch's convolutions are used."""
    while _begun:
        try:
            _begun.pop().result()
        except Exception as error:  # of its C compiler, its linker, its cache: a training does not depend on them
            if convolutions.HAS_TRITON:  # the first of them
                _warn((str(error).strip().splitlines() or [type(error).__name__])[0])
            convolutions.HAS_TRITON = False


def _warn(reason: str) -> None:
    """A line that says why torch's convolutions are used."""
    print(f"warning: Triton cannot compile ({reason}): the convolutions are cuDNN's, and slower", file=sys.stderr)


def _on(device: torch.device, work: Callable[[partial[Tensor]], None], behind: Future[None] | None = None) -> None:
    """Does a work with zeros on a GPU, `behind` another one: it runs each kernel once; then it is there for any number
    of pictures."""
    wait([behind] if behind else [])
    with torch.cuda.device(device):
        work(partial(torch.zeros, device=device))


def _use_pixels(picture_shape: tuple[int, int, int], ppo: bool, zeros: partial[Tensor]) -> None:
    first, _ = CHANNELS
    pixels, weight, bias = (
        zeros((1, *picture_shape), dtype=torch.uint8),
        zeros(first, 16 * picture_shape[0], 2, 2),
        zeros(first),
    )
    for index in (None, zeros(1, dtype=torch.int64)) if ppo else (None,):
        output = convolutions.pixels_forward(pixels, weight, bias, index)
        convolutions.column_sums(convolutions.pixels_backward(pixels, output, output, index))


def _use_features(picture_shape: tuple[int, int, int], zeros: partial[Tensor]) -> None:
    first, second = CHANNELS
    _, rows, columns = picture_shape
    features = zeros((1, rows // 4 - 1, columns // 4 - 1, first), dtype=torch.bfloat16)
    output = convolutions.on_features(features, weight := zeros(second, first, 4, 4), zeros(second))
    convolutions.features_backward(features, weight, output, output)


def _use_sums(zeros: partial[Tensor]) -> None:
    convolutions.column_sums(zeros(1, 1))


def _use_heads(zeros: partial[Tensor]) -> None:
    args: Any = SimpleNamespace(norm_adv=True, clip_coef=0.2, value_clip=None, value_coef=0.5, entropy_coef=0.01)
    names, index = ("logprobs", "values", "advantages", "returns"), zeros(2, dtype=torch.int64)
    rollout = {name: zeros(2) for name in names} | {"actions": index}
    weights = zeros(8, HIDDEN), zeros(8), zeros(1, HIDDEN), zeros(1)
    _, partials = heads.heads(zeros((2, HIDDEN), dtype=torch.bfloat16), weights, rollout, index, zeros(2), args)
    columns = partials.shape[1]
    convolutions.column_sums(partials, zeros(columns), zeros(columns, dtype=torch.int32), zeros(columns))


def _use_steps(zeros: partial[Tensor]) -> None:
    weight = nn.Parameter(zeros(2))
    weight.grad = zeros(2)
    steps.ClippedAdam(Adam([weight], lr=0.0), 1.0)(zeros(2))
