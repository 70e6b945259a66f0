"""Visits of the positions of a game, counted on the device, and their picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer import env_creator
from gbxcule_puffer.env.coverage import COLD, GROUND, WARM, merged, picture
from gbxcule_puffer.errors import ConfigError, StateError
from tests.games.events import write_events

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_events(tmp_path_factory.mktemp("events"))


def make(game: Path, **options: Any) -> Any:
    given = {"io": "torch", "action_codec": "NOOP,LEFT,RIGHT,DOWN", "coverage": True, "max_steps": 30, **options}
    return env_creator("gbxcule", game=game)(4, **given)


def test_each_step_counts_where_it_ended(game: Path) -> None:
    """Against the same positions, added up by hand; a saved state goes on."""
    env = make(game)
    env.reset(seed=1)
    counted: dict[tuple[int, ...], int] = {}
    for step, row in enumerate(torch.from_numpy(np.random.default_rng(5).integers(4, size=(60, 4)))):
        if step == 40:
            state = env.state_dict()
            seen = len(env.coverage.cells())
            assert state["tensors"]["coverage_counts"].nbytes == 8 * seen < 1000, "not of all positions that may be"
            env = make(game)
            env.load_state_dict(state)
        before = env.ram[["wCurMap", "wYCoord", "wXCoord"]]
        _, _, terminals, truncations, _ = env.step(row)
        now = env.ram[["wCurMap", "wYCoord", "wXCoord"]]
        if (terminals | truncations).any():
            pressed = torch.tensor([[0, 0, 0], [0, 0, -1], [0, 0, 1], [0, 1, 0]])[row]
            now = before + pressed * (before[:, 2:] + pressed[:, 2:] >= 0)
            now[now[:, 2] > 7] = torch.tensor([int(before[0, 0]) + 1, 0, 0], dtype=now.dtype)
            assert (now[:, 2] < 8).all()
        for cell in now.tolist():
            counted[tuple(cell)] = counted.get(tuple(cell), 0) + 1
    found = {tuple(row[:3]): row[3] for row in env.coverage.cells().tolist()}
    assert sum(found.values()) == sum(counted.values()) == 240
    assert found == counted
    infos = env.read_infos()
    assert infos["coverage/cells"] == len(found) and infos["coverage/maps"] == len({cell[0] for cell in found})


def test_damaged_counts_are_refused(game: Path) -> None:
    env = make(game)
    env.reset(seed=1)
    env.step(torch.zeros(4, dtype=torch.int64))
    state = env.state_dict()
    counts = state["tensors"]["coverage_counts"]
    assert counts.tolist()[1] == [4]
    far, below, less = (counts + torch.tensor([[change], [0]], dtype=torch.int32) for change in (2**24, -(2**24), 0))
    less[1] = -1
    for wrong in (far, below, counts[:1], counts.long(), counts[0], None):
        with pytest.raises(StateError, match="saved env state does not fit in coverage_counts"):
            env.load_state_dict({**state, "tensors": {**state["tensors"], "coverage_counts": wrong}})
    with pytest.raises(StateError, match="coverage_counts is -1 to 0"):
        env.load_state_dict({**state, "tensors": {**state["tensors"], "coverage_counts": less}})


def test_the_picture_has_each_map_cut_to_what_was_seen() -> None:
    one = np.array([[3, 10, 20, 1], [3, 12, 24, 9]])
    two = np.array([[3, 12, 24, 90], [7, 0, 0, 4]])
    cells = merged([one, two])
    assert cells.tolist() == [[3, 10, 20, 1], [3, 12, 24, 99], [7, 0, 0, 4]]
    sheet = picture(cells)
    assert sheet.shape == (3, 192, 3)
    assert sheet[2, 4].tolist() == WARM.astype(int).tolist() and sheet[1, 1].tolist() == GROUND.tolist()
    assert (sheet[0, 0] >= COLD).all() and sheet[0, 0].sum() < sheet[0, 7].sum() < sheet[2, 4].sum()
    assert not sheet[:, 5:7].any() and not sheet[:, 8:].any()
    assert picture(np.zeros((0, 4), np.int64)).shape == (1, 192, 3)


def test_coverage_needs_a_position(game: Path, tmp_path: Path) -> None:
    text = (game / "game.toml").read_text().replace('position = "wCurMap, wYCoord, wXCoord"\n', "")
    for path in game.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "game.toml").write_text(text)
    with pytest.raises(ConfigError, match="coverage needs position: give MAP,ROW,COLUMN"):
        make(tmp_path)


@pytest.mark.gpu
def test_a_gpu_counts_the_same(game: Path) -> None:
    found = []
    for device in ("cpu", "cuda"):
        env = make(game, device=device)
        env.reset(seed=1)
        for row in torch.from_numpy(np.random.default_rng(5).integers(4, size=(60, 4))):
            env.step(row.to(device))
        found.append(env.coverage.cells())
    np.testing.assert_array_equal(*found)
