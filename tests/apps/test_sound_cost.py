"""benchmarks/sound_cost.py: the work is shared, and the records become one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.sound_cost import measure, merge, take
from gbxcule_puffer.apps.bench.workload import Workload
from gbxcule_puffer.tasks.source import default_rom


def test_each_game_is_taken_once(tmp_path: Path) -> None:
    """Two processes with the same folder do each game in each model once between them."""
    roms = [Path("one.gb"), Path("two.gb")]
    first, second = take(roms, tmp_path), take(roms, tmp_path)
    taken = [next(first), next(second), next(first), *second, *first]
    assert sorted((rom.stem, model) for rom, model, _ in taken) == [
        ("one", "cgb"), ("one", "dmg"), ("two", "cgb"), ("two", "dmg"),
    ]  # fmt: skip


def test_records_become_one(tmp_path: Path) -> None:
    """The geometric mean and the worst game, by model; records of two settings are refused."""
    common = {"device_name": "card", "git_sha": "abc", "num_envs": 2, "warmup_steps": 1, "measured_steps": 1}
    common |= {"repeats": 1, "frames_per_step": 24}
    for name, sound in (("a", 90), ("b", 40)):
        game = {"game": name, "model": "dmg", "muted": 100, "sound": sound, **common}
        (tmp_path / f"{name}-dmg.json").write_text(json.dumps(game))
    found = merge(tmp_path)
    assert found["dmg"] == {"games": 2, "kept": 0.6, "worst": 0.4, "worst_game": "b"}
    assert [game["game"] for game in found["games"]] == ["a", "b"]
    (tmp_path / "c-dmg.json").write_text(json.dumps({**game, "num_envs": 3}))
    with pytest.raises(SystemExit, match="2 settings"):
        merge(tmp_path)


@pytest.mark.kernel
def test_a_game_is_measured_both_ways() -> None:
    """Both rates are positive, of the model that was asked for."""
    found = measure(Workload(default_rom(), warmup=1, steps=1, repeat=1, stage="emulate_only"), 1, "cpu")
    assert found["game"] == "homeward" and found["model"] == "dmg"
    assert found["muted"] > 0 and found["sound"] > 0
