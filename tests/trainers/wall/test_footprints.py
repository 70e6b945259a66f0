"""The map of the wall: everybody's place and all visits, from RAM to the page."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import torch

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.tasks.source import ROM
from gbxcule_puffer.trainers.wall import footprints
from gbxcule_puffer.trainers.wall.footprints import Footprints
from gbxcule_puffer.trainers.wall.wall import Wall
from tests.support.browser import Browser, wait_for


def cell_of(place: np.ndarray) -> int:
    return int.from_bytes(bytes(place.tolist()), "big")


def test_visits_are_counted_by_cell(monkeypatch) -> None:
    """As a Counter counts them; of two bytes the map is 0, and what is beyond the limit is left out."""
    monkeypatch.setattr(footprints, "SECONDS", 0.0)
    monkeypatch.setattr(footprints, "MOST_CELLS", 40)
    rng, sample = np.random.default_rng(1), np.array([0, 3, 5])
    for width in (2, 3):
        counted, visits = Footprints(sample), Counter[int]()
        for _ in range(6):
            places = rng.integers(0, 3, (16, width), dtype=np.uint8)
            told = np.frombuffer(counted.take(places), "<i4")
            cells = [cell_of(place) for place in places]
            visits.update(cells)
            assert told[:3].tolist() == [cells[i] for i in sample]
            rows = told[3:].reshape(-1, 3).tolist()
            here = Counter(cells)
            assert sorted(rows) == sorted([cell, here[cell], visits[cell]] for cell in visits)
    full = Footprints(sample)
    told = np.frombuffer(full.take(rng.integers(0, 255, (500, 3), dtype=np.uint8)), "<i4")
    assert len(told) == 3 + 3 * 40


def test_the_map_in_a_browser() -> None:
    """The page's cells are the RAM's, and its canvas shows where the chosen Game Boy is."""
    env = GBxCuLEEnv(ROM, 3, io="torch", obs="shades", max_steps=64)
    env.reset(seed=1)
    assert env.position is not None
    with Wall(env, "map", dict, "127.0.0.1:0") as wall, Browser() as browser:
        browser.open(wall.url)
        browser.wait_until("typeof hello !== 'undefined' && hello !== null")
        for _ in range(3):
            wait_for(lambda: wall._server.viewers and not wall._busy)
            wall._next = 0.0
            time.sleep(footprints.SECONDS)  # so that each picture tells the cells
            env.step(torch.tensor([3, 3, 0]))  # START, until a game has begun
            wall.look()
        expected = sorted(Counter(map(cell_of, env.ram[list(env.position)].numpy())).items())
        here = "(() => { const r = []; for (let i = 0; i < mapRows.length; i += 3)"
        here += " if (mapRows[i + 1]) r.push([mapRows[i], mapRows[i + 1]]); return r.sort((a, b) => a[0] - b[0]); })()"
        browser.wait_until("mapRows !== null && mapRows.filter((v, i) => i % 3 === 2).reduce((a, b) => a + b, 0) === 9")
        assert [tuple(row) for row in browser.run(here)] == expected
        assert browser.run("document.querySelectorAll('#maps canvas').length") >= 1
        assert browser.run("Array.from(shownCells)") == [cell_of(p) for p in env.ram[list(env.position)].numpy()]
    env.close()
