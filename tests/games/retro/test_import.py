"""`puffer game import`: stable-retro's folders become ours, pay what stable-retro paid, and do no harm."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from gbxcule_puffer import cli, env_creator
from gbxcule_puffer.games import load_game
from gbxcule_puffer.games.retro.convert import convert
from gbxcule_puffer.games.retro.reading import read_folder
from gbxcule_puffer.layout import ROMS

HERE = Path(__file__).parent
ROM = ROMS / "orchard.gb"
BUTTONS = {".": "NOOP", "S": "START", "A": "A", "B": "B", "U": "UP", "D": "DOWN", "L": "LEFT", "R": "RIGHT"}
DATA = {
    "info": {
        "score": {"address": 0xC122, "type": "|u1"},
        "lives": {"address": 0xC123, "type": "|u1"},
        "state": {"address": 0xC0A3, "type": "|u1"},
    }
}
SCENARIO = {
    "reward": {"variables": {"score": {"reward": 1.0}, "lives": {"reward": 0.5, "penalty": 2.0}}},
    "done": {"variables": {"state": {"op": "equal", "reference": 2}}},
    "actions": [[[], ["START"], ["A"], ["B"], ["UP"], ["DOWN"], ["LEFT"], ["RIGHT"]]],
}


def folder(path: Path, **files: Any) -> Path:
    """A folder as stable-retro has them, of ORCHARD."""
    path = path / "Orchard-GameBoy-v0"
    path.mkdir()
    sha = hashlib.sha1(ROM.read_bytes(), usedforsecurity=False).hexdigest()
    given = {"data": DATA, "scenario": SCENARIO, "metadata": {"default_state": "s120"}} | files
    for name, content in given.items():
        (path / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    (path / "rom.sha").write_text(sha + "\n")
    (path / "s120.state").write_bytes((HERE / "s120.state").read_bytes())
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    assert cli.main(["game", "import", *map(str, words)]) == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


def test_it_pays_what_stable_retro_paid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """played.json has what stable-retro 1.0.1 gave in each frame, from the state that its Gambatte had saved."""
    out = tmp_path / "ours"
    said = run(capsys, folder(tmp_path), "--rom", ROM, "--frames-per-step", 1, "--out", out)
    assert "max_steps 4,500" in said and "episodes begin at power-on" not in said
    played = json.loads((HERE / "played.json").read_text())
    env = env_creator("gbxcule", game=out)(num_envs=1, rom=ROM, io="torch", info_mode="none")
    env.reset(seed=0)
    actions = list(env.codec.actions)
    rewards, over = {}, []
    for step in range(played["steps"]):
        button = BUTTONS[played["buttons"][step // played["frames_each"]]]
        _, reward, terminals, _, _ = env.step(torch.tensor([actions.index(button)]))
        if float(reward[0]):
            rewards[str(step)] = float(reward[0])
        if terminals[0]:
            over.append(step)
    env.close()
    assert rewards == played["rewards"] and over == [played["steps"] - 1]


def package() -> Path | None:
    """Where stable-retro's games are: in GBXCULE_RETRO, an unpacked wheel, or where the package is installed."""
    if given := os.environ.get("GBXCULE_RETRO"):
        return Path(given) / "stable_retro/data"
    found = importlib.util.find_spec("stable_retro")
    return None if found is None or found.origin is None else Path(found.origin).parent / "data"


@pytest.mark.skipif(
    package() is None, reason="stable-retro is not installed, and GBXCULE_RETRO names no unpacked wheel"
)
def test_all_its_game_boy_folders(tmp_path: Path) -> None:
    data = package()
    assert data is not None
    found = [path.parent for system in ("GameBoy", "GbColor") for path in data.glob(f"*/*-{system}*/data.json")]
    assert len(found) >= 30
    for number, path in enumerate(sorted(found)):
        retro = read_folder(path)
        conversion = convert(retro, "0" * 64, "dmg")
        out = tmp_path / str(number)
        out.mkdir()
        (out / "game.toml").write_text(conversion.draft.toml())
        game = load_game(out)
        variables = retro.data["info"]
        assert len(game.numbers) == len(variables), path.name
        assert bool(game.terms.failure is not None) == bool(retro.scenario.get("done")), path.name
        assert bool(game.terms.reward is not None) == bool(retro.scenario.get("reward")), path.name
        assert not [note for note in conversion.notes if "not among" in note or "is code" in note], path.name


def test_a_start_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    retro = folder(tmp_path)
    (tmp_path / "start.txt").write_text("NOOP:30 START NOOP:30\n")
    run(capsys, retro, "--rom", ROM, "--start-actions", tmp_path / "start.txt", "--out", tmp_path / "ours")
    game = load_game(tmp_path / "ours")
    assert [each.name for each in game.start.states] == ["start.state"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"data": "[" * 100_000}, "data.json"),
        ({"data": '{"info": {"v": {"address": 1e999, "type": "|u1"}}}'}, "data.json"),
        ({"data": " " * 2**21}, "data.json"),
        ({"scenario": "{"}, "scenario.json"),
        ({"data": "[]"}, "data.json"),
    ],
)
def test_hostile_files_end_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], message: str
) -> None:
    said = run(capsys, folder(tmp_path, **files), "--rom", ROM, "--out", tmp_path / "ours", code=2)
    assert message in said and said.count("\n") == 1 and not (tmp_path / "ours").exists()


@pytest.mark.parametrize(
    "info", [[], None, {"v": 3}, {"v": {"address": True, "type": "|u1"}}, {"": {"address": -1, "type": "|u1"}}]
)
def test_odd_values_become_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str], info: Any) -> None:
    odd = {
        "reward": {"variables": {"v": 5}},
        "done": {"variables": [1], "nodes": {"a": 3}},
        "rewards": 4,
        "actions": [5],
    }
    retro = folder(tmp_path, data={"info": info}, scenario=odd, metadata={"default_state": ["s120"]})
    said = run(capsys, retro, "--rom", ROM, "--out", tmp_path / "ours")
    assert "differs " in said
    load_game(tmp_path / "ours")


def test_another_rom_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, folder(tmp_path), "--rom", ROMS / "storeroom.gb", "--out", tmp_path / "ours", code=2)
    assert "is not the ROM of Orchard-GameBoy-v0, its SHA-1 is" in said and not (tmp_path / "ours").exists()


def test_an_existing_folder_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ours").mkdir()
    assert "is there already" in run(capsys, folder(tmp_path), "--rom", ROM, "--out", tmp_path / "ours", code=2)


DAMAGED = {
    "empty": b"",
    "no gzip": b"no gzip",
    "short": gzip.compress(b"x" * 100),
    "huge": gzip.compress(bytes(2**24)),
    "a block": gzip.compress(b"\0\1\0\0\0pc\0\0\0\2\0\0"),
}


@pytest.mark.parametrize("state", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_state_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], state: bytes) -> None:
    retro = folder(tmp_path)
    (retro / "s120.state").write_bytes(state)
    said = run(capsys, retro, "--rom", ROM, "--out", tmp_path / "ours")
    assert "s120.state: " in said and "episodes begin at power-on" in said
    assert not load_game(tmp_path / "ours").start.states


def test_every_byte_of_a_state_may_be_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    retro = folder(tmp_path)
    data = gzip.decompress((HERE / "s120.state").read_bytes())
    head = data.index(b"vram")
    for number, at in enumerate(range(3, len(data), len(data) // 12)):
        for where, position in enumerate((at, at % head)):
            broken = bytearray(data)
            broken[position] ^= 0xFF
            (retro / "s120.state").write_bytes(gzip.compress(bytes(broken)))
            run(capsys, retro, "--rom", ROM, "--out", tmp_path / f"{number}-{where}")
