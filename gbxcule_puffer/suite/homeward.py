"""HOMEWARD: a quest that begins at a random position. The level is a save in the cartridge, so the ROM is that of all
stages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
import torch

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.protocol import Policy
from gbxcule_puffer.games.levels import Leveled
from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import StepInfo, StepResult

SATCHEL, PARCEL, DELIVERED = 1, 2, 4  # quest_flags
STATES = (0, SATCHEL, SATCHEL | PARCEL)  # states of the quest in which an episode may begin
HOUSE, VILLAGE, COTTAGE = range(3)
# Of the ROM (roms/homeward/world.py): where the maps' headers are, and cells in a row of a map.
MAP_TABLE, BANK, STRIDE = 0x4138, 2, 64
WALK, SOLID, WARP, LEDGE = range(4)  # attributes of a cell; LEDGE plus the direction of the jump
DIRECTIONS = {"DOWN": (0, 1), "UP": (0, -1), "LEFT": (-1, 0), "RIGHT": (1, 0)}  # in the order of player_facing
UP = 1
SAVE, MARK = 0xA000, b"HOME\2"  # roms/homeward/src/save.asm
# By state of the quest: the hero's next target, at the first two facing up for A.
TARGETS = {STATES[0]: (VILLAGE, 18, 12), STATES[1]: (COTTAGE, 6, 5), STATES[2]: (VILLAGE, 10, 9)}
TEST = 0x8000  # first of the test levels (roms/homeward/game.toml)
SHUFFLE = 1  # seed of the order of starts, a quarter of which are for the test levels

Cell = tuple[int, int, int]  # map, column, row


class World:
    """The maps of the ROM: the cells where one can stand, and their distance to each target."""

    def __init__(self, rom: np.ndarray) -> None:
        self.rom = rom
        self.attributes: dict[Cell, int] = {}
        self.warps: dict[Cell, Cell] = {}
        for number in range(3):
            self._read_map(number)
        standing = [cell for cell, attribute in self.attributes.items() if attribute == WALK]
        before: dict[Cell, list[Cell]] = {}
        for cell in standing:
            for _, after in self.moves(cell):
                before.setdefault(after, []).append(cell)
        self.distance = {state: _distances(target, before) for state, target in TARGETS.items()}
        starts = [(state, *cell) for state in STATES for cell in standing if cell in self.distance[state]]
        order = np.random.default_rng(SHUFFLE).permutation(len(starts))
        rows = np.array(starts)[order]
        self.test, self.train = rows[: len(rows) // 4], rows[len(rows) // 4 :]

    def moves(self, cell: Cell) -> Iterator[tuple[str, Cell]]:
        """The directions that lead to another cell, and that cell; for a warp, the cell beyond it."""
        number, x, y = cell
        for facing, (name, (dx, dy)) in enumerate(DIRECTIONS.items()):
            after = (number, x + dx, y + dy)
            attribute = self.attributes.get(after, SOLID)
            if attribute == LEDGE + facing:
                after = (number, x + 2 * dx, y + 2 * dy)
                attribute = self.attributes.get(after, SOLID)
                if attribute != WALK:
                    continue
            if attribute == WALK:
                yield name, after
            elif attribute == WARP:
                yield name, after
                yield name, self.warps[after]

    def _read_map(self, number: int) -> None:
        header = self._bytes(self._word(MAP_TABLE + 2 * number), 16)
        width, height = header[:2].tolist()
        cells, _, attributes, _ = header[2:10].view("<u2").tolist()
        warps = int(header[11:13].view("<u2")[0])
        for y in range(height):
            for x, metatile in enumerate(self._bytes(cells + y * STRIDE, width).tolist()):
                self.attributes[number, x, y] = int(self._bytes(attributes + metatile, 1)[0])
        while (warp := self._bytes(warps, 6))[0] != 0xFF:
            x, y, *to = (int(part) for part in warp[:5])
            self.warps[number, x, y] = (to[0], to[1], to[2])
            warps += 6

    def _bytes(self, address: int, count: int) -> np.ndarray:
        first = (BANK - 1) * 0x4000 + address
        return self.rom[first : first + count].copy()

    def _word(self, address: int) -> int:
        return int(self._bytes(address, 2).view("<u2")[0])


def _distances(target: Cell, before: dict[Cell, list[Cell]]) -> dict[Cell, int]:
    """Moves from each cell to the target, if there is a path."""
    found, queue = {target: 0}, deque([target])
    while queue:
        cell = queue.popleft()
        for other in before.get(cell, ()):
            if other not in found:
                found[other] = found[cell] + 1
                queue.append(other)
    return found


class Homeward(Leveled):
    """Reward 1 for each of the quest's flags; the episode ends when the parcel is delivered.

    An episode begins at the title with a save: a position in the world, and a state of the quest; the villager's walk
    varies, too. START and A continue from the save. A new game would be the same in each level: it counts as a failure.
    """

    def setup(self, ram: Ram) -> None:
        super().setup(ram)
        world = World(np.frombuffer(bytes(ram.cartridge.data), np.uint8))
        self.mark = torch.tensor(list(MARK), device=ram.device)
        self.train, self.test = (torch.from_numpy(rows).to(ram.device) for rows in (world.train, world.test))

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        super().reset(ram, which)
        self.flags, self.begun = ram.popcount("quest_flags"), ram["map_width"] > 0

    def saved(self) -> tuple[torch.Tensor, ...]:
        """(quest's flags, map, column, row) of the levels' saves."""
        train, test = self.train[self.level % len(self.train)], self.test[(self.level - TEST) % len(self.test)]
        return torch.where((self.level >= TEST)[:, None], test, train).unbind(1)

    def begin(self, ram: Ram, which: torch.Tensor) -> None:
        """Writes the level's save into the cartridge's RAM."""
        state, number, x, y = self.saved()
        data = torch.stack([number, x, y, torch.zeros_like(x), state], 1)
        mark = self.mark.expand(len(data), -1)
        total = 255 - data.sum(1, keepdim=True)
        ram.poke((0, SAVE), torch.cat([mark, data, total], 1), which)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
        flags, begun = ram.popcount("quest_flags"), ram["map_width"] > 0
        begins = begun & ~self.begun
        ram.poke("rng", self.level, begins)  # the villager's chance
        reward = torch.where(self.begun, flags - self.flags, 0).float()
        self.flags, self.begun = flags, begun
        quest, shown = ram[["quest_flags", "player_map"]].unbind(1)
        state, number, *_ = self.saved()
        new_game = begins & ((quest != state) | (shown != number))
        return StepResult(reward, terminal=(quest & DELIVERED) != 0, failure=new_game, statistics={"flags": flags})


def player(env: GBxCuLEEnv) -> Policy:
    """Takes the shortest path to the quest's next target; waits if the villager is in the way."""
    world, ram, actions = World(np.frombuffer(bytes(env.cartridge.data), np.uint8)), env.ram, env.codec.actions
    calls = 0
    names = ["map_width", "step_left", "box_kind", "quest_flags", "player_facing", "npc_x", "npc_y"]

    def act(width: int, moving: int, box: int, flags: int, facing: int, villager: Cell, cell: Cell) -> str:
        if not width:
            return ("START", "A")[calls % 2]  # the title, the choice to continue
        if box:
            return "A"
        if moving or flags & DELIVERED:
            return "NOOP"
        distance = world.distance[flags]
        if cell == TARGETS[flags]:
            return "A" if facing == UP else "UP"
        found = [
            (distance[after], name) for name, after in world.moves(cell) if after in distance and after != villager
        ]
        nearest, name = min(found, default=(distance.get(cell, 0), "NOOP"))
        return name if nearest < distance.get(cell, 0) else "NOOP"

    def play(obs: torch.Tensor, starts: torch.Tensor | None = None) -> torch.Tensor:
        nonlocal calls
        calls += 1
        chosen = []
        rows = ram[[*names, "player_map", "player_x", "player_y"]].tolist()
        for width, moving, box, flags, facing, x, y, *cell in rows:
            chosen.append(actions.index(act(width, moving, box, flags, facing, (VILLAGE, x, y), tuple(cell))))
        return torch.tensor(chosen, device=ram.device)

    return play
