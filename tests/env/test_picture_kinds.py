"""Kinds of pictures: each row of the table against NumPy, and a row that is added."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.tasks.observe.pictures import PICTURES, PictureKind
from tests.conformance.test_game_boy_color import picture_rom
from tests.support.step_ends import pack

ROM = picture_rom(9, 0)  # shows all shades
STEPS = 6
SHORT: dict[str, Any] = {"frames_per_step": 4, "release_after_frames": 2, "max_steps": 4}
# By form, what it makes of all pixels (..., 144, 160) uint8; those in color are compared with PyBoy elsewhere.
FORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "shades": lambda pixels: pixels,
    "packed": pack,
    "averaged": lambda pixels: pixels.reshape(*pixels.shape[:-2], 72, 2, 80, 2).sum((-3, -1), dtype=np.uint8),
}


def play(obs: str, stack_k: int) -> tuple[GBxCuLEEnv, torch.Tensor]:
    """An env, and what two Game Boys show in a few steps, (steps, 2, *observation)."""
    env = GBxCuLEEnv(ROM, 2, obs=obs, stack_k=stack_k, io="torch", **SHORT)
    first, _ = env.reset(seed=1)
    actions = torch.zeros(2, dtype=torch.int64)
    return env, torch.stack([first.clone(), *(env.step(actions)[0].clone() for _ in range(STEPS))])


def check(obs: str) -> None:
    """`obs` against NumPy, also where an episode ends, and as people and networks see it."""
    kind = PICTURES[obs]
    for stack_k in (1, 2):
        (env, found), (_, pixels) = play(obs, stack_k), play("full", stack_k)
        drawn = pixels if kind.screen == "full" else pixels[..., ::2, ::2]
        np.testing.assert_array_equal(found, FORMS[kind.form](drawn.numpy()))
        inputs = env.layout.pixels(found.flatten(0, 1))
        assert torch.equal(env.layout.pictures(found.flatten(0, 1)), inputs.float() / kind.most)
        shown = env.layout.newest(found.flatten(0, 1))
        assert torch.equal(shown, (inputs[:, -1] * 3 + kind.most // 2) // kind.most), "the nearest shade"
        assert inputs.max() == kind.most
        assert len(shown.unique()) > 2


@pytest.mark.parametrize("obs", [obs for obs, kind in PICTURES.items() if not kind.in_color])
def test_a_kind_of_picture_is_as_in_numpy(obs: str) -> None:
    check(obs)


def test_a_kind_is_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PICTURES, "packed", PictureKind("packed", "full", 144, 40, 3, pixels=4))
    check("packed")
    monkeypatch.setitem(PICTURES, "packed", PictureKind("averaged", "full", 72, 80, 12))
    check("packed")
