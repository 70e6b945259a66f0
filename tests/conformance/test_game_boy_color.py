"""A Game Boy Color beside PyBoy with cgb=True: registers, all memory, palettes, the picture's colours."""

import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.workload import ROOT, shared_folder
from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.cartridge import load_cartridge
from tests.fuzz.generator import header, make_rom, name_color
from tests.fuzz.lockstep import compare, compare_seed, random_buttons
from tests.support.shared import cases

STEPS, FRAMES_PER_STEP = 20, 24
DMG_GAMES = ("2048", "tobu", "shocklobster", "totp-gb")  # run on a Game Boy Color as well


def games() -> list[Path]:
    """All free ROMs whose header names the Game Boy Color, and some that it does not."""
    folder = shared_folder()
    if folder is None:
        return []
    roms = sorted((*(folder / "roms" / "homebrew").glob("*.gb"), *(folder / "roms" / "corpus").glob("*.gb")))
    return [path for path in roms if path.read_bytes()[0x143] & 0x80 or path.stem in DMG_GAMES]


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("path", cases(games()), ids=lambda path: path.stem)
def test_games_run_as_on_pyboy(path: Path) -> None:
    """Random play, registers and picture compared after each of 20 steps, all of the state after each tenth."""
    buttons = random_buttons(zlib.crc32(path.stem.encode()), STEPS, 1)
    result = compare(path.read_bytes(), buttons, 10, FRAMES_PER_STEP, model="cgb")
    assert not result.difference, "\n".join(result.difference)
    assert result.frames == STEPS and not result.locked


@pytest.mark.usefixtures("shared")
def test_there_are_games_for_color() -> None:
    """The test above has not gone without its ROMs."""
    assert len([path for path in games() if load_cartridge(path, model="auto").model == "cgb"]) >= 20


# They found nothing that the others do not find now
MORE_SEEDS = (3, 4, 5, 10, 25, 30, 37, 49, 106, 112, 179, 401, 590, 707, 911)


@pytest.mark.parametrize(
    "seed",
    [
        *(0, 1, 2, 7, 14, 51, 133, 476, 787, 5042, 6218),
        *(pytest.param(seed, marks=pytest.mark.long) for seed in MORE_SEEDS),
    ],
)
def test_random_programs_run_as_on_pyboy(seed: int) -> None:
    """Among them: VRAM DMA that reads HDMA5, that pushes start, and at double speed; OAM DMA from page FF; HALTs of an
    odd number of T-cycles; the end of mode 2 at double speed (5042); code in OAM and VRAM that looks back, and an LCD
    that is thousands of T-cycles behind its clock after that (51, 133, 476, 6218); VRAM DMA that writes to HDMA1 to
    HDMA5 (787)."""
    result = compare_seed(make_rom(seed, "color").data, seed, 40)
    assert not result.difference, "\n".join(result.difference)


@pytest.mark.parametrize("seed", [0, 2, 169, *(pytest.param(seed, marks=pytest.mark.long) for seed in (3, 4, 5))])
def test_scenes_run_as_on_pyboy(seed: int) -> None:
    """Pictures, and STOP in VRAM, OAM and WRAM; 169: with a clock that wraps where the LCD is behind it already."""
    result = compare_seed(make_rom(seed, "color-scenes").data, seed, 40)
    assert not result.difference, "\n".join(result.difference)


def rom_of(code: str, flag: int = 0xC0) -> bytes:
    """A ROM that runs a piece of machine code and then waits, for the Game Boy Color."""
    rom = bytearray(0x8000)
    rom[0x100:0x104] = 0x00, 0xC3, 0x50, 0x01
    program = bytes.fromhex(code) + bytes.fromhex("18FE")
    rom[0x150 : 0x150 + len(program)] = program
    header(rom, 0, 0)
    name_color(rom, flag)
    return bytes(rom)


# ld a,n / ldh [r],a: 3En E0r. LCD off; VBK 1, tile map of attributes from 9800, palettes; LCD on.
PICTURE = """
    AF E040  3E80 E068 0640 78 07 07 E069 05 20F8  3E80 E06A 0640 78 E06B 05 20FA
    210080 78 22 3C EE5A CB5C 28F8  2A 3E01 E04F 210098 78 22 C607 CB6C 28F9 AF E04F  3E93 E040
"""
DOUBLE_SPEED = "3E01 E04D 1000 "
HBLANK_DMA = "3E40 E051 AF E052 3E80 E053 AF E054 3E8F E055 "


def picture_rom(seed: int, flag: int) -> bytes:
    """Random tiles, maps, attributes, palettes and sprites, shown with random registers that change in each frame."""
    random = np.random.default_rng(seed)
    rom = bytearray(rom_of("", flag))
    rom[0x4000:] = random.integers(0, 256, 0x4000, dtype=np.uint8).tobytes()
    sprites = random.integers(0, 256, (40, 4), dtype=np.uint8)
    sprites[:, 0] = random.integers(0, 12, 40) * 16 + random.integers(0, 4, 40)  # some lines have more than ten
    rom[0x3F00:0x3FA0] = sprites.tobytes()

    def store(register: int, value: int) -> bytes:
        return bytes((0x3E, value, 0xE0, register))

    code = store(0x40, 0)
    for bank, source in ((0, 0x40), (1, 0x60)):  # both by VRAM DMA, or all of bank 0 by the CPU
        code += store(0x4F, bank)
        for block in range(4):
            code += store(0x51, source + 8 * block) + store(0x52, 0) + store(0x53, 8 * block) + store(0x54, 0)
            code += store(0x55, 0x7F)
    code += bytes.fromhex("3E00E04F 210040 110080 2A 12 13 7A FEA0 20F9") if flag == 0 else b""
    for index, data in ((0x68, 0x69), (0x6A, 0x6B)):
        code += store(index, 0x80) + bytes(
            (0x21, random.integers(256), 0x50, 0x06, 64, 0x2A, 0xE0, data, 0x05, 0x20, 0xFA)
        )
    code += store(0x46, 0x3F) + bytes.fromhex("3E28 3D 20FD")
    for register in (0x42, 0x43, 0x47, 0x48, 0x49):
        code += store(register, int(random.integers(256)))
    code += store(0x4A, int(random.integers(100))) + store(0x4B, int(random.integers(180)))
    code += store(0x40, 0x80 | int(random.integers(128)))
    # Each frame at line 144: SCX up, WX down; LCDC's bits 0 to 6 as DIV has them, then wait for line 143 and again.
    loop = bytes.fromhex("F044FE9020FA F0433CE043 F04B3DE04B F0404704 F004 E67F F680 E040 F044FE8F20FA 18")
    code += loop + bytes((0x100 - len(loop) - 1,))
    rom[0x150 : 0x150 + len(code)] = code
    return bytes(rom)


@pytest.mark.parametrize("path", sorted((ROOT / "roms").rglob("*.gb")), ids=lambda path: path.stem)
def test_the_first_picture(path: Path) -> None:
    """The boot ROM's, in its own colours, whatever the game does in the rest of that frame."""
    emulator, machine = Emulator(path, screen="full", model="cgb"), PyBoyMachine(path.read_bytes(), model="cgb")
    assert np.array_equal(machine.colors(), emulator.colors[0].numpy())
    machine.close()


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in (3, 4, 5))])
@pytest.mark.parametrize("flag", [0xC0, 0x00])
def test_pictures(seed: int, flag: int) -> None:
    """Everything that a line is drawn from, at random."""
    rom = picture_rom(seed, flag)
    result = compare(rom, np.zeros((24, 1), np.uint8), 6)
    assert not result.difference, "\n".join(result.difference)
    emulator = Emulator(rom, screen="full", model="cgb", frames_per_step=1, release_after_frames=1)
    shown, seen = set(), set()
    for _ in range(24):
        emulator.step(torch.zeros(1, dtype=torch.uint8))
        shown.add(emulator.colors.numpy().tobytes())
        seen |= set(np.unique(emulator.colors.numpy()).tolist())
    assert len(shown) > 12 and len(seen) >= (20 if flag else 3)


@pytest.mark.parametrize("seed", range(6))
def test_vram_dma_that_writes_to_its_own_registers(seed: int) -> None:
    """From 9FF0 on through RAM, OAM and the registers; the last of 12 transfers writes random bytes to FF00-FFEF, so
    that HDMA5 starts another one of either kind in the middle of it."""
    random = np.random.default_rng(seed)
    start = "F3 3E40E051 AFE052 3E9FE053 3EF0E054 3E7F 0E0B E055 0D20FB" + "3E40E051 AFE052 3E7FE055" * 2
    rom = bytearray(rom_of(("" if seed % 2 else "AFE040 ") + start))
    rom[0x4000:] = random.integers(0, 256, 0x4000, dtype=np.uint8).tobytes()
    rom[0x4765] = int(random.integers(0, 128)) if seed % 3 else 0x80 | int(random.integers(0, 128))
    result = compare(bytes(rom), np.zeros((4, 1), np.uint8), 1)
    assert not result.difference, "\n".join(result.difference)


@pytest.mark.parametrize("code", [PICTURE, DOUBLE_SPEED, DOUBLE_SPEED + PICTURE, HBLANK_DMA, DOUBLE_SPEED + HBLANK_DMA])
@pytest.mark.parametrize("flag", [0xC0, 0x80, 0x00])
def test_programs(code: str, flag: int) -> None:
    """Frame by frame."""
    result = compare(rom_of(code, flag), np.zeros((12, 1), np.uint8), 3)
    assert not result.difference, "\n".join(result.difference)
