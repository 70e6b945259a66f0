"""The project's own game HOMEWARD: it builds byte for byte, starts, and its first stage can be solved."""

import hashlib
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROMS = Path(__file__).resolve().parents[2] / "roms"
ROM = ROMS / "homeward.gb"
SDCC_TOOLS = ("sdasgb", "sdldgb", "makebin", "make")
PLAYER_MAP, PLAYER_X, PLAYER_Y, PLAYER_FACING, STEP_LEFT = range(0xC0A0, 0xC0A5)
HOUSE, VILLAGE, FACING_DOWN = 0, 1, 0


@pytest.fixture(scope="module")
def stage():
    return json.loads((ROMS / "homeward" / "stage1.json").read_text(encoding="utf-8"))


class Game:
    """The ROM in PyBoy, stepped by 24 frames an action."""

    def __init__(self):
        pyboy = pytest.importorskip("pyboy")
        rom = io.BytesIO(ROM.read_bytes())
        self.pyboy = pyboy.PyBoy(rom, window="null", sound_emulated=False, cgb=False)
        for _ in range(65):
            self.pyboy.tick(1, True, False)

    def step(self, action):
        if action != "NOOP":
            self.pyboy.button_press(action.lower())
        self.pyboy.tick(8, False, False)
        if action != "NOOP":
            self.pyboy.button_release(action.lower())
        self.pyboy.tick(16, True, False)

    def play(self, actions):
        for action in actions:
            self.step(action)

    def place(self):
        """(map, column, row, facing); a step must be over."""
        assert self.pyboy.memory[STEP_LEFT] == 0
        return tuple(self.pyboy.memory[a] for a in (PLAYER_MAP, PLAYER_X, PLAYER_Y, PLAYER_FACING))

    def picture(self):
        return self.pyboy.screen.ndarray[:, :, 0].tobytes()


@pytest.fixture
def game(stage):
    game = Game()
    game.play(stage["start_actions"])
    yield game
    game.pyboy.stop(save=False)


def test_build_is_reproducible(tmp_path):
    missing = [tool for tool in SDCC_TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"cannot build the ROM: {', '.join(missing)} not installed (package sdcc)")
    command = ["make", "-C", str(ROMS), f"BUILD={tmp_path / 'build'}", f"OUTPUT={tmp_path}"]
    command.append(f"PYTHON={sys.executable}")
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    for built in (*tmp_path.glob("*.gb"), *tmp_path.glob("*.sym")):
        assert built.read_bytes() == (ROMS / built.name).read_bytes(), built.name
    assert len(list(tmp_path.glob("*.sym"))) == len(list(ROMS.glob("*.sym")))


def test_header():
    rom = ROM.read_bytes()
    assert rom[0x134:0x144].rstrip(b"\0") == b"HOMEWARD"
    assert rom[0x147] == 0x13  # MBC3+RAM+BATTERY
    assert 0x8000 << rom[0x148] == len(rom)
    assert rom[0x149] == 0x02  # 8 KiB
    assert rom[0x14D] == -sum(value + 1 for value in rom[0x134:0x14D]) & 0xFF
    total = sum(rom) - rom[0x14E] - rom[0x14F]
    assert int.from_bytes(rom[0x14E:0x150], "big") == total & 0xFFFF


def test_manifest_has_the_checksum():
    manifest = json.loads((ROMS / "manifest.json").read_text(encoding="utf-8"))
    for entry in manifest:
        digest = hashlib.sha256((ROMS / entry["file"]).read_bytes()).hexdigest()
        assert entry["sha256"] == digest, entry["file"]


def test_stage1_starts_in_the_house(game):
    assert game.place()[0] == HOUSE
    before = game.picture()
    game.play(["NOOP", "A", "B", "START"])
    assert game.picture() == before


def test_stage1_solution_ends_in_front_of_the_door(game, stage):
    game.play(stage["solve_actions"])
    assert game.place() == (VILLAGE, 10, 10, FACING_DOWN)
    goal = game.picture()
    for _ in range(4):
        game.step("NOOP")
        assert game.picture() == goal


def test_stage1_solution_shows_the_goal_for_its_last_four_steps(game, stage):
    pictures = []
    for action in stage["solve_actions"]:
        game.step(action)
        pictures.append(game.picture())
    assert len(set(pictures[-4:])) == 1
    assert pictures[-5] != pictures[-4]


def test_one_press_is_one_cell_and_the_picture_scrolls_back(game, stage):
    game.play(stage["solve_actions"])
    game.play(["DOWN", "DOWN", "RIGHT"])
    assert game.place()[1:3] == (11, 12)
    game.step("LEFT")
    home = game.picture()
    game.play(["LEFT", "RIGHT", "DOWN", "UP", "RIGHT", "LEFT"])
    assert game.place()[1:3] == (10, 12)
    assert game.picture() == home


def test_the_door_leads_back_in(game, stage):
    game.play(stage["solve_actions"])
    game.play(["UP", "NOOP", "NOOP"])
    assert game.place()[0] == HOUSE
