"""Bytes of RAM that a task looks at, for all envs at once. Opt-in: pixels alone are the default everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.errors import ConfigError

# Flat in an env's memory row, whatever the mapper has switched.
READABLE = ((hw.VRAM, hw.CART_RAM), (hw.WRAM, hw.ECHO), (hw.OAM, hw.OAM_END), (hw.HRAM, hw.IE))


def parse_address(text: str, source: str) -> int:
    """A hexadecimal address, e.g. 'C0A3'.

    Raises: ConfigError, which begins with `source`, for another text or an address that is not RAM.
    """
    try:
        address = int(text, 16)
    except (TypeError, ValueError):
        raise ConfigError(f"{source}: {text!r} is no hexadecimal address: give one such as C0A3") from None
    if not any(first <= address < end for first, end in READABLE):
        raise ConfigError(f"{source}: {text} is not VRAM, WRAM, OAM or HRAM: give e.g. C000-DFFF")
    return address


def parse_visit_key(text: str) -> list[int] | None:
    """None for 'picture', the addresses of 'ram:ADDRESS,ADDRESS...'.

    Raises: ConfigError.
    """
    if text == "picture":
        return None
    kind, _, addresses = text.partition(":")
    if kind != "ram":
        raise ConfigError(f"visit_key {text!r} is unknown: give picture, or ram:ADDRESS,ADDRESS... in hexadecimal")
    return [parse_address(address, f"visit_key {text!r}") for address in addresses.split(",")]


class RamWatch:
    """`values` (num_envs, addresses) uint8 of some addresses; allocates only here.

    Raises: ConfigError where the emulator has no memory on the device, as PyBoy's.
    """

    def __init__(self, emulator: Any, addresses: Sequence[int]) -> None:
        memory = getattr(emulator, "memory", None)
        if memory is None:
            raise ConfigError("the PyBoy baselines have no RAM watch: leave quest out and visit_key at 'picture'")
        self.memory: torch.Tensor = memory
        self._rows = torch.tensor([a - hw.ROW_BASE for a in addresses], dtype=torch.int64, device=memory.device)
        self.values = torch.zeros((len(memory), len(addresses)), dtype=torch.uint8, device=memory.device)

    def read(self) -> torch.Tensor:
        """Takes the bytes as they are now."""
        return torch.index_select(self.memory, 1, self._rows, out=self.values)
