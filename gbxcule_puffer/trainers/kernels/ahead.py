"""The convolutions' kernels compiled while a run opens its envs: at the first start on a machine they take seconds."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import torch

from gbxcule_puffer.trainers.kernels import convolutions

CHANNELS = 16, 32  # outputs of the two convolutions of all networks
# Seconds until a thread gives Python's lock to one that waits: each operation of NumPy lets it go, and with the usual
# 5 ms the run's own start would wait for it most of the time.
SWITCH = 1e-4
_begun: list[Future[None]] = []


def begin(device: torch.device, picture_shape: tuple[int, int, int]) -> None:
    """Starts to compile the kernels for pictures (channels, rows, columns), in a thread of its own. `finish` waits for
    them. Where Triton lacks what it needs, a line says so."""
    if not convolutions.HAS_TRITON:
        _warn("it needs a C compiler and Python's headers")
    elif convolutions.has_kernels(device, *picture_shape[1:]):
        pool = ThreadPoolExecutor(1)
        _begun.append(pool.submit(_use_all, device, picture_shape))
        pool.shutdown(wait=False)


def finish() -> None:
    """Waits until all are compiled. Where Triton fails, a line says so, and torch's convolutions are used."""
    while _begun:
        try:
            _begun.pop().result()
        except Exception as error:  # of its C compiler, its linker, its cache: a training does not depend on them
            convolutions.HAS_TRITON = False
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            _warn(reason)


def _warn(reason: str) -> None:
    """A line that says why torch's convolutions are used."""
    print(f"warning: Triton cannot compile ({reason}): the convolutions are cuDNN's, and slower", file=sys.stderr)


@contextlib.contextmanager
def _switching_often() -> Iterator[None]:
    """For work beside the run's own start."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _use_all(device: torch.device, picture_shape: tuple[int, int, int]) -> None:
    """Runs each kernel once; then it is there for any number of pictures."""
    first, second = CHANNELS
    with _switching_often(), torch.cuda.device(device):
        zeros = partial(torch.zeros, device=device)
        pixels, weight = zeros((1, *picture_shape), dtype=torch.uint8), zeros(second, first, 4, 4)
        features = convolutions.on_pixels(pixels, zeros(first, 16 * picture_shape[0], 2, 2), zeros(first))
        outputs = convolutions.on_features(features, weight, zeros(second))
        convolutions.on_features_backward(features, weight, outputs, outputs)
        convolutions.on_pixels_backward(pixels, features, features)
