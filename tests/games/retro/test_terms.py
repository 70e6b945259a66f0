"""What variables, rewards and ends of stable-retro mean: each value below is what stable-retro 1.0.1 itself gave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.games import load_game
from gbxcule_puffer.games.retro.convert import Conversion, convert
from gbxcule_puffer.games.retro.reading import RetroFolder
from gbxcule_puffer.games.task import GameTask
from gbxcule_puffer.layout import ROMS
from gbxcule_puffer.tasks.ram import Ram

ADDRESS = 0xC800
BEFORE, AFTER = "1234567890050102", "9934567890050180"
VALUES = [  # type, mask, the value of BEFORE, that of AFTER
    ("|u1", None, 18, 153), ("|i1", None, 18, -103), ("|d1", None, 12, 99), ("|n1", None, 2, 9),
    ("<u2", None, 13330, 13465), (">u2", None, 4660, 39220), ("=u2", None, 13330, 13465), ("|u2", None, 13330, 13465),
    ("<i2", None, 13330, 13465), (">i2", None, 4660, -26316), ("<u3", None, 5649426, 5649561),
    (">u3", None, 1193046, 10040406), ("<i4", None, 2018915346, 2018915481), (">i4", None, 305419896, -1724623240),
    ("><u4", None, 873625686, 882473046), ("<>u4", None, 1450709556, 1450744116),
    ("<>i4", None, 1450709556, 1450744116), ("><i4", None, 873625686, 882473046), (">=u4", None, 873625686, 882473046),
    ("<d2", None, 3412, 3499),
    (">d4", None, 12345678, 99345678), ("<d3", None, 563412, 563499), (">d8", None, 1234567890050102, 9934567890050180),
    ("<n6", None, 508642, 508649), (">n6", None, 246805, 946805), ("<n5", None, 8642, 8649),
    (">n8", None, 24680512, 94680510), ("><d4", None, 34127856, 34997856), ("<>n4", None, 6824, 6894),
    ("<u8", None, 144402781104911378, -9223084443825720167), (">u8", None, 1311768467283968258, -7407200411305311872),
    ("<i8", None, 144402781104911378, -9223084443825720167), ("<u7", None, 287593029055506, 287593029055641),
    (">i7", None, 5124095575328001, -28934376606661375),
    ("|u1", 15, 2, 9), ("|d1", 15, 12, 3), (">u2", 15, 4, 4), (">i2", 240, 48, 48), ("|d1", 240, 0, 96),
    ("<u2", 65280, 13312, 13312), ("|i1", 65280, 0, 65280), (">u2", 65280, 4608, 39168), ("|i1", 32767, 18, 32665),
    (">i2", 32767, 4660, 6452), ("|u1", 65280, 0, 0),
]  # fmt: skip
BYTES = (5, 5, 7, 3, 0, 0, 250, 250, 128, 9)
SECOND = (1, 2, 3, 4, 0, 8, 0, 1, 1, 1)
# measurement, op: rewards of the steps (reward 1, penalty 10, reference 3) and whether they end the episode
OPERATIONS = [
    ("absolute", "nop", [5, 7, 3, 0, 0, -60, -60, -1280, 9], "111000001"),
    ("absolute", "equal", [0, 0, 1, 0, 0, 0, 0, 0, 0], "001000000"),
    ("absolute", "not-equal", [1, 1, 0, 1, 1, 1, 1, 1, 1], "110111111"),
    ("absolute", "less-than", [0, 0, 0, 1, 1, 1, 1, 1, 0], "000111110"),
    ("absolute", "greater-than", [1, 1, 0, 0, 0, 0, 0, 0, 1], "110000001"),
    ("absolute", "less-or-equal", [0, 0, 1, 1, 1, 1, 1, 1, 0], "001111110"),
    ("absolute", "greater-or-equal", [1, 1, 1, 0, 0, 0, 0, 0, 1], "111000001"),
    ("absolute", "negative", [0, 0, 0, 0, 0, 1, 1, 1, 0], "000001110"),
    ("absolute", "positive", [1, 1, 1, 0, 0, 0, 0, 0, 1], "111000001"),
    ("absolute", "zero", [0, 0, 0, 1, 1, 0, 0, 0, 0], "000110000"),
    ("absolute", "nonzero", [1, 1, 1, 0, 0, 1, 1, 1, 1], "111001111"),
    ("absolute", "sign", [1, 1, 1, 0, 0, -10, -10, -10, 1], "111000001"),
    ("delta", "nop", [0, 2, -40, -30, 0, -60, 0, -1220, 137], "010000001"),
    ("delta", "not-equal", [1, 1, 1, 1, 1, 1, 1, 1, 1], "111111111"),
    ("delta", "negative-equal", [0, 0, 0, 1, 0, 0, 0, 0, 0], "000100000"),
    ("delta", "less-than", [1, 1, 1, 1, 1, 1, 1, 1, 0], "111111110"),
    ("delta", "greater-or-equal", [0, 0, 0, 0, 0, 0, 0, 0, 1], "000000001"),
    ("delta", "negative", [0, 0, 1, 1, 0, 1, 0, 1, 0], "001101010"),
    ("delta", "zero", [1, 0, 0, 0, 1, 0, 1, 0, 0], "100010100"),
    ("delta", "sign", [0, 1, -10, -10, 0, -10, 0, -10, 1], "010000001"),
]
LESS_4 = {"op": "less-than", "reference": 4}
EQUAL_8 = {"op": "equal", "reference": 8}
SCENARIOS: dict[str, tuple[dict[str, Any], list[float], str]] = {
    "usual measurements": (
        {"reward": {"variables": {"v": {"reward": 2.5}}}, "done": {"variables": {"v": {"op": "zero"}}}},
        [0, 5, 0, 0, 0, 0, 0, 0, 342.5], "000110000",
    ),
    "time": (
        {"reward": {"variables": {"v": {"reward": 1, "penalty": 1}}, "time": {"reward": 0.5}}},
        [0.5, 2.5, -3.5, -2.5, 0.5, -5.5, 0.5, -121.5, 137.5], "000000000",
    ),
    "all": (
        {"reward": {"time": {"reward": 0.5, "op": "equal", "reference": 1}},
         "done": {"condition": "all", "variables": {"v": LESS_4, "w": {"op": "positive"}}}},
        [0.5] * 9, "001010110",
    ),
    "nodes": (
        {"done": {"nodes": {"a": {"condition": "all", "variables": {"v": {"op": "zero"}, "w": EQUAL_8}},
                            "b": {"variables": {"v": {"op": "equal", "reference": 7}}}}}},
        [0] * 9, "010010000",
    ),
    "players": (
        {"rewards": [{"variables": {"v": {"reward": 1}}}, {"variables": {"v": {"reward": 100}}}]},
        [0, 2, 0, 0, 0, 0, 0, 0, 137], "000000000",
    ),
    "unknown op": (
        {"reward": {"variables": {"v": {"reward": 1, "op": "nequal"}}}}, [0, 2, 0, 0, 0, 0, 0, 0, 137], "000000000",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    emulator = Emulator(ROMS / "orchard.gb")
    yield emulator
    emulator.close()


def converted(info: Any, scenario: dict[str, Any]) -> Conversion:
    return convert(RetroFolder(Path("Mine-GameBoy-v0"), {"info": info}, scenario, {}, (), {}), "0" * 64, "dmg", 1)


def played(
    emulator: Emulator, folder: Path, found: Conversion, rows: Sequence[bytes]
) -> tuple[list[float], str, list[Any]]:
    """Rewards and ends of steps, behind each of which RAM has a row's bytes; the first row is the start."""
    folder.mkdir()
    (folder / "game.toml").write_text(found.draft.toml())
    game = load_game(folder)
    task, ram = GameTask(game.terms, None, None, (), 128), Ram(emulator)

    def fill(row: bytes) -> None:
        emulator.memory[0, ADDRESS - hw.ROW_BASE :][: len(row)] = torch.tensor(list(row), dtype=torch.uint8)

    fill(rows[0])
    task.setup(ram)
    task.reset(ram, torch.ones(1, dtype=torch.bool))
    rewards, ends, statistics = [], "", []
    for row in rows[1:]:
        fill(row)
        result = task.step(ram, torch.zeros(0), None)  # pyright: ignore[reportArgumentType]
        rewards.append(float(result.reward[0]))
        ends += "0" if result.failure is None else str(int(result.failure[0]))
        statistics.append({name: tensor[0].item() for name, tensor in result.statistics.items()})
    return rewards, ends, statistics


@pytest.mark.parametrize(("kind", "mask", "before", "after"), VALUES)
def test_types(emulator: Emulator, tmp_path: Path, kind: str, mask: int | None, before: int, after: int) -> None:
    row: dict[str, Any] = {"address": ADDRESS, "type": kind} | ({} if mask is None else {"mask": mask})
    found = converted({"v": row}, {"done": {"variables": {"v": {"op": "zero"}}}})
    rows = [bytes.fromhex(each) for each in (BEFORE, BEFORE, AFTER)]
    _, _, statistics = played(emulator, tmp_path / "game", found, rows)
    assert statistics == [{"v": before}, {"v": after}]


def rows_of(*columns: Sequence[int]) -> list[bytes]:
    return [bytes(row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize(("measurement", "operation", "rewards", "ends"), OPERATIONS)
def test_operations(
    emulator: Emulator, tmp_path: Path, measurement: str, operation: str, rewards: list[int], ends: str
) -> None:
    spec = {"reward": 1, "penalty": 10, "op": operation, "reference": 3, "measurement": measurement}
    found = converted(
        {"v": {"address": ADDRESS, "type": "|i1"}},
        {"reward": {"variables": {"v": spec}}, "done": {"variables": {"v": spec}}},
    )
    assert played(emulator, tmp_path / "game", found, rows_of(BYTES))[:2] == (rewards, ends)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenarios(emulator: Emulator, tmp_path: Path, name: str) -> None:
    scenario, rewards, ends = SCENARIOS[name]
    info = {"v": {"address": ADDRESS, "type": "|i1"}, "w": {"address": ADDRESS + 1, "type": "|u1"}}
    found = converted(info, scenario)
    assert played(emulator, tmp_path / "game", found, rows_of(BYTES, SECOND))[:2] == (rewards, ends)


@pytest.mark.parametrize(
    ("info", "scenario", "note"),
    [
        ({"v": {"address": ADDRESS}}, {}, "data.json: v: has no address and type"),
        ({"v": {"address": ADDRESS, "type": "|f4"}}, {}, "data.json: v: type '|f4' is not a number of u, i, d, n"),
        ({"v": {"address": ADDRESS, "type": "<n10"}}, {}, "has more than 8 bytes"),
        ({"v": {"address": ADDRESS, "type": "<>u6"}}, {}, "orders words of two bytes (<>) in 6 bytes"),
        ({"v": {"address": 0x4000, "type": "|u1"}}, {}, "address 16384 (4000) is not in VRAM"),
        ({"v": {"address": 0xE000, "type": "|u1"}}, {}, "address 57344 (E000) is not in VRAM"),
        ({"v": {"address": ADDRESS, "type": "|u1", "mask": "F"}}, {}, "mask 'F' is not a whole number"),
        ({}, {"reward": {"variables": {"v": {"reward": 1}}}}, "reward: v: is not among the converted variables"),
        ({}, {"reward": {"script": "lua:pay"}}, "reward: the script function 'lua:pay' is code, which is not run"),
        ({}, {"done": {"script": "lua:over"}}, "done: the script function 'lua:over' is code, which is not run"),
        ({}, {"scripts": ["script.lua"]}, "scripts: ['script.lua'] is code, which is not run"),
        ({}, {"done": {"condition": "all"}}, "all of no conditions"),
        ({}, {"crop": [0, 16, 160, 120]}, "crop: [0, 16, 160, 120]: pictures are not cut"),
        ({}, {"actions": [[["FOO", "A"], []]]}, "a Game Boy has no button 'FOO'"),
        ({}, {"actions": 3}, "actions: are not lists of lists of buttons"),
        ({}, {"actions": [[[], ["A"]], [[], ["A"]]]}, "groups of one choice, or that share buttons"),
        ({}, {}, "scenario: there is none in the folder"),
    ],
)
def test_what_is_not_converted_is_named(info: Any, scenario: dict[str, Any], note: str) -> None:
    assert any(note in each for each in converted(info, scenario).notes)


def test_names_that_terms_cannot_have(tmp_path: Path) -> None:
    names = ["score-1", "score 1", "2nd", "min", "if", "level", "première", "x" * 300]
    info = {name: {"address": ADDRESS, "type": "|u1"} for name in names}
    reward = {name: {"reward": 1} for name in names}
    found = converted(info, {"reward": {"variables": reward}})
    (tmp_path / "game.toml").write_text(found.draft.toml())
    game = load_game(tmp_path)
    assert len(game.numbers) == len(names) and len(found.draft.reward) == len(names)
    assert {"score_1", "score_1_2", "_2nd", "min_2", "if_"} <= set(game.numbers)


def test_actions_are_those_of_stable_retro() -> None:
    def codec(scenario: dict[str, Any]) -> str:
        return str(converted({}, scenario).draft.env["action_codec"])

    assert codec({}) == "NOOP,UP,DOWN/NOOP,LEFT,RIGHT/NOOP,A,B,SELECT,A+B,A+SELECT,B+SELECT,A+B+SELECT"
    assert codec({"actions": [[[], ["LEFT"]], [["RIGHT", "B"], []]]}) == "NOOP,LEFT/B+RIGHT,NOOP"
    assert codec({"actions": [[[], ["UP"]], [["RIGHT", "B"], ["RIGHT"]], [["A"]]]}) == (
        "A+B+RIGHT,A+RIGHT,A+B+RIGHT+UP,A+RIGHT+UP"
    )
