"""The memory of all envs, by address, bank or symbol: what a Task reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch

from gbxcule_puffer.emulator import address_space
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.protocol import EmulatorLike
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram.addresses import bank_of
from gbxcule_puffer.tasks.ram.bits import bits_set
from gbxcule_puffer.tasks.ram.symbols import Symbols

Where = int | str | tuple[int, int | str]
ORDERS = ("little", "big")
READERS = ("number", "u16", "bcd", "bits", "popcount", "view", "executions")  # of Ram, as an error names them


class Ram:
    """The memory of `num_envs` Game Boys, as tensors on their `device`, a row for each env.

    Everywhere `where` is an address (0xD347), a symbol ("wMoney", "wParty+4"), or a bank with an address of cartridge
    RAM or ROM ((1, 0xA000)), on a Game Boy Color also of VRAM or WRAM ((5, 0xD000)). What is read is a tensor of its
    own, which stays as it is when the game goes on; bytes are int32, so that differences do not wrap. Nothing waits for
    the device, and everything can be recorded in a CUDA graph once it has run.

    Raises: ConfigError, for an address that is not memory, and for an unknown symbol.
    """

    def __init__(self, emulator: EmulatorLike, symbols: Symbols | None = None) -> None:
        self.cartridge, self.symbols, self._mirror = emulator.cartridge, symbols, emulator.mirror
        self._emulator = emulator
        self.num_envs, self.device = emulator.num_envs, torch.device(emulator.device)
        self.memory = emulator.memory
        self._offsets: dict[tuple[int | None, int, int], int] = {}
        self._gathers: dict[tuple[Any, ...], torch.Tensor] = {}
        self._counts: dict[tuple[Any, ...], list[torch.Tensor]] = {}
        self._bits = torch.tensor([1 << bit for bit in range(8)], dtype=torch.uint8, device=self.device)

    def __getitem__(self, key: Where | slice | list[Any] | tuple[int, slice]) -> torch.Tensor:
        """ram[where]: a byte, (num_envs,); ram[first:end] and ram[bank, first:end]: bytes, (num_envs, end - first);
        ram[[where, where, ...]]: bytes from several addresses, (num_envs, len); all int32."""
        if isinstance(key, list):
            return self._gather(tuple(key)).to(torch.int32)
        bank, inner = key if isinstance(key, tuple) else (None, key)
        if isinstance(inner, slice):
            if inner.step is not None or inner.start is None or inner.stop is None:
                raise ConfigError("a range of memory is ram[first:end], without a step")
            own_bank, first = self.locate(inner.start)
            _, end = self.locate(inner.stop)
            if end <= first:
                raise ConfigError(f"a range of memory from {first:04X} to {end:04X} has no bytes: give a later end")
            return self._read(own_bank if bank is None else bank, first, end - first).to(torch.int32)
        return self._read(*self.locate(key), 1)[:, 0].to(torch.int32)

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise ConfigError("memory is written by ram.poke(where, value, mask)")

    if not TYPE_CHECKING:  # else pyright would take any name

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"ram has no {name}: read a byte as ram[where], more by {', '.join(READERS)}")

    def view(self, where: Where, length: int = 1) -> torch.Tensor:
        """The memory itself, (num_envs, length) uint8: no copy; it changes as the game continues."""
        return self._read(*self.locate(where), length)

    def number(self, where: Where, size: int, order: str = "little") -> torch.Tensor:
        """`size` bytes as one number, (num_envs,), int32 for up to 3 bytes, else int64.

        order: 'little' has the lowest byte first, as on the CPU; 'big' the highest.
        """
        if order not in ORDERS:
            raise ConfigError(f"order {order!r} must be one of {', '.join(ORDERS)}")
        if not 1 <= size <= 7:
            raise ConfigError(f"size {size} of a number must be from 1 to 7 bytes")
        values = self.view(where, size).to(torch.int32 if size <= 3 else torch.int64)
        columns = values.unbind(1) if order == "big" else values.unbind(1)[::-1]
        total = columns[0]
        for column in columns[1:]:
            total = (total << 8) | column
        return total

    def u16(self, where: Where, order: str = "little") -> torch.Tensor:
        """Two bytes as one number, (num_envs,) int32; order: as of `number`."""
        return self.number(where, 2, order)

    def bcd(self, where: Where, size: int, order: str = "big") -> torch.Tensor:
        """`size` bytes of two decimal digits each, (num_envs,) int32 for up to 4 bytes, else int64; order: as of
        `number`, by default the highest digits first."""
        if order not in ORDERS or not 1 <= size <= 8:
            raise ConfigError(f"order {order!r} must be one of {', '.join(ORDERS)}, size {size} from 1 to 8")
        values = self.view(where, size).to(torch.int32 if size <= 4 else torch.int64)
        digits = (values >> 4) * 10 + (values & 0x0F)
        columns = digits.unbind(1) if order == "big" else digits.unbind(1)[::-1]
        total = columns[0]
        for column in columns[1:]:
            total = total * 100 + column
        return total

    def bits(self, where: Where, length: int = 1) -> torch.Tensor:
        """The bits of `length` bytes, lowest first, (num_envs, 8 * length) bool."""
        return (self.view(where, length).unsqueeze(2) & self._bits).ne(0).flatten(1)

    def popcount(self, where: Where, length: int = 1) -> torch.Tensor:
        """The number of set bits in `length` bytes, (num_envs,) int32."""
        return bits_set(self.view(where, length))

    def poke(self, where: Where, value: int | Sequence[int] | torch.Tensor, mask: torch.Tensor | None = None) -> None:
        """Writes bytes from `where` on, in the envs of `mask` (num_envs,) bool, or in all.

        value: a byte, or several as a sequence, the same for all envs; or a tensor of integers, (num_envs,) or
        (num_envs, length), of which the lowest 8 bits are used.
        """
        values = self._values(where, value)
        if mask is not None and (mask.shape != (self.num_envs,) or mask.dtype != torch.bool):
            shape = tuple(mask.shape)
            raise ConfigError(f"mask of poke has shape {shape} of {mask.dtype}: give ({self.num_envs},) bool")
        bank, address = self.locate(where)
        if 0 <= address < hw.VRAM:
            raise ConfigError(f"address {address:04X} is ROM, which cannot be written: give one of RAM")
        first = self._offset(bank, address, values.shape[1])
        part = self.memory[:, first : first + values.shape[1]]
        if self._is_half(address):
            values = values | 0xF0
        part.copy_(values if mask is None else torch.where(mask[:, None], values, part))
        if self._mirror is not None:
            self._mirror.write_back(first, first + values.shape[1])

    def hook(self, where: Where) -> None:
        """Counts from the next step on how often the instruction at `where` begins: an address below 4000, (bank,
        address) in ROM, or a symbol. At most 64; record a CUDA graph only after them."""
        self._emulator.hook(*self.locate(where))

    def executions(self, where: Where | list[Any]) -> torch.Tensor:
        """Counts of a hooked instruction in the last step, (num_envs,) int32; for a list of hooks (num_envs, len)."""
        key = tuple(where) if isinstance(where, list) else (where,)
        if key not in self._counts:
            self._counts[key] = [self._emulator.executions(*self.locate(each)) for each in key]
        counts = self._counts[key]
        return torch.stack(counts, 1) if isinstance(where, list) else counts[0].clone()

    def locate(self, where: object) -> tuple[int | None, int]:
        """(bank, address) of `where`; the bank is None if it does not matter."""
        if isinstance(where, tuple) and len(where) == 2:
            bank, address = where[0], self.locate(where[1])[1]
            if not isinstance(bank, int | np.integer):
                raise ConfigError(f"bank {bank!r:.40} must be a whole number")
            return int(bank), address
        if isinstance(where, str):
            if self.symbols is None:
                raise ConfigError(f"symbol {where!r:.60} needs a symbol file: give symbols (--symbols GAME.sym)")
            found = self.symbols.find(where)
            is_rom = found.address < hw.VRAM
            return (found.bank if is_rom else bank_of(found.bank, found.address)), found.address
        if not isinstance(where, int | np.integer):
            raise ConfigError(f"{where!r:.40} is not an address: give an address, a symbol or (bank, address)")
        return None, int(where)

    def offsets(self, several: Sequence[Where], halves: bool = False) -> torch.Tensor:
        """Columns of `memory` where single bytes of RAM stand, (num_envs, len(several)) int64, for torch.gather:
        index_select copies all of the memory on a CPU. halves: also those of half bytes, whose upper halves have to be
        set by the caller (`half_of`)."""
        found = [self.locate(where) for where in several]
        if any(address < hw.VRAM or (self._is_half(address) and not halves) for _, address in found):
            raise ConfigError("a list of addresses is of RAM of whole bytes: read the others one by one")
        offsets = [self._offset(*where, 1) for where in found]
        return torch.tensor(offsets, dtype=torch.int64, device=self.device).expand(self.num_envs, -1)

    def _values(self, where: Where, value: object) -> torch.Tensor:
        """What `poke` stores, (num_envs, length) uint8."""
        if isinstance(value, torch.Tensor):
            values = value.unsqueeze(1) if value.dim() == 1 else value
            integers = not (value.is_floating_point() or value.is_complex())
            if values.dim() != 2 or len(values) != self.num_envs or not integers:
                raise ConfigError(
                    f"poke of {_text(where)} has a tensor of shape {tuple(value.shape)} of {value.dtype}: give "
                    f"({self.num_envs},) or ({self.num_envs}, length) integers"
                )
            return values.to(torch.uint8)
        numbers = list(value) if isinstance(value, Sequence | np.ndarray) else [value]
        if not numbers or not all(isinstance(n, int | np.integer) and 0 <= n <= 255 for n in numbers):
            raise ConfigError(f"poke of {_text(where)} has {value!r:.40}: give bytes from 0 to 255")
        key = ("poke", *numbers)
        if key not in self._gathers:  # a list cannot become a tensor while a CUDA graph is recorded
            self._gathers[key] = torch.tensor([numbers], dtype=torch.uint8, device=self.device)
        return self._gathers[key].expand(self.num_envs, -1)

    def _read(self, bank: int | None, address: int, length: int) -> torch.Tensor:
        """Bytes of all envs, (num_envs, length) uint8."""
        if 0 <= address < hw.VRAM and bank is not None:
            return self._rom(bank, address, length)
        if 0 <= address < hw.VRAM:
            raise ConfigError(f"address {address:04X} is ROM, which has banks: give one, as in (1, 0x{address:04X})")
        first = self._offset(bank, address, length)
        part = self.memory[:, first : first + length]
        return part | 0xF0 if self._is_half(address) else part

    def _offset(self, bank: int | None, address: int, length: int) -> int:
        """Offset of the bytes in the memory rows."""
        key = (bank, address, length)
        if key not in self._offsets:
            if not isinstance(length, int | np.integer) or length < 1:
                raise ConfigError(f"{length!r:.40} bytes from {address:04X}: give a whole number, at least 1")
            first = address_space.row_offset(self.cartridge, address, length, bank)
            if self._mirror is not None:
                self._mirror.watch(first, first + length)
            self._offsets[key] = first
        return self._offsets[key]

    def half_of(self, where: Where) -> int:
        """The bits of a byte that read as ones, whatever is stored: F0 where the RAM has half bytes, else 0."""
        return 0xF0 if self._is_half(self.locate(where)[1]) else 0

    def _is_half(self, address: int) -> bool:
        """True for RAM of half bytes, whose upper halves read as ones."""
        return hw.CART_RAM <= address < hw.WRAM and not self.cartridge.mapper.has_plain_ram

    def _gather(self, key: tuple[Any, ...]) -> torch.Tensor:
        """Single bytes by one read, (num_envs, len(key)) uint8."""
        if key not in self._gathers:
            if not key:
                raise ConfigError("an empty list of addresses: give at least one")
            self._gathers[key] = self.offsets(key)
        return self.memory.gather(1, self._gathers[key])

    def _rom(self, bank: int, address: int, length: int) -> torch.Tensor:
        """Bytes of a bank of ROM, the same for all envs."""
        key = ("rom", bank, address, length)
        if key not in self._gathers:
            data = address_space.read(self.cartridge, {}, np.empty(0, np.uint8), address, length, bank)
            self._gathers[key] = torch.from_numpy(data).to(self.device)[None]
        return self._gathers[key].expand(self.num_envs, -1)


def _text(where: Where) -> str:
    """A location for a message, with addresses in hexadecimal."""
    return f"{where:04X}" if isinstance(where, int | np.integer) else f"{where!r:.40}"


class RamWatch:
    """`values` (num_envs, len(several)) uint8 of some bytes of RAM; allocates only here."""

    def __init__(self, ram: Ram, several: Sequence[Where], halves: bool = False) -> None:
        self.memory, self._offsets = ram.memory, ram.offsets(several, halves)
        self.values = torch.zeros((ram.num_envs, len(several)), dtype=torch.uint8, device=ram.device)

    def read(self) -> torch.Tensor:
        """Takes the bytes as they are now."""
        return torch.gather(self.memory, 1, self._offsets, out=self.values)
