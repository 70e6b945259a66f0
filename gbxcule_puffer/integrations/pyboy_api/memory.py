"""Memory and CPU registers of all Game Boys by PyBoy's names."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Sized
from typing import Any, ClassVar

import numpy as np
import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.pyboy_api import banks
from gbxcule_puffer.integrations.pyboy_api.fields import Fields
from gbxcule_puffer.integrations.pyboy_api.hint import AxisHint
from gbxcule_puffer.integrations.pyboy_api.numbers import whole
from gbxcule_puffer.tasks.ram import Ram


class Memory:
    """Bytes of all Game Boys as the CPU would read them: memory[address] (num_envs,), memory[first:end:step] (num_envs,
    length), int32, both also with a bank before them. Assigned are a byte, or as many bytes as the range has, for all;
    or a tensor or array with a byte (num_envs,) or a row (num_envs, length) for each. Cartridge RAM is read faster with
    its bank.

    Raises: ConfigError for a read of TIMA, SB or sound, and for a write to ROM or a register.
    """

    def __init__(self, emulator: Emulator, ram: Ram, fields: Fields, hint: AxisHint) -> None:
        self._emulator, self._ram, self._fields, self._hint = emulator, ram, fields, hint
        machine: Any = emulator.machine
        self._rom = wp.to_torch(machine.rom)

    def __getitem__(self, key: object) -> torch.Tensor:
        bank, first, end, step = _range(key)
        values = self.read(first, end, bank)
        if not isinstance(_address(key), slice):
            return values[:, 0]
        self._hint.say()
        return values[:, ::step]

    def read(self, first: int, end: int, bank: int | None = None) -> torch.Tensor:
        """Bytes of a range, (num_envs, end - first) int32."""
        return torch.cat([self._read(bank, begin, stop) for begin, stop in _parts(first, end)], 1)

    def __setitem__(self, key: object, value: object) -> None:
        bank, first, end, step = _range(key)
        if bank is None and hw.CART_RAM <= first < hw.WRAM:
            raise ConfigError(
                f"memory[0x{first:04X}] is cartridge RAM, which has banks: give one, memory[bank, address]"
            )
        length = len(range(first, end, step))
        values = self._values(value, first, length, isinstance(_address(key), slice))
        where = self._offsets(bank, first, end)
        if where is not None:
            where = where[:, ::step]
            self._emulator.memory.scatter_(1, where, values.expand_as(where))
        elif step == 1:
            self._ram.poke(first if bank is None else (bank, first), values)
        else:
            for index in range(length):
                address = first + index * step
                self._ram.poke(address if bank is None else (bank, address), values[:, index])

    def _values(self, value: object, first: int, length: int, is_range: bool) -> torch.Tensor:
        """Bytes to be stored, (num_envs, length) uint8.

        Raises: ConfigError for what does not fit.
        """
        num_envs, device = self._emulator.num_envs, self._emulator.memory.device
        if isinstance(value, torch.Tensor | np.ndarray) and value.ndim:
            rows = torch.as_tensor(value).to(device, torch.int32)  # of the lowest 8 bits
            if rows.ndim == 1:
                rows = rows[:, None] if length == 1 and len(rows) == num_envs else rows[None]
            if rows.ndim != 2 or len(rows) not in (1, num_envs) or rows.shape[1] != length:
                shape = tuple(value.shape)
                raise ConfigError(
                    f"memory from {first:04X} has {length} bytes there, not {shape}: give ({length},) or "
                    f"({num_envs}, {length}) of them"
                )
            return (rows & 0xFF).to(torch.uint8).expand(num_envs, -1)
        given, expected = [value], 1
        if is_range and isinstance(value, Sized) and isinstance(value, Iterable):
            given, expected = list(value), length
        numbers = [whole(each, f"a byte for memory[0x{first:04X}]", 0, 0xFF) for each in given]
        if len(numbers) != expected:
            raise ConfigError(f"memory from {first:04X} has {length} bytes there, not {len(numbers)}: give as many")
        return torch.tensor([numbers], dtype=torch.uint8, device=device).expand(num_envs, length)

    def __len__(self) -> int:
        raise ConfigError("memory has no length: ask for the ranges that you want, memory[first:end]")

    def __iter__(self) -> Iterator[torch.Tensor]:
        raise ConfigError("memory has no first and last byte: ask for the ranges that you want, memory[first:end]")

    def _offsets(self, bank: int | None, first: int, end: int) -> torch.Tensor | None:
        """banks.offsets of a range to be written.

        Raises: ConfigError for one that has banks in a part of it only.
        """
        found = [banks.offsets(self._emulator, self._fields, bank, *part) for part in _parts(first, end)]
        there = [offsets for offsets in found if offsets is not None]
        if there and len(there) < len(found):
            raise ConfigError(f"memory[0x{first:04X}:0x{end:04X}] has banks in a part of it: write each part by itself")
        return torch.cat(there, 1) if there else None

    def _read(self, bank: int | None, first: int, end: int) -> torch.Tensor:
        """Bytes of one area, (num_envs, end - first) int32."""
        if (offsets := banks.offsets(self._emulator, self._fields, bank, first, end)) is not None:
            return self._emulator.memory.gather(1, offsets).to(torch.int32)
        if first < hw.VRAM and bank is None:
            base = self._fields["rom_low" if first < hw.ROM_BANK_SIZE else "rom_high"]
            indices = base[:, None] + torch.arange(first, end, device=base.device)
            return torch.where(indices < 0, 0, self._rom[indices.clamp(min=0)].to(torch.int32))
        if hw.IO <= first < hw.HRAM or first == hw.IE:
            return torch.stack([self._register(address) for address in range(first, end)], 1)
        if bank is None and hw.CART_RAM <= first < hw.WRAM:
            rows = [self._emulator.read_memory(env, first, end - first) for env in range(self._emulator.num_envs)]
            return torch.from_numpy(np.stack(rows)).to(self._rom.device, torch.int32)
        has_banks = first < hw.VRAM or hw.CART_RAM <= first < hw.WRAM
        found = self._ram.view((bank, first) if has_banks and bank is not None else first, end - first).to(torch.int32)
        return self._fields.oam_reads(found) if hw.OAM <= first < hw.OAM_END else found

    def _register(self, address: int) -> torch.Tensor:
        value = self._fields.register(address)
        if value is None:
            raise ConfigError(f"memory[0x{address:04X}]: that register cannot be read from outside: leave it out")
        return value


class RegisterFile:
    """The CPU registers A F B C D E HL SP PC of all Game Boys: read tensors (num_envs,) int32, and assign an int or a
    tensor, of which the register's bits are used."""

    _fields: Fields
    NAMES: ClassVar = ("A", "F", "B", "C", "D", "E", "HL", "SP", "PC")

    def __init__(self, fields: Fields) -> None:
        self.__dict__["_fields"] = fields

    def __getattr__(self, name: str) -> torch.Tensor:
        if name == "HL":
            return self._fields["h"] << 8 | self._fields["l"]
        if name not in self.NAMES:
            raise AttributeError(f"register_file has no {name}: give one of {', '.join(self.NAMES)}")
        return self._fields[name.lower()].clone()

    def __setattr__(self, name: str, value: int | torch.Tensor) -> None:
        if not isinstance(value, torch.Tensor):
            value = whole(value, f"register {name}", -0x10000, 0xFFFFF)
        if name == "HL":
            self._fields["h"][:] = value >> 8 & 0xFF
            self._fields["l"][:] = value & 0xFF
        elif name in self.NAMES:
            self._fields[name.lower()][:] = value & {"F": 0xF0, "SP": 0xFFFF, "PC": 0xFFFF}.get(name, 0xFF)
        else:
            raise AttributeError(f"register_file has no {name}: give one of {', '.join(self.NAMES)}")


def _address(key: object) -> object:
    return key[1] if isinstance(key, tuple) and len(key) == 2 else key


def _range(key: object) -> tuple[int | None, int, int, int]:
    """(bank, first, end, step) of an index into the memory.

    Raises: ConfigError for another one.
    """
    bank: Any = key[0] if isinstance(key, tuple) and len(key) == 2 else None
    where: Any = _address(key)
    try:
        if isinstance(where, slice):
            first, end = operator.index(where.start), operator.index(where.stop)
            step = 1 if where.step is None else operator.index(where.step)
        else:
            first, step = operator.index(where), 1
            end = first + 1
        if not (0 <= first < end <= 0x10000 and step > 0):
            raise ValueError
        return None if bank is None else operator.index(bank), first, end, step
    except (TypeError, ValueError):
        raise ConfigError(
            f"memory[{key!r:.60}] is not an address: give an address, first:end, first:end:step, or a bank before them"
        ) from None


def _parts(first: int, end: int) -> list[tuple[int, int]]:
    """A range of addresses, cut where another area begins."""
    cuts = (hw.ROM_BANK_SIZE, hw.VRAM, hw.CART_RAM, hw.WRAM, hw.BANKED_WRAM, hw.ECHO, hw.BANKED_ECHO, hw.OAM)
    cuts += (hw.OAM_END, hw.IO, hw.HRAM, hw.IE)
    bounds = [first, *(cut for cut in cuts if first < cut < end), end]
    return list(itertools.pairwise(bounds))
