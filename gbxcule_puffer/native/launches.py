"""Launches with their arguments as bytes, for any number of envs: numbers that depend on it are found by comparing
recordings of several."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import warp as wp

from gbxcule_puffer.errors import ConfigError


@dataclass(frozen=True)
class Symbol:
    """A number that is known when an env is made; its index is that of gbxcule.c."""

    index: int
    name: str
    size: int = 4  # bytes of a kernel's argument


# As in gbxcule.c. Behind num_envs the fields of lane_order.Sizes.
ENVS, WARPS, LANES, WANTED, LEARNERS, COUNTERS, WHOLE = (
    Symbol(index, name)
    for index, name in enumerate(("envs", "warps", "lanes", "wanted", "learners", "counters", "whole"))
)
SEED, LOG_STRIDE, ENV_LANES = Symbol(7, "seed", 8), Symbol(8, "log_stride"), Symbol(9, "env_lanes")
UNUSED = "final_observation"  # no native kernel reads or writes it
Number = int | Symbol


@dataclass
class Array:
    """An allocation: `sizes` and `contents` in each recording."""

    name: str
    sizes: list[int] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)


@dataclass(frozen=True)
class Patch:
    """Bytes `offset` of an argument become `fixed` + `factor` * symbol, `size` bytes long, and with `array` (an index)
    its address is added."""

    offset: int
    size: int
    symbol: int
    fixed: int
    factor: int
    array: int = -1


@dataclass(frozen=True)
class Argument:
    """An argument of a launch: its bytes, and what is changed in them."""

    raw: bytes
    patches: tuple[Patch, ...]


@dataclass(frozen=True)
class Launch:
    """A launch of `kernel` over `dim` threads in blocks of `block_dim`."""

    kernel: Any
    dim: tuple[Number, ...]
    inputs: tuple[object, ...]
    block_dim: int = 256


@dataclass(frozen=True)
class PackedLaunch:
    """A launch with its arguments as bytes."""

    kernel: wp.Kernel
    dim: tuple[Number, ...]
    arguments: tuple[Argument, ...]
    block_dim: int


@dataclass
class Packed:
    """An argument in one recording: its bytes; offsets of pointers, each with the array's index and the offset in it;
    offsets of symbols."""

    raw: bytearray
    pointers: list[tuple[int, int, int]] = field(default_factory=list)
    symbols: list[tuple[int, Symbol]] = field(default_factory=list)


class Recording:
    """The launches of an env, packed. arrays: all allocations that their arguments use, in order of their first use;
    named: storages that have a name of their own, by address."""

    def __init__(self, launches: Iterable[Launch], named: dict[int, str]) -> None:
        self.arrays: list[tuple[str, torch.UntypedStorage]] = []
        self._indices: dict[int, int] = {}
        self._named = named
        self.launches = list(launches)
        self.packed = [[self._pack(each) for each in launch.inputs] for launch in self.launches]

    def _pack(self, value: Any) -> Packed:
        if isinstance(value, Symbol):
            return Packed(bytearray(value.size), symbols=[(0, value)])
        if isinstance(value, int):
            return Packed(bytearray(value.to_bytes(4, "little", signed=True)))
        packed = Packed(bytearray(bytes(value.__ctype__())))
        for offset, name, array in _arrays(value, 0, "array"):
            packed.raw[offset : offset + 16] = bytes(16)  # the addresses of the array and of its gradient
            if array.ptr and name != UNUSED:
                packed.pointers.append((offset, *self._find(name, array)))
            if name == "logs":  # its rows have the stride that the program chooses
                strides = offset + type(array.__ctype__()).strides.offset
                packed.symbols.append((strides, LOG_STRIDE))
        return packed

    def _find(self, name: str, array: Any) -> tuple[int, int]:
        """The index of an array's allocation, and its offset there."""
        storage = array._tensor.untyped_storage()
        address = storage.data_ptr()
        if address not in self._indices:
            self._indices[address] = len(self.arrays)
            self.arrays.append((self._named.get(address, name), storage))
        return self._indices[address], array.ptr - address


def _arrays(value: Any, base: int, name: str) -> Iterator[tuple[int, str, Any]]:
    """Offset, name and value of each array of an argument: an array, or a struct of Warp's."""
    if isinstance(value, wp.array):
        yield base, name, value
        return
    layout = type(value.__ctype__())
    for member, variable in value._cls.vars.items():
        part, offset = getattr(value, member), base + getattr(layout, member).offset
        if hasattr(part, "_cls") or (hasattr(variable.type, "ndim") and part is not None):
            yield from _arrays(part, offset, member)


def combine(sizes: Sequence[int], recordings: Sequence[Recording]) -> tuple[list[Array], list[PackedLaunch]]:
    """The arrays and launches for any number of envs, from recordings of `sizes` envs.

    Raises: ConfigError where a number does not grow evenly with them; that is a mistake here.
    """
    arrays = [Array(name) for name, _ in recordings[0].arrays]
    for recording in recordings:
        for array, (name, storage) in zip(arrays, recording.arrays, strict=True):
            assert array.name == name
            array.sizes.append(storage.nbytes())
            array.contents.append(ctypes.string_at(storage.data_ptr(), storage.nbytes()))
    launches = []
    for index, launch in enumerate(recordings[0].launches):
        forms = zip(*(recording.packed[index] for recording in recordings), strict=True)
        arguments = tuple(_combined(sizes, form) for form in forms)
        launches.append(PackedLaunch(launch.kernel, launch.dim, arguments, launch.block_dim))
    return arrays, launches


def _combined(sizes: Sequence[int], forms: Sequence[Packed]) -> Argument:
    first = forms[0]
    patches = []
    for entries in zip(*(form.pointers for form in forms), strict=True):
        (offset, array, _), deltas = entries[0], [entry[2] for entry in entries]
        patches.append(Patch(offset, 8, ENVS.index, *evenly(sizes, deltas), array))
    known = {offset for offset, _ in first.symbols}
    patches += [Patch(offset, symbol.size, symbol.index, 0, 1) for offset, symbol in first.symbols]
    for offset in range(0, len(first.raw) - 3, 4):
        values = [int.from_bytes(form.raw[offset : offset + 4], "little", signed=True) for form in forms]
        if len(set(values)) > 1 and offset not in known:
            patches.append(Patch(offset, 4, ENVS.index, *evenly(sizes, values)))
    return Argument(bytes(first.raw), tuple(patches))


def evenly(sizes: Sequence[int], values: Sequence[int]) -> tuple[int, int]:
    """(fixed, factor): the values are fixed + factor * size.

    Raises: ConfigError if they are not.
    """
    factor = (values[1] - values[0]) // (sizes[1] - sizes[0])
    fixed = values[0] - factor * sizes[0]
    if any(fixed + factor * size != value for size, value in zip(sizes, values, strict=True)):
        raise ConfigError(f"{list(values)} for {list(sizes)} envs do not grow evenly: a native env cannot have this")
    return fixed, factor
