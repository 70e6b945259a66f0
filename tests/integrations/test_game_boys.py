"""GameBoys beside PyBoy, call by call."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.integrations.pyboy_api import GameBoys
from tests.conformance.test_game_boy_color import rom_of
from tests.fuzz.generator import make_rom

ROM = Path(__file__).parents[2] / "roms/homeward.gb"
SYMBOLS = ROM.with_suffix(".sym")
REGISTERS = (0xFF00, 0xFF04, 0xFF06, 0xFF07, 0xFF0F, *range(0xFF40, 0xFF4C), 0xFFFF)
RANGES = ((0x8000, 0xA000), (0xC000, 0xE000), (0xFE00, 0xFEA0), (0xFF80, 0xFFFF), (0x0100, 0x0150), (0x3FF0, 0x4010))


class Pair:
    """Two Game Boys, and a PyBoy that does what the second of them does."""

    def __init__(self, rom: bytes = ROM.read_bytes(), model: str = "dmg") -> None:
        self.ours = GameBoys(rom, 2, symbols=SYMBOLS, model=model)
        self.pyboy: Any = PyBoyMachine(rom, model=model).pyboy
        self.second = torch.tensor([False, True])
        self.shown = np.array([0xF8, 0xF8, 0xF8, 0xFF] if model == "cgb" else [0xFF] * 4, np.uint8)  # docs/color.md

    def press(self, name: str, delay: int | None = None) -> None:
        if delay is None:
            self.ours.button_press(name, self.second)
            self.pyboy.button_press(name)
        else:
            self.ours.button(name, delay, self.second)
            self.pyboy.button(name, delay)

    def release(self, name: str) -> None:
        self.ours.button_release(name, self.second)
        self.pyboy.button_release(name)

    def tick(self, count: int = 1) -> None:
        assert self.ours.tick(count)
        assert self.pyboy.tick(count, True, False)
        assert self.ours.frame_count == self.pyboy.frame_count

    def assert_equal(self) -> None:
        """Pictures, memory, registers, tiles and sprites."""
        ours, pyboy = self.ours, self.pyboy
        np.testing.assert_array_equal(ours.screen.ndarray[1], pyboy.screen.ndarray & self.shown)
        for first, end in RANGES:
            assert ours.memory[first:end][1].tolist() == pyboy.memory[first:end], hex(first)
        for address in REGISTERS:
            assert int(ours.memory[address][1]) == pyboy.memory[address], hex(address)
        for name in ours.register_file.NAMES:
            assert int(getattr(ours.register_file, name)[1]) == getattr(pyboy.register_file, name), name
        for name in ("tilemap_background", "tilemap_window"):
            mine, theirs = getattr(ours, name), getattr(pyboy, name)
            assert mine[:, :][1].tolist() == theirs[:, :]
            assert mine[3:20, 5][1].tolist() == theirs[3:20, 5] and mine[7, 2:30:3][1].tolist() == theirs[7, 2:30:3]
            assert int(mine.tile_identifier(1, 2)[1]) == theirs.tile_identifier(1, 2)
        for number in range(40):
            mine, theirs = ours.get_sprite(number), pyboy.get_sprite(number)
            for field, values in vars(mine).items():
                assert int(values[1]) == (theirs.shape[1] if field == "height" else getattr(theirs, field)), field
        np.testing.assert_array_equal(ours.game_area()[1].numpy(), pyboy.game_area())
        position = ours.screen.get_tilemap_position()
        assert tuple(tuple(int(value[1]) for value in pair) for pair in position) == pyboy.screen.get_tilemap_position()


@pytest.fixture
def pair() -> Iterator[Pair]:
    """HOMEWARD after the boot ROM."""
    made = Pair()
    yield made
    made.ours.stop()
    made.pyboy.stop(save=False)


def test_a_game_that_is_played(pair: Pair) -> None:
    pair.tick(60)
    pair.press("start", 8)
    pair.tick(24)
    pair.assert_equal()
    for name in ("a", "down", "right"):
        pair.press(name, 5)
        pair.tick(3)
        pair.press("left")
        pair.tick(2)
        pair.release("left")
        pair.tick(11)
    pair.tick(60)
    pair.press("right")
    pair.tick(20)
    pair.assert_equal()
    assert not torch.equal(*pair.ours.memory[0xC000:0xD000]), "one alone plays"
    tiles = [0, 2, 4, 90]
    mine = pair.ours.get_sprite_by_tile_identifier(tiles, on_screen=False)[1]
    assert [row.nonzero()[:, 0].tolist() for row in mine] == pair.pyboy.get_sprite_by_tile_identifier(tiles, False)
    for one in (pair.ours, pair.pyboy):
        one.game_area_dimensions(2, 3, 16, 12, False)
        one.game_area_mapping(np.arange(768) // 2, 1000)
    pair.tick()
    np.testing.assert_array_equal(pair.ours.game_area()[1].numpy(), pair.pyboy.game_area())
    files = io.BytesIO(), io.BytesIO()
    pair.ours.save_state(files[0], env=1)
    pair.pyboy.save_state(files[1])
    for one, file in zip((pair.pyboy, pair.ours), files, strict=True):
        file.seek(0)
        one.load_state(file)
    pair.release("right")
    pair.tick(30)
    pair.assert_equal()


def test_symbols_hooks_and_writes(pair: Pair) -> None:
    ours, pyboy = pair.ours, pair.pyboy
    assert ours.symbol_lookup("read_joypad") == (0, 0x20D)
    counts = [0, 0]
    for index, address in enumerate((0x40, 0x20D)):
        pyboy.hook_register(0, address, lambda i: counts.__setitem__(i, counts[i] + 1), index)
    ours.hook_register(0, 0x40)
    ours.hook_register(None, "read_joypad")
    pair.tick(40)
    pair.press("a", 3)
    counts[:] = 0, 0
    pair.tick(7)
    found = [ours.hook_executions(0, 0x40), ours.hook_executions(None, "read_joypad")]
    assert [int(each[1]) for each in found] == counts
    assert min(counts) > 0
    for one in (ours, pyboy):
        one.memory[0xC500] = 7
        one.memory[0xC501:0xC504] = [1, 2, 3]
        one.memory[0xC504:0xC506] = 9
        one.memory[0, 0xA010] = 44
        one.register_file.B = 0x1FF
        one.register_file.F = 0xFF
        one.register_file.HL = 0x12345
    assert ours.memory[0xC4FF:0xC507][0].tolist() == pyboy.memory[0xC4FF:0xC507]
    assert int(ours.memory[0, 0xA010][1]) == pyboy.memory[0, 0xA010] == 44
    assert ours.memory[0xA010].tolist() == [pyboy.memory[0xA010]] * 2
    assert ours.memory[1, 0x4000:0x4008][0].tolist() == pyboy.memory[1, 0x4000:0x4008]
    for name in ("B", "F", "HL"):
        assert getattr(ours.register_file, name).tolist() == [getattr(pyboy.register_file, name)] * 2
    ours.memory[0xC500] = torch.tensor([5, 6])
    assert ours.memory[0xC500].tolist() == [5, 6]


def test_symbols_beside_the_rom() -> None:
    for rom, found in ((ROM, True), ("homeward", True), (ROM.read_bytes(), False)):
        boys = GameBoys(rom)
        if found:
            assert boys.symbol_lookup("read_joypad") == (0, 0x20D)
        else:
            with pytest.raises(ConfigError, match=r"needs a symbol file: give symbols='GAME\.sym'"):
                boys.symbol_lookup("read_joypad")
        boys.stop()


def test_buttons_between_two_frames(pair: Pair) -> None:
    """Pressed, pressed again while held, released and pressed at once, pressed and released at once."""
    pair.tick(3)
    for press, release, again in ("a", "", ""), ("a", "", "b"), ("", "a", "a"), ("up", "up", ""), ("", "b", ""):
        for act, name in ((pair.press, press), (pair.release, release), (pair.press, again)):
            if name:
                act(name)
        pair.tick()
        pair.assert_equal()


@pytest.mark.parametrize("seed", [None, 0, 2, 6])
def test_a_game_boy_color(seed: int | None) -> None:
    """A game for the DMG, and random programs: pictures in colour, banks and registers."""
    rom = ROM.read_bytes() if seed is None else make_rom(seed, "color").data
    pair = Pair(rom, "cgb")
    ours, pyboy = pair.ours, pair.pyboy
    for _ in range(3):
        pair.press("start", 2)
        pair.tick(5)
        pair.assert_equal()
        for address in (0xFF4D, 0xFF4F, 0xFF55, 0xFF68, 0xFF6A, 0xFF6C, 0xFF70, *range(0xFF72, 0xFF76)):
            assert int(ours.memory[address][1]) == pyboy.memory[address], hex(address)
        for bank, first, end in ((0, 0x8000, 0x9FFF), (1, 0x8000, 0x9FFF), *((b, 0xD000, 0xDFFF) for b in range(8))):
            assert ours.memory[bank, first:end][1].tolist() == pyboy.memory[bank, first:end], (bank, hex(first))
        assert ours.memory[0xF000:0xF100][1].tolist() == pyboy.memory[0xF000:0xF100]
    for one in (ours, pyboy):
        one.memory[5, 0xD010] = 7
        one.memory[3, 0xD010:0xD013] = [1, 2, 3]
        one.memory[0xD020:0xD022] = [4, 5]
        one.memory[1, 0x8000] = 9
    for bank, first in ((5, 0xD010), (3, 0xD011), (1, 0x8000)):
        assert int(ours.memory[bank, first][0]) == pyboy.memory[bank, first]
    assert ours.memory[0xD020:0xD022][1].tolist() == pyboy.memory[0xD020:0xD022] == [4, 5]
    ours.memory[2, 0xD000] = torch.tensor([5, 6])
    assert ours.memory[2, 0xD000].tolist() == [5, 6]
    with pytest.raises(ConfigError, match="bank 8 at D000 does not exist on this machine: give 0 to 7"):
        _ = ours.memory[8, 0xD000]
    with pytest.raises(ConfigError, match="has banks in a part of it"):
        ours.memory[0xCFFF:0xD001] = 1
    ours.stop()
    pyboy.stop(save=False)


def test_what_is_left_out_says_so(pair: Pair) -> None:
    ours: Any = pair.ours
    for call, why in (
        (lambda: ours.tick(-1), "count of tick is -1: give 0 or more"),
        (lambda: ours.button("x"), "button 'x' is unknown: give one of right"),
        (lambda: ours.button("a", -1), "delay of a button is -1: give 0 or more"),
        (lambda: ours.button(1), "button 1 is unknown"),
        (lambda: ours.button("a", envs=torch.ones(3, dtype=torch.bool)), "envs has shape"),
        (lambda: ours.memory[0xFF05], "FF05]: that register cannot be read from outside"),
        (lambda: ours.memory[0x10000], "is not an address"),
        (lambda: ours.memory[1, 0xD000], "bank 1 at D000 does not exist on this machine: give 0 to 0"),
        (lambda: ours.memory[0xC000:0xC000], "is not an address"),
        (lambda: ours.memory.__setitem__(0x2000, 1), "2000 is ROM"),
        (lambda: ours.memory.__setitem__(0xA000, 1), "has banks: give one"),
        (lambda: ours.memory.__setitem__(slice(0xC000, 0xC002), [1]), "has 2 bytes there, not 1"),
        (lambda: ours.tilemap_window[32, 0], "columns and rows 0 to 31"),
        (lambda: ours.get_sprite(40), "sprite is 40: give 0 to 39"),
        (lambda: ours.game_area_dimensions(0, 0, 20, 18), "follow_scrolling needs"),
        (lambda: ours.game_area_dimensions(0, 0, 33, 18, False), "leaves the map"),
        (lambda: ours.game_area_mapping([1, 2]), "each of 384 tiles, not 2"),
        (lambda: ours.hook_executions(0, 0x40), "call hook_register before"),
        (lambda: ours.hook_register(0, 0xC000), "code there is in RAM"),
        (lambda: ours.symbol_lookup("read_joypat"), "did you mean read_joypad"),
        (lambda: ours.stop(save=True), "write emulator.save_ram"),
        (lambda: ours.button("a", envs=[1, 0]), "envs has shape"),
        (lambda: ours.hook_register(0, 0x40, print, None), "calls nothing: leave callback and context out"),
        (lambda: ours.save_state("my.state"), "file 'my.state' is a path: open it"),
        (lambda: ours.load_state("my.state"), "file 'my.state' is a path: open it"),
        (lambda: ours.screen.image(99), "env of screen.image is 99: give 0 to 1"),
        (lambda: GameBoys(ROM, window="SDL2"), "does not take window='SDL2': leave it out, there is no window"),
        (lambda: GameBoys(ROM, windows="null"), "GameBoys has no option 'windows': leave it out"),
    ):
        with pytest.raises(ConfigError, match=why):
            call()
    with pytest.raises(StateError):
        ours.load_state(io.BytesIO(b"no state"))
    with pytest.raises(AttributeError, match=r"GameBoys has no hook_deregister: leave it out, a hook costs nothing"):
        ours.hook_deregister(0, 0x40)
    with pytest.raises(AttributeError, match="register_file has no IX"):
        _ = ours.register_file.IX


# A routine in HRAM that copies page 40 of ROM to OAM, and counts B down meanwhile; called again and again, the LCD off
# or on. HL is nowhere in OAM, at which a look would move PyBoy's transfer on.
DMA = "210000 3E91 E040 0E80 1190 01 1A E2 13 0C 79 FE90 20F7 CD80FF 00 18FA"
DMA_IN_HRAM = "3E40 E046 0628 05 20FD C9"


@pytest.mark.parametrize("model", ["dmg", "cgb"])
def test_oam_during_a_dma(model: str) -> None:
    """FF, in sprites as in memory; the DMA is under way in some of the frames."""
    rom = bytearray(rom_of(DMA, 0x80))
    routine = bytes.fromhex(DMA_IN_HRAM)
    rom[0x0190 : 0x0190 + len(routine)] = routine
    rom[0x4000:0x40A0] = bytes(range(160))
    pair, seen, stored = Pair(bytes(rom), model), set(), set()
    for _ in range(12):
        pair.tick()
        pair.assert_equal()
        seen.add(int(pair.ours.get_sprite(3).x[1]))
        stored.add(int(pair.ours.emulator.read_memory(1, 0xFE0D, 1)[0]))
    pair.ours.stop()
    pair.pyboy.stop(save=False)
    assert seen == {13 - 8, 0xFF - 8}
    assert stored == {13}, "read_memory shows OAM itself"
