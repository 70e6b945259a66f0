"""Rows copied by a mask are those of torch.where."""

from __future__ import annotations

import pytest
import torch

from gbxcule_puffer.env.rows import copy_rows

pytestmark = pytest.mark.kernel

N = 37


def assert_copies(device: str) -> None:
    generator = torch.Generator().manual_seed(1)
    which = torch.rand(N, generator=generator).to(device) < 0.4
    wide = torch.randint(-128, 127, (N + 1, 24), generator=generator, dtype=torch.int8).to(device)
    sources = {
        "whole": wide[:N].clone(), "part of rows": wide[:N, 3:17], "columns": wide[:N, ::2], "one value": wide[:N, 0],
        "transposed": wide[:N].T.contiguous().T, "the same row": wide[:1].expand(N, -1), "flags": wide[:N] > 0,
        "longs": wide[:N].long() << 40, "doubles": wide[:N].double() / 3, "cubes": wide[:N].view(N, 2, 3, 4),
    }  # fmt: skip
    for name, source in sources.items():
        target = torch.zeros_like(source, memory_format=torch.contiguous_format)
        wanted = torch.where(which.view(-1, *[1] * (source.dim() - 1)), source, target)
        copy_rows(source, target, which)
        assert torch.equal(target, wanted), name
    moved = wide.clone()
    wanted = torch.where(which[:, None], moved[1:], moved[:-1])
    copy_rows(moved[1:], moved[:-1], which)
    assert torch.equal(moved[:-1], wanted), "from the same memory"


def test_rows() -> None:
    assert_copies("cpu")


@pytest.mark.gpu
def test_rows_on_a_gpu(cuda_device: str) -> None:
    assert_copies(cuda_device)
