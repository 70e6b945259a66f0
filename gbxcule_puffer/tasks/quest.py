"""Rewards for what the game's RAM says: a small table of conditions, each paid once an episode. RAM, opt-in."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import Kind, read_object
from gbxcule_puffer.tasks.ram_watch import RamWatch, parse_address

StrPath = str | os.PathLike[str]
FORMAT, VERSION = "gbxcule-quest", 1
QUEST_FILE = Kind("quest", ConfigError, "write it as docs/exploration.md shows")
# test: (lowest value that passes, highest, whether the result is turned round), from the value compared with
TESTS = {
    "==": lambda v: (v, v, False),
    "!=": lambda v: (v, v, True),
    ">=": lambda v: (v, 255, False),
    "<=": lambda v: (0, v, False),
}


@dataclass(frozen=True)
class Condition:
    """`(byte at address & mask) test value`, worth `reward` when it comes true."""

    name: str
    address: int
    test: str
    value: int
    mask: int = 255
    reward: float = 0.0


def load_quest(path: StrPath, rom_sha256: str) -> list[Condition]:
    """The conditions of a quest file for this ROM (docs/exploration.md).

    Raises: ConfigError for a missing, damaged or foreign file, an old version, another ROM or a wrong condition.
    """
    where = f"quest {path}"
    spec = read_object(path, QUEST_FILE, FORMAT, VERSION)
    if spec.get("rom_sha256") != rom_sha256:
        raise ConfigError(
            f"{where}: is for ROM {str(spec.get('rom_sha256'))[:12]}..., this is {rom_sha256[:12]}...: give its quest"
        )
    rows = spec.get("conditions")
    if not isinstance(rows, list) or not rows:
        raise ConfigError(f"{where}: has no conditions: give at least one")
    conditions = [_condition(row, f"{where}: condition {i}") for i, row in enumerate(rows)]
    if len({condition.name for condition in conditions}) < len(conditions):
        raise ConfigError(f"{where}: two conditions have the same name: rename one")
    return conditions


def parse_condition(text: str, source: str) -> Condition:
    """A condition written as ADDRESS TEST VALUE, e.g. 'C0A3==5' or 'C0A3&04!=0'; address and mask in hexadecimal.

    Raises: ConfigError, which begins with `source`.
    """
    for test in TESTS:
        left, found, value = text.partition(test)
        if found:
            address, _, mask = left.partition("&")
            try:
                numbers = {"value": int(value), "mask": int(mask or "FF", 16)}
            except ValueError:
                break
            return _condition({"name": text, "address": address.strip(), "test": test, **numbers}, source)
    raise ConfigError(f"{source}: {text!r} is no condition: give one such as C0A3==5 or C0A3&04!=0")


def _condition(row: Any, where: str) -> Condition:
    """One row of the table, checked."""
    try:
        address = parse_address(row["address"], where)
        row = {"mask": 255, "reward": 0.0, **row, "address": address}
        condition = Condition(**row)
        fits = condition.test in TESTS and 0 <= condition.value <= 255 and 0 <= condition.mask <= 255
        fits = fits and isinstance(condition.name, str) and abs(float(condition.reward)) < float("inf")
    except (KeyError, TypeError) as error:
        raise ConfigError(f"{where} lacks or has a field too many ({error}): give name, address, test, value") from None
    if not fits:
        tests = ", ".join(TESTS)
        raise ConfigError(f"{where}: test must be one of {tests}, value and mask numbers 0..255, reward a number")
    return condition


class QuestReward:
    """Pays each condition once an episode, when it comes true; what holds at the start already is not paid.

    done (num_envs, conditions) bool: what is true or was in this episode. Allocates only here.

    Raises: ConfigError where the emulator has no memory to watch.
    """

    def __init__(self, emulator: Any, conditions: list[Condition]) -> None:
        self.conditions = conditions
        self.watch = RamWatch(emulator, [condition.address for condition in conditions])
        device, shape = self.watch.values.device, tuple(self.watch.values.shape)

        def row(values: list[Any], dtype: torch.dtype = torch.uint8) -> torch.Tensor:
            return torch.tensor(values, dtype=dtype, device=device)

        bounds = [TESTS[condition.test](condition.value) for condition in conditions]
        self._mask = row([condition.mask for condition in conditions])
        self._low, self._high = row([low for low, _, _ in bounds]), row([high for _, high, _ in bounds])
        self._turned = row([turned for _, _, turned in bounds], torch.bool)
        self._true, self._flag = (torch.zeros(shape, dtype=torch.bool, device=device) for _ in range(2))
        self.done = torch.zeros(shape, dtype=torch.bool, device=device)
        self.totals = torch.zeros(len(conditions) + 1, dtype=torch.int64, device=device)
        self._count = torch.zeros(shape[0], dtype=torch.int64, device=device)
        self._zero = torch.zeros_like(self._count)

    def pay(self, rewards: torch.Tensor) -> None:
        """Adds to `rewards` (num_envs,) what came true in the step just made."""
        torch.gt(self.test(), self.done, out=self._flag)
        for column, condition in zip(self._flag.unbind(1), self.conditions, strict=True):
            rewards.add_(column, alpha=condition.reward)
        self.done.logical_or_(self._flag)

    def test(self) -> torch.Tensor:
        """True for the conditions that hold now, (num_envs, conditions) bool; valid until the next call."""
        values = self.watch.read().bitwise_and_(self._mask)
        torch.ge(values, self._low, out=self._true)
        torch.le(values, self._high, out=self._flag)
        self._true.logical_and_(self._flag)
        return self._true.logical_xor_(self._turned)

    def count(self, ended: torch.Tensor) -> None:
        """Adds the episodes that ended, and those in which each condition came true, to the totals."""
        for i, column in enumerate((*self.done.unbind(1), ended)):
            self._count.copy_(column).mul_(ended)
            self.totals[i : i + 1].scatter_add_(0, self._zero, self._count)

    def begin(self, mask: torch.Tensor) -> None:
        """Takes what is true now as done, in the envs of `mask`, which begin an episode."""
        torch.where(mask[:, None], self.test(), self.done, out=self.done)

    def read(self) -> dict[str, float]:
        """Share of the episodes that ended since the last read in which each condition held, by its name."""
        *held, episodes = self.totals.tolist()
        self.totals.zero_()
        if not episodes:
            return {}
        return {f"quest/{c.name}": count / episodes for c, count in zip(self.conditions, held, strict=True)}

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that a saved state holds."""
        return {"quest_done": self.done, "quest_totals": self.totals}
