"""Conditions on bytes of RAM, written as C0A3==15, C0A3&04!=0 or wMoney>=5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram.addresses import parse_address
from gbxcule_puffer.tasks.ram.symbols import Symbols

if TYPE_CHECKING:
    import torch

    from gbxcule_puffer.tasks.ram.view import Ram

# test: (lowest byte that passes, highest, True if the result is inverted), from the value compared with
TESTS = {
    "==": lambda v: (v, v, False),
    "!=": lambda v: (v, v, True),
    ">=": lambda v: (v, 255, False),
    "<=": lambda v: (0, v, False),
}


@dataclass(frozen=True)
class Condition:
    """A byte at `where`, whose bits of `mask` are compared with `value`."""

    where: int | tuple[int, int]
    test: str
    value: int
    mask: int = 0xFF

    @property
    def bounds(self) -> tuple[int, int, bool]:
        """(lowest value that passes, highest, True if the result is inverted)."""
        return TESTS[self.test](self.value)

    def holds(self, ram: Ram) -> torch.Tensor:
        """True where the condition holds now, (num_envs,) bool."""
        low, high, turned = self.bounds
        value = ram[self.where] & self.mask
        return ((value >= low) & (value <= high)) ^ turned


def all_hold(conditions: Sequence[Condition], ram: Ram) -> torch.Tensor:
    """True where all of at least one conditions hold now, (num_envs,) bool."""
    found = conditions[0].holds(ram)
    for condition in conditions[1:]:
        found = found & condition.holds(ram)
    return found


def parse_condition(text: str, source: str, symbols: Symbols | None = None) -> Condition:
    """A condition written as ADDRESS TEST VALUE or ADDRESS&MASK TEST VALUE; address and mask in hexadecimal.

    Raises: ConfigError, which begins with `source`.
    """
    for test in TESTS:
        left, found, value = text.partition(test)
        if not found:
            continue
        address, _, mask = left.partition("&")
        try:
            numbers = {"value": int(value), "mask": int(mask or "FF", 16)}
        except ValueError:
            break
        where = parse_address(address.strip(), source, symbols)
        for name, number in numbers.items():
            if not 0 <= number <= 0xFF:
                raise ConfigError(f"{source}: {name} of {text!r:.60} must be from 0 to 255")
        return Condition(where, test, **numbers)
    raise ConfigError(
        f"{source}: {text!r:.60} is not a condition: give one such as C0A3==15 or C0A3&04!=0, the value decimal"
    )
