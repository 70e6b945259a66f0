"""Memory and CPU registers of all Game Boys by PyBoy's names."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.pyboy_api import banks
from gbxcule_puffer.integrations.pyboy_api.fields import Fields
from gbxcule_puffer.tasks.ram import Ram


class Memory:
    """Bytes of all Game Boys as the CPU would read them: memory[address] (num_envs,), memory[first:end] (num_envs,
    length), int32, both also with a bank before them. Assigned are a byte or a list of bytes for all, or a tensor of
    either shape. Cartridge RAM is read faster with its bank.

    Raises: ConfigError for a read of TIMA, SB or sound, and for a write to ROM or a register.
    """

    def __init__(self, emulator: Emulator, ram: Ram, fields: Fields) -> None:
        self._emulator, self._ram, self._fields = emulator, ram, fields
        machine: Any = emulator.machine
        self._rom = wp.to_torch(machine.rom)

    def __getitem__(self, key: object) -> torch.Tensor:
        bank, first, end = _range(key)
        parts = [self._read(bank, begin, stop) for begin, stop in _parts(first, end)]
        values = torch.cat(parts, 1)
        return values if isinstance(_address(key), slice) else values[:, 0]

    def __setitem__(self, key: object, value: int | Sequence[int] | torch.Tensor) -> None:
        bank, first, end = _range(key)
        if isinstance(value, int):
            value = [value] * (end - first)
        length = (1 if value.dim() == 1 else value.shape[1]) if isinstance(value, torch.Tensor) else len(value)
        if length != end - first:
            raise ConfigError(f"memory from {first:04X} has {end - first} bytes there, not {length}: give as many")
        if bank is None and hw.CART_RAM <= first < hw.WRAM:
            raise ConfigError(
                f"memory[0x{first:04X}] is cartridge RAM, which has banks: give one, memory[bank, address]"
            )
        where = self._places(bank, first, end)
        if where is None:
            self._ram.poke(first if bank is None else (bank, first), value)
        else:
            values = torch.as_tensor(value, device=where.device).view(-1, end - first) & 0xFF
            self._emulator.memory.scatter_(1, where, values.to(torch.uint8).expand_as(where))

    def _places(self, bank: int | None, first: int, end: int) -> torch.Tensor | None:
        """banks.places of a range to be written.

        Raises: ConfigError for one that has banks in a part of it only.
        """
        found = [banks.places(self._emulator, self._fields, bank, *part) for part in _parts(first, end)]
        there = [places for places in found if places is not None]
        if there and len(there) < len(found):
            raise ConfigError(f"memory[0x{first:04X}:0x{end:04X}] has banks in a part of it: write each part by itself")
        return torch.cat(there, 1) if there else None

    def _read(self, bank: int | None, first: int, end: int) -> torch.Tensor:
        """Bytes of one area, (num_envs, end - first) int32."""
        if (places := banks.places(self._emulator, self._fields, bank, first, end)) is not None:
            return self._emulator.memory.gather(1, places).to(torch.int32)
        if first < hw.VRAM and bank is None:
            base = self._fields["rom_low" if first < hw.ROM_BANK_SIZE else "rom_high"]
            places = base[:, None] + torch.arange(first, end, device=base.device)
            return torch.where(places < 0, 0, self._rom[places.clamp(min=0)].to(torch.int32))
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
            raise ConfigError(
                f"memory[0x{address:04X}]: that register is not kept for a look from outside: leave it out"
            )
        return value


class RegisterFile:
    """The CPU registers A F B C D E HL SP PC of all Game Boys: tensors (num_envs,) int32 to read, and to assign an int
    or a tensor, of which the bits count that the register has."""

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
        if name == "HL":
            self._fields["h"][:] = value >> 8 & 0xFF
            self._fields["l"][:] = value & 0xFF
        elif name in self.NAMES:
            self._fields[name.lower()][:] = value & {"F": 0xF0, "SP": 0xFFFF, "PC": 0xFFFF}.get(name, 0xFF)
        else:
            raise AttributeError(f"register_file has no {name}: give one of {', '.join(self.NAMES)}")


def _address(key: object) -> Any:
    return key[1] if isinstance(key, tuple) and len(key) == 2 else key


def _range(key: object) -> tuple[int | None, int, int]:
    """(bank, first, end) of an index into the memory.

    Raises: ConfigError for what is none.
    """
    bank, where = key[0] if isinstance(key, tuple) and len(key) == 2 else None, _address(key)
    is_range = isinstance(where, slice) and where.step is None
    first, end = (where.start, where.stop) if is_range else (where, where + 1 if isinstance(where, int) else None)
    if not (isinstance(first, int) and isinstance(end, int) and 0 <= first < end <= 0x10000):
        raise ConfigError(f"memory[{key!r:.40}] is not an address: give an address, first:end, or a bank before them")
    if bank is not None and not isinstance(bank, int):
        raise ConfigError(f"bank {bank!r:.40} must be a whole number")
    return bank, first, end


def _parts(first: int, end: int) -> list[tuple[int, int]]:
    """A range of addresses, cut where another area begins."""
    cuts = (hw.ROM_BANK_SIZE, hw.VRAM, hw.CART_RAM, hw.WRAM, hw.BANKED_WRAM, hw.ECHO, hw.BANKED_ECHO, hw.OAM)
    cuts += (hw.OAM_END, hw.IO, hw.HRAM, hw.IE)
    bounds = [first, *(cut for cut in cuts if first < cut < end), end]
    return list(itertools.pairwise(bounds))
