"""Everything public of PyBoy 2.8.1 is there in GameBoys, by its name and the names of its parameters, or says what to
write; what PyBoy takes as a number, an index or a byte is taken."""

from __future__ import annotations

import ast
import inspect
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyboy
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.pyboy_api import BatchAxisWarning, GameBoys, left_out

ROM = Path(__file__).parents[2] / "roms/homeward.gb"
SOURCES = {"PyBoy": "pyboy.py", "PyBoyRegisterFile": "pyboy.py", "PyBoyMemoryView": "pyboy.py",
           "Screen": "api/screen.py", "TileMap": "api/tilemap.py", "Sprite": "api/sprite.py"}  # fmt: skip
NOT_HERE = {"PyBoy": left_out.GAME_BOYS, "Screen": left_out.SCREEN, "TileMap": left_out.TILE_MAP,
            "Sprite": left_out.SPRITE}  # fmt: skip
EQUAL = {"memory", "register_file", "screen", "tilemap_background", "tilemap_window"}  # not values, but classes above
FREE = {"model", "cgb", "kwargs"}  # `cgb` gives model


class Both:
    """A Game Boy and a PyBoy with one ROM."""

    def __init__(self) -> None:
        self.ours: Any = GameBoys(ROM)
        self.theirs: Any = PyBoyMachine(ROM.read_bytes()).pyboy
        self.pairs: dict[str, tuple[Any, Any]] = {
            "PyBoy": (self.ours, self.theirs),
            "PyBoyRegisterFile": (self.ours.register_file, self.theirs.register_file),
            "PyBoyMemoryView": (self.ours.memory, self.theirs.memory), "Screen": (self.ours.screen, self.theirs.screen),
            "TileMap": (self.ours.tilemap_window, self.theirs.tilemap_window),
            "Sprite": (self.ours.get_sprite(3), self.theirs.get_sprite(3)),
        }  # fmt: skip


@pytest.fixture
def both() -> Iterator[Both]:
    made = Both()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BatchAxisWarning)
        yield made
    made.ours.stop()
    made.theirs.stop(save=False)


def methods(name: str) -> dict[str, list[str]]:
    """Public methods of a class of PyBoy, with the names of their parameters; compiled, they have no signatures."""
    tree = ast.parse((Path(pyboy.__file__).parent / SOURCES[name]).read_text())
    (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    return {
        node.name: [each.arg for each in (*node.args.args, *node.args.kwonlyargs)][1:]
        for node in found.body
        if isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name == "__init__")
    }


@pytest.mark.parametrize("name", SOURCES)
def test_every_public_name_is_there_or_says_what_to_write(both: Both, name: str) -> None:
    ours, theirs = both.pairs[name]
    names = {each for each in dir(theirs) if not each.startswith("_")} | set(methods(name)) - {"__init__"}
    assert len(names) > 5 or name == "PyBoyMemoryView"
    for each in names:
        if each in NOT_HERE.get(name, {}):
            with pytest.raises(AttributeError, match=rf"has no {each}: \S.* \(docs/pyboy\.md\)"):
                getattr(ours, each)
        else:
            getattr(ours, each)
    assert set(NOT_HERE.get(name, {})) <= names, "a line for what PyBoy does not have"


@pytest.mark.parametrize("name", ["PyBoy", "PyBoyRegisterFile", "Screen", "TileMap"])
def test_every_parameter_has_pyboys_name(both: Both, name: str) -> None:
    ours, _ = both.pairs[name]
    for method, parameters in methods(name).items():
        if method == "__init__" or method in NOT_HERE.get(name, {}) or method in ours.__dict__:
            continue
        if isinstance(getattr(type(ours), method, None), property) or name == "PyBoyRegisterFile":
            continue
        assert set(parameters) <= set(inspect.signature(getattr(ours, method)).parameters), method


def test_every_option_of_pyboy_is_taken_or_says_what_to_write() -> None:
    own = set(inspect.signature(GameBoys.__init__).parameters) | FREE
    source = (Path(pyboy.__file__).parent / "pyboy.py").read_text()
    plugins = {line.split()[0] for line in source.splitlines() if "[plugin:" in line}
    wanted = {*methods("PyBoy")["__init__"], *plugins} - own
    assert wanted == set(left_out.OPTIONS)
    for name in wanted:
        harmless, remedy = left_out.OPTIONS[name]
        for value in ("something",) if harmless is None else harmless:
            keywords: dict[str, object] = {name: value}
            left_out.take_options(keywords)
            assert not keywords
        if harmless is not None:
            other: dict[str, Any] = {name: "some"}
            with pytest.raises(ConfigError, match=rf"GameBoys does not take {name}='some': ") as caught:
                GameBoys(ROM, **other)
            assert remedy in str(caught.value) and "\n" not in str(caught.value)


def test_cgb_gives_the_model() -> None:
    for cgb, model in ((True, "cgb"), (False, "dmg"), (None, "dmg")):
        with GameBoys(ROM, cgb=cgb, window="null", sound_emulated=False, log_level="ERROR") as boys:
            assert boys.emulator.model == model
    color = bytearray(ROM.read_bytes())
    color[0x143], color[0x14D] = 0x80, (color[0x14D] - 0x80) & 0xFF
    with GameBoys(bytes(color), cgb=None) as boys:
        assert boys.emulator.model == "cgb"
    refused: tuple[dict[str, Any], ...] = ({"cgb": "yes"}, {"cgb": True, "model": "dmg"})
    for keywords in refused:
        with pytest.raises(ConfigError, match="give model='dmg', 'cgb' or 'auto'"):
            GameBoys(ROM, **keywords)


A = 0xC0A0
BYTES = (np.uint8(3), np.int64(4), 5.0, 5.7, np.float32(2.5), True, np.array(9), torch.tensor(6), 255)
ROWS = ([1, 2, 3], (1, 2, 3), b"\1\2\3", bytearray(b"\1\2\3"), range(3), np.array([1, 2, 3], np.uint8), {1, 2, 3},
        np.array([1.0, 2.5, 3.0]), torch.tensor([1, 2, 3]), [1.0, np.uint8(2), True], np.uint8(7), 7.9)  # fmt: skip


def test_bytes_that_pyboy_takes(both: Both) -> None:
    ours, theirs = both.ours.memory, both.theirs.memory
    for value in BYTES:
        for memory in (ours, theirs):
            memory[A] = value
            memory[0, A + 1] = value
        assert ours[A : A + 2][0].tolist() == theirs[A : A + 2], repr(value)
    for value in ROWS:
        for key in (slice(A, A + 3), slice(A, A + 6, 2), slice(A, A + 9, np.int64(3)), (0, slice(A, A + 6, 2))):
            for memory in (ours, theirs):
                memory[A : A + 9] = 0
                memory[key] = value
            assert ours[A : A + 9][0].tolist() == theirs[A : A + 9], repr(value)
            assert ours[key][0].tolist() == theirs[key]


def test_bytes_that_pyboy_refuses(both: Both) -> None:
    ours, theirs = both.ours.memory, both.theirs.memory
    for value in (-1, 256, np.int32(300), "a", b"\x05", [7], None, float("nan")):
        with pytest.raises(ConfigError, match="a byte for memory"):
            ours[A] = value
        with pytest.raises((TypeError, OverflowError, ValueError)):
            theirs[A] = value
    for value in ([1, 2], [300, -1, 2], "abc", iter([1, 2, 3]), np.array([[1, 2]]), torch.tensor([1, 2])):
        with pytest.raises(ConfigError, match=r"give (a whole number|0 to 255|as many|\(3,\) or \(1, 3\) of them)"):
            ours[A : A + 3] = value
    for key in ("A", 49312.0, slice(A, A + 6, 0), slice(A, A + 6, -1), slice(None, 5), slice(A, None), slice(A, A),
                slice(A, 0x10001), (1.0, A), (1, 2, 3), [1, 2], None):  # fmt: skip
        with pytest.raises(ConfigError, match=r"is not an address: give an address, first:end, first:end:step"):
            _ = ours[key]
    for act, line in ((len, "has no length"), (list, "memory has no"), (lambda m: 3 in m, "memory has no first")):
        with pytest.raises(ConfigError, match=line):
            act(ours)


def test_numbers_of_numpy(both: Both) -> None:
    ours, theirs = both.ours, both.theirs
    for one in (ours, theirs):
        one.memory[A : A + 3] = [1, 2, 3]
        assert one.tick(np.int64(2)) and one.tick(2.0) and not one.tick(0)
        one.button(input="A", delay=np.int64(3))
        one.button("b", 0)
        one.register_file.A = np.uint8(3)
        one.register_file.HL = np.uint16(0xFFFF)
        one.set_emulation_speed(target_speed=0)
        one.tick(count=3, render=False, sound=False)
    assert ours.frame_count == theirs.frame_count
    for one in (ours, theirs):
        one.memory[A : A + 3] = [1, 2, 3]
    assert ours.memory[np.uint16(A)].tolist() == [theirs.memory[A]] == [1]
    assert ours.memory[np.int64(0), np.uint16(A)].tolist() == [1]
    assert ours.memory[np.uint16(A) : np.uint16(A + 3)][0].tolist() == theirs.memory[np.uint16(A) : np.uint16(A + 3)]
    assert ours.memory[0xFF40:0xFF4C:3][0].tolist() == theirs.memory[0xFF40:0xFF4C:3]
    assert ours.memory[0, 0x100:0x110:3][0].tolist()[:5] == [theirs.memory[0, at] for at in range(0x100, 0x10F, 3)]
    assert int(ours.get_sprite(np.int64(3)).x) == theirs.get_sprite(np.int64(3)).x
    assert (ours.get_sprite(3).shape[0], int(ours.get_sprite(3).shape[1])) == theirs.get_sprite(3).shape
    mine, their = ours.tilemap_background, theirs.tilemap_background
    assert mine[np.int64(3), np.int64(2)].tolist() == [their[3, 2]]
    assert mine[0:9:2, 3][0].tolist() == their[0:9:2, 3] and mine[5][0].tolist() == their[5]
    for key in ((slice(0, 40), 0), (slice(-2, 5), 0), (-1, 0), (0.5, 0), slice(0, 5, 0), slice(5, 4)):
        with pytest.raises(ConfigError, match="columns and rows 0 to 31"):
            mine[key]
    with pytest.raises(ConfigError, match="speed 2: give 0"):
        ours.set_emulation_speed(2)
    with pytest.raises(ConfigError, match=r"write emulator\.save_ram\(env\)"):
        ours.stop(ram_file=io.BytesIO())
    with pytest.raises(AttributeError, match=r"call it, screen\.image\(env\)\.save"):
        _ = ours.screen.image.save
    assert ours.screen.image().size == theirs.screen.image.size


def test_a_byte_or_a_row_for_each_game_boy() -> None:
    with GameBoys(ROM, 2) as boys:
        boys.memory[A] = np.array([1, 2])
        assert boys.memory[A].tolist() == [1, 2]
        boys.memory[A : A + 3] = np.array([[1, 2, 3], [4, 5, 6]])
        boys.memory[A + 3 : A + 7 : 2] = torch.tensor([8, 9])
        assert boys.memory[A : A + 7].tolist() == [[1, 2, 3, 8, 0, 9, 0], [4, 5, 6, 8, 0, 9, 0]]
        with pytest.raises(ConfigError, match=r"has 3 bytes there, not \(2, 2\): give \(3,\) or \(2, 3\)"):
            boys.memory[A : A + 3] = np.ones((2, 2))


def test_the_axis_of_one_game_boy_is_said_once() -> None:
    uses = (lambda boys: boys.memory[A : A + 3], lambda boys: boys.screen.ndarray, lambda boys: boys.game_area(),
            lambda boys: boys.tilemap_background[:, :])  # fmt: skip
    for use in uses:
        with GameBoys(ROM) as boys:
            with pytest.warns(
                BatchAxisWarning, match=r"axis of Game Boys first.*write memory\[first:end\]\[0\]"
            ) as seen:
                use(boys)
            assert seen[0].filename == __file__
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                for again in uses:
                    again(boys)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with GameBoys(ROM) as boys:  # whatever gives one number, or a number for each
            int(boys.memory[A])
            boys.screen.image()
            boys.get_sprite(0)
            boys.tick()
        with GameBoys(ROM, 2) as boys:
            for use in uses:
                use(boys)
