"""Recordings of the RAM of many Game Boys: every byte that ever changes, at every look, on their device."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator, address_space
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.state import INDEX
from gbxcule_puffer.scan.film import FILM_LOOKS, Camera
from gbxcule_puffer.tasks.ram.view import Where

REGISTERS = {"scy": hw.SCY, "scx": hw.SCX}  # recorded as bytes beside RAM: the camera of many games
STACK_MARGIN = 24  # bytes below the lowest stack pointer that was seen; interrupts push below it
SPARSE = 4
FEW, LEAST_CHANGES = 600, 4  # bytes; changes of a byte where there are more bytes
WITNESSES = 8  # envs whose pictures are kept, at half size
MAPPED = 256  # envs whose maps of background and window are kept: few see a score that rises seldom
MOST_STACK = 0x180  # bytes; where the pointer moves more, the game uses it for other things
MOST_VALUES = 2**25  # of a look
MOST_ACTIVE = 6_000  # bytes that are kept; of more, those that began to change last are left out


@dataclass(frozen=True)
class Cells:
    """The bytes that are looked at: their `offsets` in the memory row, and their locations as Ram takes them."""

    ranges: list[tuple[int, int]]  # offsets, without the end
    offsets: list[int]
    where: list[Where]

    @classmethod
    def of(cls, emulator: Emulator) -> Cells:
        """WRAM, HRAM, OAM and all banks of cartridge RAM; on a Game Boy Color, all banks of WRAM."""
        cartridge = emulator.cartridge
        ranges: list[tuple[int | None, int, int]] = [(None, hw.WRAM, hw.ECHO - hw.WRAM)]
        if emulator.model == "cgb":
            size = hw.WRAM_BANK_SIZE
            ranges = [(None, hw.WRAM, size), *((bank, hw.BANKED_WRAM, size) for bank in range(1, 8))]
        ranges += [(None, hw.HRAM, hw.IE - hw.HRAM), (None, hw.OAM, hw.OAM_END - hw.OAM)]
        length = hw.RAM_BANK_SIZE if cartridge.mapper.has_plain_ram else address_space.HALF_BYTES
        ranges += [(bank, hw.CART_RAM, length) for bank in range(cartridge.ram_banks)]
        spans, offsets, where = [], list[int](), list[Where]()
        for bank, first, count in ranges:
            start = address_space.row_offset(cartridge, first, count, bank)
            spans.append((start, start + count))
            offsets += range(start, start + count)
            where += [first + i if bank is None else (bank, first + i) for i in range(count)]
        return cls(spans, offsets, where)


@dataclass
class Recording:
    """Values of the bytes that changed, `values` (looks, envs, bytes) uint8, after `close`.

    where: the location of each byte; valid: (looks, envs) bool, false where an env did not come from its previous look
    (it was restored); buttons: (looks, envs) uint8, held since the previous look; drawn: (looks, envs), the part of the
    picture that changed since then; witnesses: envs whose `pictures` (looks, witnesses, 72, 80) are kept; film: of one
    of them, a picture a second; tiles: (pictures, mapped, cells) uint8, the maps of background and window of the envs
    `mapped` at that time; filmed: (pictures, mapped, bytes) uint8, their values; forks: the looks from which each
    context's envs play one button each.
    """

    emulator: Emulator
    start: torch.Tensor = field(init=False)  # (bytes,)
    forks: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cells = Cells.of(self.emulator)
        self._state = wp.to_torch(self.emulator.machine.state)
        self._registers = torch.tensor([INDEX[name] for name in REGISTERS], device=self.emulator.device)
        self._all_where: list[Where] = [*self.cells.where, *REGISTERS.values()]
        self._first = self._bytes()[0].clone()
        self._changed = torch.zeros(len(self._all_where), dtype=torch.bool, device=self.emulator.device)
        self._order = torch.zeros(0, dtype=torch.int64, device=self.emulator.device)
        self._most = min(MOST_ACTIVE, MOST_VALUES // self.emulator.num_envs)
        self._looks: list[torch.Tensor] = []
        self._valid: list[torch.Tensor] = []
        self._buttons: list[torch.Tensor] = []
        self._drawn: list[torch.Tensor] = []
        self._screen = self._picture().clone()
        step = self.emulator.num_envs // WITNESSES
        self.witnesses = [i * step + i % step for i in range(WITNESSES)]
        step = max(1, self.emulator.num_envs // MAPPED)
        self.mapped = [i * step + i % step for i in range(min(MAPPED, self.emulator.num_envs))]
        self._pictures: list[torch.Tensor] = []
        self._camera = Camera(self.emulator, self.witnesses, self.mapped)
        self._stack = torch.tensor([0xFFFF, 0], device=self.emulator.device)

    @property
    def looks(self) -> int:
        """Number of looks until now."""
        return len(self._looks)

    @property
    def latest_drawn(self) -> torch.Tensor:
        """The part of each env's picture that changed before the latest look, (envs,)."""
        return self._drawn[-1]

    def _bytes(self) -> torch.Tensor:
        """All bytes that are looked at, (envs, bytes)."""
        memory = [self.emulator.memory[:, first:end] for first, end in self.cells.ranges]
        return torch.cat([*memory, self._state[self._registers].T.to(torch.uint8)], 1)

    def now(self) -> torch.Tensor:
        """The bytes that are recorded, as they are now, (envs, bytes)."""
        return self._bytes()[:, self._order]

    def _picture(self) -> torch.Tensor:
        """Every fourth pixel of every fourth line, which is enough to see how much of the picture changed."""
        return self.emulator.screen[:, ::SPARSE, ::SPARSE]

    def look(self, buttons: torch.Tensor, came_on: bool | torch.Tensor = True) -> None:
        """Records all envs as they are now. came_on: (envs,) bool or one for all, false where they were restored since
        the last look. Bytes that change for the first time join; until now they were as at the start."""
        if self.looks % FILM_LOOKS == 0:
            self._camera.look()
        now = self._bytes()
        fresh = (now != self._first).any(0) & ~self._changed
        new = fresh.nonzero()[:, 0]  # waits for the device, once a look
        if len(new):
            new = new[: max(0, self._most - len(self._order))]
            self._changed[new] = True
            self._order = torch.cat([self._order, new])
        self._looks.append(now[:, self._order])
        screen = self._picture()
        self._drawn.append((screen != self._screen).flatten(1).sum(1) / self._screen[0].numel())
        self._screen.copy_(screen)
        self._pictures.append(self.emulator.screen[self.witnesses, ::2, ::2])
        valid = torch.as_tensor(came_on, device=now.device).expand(len(now))
        self._valid.append(valid.clone())
        self._buttons.append(buttons.clone())
        pointer = self._state[INDEX["sp"]]
        self._stack = torch.stack(
            [torch.minimum(self._stack[0], pointer.min()), torch.maximum(self._stack[1], pointer.max())]
        )

    def close(self) -> None:
        """Ends the recording: what was recorded becomes tensors."""
        self.film, self.tiles = self._camera.film(), self._camera.tiles()
        first = self._first[self._order]
        kept = self._kept(first)
        self.valid, self.buttons = torch.stack(self._valid), torch.stack(self._buttons)
        self.drawn, self.pictures = torch.stack(self._drawn), torch.stack(self._pictures)
        self.start, self._order = first[kept], self._order[kept]
        self.values = self.start.expand(len(self._looks), self.emulator.num_envs, len(kept)).clone()
        columns = kept.tolist()
        for target in self.values:
            look = self._looks.pop(0)  # so that both copies are never whole at the same time
            width = bisect_left(columns, look.shape[1])
            target[:, :width] = look[:, kept[:width]]
        self.filmed = self.values[::FILM_LOOKS, self.mapped]
        indices = self._order.tolist()
        self.where = [self._all_where[i] for i in indices]
        self.index = {where: i for i, where in enumerate(self.where)}
        self.offsets = [self.cells.offsets[i] if i < len(self.cells.offsets) else -1 for i in indices]
        self.addresses = torch.tensor([address_of(where) for where in self.where], dtype=torch.int64)
        low, high = self._stack.tolist()
        low = max(low - STACK_MARGIN, high - MOST_STACK)
        self.is_stack = (self.addresses >= low) & (self.addresses < high)
        self.is_register = (self.addresses >= hw.IO) & (self.addresses < hw.HRAM)
        self.is_sprite = self._shadows() | ((self.addresses >= hw.OAM) & (self.addresses < hw.OAM_END))

    def neighbour(self, index: int, distance: int) -> int:
        """The index of the byte at the address `distance` after a byte's, -1 if that is not recorded."""
        where = self.where[index]
        if isinstance(where, tuple):
            return self.index.get((where[0], address_of(where) + distance), -1)
        return self.index.get(address_of(where) + distance, -1)

    def constant(self, where: Where) -> int | None:
        """The value of a byte that never changes; None for another one, and for what is not looked at."""
        if where not in self._all_where or self._changed[at := self._all_where.index(where)]:
            return None
        return int(self._first[at])

    def _kept(self, first: torch.Tensor) -> torch.Tensor:
        """The bytes that changed often enough to say something of them; all, where there are few."""
        if len(first) <= FEW:
            return torch.arange(len(first), device=first.device)
        number = torch.zeros(len(first), dtype=torch.int64, device=first.device)
        for before, after, valid in zip(self._looks, self._looks[1:], self._valid[1:], strict=False):
            width = before.shape[1]
            number[:width] += ((before != after[:, :width]) & valid[:, None]).sum(0)
            number[width : after.shape[1]] += (
                (after[:, width:] != first[width : after.shape[1]]) & valid[:, None]
            ).sum(0)
        return (number >= LEAST_CHANGES).nonzero()[:, 0]

    def _shadows(self) -> torch.Tensor:
        """(bytes,) true for a copy of the sprites' table that the game keeps in RAM: at the same offset in a page,
        and nearly always equal."""
        found = torch.zeros(len(self.where), dtype=torch.bool)
        index = self.index
        sprites = [
            (where - hw.OAM, i) for where, i in index.items() if isinstance(where, int) and hw.OAM <= where < hw.OAM_END
        ]
        if len(sprites) < 4:
            return found
        for page in {where & 0xFF00 for where in index if isinstance(where, int) and where < hw.OAM}:
            pairs = [(index[page + offset], i) for offset, i in sprites if page + offset in index]
            if len(pairs) < 0.5 * len(sprites):
                continue
            copies, own = (torch.tensor(side) for side in zip(*pairs, strict=True))
            step = max(1, len(self.values) // 200)
            one, other = self.values[::step][:, :, copies], self.values[::step][:, :, own]
            shown = (other != 0) & (other != self.start[own])  # a copy may be a frame behind where sprites move
            if (((one == other) & shown).sum() / shown.sum().clamp(min=1)) > 0.5:
                here = (self.addresses >= page) & (self.addresses < page + hw.OAM_END - hw.OAM)
                found |= here & (self.addresses < hw.OAM)
        return found


def address_of(where: Where) -> int:
    """The address of a location, without its bank."""
    if isinstance(where, tuple):
        where = where[1]
    assert isinstance(where, int)
    return where
