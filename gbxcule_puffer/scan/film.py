"""The film of a scan: pictures of one of its Game Boys, and its RAM at each, to search for what the pictures show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.address_space import row_offset
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram.narrowing import Narrowing, parse_narrowing
from gbxcule_puffer.tasks.ram.search import MOST_LISTED, Search, areas_of
from gbxcule_puffer.tasks.ram.view import Ram

FILM_LOOKS = 15  # from a picture to the next one: a second of the game
START, END = "start", "end"
MAPS = 0x9800


@dataclass(frozen=True)
class Seen:
    """A condition that people saw to hold, and the picture of the film in which they saw it; None: the last one."""

    picture: int | None
    narrowing: Narrowing

    @classmethod
    def of(cls, text: str) -> Seen:
        """'start: 3', '12: fell by 1' or 'end: = 120'; without a picture, the last one is meant.

        Raises: ConfigError for another text.
        """
        where, colon, condition = text.partition(":")
        if not colon:
            return cls(None, parse_narrowing(text))
        where = where.strip().lower()
        if where not in (START, END) and not (where.isascii() and where.isdecimal() and len(where) < 10):
            raise ConfigError(
                f"{text!r:.60}: {where!r:.20} is not a picture of the film: give its number, {START} or {END}, "
                f"as in '12: fell by 1'"
            )
        return cls(None if where == END else 0 if where == START else int(where), parse_narrowing(condition))

    def check(self, pictures: int) -> None:
        """Raises: ConfigError unless a film of this number of pictures has this one."""
        if self.picture is not None and self.picture >= pictures:
            raise ConfigError(f"picture {self.picture} is not in the film: give 0 to {pictures - 1}, or more --seconds")


@dataclass(frozen=True, eq=False)
class Film:
    """One Game Boy of a recording, a picture a second from the start on: `pictures` (n, rows, columns) uint8, and its
    RAM at each, `looks` (n, bytes), as a Search takes them."""

    pictures: torch.Tensor
    looks: torch.Tensor
    _ram: Ram

    def search(self, conditions: Sequence[Seen]) -> tuple[Search, list[int]]:
        """The numbers for which all conditions hold, one after the other, and how many were left after each. What rose
        or fell did so since the condition before, the first since the start.

        Raises: ConfigError for a picture that the film does not have.
        """
        search, left = Search(self._ram, look=self.look(0)), []
        for each in conditions:
            each.check(len(self.looks))
            look = self.look(each.picture)
            count = search.narrow(each.narrowing, look)
            left.append(count if count > MOST_LISTED else len(search.matches(look)))  # equal readings count once
        return search, left

    def look(self, picture: int | None) -> torch.Tensor:
        """The RAM at a picture of the film, (1, bytes); None: the last one."""
        index = len(self.looks) - 1 if picture is None else picture
        return self.looks[index : index + 1]


class Camera:
    """Films several envs; the film is of the one with the fewest pictures that stand still, then of most bytes changed:
    a title that waits for START shows nothing."""

    def __init__(self, emulator: Emulator, envs: list[int], mapped: list[int]) -> None:
        """envs: who is filmed; mapped: whose maps of background and window are kept."""
        self._emulator, self._envs, self._mapped, self._ram = emulator, envs, mapped, Ram(emulator)
        cartridge = emulator.cartridge
        offsets = [row_offset(cartridge, a.address, a.length, a.bank) for a in areas_of(cartridge)]
        self._spans = [(at, at + a.length) for at, a in zip(offsets, areas_of(cartridge), strict=True)]
        self._pictures: list[torch.Tensor] = []
        self._looks: list[torch.Tensor] = []
        self._tiles: list[torch.Tensor] = []

    def look(self) -> None:
        """Takes a picture of each env."""
        self._pictures.append(self._emulator.screen[self._envs])
        memory = [self._emulator.memory[:, first:end][self._envs] for first, end in self._spans]
        self._looks.append(torch.cat(memory, 1))
        self._tiles.append(self._emulator.memory[:, MAPS - hw.ROW_BASE : hw.CART_RAM - hw.ROW_BASE][self._mapped])

    def tiles(self) -> torch.Tensor:
        """The numbers in the maps of background and window, (n, mapped, cells) uint8."""
        return torch.stack(self._tiles)

    def film(self) -> Film:
        """Ends the film."""
        looks, pictures = torch.stack(self._looks, 1), torch.stack(self._pictures, 1)  # (envs, n, ...)
        moving = (pictures[:, 1:] != pictures[:, :-1]).flatten(2).any(2).sum(1)
        best = int((moving * looks.shape[2] + (looks != looks[:, :1]).any(1).sum(1)).argmax())
        return Film(pictures[best], looks[best], self._ram)
