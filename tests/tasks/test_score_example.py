"""The Task of docs/score_2048.py on a memory that the test writes."""

from __future__ import annotations

from typing import Any

import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task_code import make_task
from tests.support.envs import STAGE

ROOT = STAGE.parents[2]
BOARD, SCORE = 0xC800, 0xFFB0
NOBODY: Any = None
MIXED = [1, 2, 1, 2, 2, 1, 2, 1, 1, 2, 1, 2, 2, 1, 2, 1]


def test_score_board_and_ends() -> None:
    boards = torch.tensor([MIXED, [*MIXED[:15], 2], [0, *MIXED[1:]], [11, *MIXED[1:15], 0]])
    ram = Ram(Emulator(ROOT / "roms/homeward.gb", len(boards)))
    task = make_task(f"{ROOT / 'docs/score_2048.py'}:Score")
    task.setup(ram)
    ram.poke(SCORE, [0x01, 0x20, 0x40])
    task.reset(ram, torch.ones(4, dtype=torch.bool))
    ram.poke(BOARD, boards)
    ram.poke(SCORE, [0x01, 0x24, 0x48], torch.tensor([True, False, False, True]))
    result: Any = task.step(ram, NOBODY, NOBODY)
    assert torch.allclose(result.reward, torch.tensor([4.08, 0.0, 0.0, 4.08]))
    assert result.failure.tolist() == [True, False, False, False], "full, and no equal neighbours"
    assert result.terminal.tolist() == [False, False, False, True]
    assert result.statistics["score"].tolist() == [12448, 12040, 12040, 12448]
    assert result.statistics["largest"].tolist() == [4, 4, 4, 2048]
    seen = task.observe(ram, NOBODY)["board"]
    assert seen.shape == (4, *task.observations["board"])
    assert torch.equal(seen.int().argmax(2), boards) and (seen.sum(2) == 1).all()
