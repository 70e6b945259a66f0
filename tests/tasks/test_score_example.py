"""The Tasks of docs/score_2048.py and docs/rex_runner.py on a memory that the test writes."""

from __future__ import annotations

from types import SimpleNamespace
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


def test_a_run_s_points_pauses_and_end() -> None:
    ram = Ram(Emulator(ROOT / "roms/homeward.gb", 3))
    task = make_task(f"{ROOT / 'docs/rex_runner.py'}:Runner")
    task.setup(ram)
    ram.poke(0xC1A3, [0x76, 0x02, 0x00])
    task.reset(ram, torch.ones(3, dtype=torch.bool))
    ram.poke(0xC1A3, [0x86, 0x02, 0x00], torch.tensor([True, False, False]))
    ram.poke(0xC1A2, torch.tensor([[0], [1], [2]]))
    info: Any = SimpleNamespace(length=torch.tensor([4, 4, 4]))
    result: Any = task.step(ram, NOBODY, info)
    assert result.reward.tolist() == [1.0, 0.0, 0.0] and result.failure.tolist() == [False, False, True]
    assert result.statistics["score"].tolist() == [286, 276, 276] and result.terminal is None
    assert result.statistics["paused"].tolist() == [0.0, 0.25, 0.0]
