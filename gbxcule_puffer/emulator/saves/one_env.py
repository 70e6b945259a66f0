"""One env on the host. Warp's functions also run in Python, so files are read with the rules of the device code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gbxcule_puffer.device import start_warp
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.state import HOT_FIELDS, Cpu, Machine, describe


def one_env(cartridge: Cartridge, fields: Mapping[str, int]) -> tuple[Any, Any]:
    """A Machine without arrays, and a Cpu with `fields` (the others 0), for functions that access no memory."""
    start_warp()
    machine, cpu = Machine(), Cpu()
    describe(machine, cartridge)
    for field in HOT_FIELDS:
        setattr(cpu, field.name, fields.get(field.name, 0))
    return machine, cpu
