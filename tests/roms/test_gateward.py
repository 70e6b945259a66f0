"""GATEWARD, the long game: its world by its text files, and what it does on our emulator and on PyBoy."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.games import load_game
from gbxcule_puffer.layout import ROMS
from gbxcule_puffer.tasks.actions import CODECS, DEFAULT_CODEC, buttons_of
from tests.fuzz.lockstep import compare

ROM, FOLDER = ROMS / "gateward.gb", ROMS / "gateward"
SOLID, LEDGE = 1, 5
START = ("NOOP", "START", "NOOP")


@pytest.fixture(scope="module")
def game() -> Iterator[Any]:
    """The modules that compile the game and play it. They lie beside the ROM, not in the package."""
    before, loaded = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    names = ("faults", "tables", "pictures", "scripts", "maps", "player")
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    sys.path[:] = before
    for name in sys.modules.keys() - loaded:  # names as short as `maps` are not for other tests
        if str(ROMS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture(scope="module")
def world(game: Any) -> Any:
    """All maps, with their objects."""
    world = game.maps.World(game.tables.Tables())
    for each in world.maps:
        game.maps.Encoder(world, game.maps.Pool(), each)
    return world


def test_the_world_is_large(world: Any) -> None:
    tables = world.tables
    assert len(world.maps) >= 40 and len(tables.events) >= 150 and len(tables.species) >= 20
    assert {each.tileset for each in world.maps} == {"outdoor", "indoor", "cave"}
    badges = [line for each in world.maps for thing in each.things for _, line in thing.body if "badge " in line]
    assert sorted(badges) == [f"badge {number}" for number in range(1, 9)]


def reached(each: Any, start: tuple[int, int]) -> set[tuple[int, int]]:
    """The cells of a map that can be walked to from `start`, by somebody who has all items."""
    people = {thing["cell"] for thing in each.objects if thing["condition"] != 1}
    found, queue = {start}, deque([start])
    while queue:
        x, y = queue.popleft()
        for facing, (dx, dy) in enumerate(((0, 1), (0, -1), (-1, 0), (1, 0))):
            cell = (x + dx, y + dy)
            kind = each.kinds.get(cell, SOLID)
            if kind >= LEDGE and kind - LEDGE == facing:
                cell = (cell[0] + dx, cell[1] + dy)
            elif kind >= LEDGE:
                continue
            if each.kinds.get(cell, SOLID) != SOLID and cell not in people and cell not in found:
                found.add(cell)
                queue.append(cell)
    return found


def test_every_exit_and_object_of_a_map_can_be_reached_from_every_exit(world: Any) -> None:
    for each in world.maps:
        for start in each.warps:
            cells = reached(each, start)
            assert each.warps.keys() <= cells, f"{each.name}: from {start}"
            for thing in each.objects:
                x, y = thing["cell"]
                beside = {(x, y + 1), (x, y - 1), (x - 1, y), (x + 1, y)}
                assert cells & beside, f"{each.name}: {thing['marker']} from {start}"


@pytest.mark.parametrize(
    ("file", "old", "new", "fault"),
    [
        ("maps/a_mossby.txt", "exit 1 route1.1", "exit 1 route1.9", "txt:43: map mossby: there is no marker route1.9"),
        ("maps/a_mossby.txt", "give LETTER", "give LETER", "map mill: there is no item LETER"),
        ("maps/a_mossby.txt", "set got_letter", "set got_later", "map mill: the event got_later is not in events.txt"),
        ("maps/a_mossby.txt", "say As you like.", "sag As you like.", "map mill: 'sag' is not a command"),
        ("maps/a_mossby.txt", "TT,uuu;,f,==,,TT", "TT,uuu;,f,==,,T", "map mossby: its rows have different lengths"),
        ("maps/a_mossby.txt", "person 5 child down", "person 5 chimp down", "map mossby: nobody looks like chimp"),
        ("maps/b_ferrow.txt", "child left 3 tim", "child left tim", "trainer needs other words"),
        ("maps/b_ferrow.txt", "  after I need more practice.", "", "map route1: there is no after"),
        ("maps/b_ferrow.txt", "item A POTION", "item A PORTION", "map route1: there is no item PORTION"),
        ("tables/species.txt", "1 NUDGE 2 SPIT", "1 NUDGE 2 SPOT", "there is no move SPOT"),
        ("tables/moves.txt", "NUDGE PLAIN 40", "NUDGE PLANE 40", "there is no type PLANE"),
        ("tables/trainers.txt", "TIM 60 NIBBIT 4", "TIM 60 NIBBIT 41", "the level is '41': give a number from"),
    ],
    ids=["exit", "item", "event", "command", "rows", "look", "words", "after", "found", "move", "type", "level"],
)  # fmt: skip
def test_a_fault_in_a_text_file_is_one_line(
    game: Any, tmp_path: Path, file: str, old: str, new: str, fault: str
) -> None:
    for part in ("maps", "tables"):
        shutil.copytree(FOLDER / part, tmp_path / part)
    text = (tmp_path / file).read_text()
    (tmp_path / file).write_text(text.replace(old, new, 1))

    def compiled() -> None:
        world = game.maps.World(game.tables.Tables(tmp_path / "tables"), tmp_path / "maps")
        for each in world.maps[:8]:
            game.maps.Encoder(world, game.maps.Pool(), each).encode(0x4000)

    assert old in text
    with pytest.raises(game.faults.Fault) as raised:
        compiled()
    assert fault in str(raised.value) and "\n" not in str(raised.value)


def test_the_folder_names_its_events_as_the_game_does(world: Any) -> None:
    """Milestones of single events in game.toml: byte and mask are those of events.txt."""
    text = (FOLDER / "game.toml").read_text()
    found = {}
    for line in text.splitlines():
        if "wEventFlags+" in line:
            name, address, mask = line.split()[0], line.split("wEventFlags+")[1].split('"')[0], line.split("mask = ")[1]
            found[name] = 8 * int(address) + int(mask.split("}")[0], 0).bit_length() - 1
    assert len(found) >= 10 and found == {name: world.tables.events[name] for name in found}
    assert load_game(FOLDER).scores is not None


class Machine:
    """The game on our emulator, from the bedroom on."""

    def __init__(self, num_envs: int = 1) -> None:
        self.emulator = Emulator(ROM, num_envs, num_threads=1)
        names = [line.split() for line in ROM.with_suffix(".sym").read_text().splitlines()]
        self.symbols = {name: int(address[3:], 16) for address, name in names}
        self.press(*START)

    def press(self, *actions: str) -> None:
        for action in actions:
            self.emulator.step(torch.full((self.emulator.num_envs,), buttons_of(action), dtype=torch.uint8))

    def bytes(self, name: str, size: int, env: int = 0) -> bytes:
        return self.emulator.read_memory(env, self.symbols[name], size).tobytes()

    def __getitem__(self, name: str) -> int:
        return self.bytes(name, 1)[0]

    def poke(self, name: str, *values: int) -> None:
        at = self.symbols[name] - hw.ROW_BASE
        self.emulator.memory[:, at : at + len(values)] = torch.tensor(values, dtype=torch.uint8)


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.mark.kernel
def test_the_errand_of_the_first_village(game: Any) -> None:
    """The first lines of the walkthrough: the letter, a fighter, the first trainer."""
    player = game.player.Player(ROM)
    lines = [line for line in (FOLDER / "walkthrough.txt").read_text().splitlines() if line and line[0] != ";"]
    for line in lines[: lines.index("talk route1.3") + 1]:
        player.follow(line)
    assert player.event("chose_driplet") and player.event("beat_tim") and not player.event("chose_sappin")
    assert player.bag() == {"POTION": 3} and player.party()[0].level == 6
    assert player.actions == json.loads((FOLDER / "played.json").read_text())["actions"][: len(player.actions)]


@pytest.mark.kernel
def test_nobody_leaves_the_village_without_a_fighter(game: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    player = game.player.Player(ROM)
    monkeypatch.setattr(game.player, "MOST_PRESSES", 40)
    with pytest.raises(game.player.Stuck, match="never came to"):
        player.go(player.cells("route1.1"))
    assert player.world.maps[player.cell[0]].name == "mossby"


@pytest.mark.kernel
def test_a_save_is_continued_from_the_title(machine: Machine) -> None:
    machine.press("DOWN", "RIGHT", "START", "DOWN", "DOWN", "DOWN", "A", "A")
    machine.poke("wPlayerMoney", 0, 0x12, 0x34)
    machine.press("START", "DOWN", "DOWN", "DOWN", "A", "A")
    saved = machine.emulator.save_ram()
    again = Machine()
    again.emulator.reset(saved)
    again.press("NOOP", "START", "NOOP", "NOOP", "UP", "A", "NOOP")
    assert (again["wXCoord"], again["wYCoord"]) == (3, 4) and again.bytes("wPlayerMoney", 3).hex() == "001234"
    again.emulator.reset(saved[:9] + bytes([saved[9] ^ 1]) + saved[10:])
    again.press(*START)
    assert (again["wXCoord"], again["wYCoord"], again["wTextBoxOpen"]) == (2, 3, 0), "a damaged save counts as none"


@pytest.mark.kernel
def test_a_lost_battle_costs_half_of_the_money(machine: Machine, world: Any) -> None:
    actions = iter(json.loads((FOLDER / "played.json").read_text())["actions"])
    while machine["wIsInBattle"] != 2:
        machine.press(next(actions))
    machine.poke("wPlayerMoney", 0, 3, 1)
    machine.poke("wPartyMon1HP", 0, 1)
    while not machine["wBlackouts"]:
        machine.press("A")
    machine.press("NOOP")
    assert machine["wBlackouts"] == 1 and machine.bytes("wPlayerMoney", 3).hex() == "000150"
    assert world.maps[machine["wCurMap"]].name == "home" and not machine["wIsInBattle"]
    assert machine.bytes("wPartyMon1HP", 2) == machine.bytes("wPartyMon1MaxHP", 2)


@pytest.mark.kernel
def test_a_net_a_new_leader_a_salve_and_a_thread(machine: Machine, world: Any) -> None:
    """In the meadow's grass, with 9 NETs, 2 SALVEs and 2 THREADs in the bag."""
    machine.press(*json.loads((FOLDER / "played.json").read_text())["actions"][:200], "RIGHT", "RIGHT", "UP")
    net, salve, thread = (world.tables.items[name] for name in ("NET", "SALVE", "THREAD"))
    machine.poke("wBagItems", net, 9, salve, 2, thread, 2, 0xFF)
    machine.poke("wNumBagItems", 3)
    for step in range(100):
        machine.press("LEFT" if step % 2 else "RIGHT")
        if machine["wIsInBattle"]:
            break
    assert machine["wIsInBattle"] == 1
    machine.press("A")
    for _ in range(6):
        if machine["wMenuOpen"]:
            machine.press("DOWN", "A", "A")
        machine.press("A")
        if not machine["wIsInBattle"]:
            break
    assert machine["wPartyCount"] == 2 and machine.bytes("wBagItems", 2)[1] < 9
    first, second, end = machine.bytes("wPartySpecies", 3)
    machine.press("START", "A", "DOWN", "A", "NOOP")
    assert machine.bytes("wPartySpecies", 3) == bytes((second, first, end)) and end == 0xFF
    machine.press("START", "DOWN", "A", "DOWN", "A", "NOOP")
    assert machine["wRepelRemainingSteps"] == 120
    machine.press("START", "DOWN", "A", "DOWN", "DOWN", "A", "NOOP")
    assert world.maps[machine["wCurMap"]].name == "home" and machine.bytes("wBagItems", 7)[5] == 1


@pytest.mark.kernel
def test_random_buttons_see_few_maps() -> None:
    """Under 5 maps of 73. docs/gateward.md has 10,000 steps."""
    machine, codec = Machine(8), CODECS[DEFAULT_CODEC]
    buttons = torch.tensor([codec.to_buttons(action) for action in range(codec.num_actions)], dtype=torch.uint8)
    generator, at = torch.Generator().manual_seed(1), machine.symbols["wCurMap"] - hw.ROW_BASE
    maps = []
    for _ in range(400):
        machine.emulator.step(buttons[torch.randint(codec.num_actions, (8,), generator=generator)])
        maps.append(machine.emulator.memory[:, at].clone())
    assert all(len(each.unique()) < 5 for each in torch.stack(maps, 1))


@pytest.mark.kernel
@pytest.mark.parametrize("model", ["dmg", "cgb"])
def test_played_episode_stays_in_lockstep_with_pyboy(model: str) -> None:
    """Through the village, the errand and into the first fight; `puffer verify --actions` compares all of it."""
    actions = [*START, *json.loads((FOLDER / "played.json").read_text())["actions"][:160]]
    buttons = np.array([[buttons_of(action)] for action in actions], np.uint8)
    result = compare(ROM.read_bytes(), buttons, 80, 24, with_datapath=False, model=model)
    assert not result.difference and result.frames == len(actions)
