"""Visit counts on a GPU: the same bits as on the CPU, also where thousands of envs come to one cell."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gbxcule_puffer.env.curriculum.visits import VisitCounter
from gbxcule_puffer.tasks.goals.distance import GoalDistance
from tests.support.envs import STAGE

ROM = STAGE.parent.parent / "homeward.gb"
ENVS = 5000


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["picture", "pixels"])
def test_visits_do_not_depend_on_the_device(kind: str, cuda_device: str) -> None:
    random = np.random.default_rng(1)
    palette = random.integers(0, 4, (300, 72, 80), dtype=np.uint8)
    screens = [torch.zeros((ENVS, 72, 80), dtype=torch.uint8, device=device) for device in ("cpu", cuda_device)]
    counters = [VisitCounter(screen, kind) for screen in screens]
    for step in range(4):
        pictures = torch.from_numpy(palette[random.integers(0, 300 if step % 2 else 3, ENVS)])
        for screen, counter in zip(screens, counters, strict=True):
            screen.copy_(pictures)
            counter.visit()
        for name in ("key", "visits", "before", "first", "bonus", "table", "totals"):
            cpu, cuda = (getattr(counter, name) for counter in counters)
            assert torch.equal(cpu, cuda.cpu()), name


@pytest.mark.gpu
def test_distances_to_several_goals_do_not_depend_on_the_device(cuda_device: str) -> None:
    random = np.random.default_rng(2)
    goals = [random.integers(0, 4, (count, 72, 80), dtype=np.uint8) for count in (1, 3, 2)]
    screen = torch.from_numpy(random.integers(0, 4, (ENVS, 72, 80), dtype=np.uint8))
    goal = torch.from_numpy(random.integers(0, 3, ENVS))
    results = []
    for device in ("cpu", cuda_device):
        out = torch.full((ENVS,), -1.0, device=device)
        distance = GoalDistance(goals, ENVS, device)
        distance.measure(screen.to(device), out, goal.to(device))
        results.append(out.cpu())
    assert torch.equal(*results)
    assert (results[0] > 0).all()
