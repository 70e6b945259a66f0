"""A player of GATEWARD that reads its memory: it follows walkthrough.txt, and writes the buttons to played.json.

    PYTHONPATH=. python roms/gateward/player.py [--rom FILE] [--model dmg|cgb] [--upto LINE]

walkthrough.txt has a line for each aim; the player finds the way, fights, and heals on its own:

    talk MAP.M     go there and press A; questions are answered with YES
    go MAP.M       go to this cell
    buy MAP.M ITEM NUMBER
    lead SPECIES   make this fighter the first of the team
    press BUTTON
"""

from __future__ import annotations

import argparse
import heapq
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

HERE = Path(__file__).parent
sys.path.append(str(HERE))

from maps import FACINGS, Encoder, Pool, World  # noqa: E402
from memory import MON_SIZE, Fighter, Memory  # noqa: E402
from tables import CHARACTERS, DIGIT_TILE, FONT_TILE, SLASH_TILE, Tables  # noqa: E402

from gbxcule_puffer.apps.game.playing import play_episode  # noqa: E402
from gbxcule_puffer.emulator import Emulator  # noqa: E402
from gbxcule_puffer.games import load_game  # noqa: E402
from gbxcule_puffer.tasks.actions import buttons_of  # noqa: E402

START = ("NOOP", "START", "NOOP")
DIRECTIONS = {"DOWN": (0, 1), "UP": (0, -1), "LEFT": (-1, 0), "RIGHT": (1, 0)}
WALK, SOLID, WARP, GRASS, WATER, LEDGE = range(6)
RATES = {GRASS: 5, WATER: 3}  # how much longer a step there counts, as it may bring a battle
WEAK, WEARY = 0.4, 0.65  # of the HP: heal; heal before a trainer
MOST_PRESSES = 3000  # for one aim
MOST_ATTEMPTS = 8  # at a trainer

Cell = tuple[int, int, int]


class Stuck(Exception):
    """The player cannot go on."""


class Player:
    """Plays one Game Boy; `actions` is what it has pressed."""

    def __init__(self, rom: Path, model: str = "dmg", screen: str = "half") -> None:
        self.emulator = Emulator(rom, 1, model=model, screen=screen)
        self.memory = Memory(self.emulator, rom.with_suffix(".sym"))
        self.tables = Tables()
        self.world = World(self.tables)
        for each in self.world.maps:  # its objects are known once a map is encoded
            Encoder(self.world, Pool(), each)
        self.wild = {each.number for each in self.world.maps if any(thing.words[0] == "wild" for thing in each.things)}
        self.items = list(self.tables.items)
        self.species = list(self.tables.species)
        self.actions: list[str] = []
        for action in START:
            self.step(action)
        self.actions.clear()

    def step(self, action: str) -> None:
        """One step of the environment."""
        self.actions.append(action)
        self.emulator.step(torch.tensor([buttons_of(action)], dtype=torch.uint8))

    # What is so in the game

    @property
    def cell(self) -> Cell:
        """(map, column, row) of the player."""
        return self.memory["wCurMap"], self.memory["wXCoord"], self.memory["wYCoord"]

    def event(self, name: str, flags: bytes | None = None) -> bool:
        """Whether an event has happened, by the bytes of all events."""
        number = self.tables.events[name]
        flags = flags or self.memory.bytes("wEventFlags", 32)
        return bool(flags[number >> 3] >> (number & 7) & 1)

    def bag(self) -> dict[str, int]:
        """Items and their numbers, in order."""
        data = self.memory.bytes("wBagItems", 2 * self.memory["wNumBagItems"])
        return {self.items[item]: number for item, number in zip(data[::2], data[1::2], strict=True)}

    def party(self) -> list[Fighter]:
        """The team."""
        data = self.memory.bytes("wPartyMons", MON_SIZE * self.memory["wPartyCount"])
        return [Fighter.of(data[i : i + MON_SIZE]) for i in range(0, len(data), MON_SIZE)]

    def rows(self) -> list[str]:
        """The screen of boxes and menus as text."""
        letters = {FONT_TILE + i: c for i, c in enumerate(CHARACTERS)} | {DIGIT_TILE + i: str(i) for i in range(10)}
        letters[SLASH_TILE] = "/"
        tiles = self.memory.bytes("wTileMap", 360)
        return ["".join(letters.get(tile, "*") for tile in tiles[i : i + 20]) for i in range(0, 360, 20)]

    # Ways

    def blocked(self, number: int) -> set[tuple[int, int]]:
        """Cells of a map where an object is."""
        here, flags = set(), self.memory.bytes("wEventFlags", 32)
        for each in self.world.maps[number].objects:
            happened = bool(each["event"]) and self.event(each["event"], flags)
            if each["condition"] == 0 or (each["condition"] == 1) != happened:
                here.add(each["cell"])
        return here

    def neighbours(self, cell: Cell, cache: dict) -> Iterator[tuple[str, Cell, int]]:
        """(button, cell, cost) of the steps from a cell."""
        number, x, y = cell
        here = self.world.maps[number]
        if number not in cache:
            cache[number] = self.blocked(number)
        for button, (dx, dy) in DIRECTIONS.items():
            to = (x + dx, y + dy)
            kind = here.kinds.get(to, SOLID)
            if kind == SOLID or to in cache[number] or (kind == WATER and "BOAT" not in cache["bag"]):
                continue
            if kind >= LEDGE:
                if kind - LEDGE != ("DOWN", "UP", "LEFT", "RIGHT").index(button):
                    continue
                to = (to[0] + dx, to[1] + dy)
                kind = here.kinds.get(to, SOLID)
                if kind not in (WALK, GRASS) or to in cache[number]:
                    continue
            cost = 1 + (RATES.get(kind, 0) if number in self.wild else 0)
            if kind == WARP and to in here.warps:
                target, tx, ty, item, *_ = here.warps[to]
                if item and item not in cache["bag"]:
                    continue
                yield button, (target, tx, ty), 2
            else:
                yield button, (number, *to), cost

    def way(self, goals: set[Cell]) -> list[str]:
        """The buttons of the shortest way to one of the cells.

        Raises: Stuck where there is none.
        """
        start, cache = self.cell, {"bag": self.bag()}
        best, queue, came = {start: 0}, [(0, start)], {}
        while queue:
            cost, cell = heapq.heappop(queue)
            if cell in goals:
                buttons = []
                while cell != start:
                    cell, button = came[cell]
                    buttons.append(button)
                return buttons[::-1]
            if cost > best[cell]:
                continue
            for button, to, more in self.neighbours(cell, cache):
                if cost + more < best.get(to, 1 << 30):
                    best[to] = cost + more
                    came[to] = (cell, button)
                    heapq.heappush(queue, (cost + more, to))
        raise Stuck(f"there is no way from {self.name(start)} to {[self.name(goal) for goal in goals][:4]}")

    def name(self, cell: Cell) -> str:
        """A cell as people write it."""
        return f"{self.world.maps[cell[0]].name} {cell[1]},{cell[2]}"

    def go(self, goals: set[Cell]) -> None:
        """Walk to one of the cells; battles and texts on the way are dealt with."""
        for _ in range(MOST_PRESSES):
            self.settle()
            if self.cell in goals:
                return
            self.patch_up()
            self.step(self.way(goals)[0])
        raise Stuck(f"never came to {[self.name(goal) for goal in goals][:4]}")

    def cells(self, word: str) -> set[Cell]:
        """The cells of a marker."""
        name, _, marker = word.partition(".")
        each = self.world.by_name[name]
        return {(each.number, *cell) for cell in each.markers[marker]}

    # Talking and fighting

    def settle(self) -> None:
        """Press on until the player can walk."""
        for _ in range(MOST_PRESSES):
            if self.memory["wGameWon"]:
                return
            if self.memory["wIsInBattle"]:
                self.fight()
            elif self.memory["wMenuOpen"]:
                self.choose(0)
            elif self.memory["wTextBoxOpen"]:
                self.step("A")
            elif self.memory["wWalkCounter"]:
                self.step("NOOP")
            else:
                return
        raise Stuck("the text does not end")

    def choose(self, line: int) -> None:
        """Take a line of a menu."""
        while self.memory["wCurrentMenuItem"] != line:
            self.step("DOWN" if self.memory["wCurrentMenuItem"] < line else "UP")
        self.step("A")

    def talk(self, word: str) -> None:
        """Walk to what is at a marker, look at it and press A. A trainer is challenged until beaten."""
        name, _, marker = word.partition(".")
        found = [each for each in self.world.by_name[name].objects if each["marker"] == marker and each["sight"]]
        for _ in range(MOST_ATTEMPTS if found else 1):
            if not found or not self.event(found[0]["event"]):
                if found:
                    self.patch_up(WEARY)
                self.talk_once(name, marker)
        if found and not self.event(found[0]["event"]):
            raise Stuck("the trainer wins each time")

    def talk_once(self, name: str, marker: str) -> None:
        """Walk to what is at a marker, look at it and press A."""
        each = self.world.by_name[name]
        spots = {}
        for x, y in each.markers[marker]:
            for button, (dx, dy) in DIRECTIONS.items():
                spots[each.number, x - dx, y - dy] = button
        free = {cell for cell in spots if each.kinds.get(cell[1:], SOLID) != SOLID}
        self.go(free - {(each.number, *cell) for cell in self.blocked(each.number)})
        button = spots[self.cell]
        if self.memory["wPlayerDirection"] != FACINGS.index(button.lower()):
            self.step(button)
        self.step("A")
        self.settle()

    def value(self, move: int, attacker: Fighter, defender: Fighter) -> float:
        """What a move may do."""
        kind, power, accuracy = self.tables.move_data[move]
        if not power:
            return 0.5
        count = len(self.tables.types)
        factor = 1.0
        for each in dict.fromkeys(defender.types):
            factor *= self.tables.chart[kind * count + each] / 2
        damage = (2 * attacker.level / 5 + 2) * power * attacker.attack / max(1, defender.defense) / 32 + 2
        if kind in attacker.types:
            damage *= 1.5
        return damage * factor * accuracy / 256

    def chance(self, me: Fighter, foe: Fighter) -> float:
        """How many more rounds `me` stands than `foe`, roughly."""
        give = max(self.value(move, me, foe) for move in me.moves)
        take = max((self.value(move, foe, me) for move in foe.moves), default=1)
        return me.hp / max(1, take) - foe.hp / max(1, give)

    def better(self, foe: Fighter) -> int | None:
        """Who of the team should fight instead, if that is worth a round."""
        party, now = self.party(), self.memory["wPlayerMonNumber"]
        chances = [self.chance(each, foe) if each.hp else -99 for each in party]
        best = max(range(len(party)), key=chances.__getitem__)
        return best if chances[now] < 0 and chances[best] > max(0, chances[now]) + 1.5 else None

    def fight(self) -> None:
        """One press of a battle."""
        if not self.memory["wMenuOpen"]:
            self.step("A")
            return
        me = self.party()[self.memory["wPlayerMonNumber"]]
        foe = Fighter.of(self.memory.bytes("wEnemyMon", MON_SIZE))
        rows = self.rows()
        if rows[13][3:8] == "FIGHT":
            bag = self.bag()
            cure = next((item for item in ("TONIC", "POTION") if item in bag), None)
            threat = max((self.value(move, foe, me) for move in foe.moves), default=0)
            mine = max(self.value(move, me, foe) for move in me.moves)
            better = self.better(foe)
            if better is not None:
                self.choose(2)
                self.choose(better)
            elif cure and me.hp <= threat * 1.1 and mine < foe.hp and me.hp < me.maximum * 0.7:
                self.choose(1)
                self.choose(list(bag).index(cure))
            else:
                self.choose(0)
        elif rows[13][1:3].strip(" *") == "" and any(rows[13 + i][3:].strip() for i in range(4)):
            values = [self.value(move, me, foe) for move in me.moves]
            self.choose(values.index(max(values)))
        else:
            self.step("B")

    def patch_up(self, share: float = WEAK) -> None:
        """Heal the first fighter from the bag if it has less than this share of its HP."""
        party, bag = self.party(), self.bag()
        if not party or party[0].hp == 0 or party[0].hp >= share * party[0].maximum:
            return
        cure = next((item for item in ("POTION", "TONIC") if item in bag), None)
        if cure is None:
            return
        self.step("START")
        self.choose(1)
        self.choose(list(bag).index(cure))
        self.choose(0)
        self.settle()

    def buy(self, word: str, item: str, number: int) -> None:
        """Buy things in a shop, as many as the money allows."""
        name, _, marker = word.partition(".")
        each = self.world.by_name[name]
        stock = next(line.split()[1:] for thing in each.things for _, line in thing.body if line.startswith("shop "))
        x, y = each.markers[marker][0]
        self.go({(each.number, x, y + 1)})
        self.step("UP")
        self.step("A")
        while not self.memory["wMenuOpen"]:
            self.step("A")
        for _ in range(number):
            self.choose(stock.index(item))
            while not self.memory["wMenuOpen"]:
                self.step("NOOP")
        self.step("B")
        self.settle()

    def lead(self, name: str) -> None:
        """Make a fighter the first of the team."""
        index = [self.species[each.species] for each in self.party()].index(name)
        self.step("START")
        self.choose(0)
        self.choose(index)
        self.settle()

    def follow(self, line: str) -> None:
        """One line of the walkthrough."""
        word, *rest = line.split()
        if word == "talk":
            self.talk(*rest)
        elif word == "go":
            self.go(self.cells(*rest))
            self.settle()
        elif word == "buy":
            self.buy(rest[0], rest[1], int(rest[2]))
        elif word == "lead":
            self.lead(*rest)
        elif word == "press":
            self.step(*rest)
            self.settle()
        else:
            raise Stuck(f"{word!r} is not an aim")

    def said(self) -> str:
        """How far it is."""
        party = ", ".join(
            f"{self.species[each.species]} {each.level} {each.hp}/{each.maximum}" for each in self.party()
        )
        events = sum(bin(byte).count("1") for byte in self.memory.bytes("wEventFlags", 32))
        money = self.memory.bytes("wPlayerMoney", 3).hex()
        badges = bin(self.memory["wObtainedBadges"]).count("1")
        return (f"{len(self.actions)} {self.name(self.cell)}, {badges} gates, {events} events, money {money}, "
                f"{self.memory['wBlackouts']} blackouts: {party} {self.bag()}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Play GATEWARD by walkthrough.txt, and write played.json.")
    parser.add_argument("--rom", type=Path, default=HERE.parent / "gateward.gb")
    parser.add_argument("--model", choices=("dmg", "cgb"), default="dmg", help="played.json is written for dmg only")
    parser.add_argument("--upto", type=int, help="the last line to follow; nothing is written then")
    args = parser.parse_args()
    player = Player(args.rom, args.model)
    lines = (HERE / "walkthrough.txt").read_text().splitlines()
    for number, line in enumerate(lines[: args.upto], 1):
        if not line or line.startswith(";"):
            continue
        try:
            player.follow(line)
        except (Stuck, ValueError) as error:
            print(player.said(), *player.rows(), sep="\n")
            sys.exit(f"walkthrough.txt:{number}: {line}: {error}")
        print(f"{line}: {player.said()}", flush=True)
    if args.upto is None and args.model == "dmg":
        episode = play_episode(load_game(HERE), player.actions, args.rom)
        episode.trace.save(HERE / "played.json")
        print(f"played.json: {len(player.actions):,} steps, score {episode.score:g}, ended {episode.has_ended}")


if __name__ == "__main__":
    main()
