"""Tiles and sprites as observations: both envs beside PyBoy's API, and beside the picture."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.workload import ROOT, shared_folder
from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.observe.pictures import FEATURES, NO_TILE, OBJECTS
from tests.conformance.test_game_boy_color import picture_rom
from tests.support.envs import assert_same, assert_same_in_a_graph, host, make_test_task, play, random_actions
from tests.support.shared import cases

OWN = [ROOT / f"roms/{name}.gb" for name in ("homeward", "orchard")]
SHARED = shared_folder()
CHOSEN = ["tobu", "airaki"]
GAMES = [path for path in sorted(SHARED.glob("roms/*/*.gb")) if path.stem in CHOSEN] if SHARED else []
COLOR = [path for path in GAMES if path.read_bytes()[0x143] & 0x80]
SHORT: dict[str, Any] = {"frames_per_step": 4, "release_after_frames": 2}


def has(pyboy: Any, bit: int) -> bool:
    """True if a bit of LCDC is set."""
    return bool(pyboy.memory[hw.LCDC] & bit)


def sprites_of(pyboy: Any, for_color: bool) -> np.ndarray:
    """FEATURES of all sprites, by PyBoy's get_sprite, (40, 10)."""
    is_on, rows = has(pyboy, hw.LCDC_ENABLE) and has(pyboy, hw.LCDC_OBJ_ENABLE), []
    for index, sprite in enumerate(map(pyboy.get_sprite, range(40))):
        own_bank, palette = sprite.attr_cgb_bank_number, sprite.attr_palette_number
        bank, tile = own_bank, sprite.tile_identifier - 384 * own_bank
        if not for_color:  # on a Game Boy Color, PyBoy's API reads a DMG's attributes as that of a game in colour
            bank, palette = 0, pyboy.memory[hw.OAM + 4 * index + 3] >> 4 & 1
        flips = sprite.attr_x_flip, sprite.attr_y_flip, sprite.attr_obj_bg_priority
        seen = sprite.shape[1] == 16, is_on and sprite.on_screen
        rows.append([sprite.y + 16, sprite.x + 8, tile, bank, palette, *flips, *seen])
    return np.array(rows)


def map_of(pyboy: Any, for_color: bool, is_window: bool) -> np.ndarray:
    """Identifiers of a tile map, (32, 32), by PyBoy's tile maps; in colour with the bank of each tile's attributes."""
    selected = has(pyboy, hw.LCDC_WINDOW_MAP if is_window else hw.LCDC_BG_MAP)
    first = 0x9C00 if selected else 0x9800
    if for_color:
        cells = range(first, first + 1024)  # PyBoy refuses ranges that end where the bank does
        numbers, attributes = (np.array([pyboy.memory[bank, cell] for cell in cells]) for bank in (0, 1))
        signed = (numbers < 128) & (not has(pyboy, hw.LCDC_TILE_DATA))
        return (numbers + 256 * signed + 384 * (attributes >> 3 & 1)).reshape(32, 32)
    return np.array((pyboy.tilemap_window if is_window else pyboy.tilemap_background)[:, :])


def tiles_of(pyboy: Any, for_color: bool) -> np.ndarray:
    """Background with window, and sprites, as they are on the screen, (2, 18, 20)."""
    planes = np.full((2, 18, 20), NO_TILE)
    if not has(pyboy, hw.LCDC_ENABLE):
        return planes
    (scx, scy), (left, top) = pyboy.screen.get_tilemap_position()
    y, x = 8 * np.arange(18)[:, None], 8 * np.arange(20)
    has_window = (y >= top) & (left < 160) & has(pyboy, hw.LCDC_WINDOW_ENABLE)
    background = map_of(pyboy, for_color, False)[(y + scy) // 8 % 32, (x + scx) // 8 % 32]
    is_shown = has(pyboy, hw.LCDC_BG_ENABLE) or for_color  # else PyBoy draws it on lines with the window alone
    planes[0] = np.where(is_shown | has_window, background, NO_TILE)
    if has_window.any():
        window = map_of(pyboy, for_color, True)[(y - top) // 8 % 32, (x - left) // 8 % 32]
        planes[0] = np.where(has_window & (x >= left), window, planes[0])
    for row in sprites_of(pyboy, for_color):
        sprite = dict(zip(FEATURES, row, strict=True))
        if sprite["visible"]:
            for half in range(1 + sprite["tall"]):
                row, column = (sprite["y"] - 16) // 8 + half, (sprite["x"] - 8) // 8
                if 0 <= row < 18 and 0 <= column < 20:
                    planes[1, row, column] = sprite["tile"] + 384 * sprite["bank"] + half
    return planes


def compare(rom: Path | bytes, steps: int, model: str = "dmg", **options: Any) -> Counter[str]:
    """Both envs with both kinds of observation over random actions; counts what was on the screens."""
    seen: Counter[str] = Counter()
    for obs in OBJECTS:
        own = {"obs": obs, "model": model, "io": "torch", "max_steps": 9, **options}
        pyboys = PyBoyPufferSingle(rom, 2, **own)
        env, random = GBxCuLEEnv(rom, 2, **own), np.random.default_rng(1)
        for each in (env, pyboys):
            each.reset(seed=3)
        for _ in range(steps):
            actions = torch.from_numpy(random.integers(0, 8, 2))
            for each in (env, pyboys):
                each.step(actions)
            np.testing.assert_array_equal(host(env.observations), host(pyboys.observations))
            np.testing.assert_array_equal(host(env.final_observation), host(pyboys.final_observation))
            for index, machine in enumerate(pyboys.emulator.machines):
                look(machine.pyboy, env, index, seen)
        for each in (env, pyboys):
            each.close()
    return seen


def look(pyboy: Any, env: GBxCuLEEnv, index: int, seen: Counter[str]) -> None:
    """One env's observation beside PyBoy's API, and where that looks at the same beside its game_area."""
    found, for_color = host(env.observations)[index], env.cartridge.model == "cgb" and env.cartridge.is_for_color
    if env.obs == "objects":
        expected = sprites_of(pyboy, for_color)
        np.testing.assert_array_equal(found[-1], expected)
        seen.update(name for name, values in zip(FEATURES, expected.T, strict=True) if values.any())
        return
    expected = tiles_of(pyboy, for_color)
    np.testing.assert_array_equal(found[-2:], expected)
    (scx, scy), (left, top) = pyboy.screen.get_tilemap_position()
    names = {
        "LCD off": not has(pyboy, hw.LCDC_ENABLE),
        "window": has(pyboy, hw.LCDC_WINDOW_ENABLE) and left <= 152 and top <= 136,
        "scrolled": scx or scy,
        "bank 1": (expected[0] % NO_TILE >= 384).any(),
        "nothing": (expected[0] == NO_TILE).all() and has(pyboy, hw.LCDC_ENABLE),
        "sprites": (expected[1] != NO_TILE).any(),
    }
    moves = {tuple(line) for line in pyboy.screen.tilemap_position_list} != {(scx, scy, left, top)}
    shows_all = all(has(pyboy, bit) for bit in (hw.LCDC_ENABLE, hw.LCDC_OBJ_ENABLE, hw.LCDC_BG_ENABLE))
    is_loaded = bool(env.final_mask[index])  # since the last frame, and game_area still has the tiles from before
    if shows_all and not (names["window"] or moves or is_loaded or env.cartridge.model == "cgb"):
        names["game_area"] = True
        pyboy.game_area_dimensions(0, 0, 20, 18, True)
        area = np.where(expected[1] != NO_TILE, expected[1], expected[0])
        np.testing.assert_array_equal(area, pyboy.game_area())
    seen.update(name for name, is_so in names.items() if is_so)


@pytest.mark.parametrize("path", [*OWN, *GAMES], ids=lambda path: path.stem)
def test_games_as_in_pyboys_api(path: Path) -> None:
    seen = compare(path, 24)
    assert seen["game_area"] or seen["window"] or seen["scrolled"]
    assert path not in OWN or (seen["game_area"] and seen["sprites"])


@pytest.mark.parametrize("path", cases(COLOR), ids=lambda path: path.stem)
def test_games_for_color(path: Path) -> None:
    assert compare(path, 24, "cgb")["y"]


@pytest.mark.parametrize(("model", "flag"), [("dmg", 0), ("cgb", 0xC0)])
def test_random_registers_and_sprites(model: str, flag: int) -> None:
    """Windows, scrolled maps, sprites of both sizes, layers switched off."""
    seen: Counter[str] = Counter()
    for seed in (1, 2):
        seen += compare(picture_rom(seed, flag), 12, model, stack_k=2, **SHORT)
    names = ["LCD off", "scrolled", "window", "sprites", *(name for name in FEATURES if name != "bank")]
    assert all(seen[name] for name in [*names, *(["bank", "bank 1"] if flag else ["nothing"])]), seen


@pytest.mark.parametrize("seed", range(3))
def test_tiles_are_what_the_picture_shows(seed: int) -> None:
    """The pixel at the upper left corner of each cell, by the data of its tile, with registers that stay."""
    rom = bytearray(picture_rom(seed, 0))
    rom[0x3F00:0x3FA0] = bytes(160)  # no sprites
    loop = rom.index(bytes.fromhex("F044FE9020FA"))
    rom[loop : loop + 2] = 0x18, 0xFE
    shown, env = (GBxCuLEEnv(bytes(rom), io="torch", obs=obs, **SHORT) for obs in ("full", "tiles"))
    for each in (shown, env):
        each.reset()
        for _ in range(3):
            each.step(torch.zeros(1, dtype=torch.int64))
    registers = env.emulator.registers()
    assert registers["lcdc"] & hw.LCDC_ENABLE
    tiles, (left, top) = host(env.observations)[0, 0].astype(int), (registers["wx"] - 7, registers["wy"])
    for row in range(18):
        for column in range(20):
            y, x, color = 8 * row + registers["scy"], 8 * column + registers["scx"], 0
            if registers["lcdc"] & hw.LCDC_WINDOW_ENABLE and 8 * row >= top and 8 * column >= left:
                y, x = 8 * row - top, 8 * column - left
            if (tile := tiles[row, column]) != NO_TILE:
                planes = env.ram[0x8000 + 16 * tile + 2 * (y % 8) : 0x8002 + 16 * tile + 2 * (y % 8)][0].tolist()
                color = planes[0] >> (7 - x % 8) & 1 | (planes[1] >> (7 - x % 8) & 1) << 1
            assert shown.observations[0, 0, 8 * row, 8 * column] == registers["bgp"] >> (2 * color) & 3


def test_a_goal_is_refused(tmp_path: Path) -> None:
    task = make_test_task(tmp_path)
    with pytest.raises(ConfigError, match="obs 'tiles' has no picture to compare with a goal's"):
        GBxCuLEEnv(**task.kwargs, obs="tiles")


@pytest.mark.parametrize("obs", OBJECTS)
def test_pictures_are_for_people(obs: str) -> None:
    """Those of the screen; final_pictures once they are kept, also where an episode ends."""
    env, shown = (GBxCuLEEnv(OWN[0], 2, io="torch", obs=each, max_steps=3) for each in (obs, "shades"))
    for each in (env, shown):
        each.reset(seed=1)
    with pytest.raises(ConfigError, match=f"obs '{obs}' has no picture to show: call keep_pictures"):
        env.final_pictures()
    env.keep_pictures()
    for _ in range(4):
        for each in (env, shown):
            each.step(torch.full((2,), 4))
        assert torch.equal(env.pictures(), shown.pictures())
        assert torch.equal(env.final_pictures(slice(1, 2)), shown.final_pictures(slice(1, 2)))


@pytest.mark.parametrize("obs", OBJECTS)
def test_through_the_workers_and_saved_states(obs: str) -> None:
    """NumPy's buffers of PyBoy's workers; an env that continues from another one's state."""
    options: dict[str, Any] = {"obs": obs, "stack_k": 2, "max_steps": 5, "action_obs": 1}
    with_workers = PyBoyPufferVec(OWN[0], 2, backend="serial", **options)
    envs = [GBxCuLEEnv(OWN[0], 2, **options), with_workers]
    other = GBxCuLEEnv(OWN[0], 2, **options)
    other.reset()
    for each in envs:
        each.reset(seed=1)
    for step in range(12):
        found, expected = (each.step(np.array([step % 8, 3]))[0] for each in envs)
        np.testing.assert_array_equal(found, expected)
        if step < 6:
            other.load_state_dict(envs[0].state_dict())
        else:
            np.testing.assert_array_equal(other.step(np.array([step % 8, 3]))[0], expected)
    with_workers.close()


@pytest.mark.gpu
@pytest.mark.parametrize("obs", OBJECTS)
@pytest.mark.parametrize("model", ["dmg", "cgb"])
def test_a_gpu_reads_the_same(obs: str, model: str) -> None:
    """Also where episodes end, and from a CUDA graph; a step allocates nothing."""
    rom, actions = picture_rom(1, 0xC0 if model == "cgb" else 0), random_actions(24, 64)
    options: dict[str, Any] = {"obs": obs, "model": model, "info_mode": "none", "max_steps": 5, "stack_k": 2, **SHORT}
    assert_same(play(GBxCuLEEnv(rom, 64, **options), actions), play(GBxCuLEEnv(rom, 64, "cuda", **options), actions))
    options |= {"io": "torch", "autotune": False}
    with torch.cuda.stream(torch.cuda.Stream()):
        eager, captured = (GBxCuLEEnv(rom, 64, "cuda", **options) for _ in range(2))
        assert_same_in_a_graph(eager, captured, actions)
