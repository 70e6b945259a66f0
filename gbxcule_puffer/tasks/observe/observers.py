"""Tasks that only observe: bytes of RAM, visited cells, the last actions. The environment's options make them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch

from gbxcule_puffer.device import room_for
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.observe.pictures import PICTURE, SIDE
from gbxcule_puffer.tasks.ram.addresses import later, parse_address
from gbxcule_puffer.tasks.ram.position import Position
from gbxcule_puffer.tasks.ram.symbols import Symbols
from gbxcule_puffer.tasks.ram.view import Ram
from gbxcule_puffer.tasks.task import StepInfo, Task

MOST_BYTES = 1024  # of an entry of ram_obs
MOST_NUMBERS = 2**16  # of an observation's vector
RAM, VISITED, ACTIONS = "ram", "visited", "actions"


@dataclass(frozen=True)
class RamEntry:
    """`length` bytes from an address on, observed as bytes, or as their bits."""

    where: int | tuple[int, int]
    length: int = 1
    bits: bool = False


def parse_ram_obs(text: str, symbols: Symbols | None = None) -> list[RamEntry]:
    """The entries of a text such as 'wMoney:3,D347,1:A000:8,wEventFlags:32:bits'.

    Raises: ConfigError.
    """
    found = []
    for entry in text.split(","):
        where, as_bits, rest = entry.strip().partition(":bits")
        address, colon, length = where.rpartition(":")
        if not (colon and length.isdecimal()):
            address, length = where, "1"
        if rest or not 1 <= int(length[:9]) <= MOST_BYTES:
            raise ConfigError(
                f"ram_obs {entry!r:.60} has {rest!r:.20} after :bits: give a comma between two entries"
                if rest
                else f"ram_obs {entry!r:.60} has {length:.9} bytes: give from 1 to {MOST_BYTES}"
            )
        found.append(RamEntry(parse_address(address, f"ram_obs {text!r:.60}", symbols), int(length), bool(as_bits)))
    return found


class _Observer(Task):
    """A Task without a reward."""

    pays: ClassVar[bool] = False
    checks_numbers: ClassVar[bool] = False

    def setup(self, ram: Ram) -> None:
        self.no_reward = torch.zeros(ram.num_envs, device=ram.device)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        return self.no_reward


class RamBytes(_Observer):
    """`ram` (numbers,): bytes of RAM in the given order, divided by 255; of an entry with bits 0 or 1 for each bit, the
    lowest of a byte first."""

    prefix: ClassVar[str] = "ram_obs"

    def __init__(self, entries: Sequence[RamEntry]) -> None:
        self.addresses = [later(each.where, byte) for each in entries for byte in range(each.length)]
        as_bits = [each.bits for each in entries for _ in range(each.length)]
        # For each number: the index of its byte, how far to shift it, what remains of it, and its unit.
        self.parts = [
            (i, shift, 1 if bits else 255, 1.0 if bits else 1 / 255)
            for i, bits in enumerate(as_bits)
            for shift in range(8 if bits else 1)
        ]
        self.observations = {RAM: (len(self.parts),)}

    def setup(self, ram: Ram) -> None:
        super().setup(ram)
        index, shift, mask, unit = zip(*self.parts, strict=True)
        self.index, self.shift, self.mask = (torch.tensor(part, device=ram.device) for part in (index, shift, mask))
        self.unit = torch.tensor(unit, dtype=torch.float32, device=ram.device)

    def observe(self, ram: Ram, picture: torch.Tensor) -> Mapping[str, torch.Tensor]:
        numbers = (ram[self.addresses][:, self.index] >> self.shift) & self.mask
        return {RAM: numbers * self.unit}  # not a division, for which a GPU multiplies: equal bits everywhere


class VisitedCells(_Observer):
    """`visited` (2 * radius + 1, 2 * radius + 1): 1 where the episode has been on the map around the player, else 0.

    If two cells of a map have the same coordinates modulo SIDE, only the last visited is known. Occasionally two cells
    on different maps collide, too.
    """

    prefix: ClassVar[str] = "visited_obs"

    def __init__(self, position: Position, radius: int) -> None:
        self.bytes, self.radius = list(position), radius
        self.observations = {VISITED: (2 * radius + 1,) * 2}

    def setup(self, ram: Ram) -> None:
        super().setup(ram)
        device = ram.device
        with room_for(
            8 * ram.num_envs * SIDE**2, str(device), f"visited_obs of {ram.num_envs:,} envs", "use fewer envs"
        ):
            self.seen = torch.full((ram.num_envs, SIDE * SIDE), -1, device=device)  # the key of each slot's last cell
        self.episode = torch.zeros(ram.num_envs, dtype=torch.int64, device=device)
        reach = torch.arange(-self.radius, self.radius + 1, device=device)
        self.offsets = torch.cartesian_prod(reach, reach)  # (cells, 2): rows, columns

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.episode = self.episode + which
        self._visit(ram)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        self._visit(ram)
        return self.no_reward

    def observe(self, ram: Ram, picture: torch.Tensor) -> Mapping[str, torch.Tensor]:
        slots, keys, inside = self._find(ram, self.offsets)
        been = (self.seen.gather(1, slots) == keys) & inside
        return {VISITED: been.view(-1, *self.observations[VISITED]).float()}

    def _visit(self, ram: Ram) -> None:
        slots, keys, _ = self._find(ram, self.offsets.new_zeros((1, 2)))
        self.seen.scatter_(1, slots, keys)

    def _find(self, ram: Ram, offsets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(slots, keys, whether they are on the map) of the cells that are `offsets` away, (num_envs, cells)."""
        *area, row, column = ram[self.bytes].long().unbind(1)
        area = area[0][:, None] if area else 0
        rows, columns = row[:, None] + offsets[:, 0], column[:, None] + offsets[:, 1]
        inside = (rows >= 0) & (rows < 256) & (columns >= 0) & (columns < 256)
        slots = ((rows % SIDE * SIDE + columns % SIDE) ^ (area * 2531)) % (SIDE * SIDE)
        return slots, (self.episode[:, None] << 24) + (area << 16) + (rows << 8) + columns, inside


class LastActions(_Observer):
    """`actions` (count, num_actions): the last actions, the newest last, 1 for the action taken; 0 before the start."""

    prefix: ClassVar[str] = "action_obs"

    def __init__(self, count: int, num_actions: int) -> None:
        self.observations = {ACTIONS: (count, num_actions)}

    def setup(self, ram: Ram) -> None:
        super().setup(ram)
        self.recent = torch.zeros((ram.num_envs, *self.observations[ACTIONS]), device=ram.device)
        self.numbers = torch.arange(self.recent.shape[2], device=ram.device)

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.recent = torch.zeros_like(self.recent)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        newest = (info.actions[:, None] == self.numbers)[:, None]
        self.recent = torch.cat([self.recent[:, 1:], newest], 1)
        return self.no_reward

    def observe(self, ram: Ram, picture: torch.Tensor) -> Mapping[str, torch.Tensor]:
        return {ACTIONS: self.recent}


def vectors_of(tasks: Sequence[Task]) -> dict[str, tuple[int, ...]]:
    """Shapes by name of all that the Tasks observe.

    Raises: ConfigError for a name that two of them have, or that the pictures have, and for an invalid shape.
    """
    found: dict[str, tuple[int, ...]] = {}
    for task in tasks:
        fault = f"task {type(task).__name__}: observations"
        if not isinstance(task.observations, Mapping):
            raise ConfigError(f"{fault} are a {type(task.observations).__name__}: give shapes by name")
        for name, shape in task.observations.items():
            if not isinstance(name, str) or not name or name in (PICTURE, *found):
                raise ConfigError(f"{fault} have the name {name!r:.40}, which is taken or no text: give another")
            if not isinstance(shape, tuple) or not all(type(size) is int and size >= 1 for size in shape):
                raise ConfigError(f"{fault} have {name!r:.40} of shape {shape!r:.40}: give sizes, such as (3,)")
            if (size := math.prod(shape)) > MOST_NUMBERS:
                raise ConfigError(f"{fault} have {name!r:.40} of {size:,} numbers: give at most {MOST_NUMBERS:,}")
            found[name] = shape
    return found


class ObserverOptions(Protocol):
    """The options of the env that select observers (EnvOptions)."""

    @property
    def ram_obs(self) -> str | None: ...

    @property
    def visited_obs(self) -> int: ...

    @property
    def action_obs(self) -> int: ...


def make_observers(
    options: ObserverOptions, symbols: Symbols | None, position: Position | None, num_actions: int
) -> list[Task]:
    """The Tasks of the options ram_obs, visited_obs and action_obs; position: the player's position.

    Raises: ConfigError for an invalid address or symbol, and for a position that is needed and unknown.
    """
    found: list[Task] = []
    if options.ram_obs is not None:
        found.append(RamBytes(parse_ram_obs(options.ram_obs, symbols)))
    if options.visited_obs:
        if position is None:
            raise ConfigError(
                f"visited_obs {options.visited_obs} needs position: give MAP,ROW,COLUMN or ROW,COLUMN in RAM"
            )
        found.append(VisitedCells(position, options.visited_obs))
    if options.action_obs:
        found.append(LastActions(options.action_obs, num_actions))
    return found
