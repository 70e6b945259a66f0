"""HOMEWARD's stages on our emulator: the committed traces, banks, the villager, text boxes, the menu and the save."""

import hashlib
import io
import itertools
import json
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.tasks.actions import BUTTONS
from gbxcule_puffer.tasks.goals.recipe import GoalRecipe
from gbxcule_puffer.tasks.goals.template import GoalTemplate
from tests.fuzz import lockstep

ROMS = Path(__file__).resolve().parents[2] / "roms"
ROM = ROMS / "homeward.gb"
STAGES = ROMS / "homeward"
FONT = runpy.run_path(str(STAGES / "texts.py"))  # which tile is which letter
CHARACTERS, FONT_TILE = FONT["CHARACTERS"], FONT["FONT_TILE"]

MAP, X, Y, FACING, STEP_LEFT, FLAGS, BOX, NPC_X, NPC_Y, JUMP_LEFT = range(10)  # from C0A0 on
HOUSE, VILLAGE, COTTAGE = range(3)
DOWN, UP, LEFT, RIGHT = range(4)
SATCHEL, TAKEN, DELIVERED = 1, 2, 4
NO_BOX, TEXT, MENU = range(3)
AT_SIGN = (VILLAGE, 18, 12, UP)


def stage(name):
    return json.loads((STAGES / f"{name}.json").read_text())


def buttons(action):
    dpad, button, _ = BUTTONS[action]
    return dpad | button << 4


class Game:
    """One game on the emulator, at the start of a stage."""

    def __init__(self, name, save_ram=None):
        self.emulator = Emulator(ROM, screen="full", num_threads=1)
        self.emulator.reset(save_ram)
        if name:
            self.play(*stage(name)["start_actions"])

    def play(self, *actions):
        for action in actions:
            self.emulator.step(torch.tensor([buttons(action)], dtype=torch.uint8))
        return self

    def ram(self):
        return self.emulator.read_memory(0, 0xC0A0, 10).tolist()

    def place(self):
        """(map, column, row, facing); a step or a jump must be over."""
        ram = self.ram()
        assert ram[STEP_LEFT] == ram[JUMP_LEFT] == 0
        return tuple(ram[:4])

    def picture(self):
        return self.emulator.screen[0].numpy().copy()

    def box(self):
        """The words in the open box."""
        registers = self.emulator.registers()
        rows, columns = (144 - registers["wy"]) // 8, (167 - registers["wx"]) // 8
        tiles = self.emulator.read_memory(0, 0x9C00, 12 * 32).reshape(12, 32)[:rows, :columns] - FONT_TILE
        letters = (CHARACTERS[tile] if tile < len(CHARACTERS) else " " for tile in tiles.flat)
        return " ".join("".join(letters).split())


@pytest.mark.parametrize(
    ("name", "start", "flags", "end"),
    [
        ("stage1", (HOUSE, 2, 3, DOWN), 0, (VILLAGE, 10, 10, DOWN)),
        ("stage2", (VILLAGE, 10, 10, DOWN), SATCHEL, AT_SIGN),
        ("stage3", AT_SIGN, SATCHEL | TAKEN | DELIVERED, (HOUSE, 6, 6, UP)),
        ("whole", (HOUSE, 2, 3, DOWN), SATCHEL | TAKEN | DELIVERED, (HOUSE, 6, 6, UP)),
    ],
)
def test_trace_solves_its_stage_and_makes_its_goal(tmp_path, name, start, flags, end):
    game = Game(name)
    assert game.place() == start
    solution = stage(name)["solve_actions"]
    assert len(solution) < stage(name)["max_steps"] // 3
    pictures = []
    for action in solution:
        pictures.append(game.play(action).picture())
    assert game.place() == end
    assert game.ram()[FLAGS] == flags
    assert game.ram()[BOX] == (NO_BOX if name == "stage1" else TEXT)
    assert all((picture == pictures[-1]).all() for picture in pictures[-4:])
    assert (pictures[-1] == game.play(*["NOOP"] * 8).picture()).all()  # it stands still

    goal = GoalTemplate.load(GoalRecipe.load(STAGES / f"{name}.json").make(tmp_path).goal_dir)
    assert len(goal.frames) == 1
    assert (goal.frames[0] == pictures[-1][::2, ::2]).all()
    assert goal.meta["tau"] > 0.01


def test_stages_are_of_this_rom():
    stages = json.loads((STAGES / "stages.json").read_text())
    assert stages["rom_sha256"] == hashlib.sha256(ROM.read_bytes()).hexdigest()
    assert [one["max_steps"] for one in stages["stages"]] == [stage(f"stage{n}")["max_steps"] for n in (1, 2, 3)]


def test_each_stage_starts_where_the_one_before_ended():
    whole = stage("whole")
    assert whole["start_actions"] == stage("stage1")["start_actions"]
    actions = whole["start_actions"] + whole["solve_actions"]
    for name in ("stage1", "stage2", "stage3"):
        trace = stage(name)["start_actions"] + stage(name)["solve_actions"]
        assert actions[: len(trace)] == trace
    assert actions == trace


def test_whole_game_stays_in_lockstep_with_pyboy():
    """Every part of the state after every step, menu and save at the end; the CUDA kernel's data path runs along."""
    whole = stage("whole")
    actions = whole["start_actions"] + whole["solve_actions"] + ["A", "START", "DOWN", "UP", "A", "A"]
    assert Game(None).play(*actions).emulator.save_ram()[:4] == b"HOME"
    keys = np.array([[buttons(action)] for action in actions], np.uint8)
    result = lockstep.compare(ROM.read_bytes(), keys, check_every=1, frames_per_step=24)
    assert result.difference == []
    assert result.frames == len(actions)


def test_banks_can_be_jumped_one_way_only():
    game = Game("stage2").play(*["DOWN"] * 4)
    assert game.place() == (VILLAGE, 10, 14, DOWN)
    assert game.play("DOWN").place() == (VILLAGE, 10, 16, DOWN)
    assert game.play("UP").place() == (VILLAGE, 10, 16, UP)
    assert game.play("RIGHT", "RIGHT").place() == (VILLAGE, 13, 16, RIGHT)
    assert game.play("LEFT").place() == (VILLAGE, 13, 16, LEFT)
    game = Game("stage3").play("LEFT")
    assert game.place() == (VILLAGE, 17, 12, LEFT)
    assert game.play("LEFT").place() == (VILLAGE, 15, 12, LEFT)
    assert game.play("RIGHT").place() == (VILLAGE, 15, 12, RIGHT)


def test_a_bank_cannot_be_jumped_onto_another():
    game = Game("stage2").play(*["DOWN"] * 4, "RIGHT", "RIGHT")
    assert game.play("DOWN").place() == (VILLAGE, 12, 14, DOWN)


def villagers_walk(*actions):
    game = Game("stage2")
    walk = []
    for action in actions:
        walk.append(tuple(game.play(action).ram()[NPC_X : NPC_Y + 1]))
    return walk


def test_villager_walks_within_her_place_and_the_same_way_again():
    walk = villagers_walk(*["NOOP"] * 120)
    assert {x for x, _ in walk} == {17, 18, 19}
    assert {y for _, y in walk} == {16, 17}
    assert all(abs(a - c) + abs(b - d) <= 1 for (a, b), (c, d) in itertools.pairwise(walk))
    assert walk == villagers_walk(*["NOOP"] * 120)


def test_villagers_walk_depends_on_when_the_game_began():
    walks = []
    for wait in range(2):
        game = Game(None).play(*["NOOP"] * (1 + wait), "START", "NOOP", *stage("stage1")["solve_actions"])
        walks.append([tuple(game.play("NOOP").ram()[NPC_X : NPC_Y + 1]) for _ in range(60)])
    assert walks[0] != walks[1]


def talk_to_villager():
    """Walk to her place, follow her until she stands still, and press A."""
    game = Game("stage2").play(*["DOWN"] * 4, *["RIGHT"] * 5, "DOWN", "RIGHT")
    steps = {(0, 1): "DOWN", (0, -1): "UP", (-1, 0): "LEFT", (1, 0): "RIGHT"}
    for _ in range(200):
        ram = game.ram()
        toward = steps.get((ram[NPC_X] - ram[X], ram[NPC_Y] - ram[Y]), "NOOP")
        if game.play(toward, "A").ram()[BOX] == TEXT:
            assert game.place()[1:3] == tuple(ram[X : Y + 1])  # she was in the way
            return game
    raise AssertionError("she never stood still")


def test_villager_stands_in_the_way_and_talks_and_the_world_waits():
    game = talk_to_villager()
    assert game.box() == "A FINE DAY FOR A WALK, IS IT NOT?"
    before = game.ram()
    assert game.play(*["NOOP", "UP", "START", "LEFT"] * 10).ram() == before
    assert game.play("A").ram()[BOX] == NO_BOX


def test_text_waits_for_a_page_by_page():
    game = Game("stage2").play(*stage("stage2")["solve_actions"])
    assert game.box() == "A PARCEL FOR YOU IS AT THE COTTAGE."
    page = game.picture()
    assert (game.play(*["NOOP", "UP", "SELECT", "START"] * 5).picture() == page).all()
    assert game.play("A").box() == "TAKE THIS SATCHEL TO CARRY IT HOME."
    assert game.ram()[BOX] == TEXT
    assert game.play("B").ram()[BOX] == NO_BOX


def test_parcel_needs_the_satchel():
    """Past the sign without reading it, START does nothing and the parcel stays where it is."""
    way = stage("stage2")["solve_actions"]
    game = Game("stage2").play(*way[: way.index("A")], "START")
    assert game.place() == AT_SIGN
    assert game.ram()[BOX] == NO_BOX
    fetch = stage("stage3")["solve_actions"]
    game.play(*fetch[: fetch.index("A") + 1])
    assert game.place()[0] == COTTAGE
    assert game.box() == "A HEAVY PARCEL. YOU NEED A BAG."
    assert game.ram()[FLAGS] == 0


def test_menu_shows_what_is_carried_and_closes():
    game = Game("stage3")
    before = game.picture()
    assert game.play("START").ram()[BOX] == MENU
    assert game.box() == "SATCHEL: EMPTY SAVE CLOSE"
    assert game.play("DOWN", "A").ram()[BOX] == NO_BOX
    for close in ("B", "START"):
        assert game.play("START").ram()[BOX] == MENU
        assert game.play(close).ram()[BOX] == NO_BOX
    assert (game.picture()[:112] == before[:112]).all()  # below, the villager may have walked
    assert not any(game.emulator.save_ram())
    fetch = stage("stage3")["solve_actions"]
    game.play(*fetch[: fetch.index("A") + 2], "START")
    assert game.box() == "SATCHEL: PARCEL SAVE CLOSE"


def test_save_and_continue_after_power_off():
    game = Game("stage3")
    fetch = stage("stage3")["solve_actions"]
    game.play(*fetch[: fetch.index("A") + 2], "START", "A")
    assert game.box().endswith("SAVED.")
    saved = game.play("A", "NOOP").emulator.save_ram()
    assert saved[:5] == b"HOME\x02"

    again = Game(None, saved).play("NOOP", "START", "NOOP")
    assert again.box() == "CONTINUE NEW GAME"
    again.play("A", "NOOP", "NOOP")
    assert again.place() == game.place()
    assert again.ram()[FLAGS] == SATCHEL | TAKEN
    assert (again.picture() == game.picture()).all()
    again.play(*fetch[fetch.index("A") + 2 :])
    assert again.ram()[FLAGS] == SATCHEL | TAKEN | DELIVERED

    new = Game(None, saved).play("NOOP", "START", "NOOP", "DOWN", "A", "NOOP", "NOOP")
    assert (*new.place(), new.ram()[FLAGS]) == (HOUSE, 2, 3, DOWN, 0)


def test_villager_makes_room_for_who_saved_in_her_place():
    game = Game("stage3").play("START", "A", "A", *["DOWN"] * 3)
    game.play("START", "A", "A")
    saved = bytearray(game.emulator.save_ram())
    saved[7], saved[10] = 16, saved[10] + saved[7] - 16 & 0xFF  # the row, and the sum that belongs to it
    again = Game(None, bytes(saved)).play("NOOP", "START", "NOOP", "A", "NOOP", "NOOP")
    assert again.place()[:3] == (VILLAGE, 18, 16)
    assert again.ram()[NPC_X : NPC_Y + 1] != [18, 16]


@pytest.mark.parametrize("at", [0, 4, 5, 9, 10])
def test_a_damaged_save_is_none(at):
    saved = bytearray(Game("stage3").play("START", "A").emulator.save_ram())
    saved[at] ^= 0x10
    game = Game(None, bytes(saved)).play(*stage("stage1")["start_actions"])
    assert (*game.place(), game.ram()[FLAGS]) == (HOUSE, 2, 3, DOWN, 0)


def test_all_drawing_is_in_vblank_and_no_frame_is_missed():
    """On PyBoy: the handler ends before the picture begins, and always finds the game asleep."""
    pyboy_module = pytest.importorskip("pyboy")
    rom = ROM.read_bytes()
    asleep = rom.index(bytes.fromhex("7600F0")) + 1  # behind the HALT of wait_frame
    end = rom.index(bytes.fromhex("E1D1C1F1D9")) + 4  # the handler's RETI
    pyboy = pyboy_module.PyBoy(io.BytesIO(rom), window="null", sound_emulated=False, cgb=False)
    lines, returns = set(), set()

    def enter(_):
        at = pyboy.register_file.SP
        returns.add(pyboy.memory[at] | pyboy.memory[at + 1] << 8)

    pyboy.tick(65, False, False)
    pyboy.hook_register(0, 0x40, enter, None)
    pyboy.hook_register(0, end, lambda _: lines.add(pyboy.memory[0xFF44]), None)
    whole = stage("whole")
    random = np.random.default_rng(5).choice(list(BUTTONS), 300).tolist()
    for action in whole["start_actions"] + whole["solve_actions"] + random:
        if action != "NOOP":
            pyboy.button(action.lower(), 8)
        pyboy.tick(24, False, False)
    pyboy.stop(save=False)
    assert returns == {asleep}
    assert lines <= set(range(144, 154))
