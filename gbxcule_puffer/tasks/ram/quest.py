"""A quest: a file of conditions and numbers in the game's RAM that pay rewards. RAM, opt-in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import Kind, StrPath, read_object
from gbxcule_puffer.tasks.ram.addresses import parse_address
from gbxcule_puffer.tasks.ram.number import Number, Numbers
from gbxcule_puffer.tasks.ram.symbols import Symbols
from gbxcule_puffer.tasks.ram.view import ORDERS, Ram
from gbxcule_puffer.tasks.task import StepInfo, StepResult, Task

FORMAT, VERSION = "gbxcule-quest", 1
QUEST_FILE = Kind("quest", ConfigError, "write it as docs/exploration.md shows")
MOST = 2**56 - 1  # the largest number: 7 bytes
# test: (lowest value that passes, highest, True if the result is inverted), from the value compared with
TESTS = {
    "==": lambda v: (v, v, False),
    "!=": lambda v: (v, v, True),
    ">=": lambda v: (v, MOST, False),
    "<=": lambda v: (0, v, False),
}
MOST_CONDITIONS, MOST_BYTES = 1_024, 8_192  # conditions of a quest: every env reads them in every step
READS = ("number", "bits", "bcd")
ONCE = ("episode", "ever")
PAYS = ("rise", "change")
MOST_REWARD = 1_000_000  # reward of one condition: sums and products of several stay finite in float32


@dataclass(frozen=True)
class Condition:
    """A number in RAM, and what is paid for it.

    The number is the sum over `places` of `size` bytes each, of which `mask` keeps some bits: as a 'number' of that
    `order`, the 'bits' that are set, or decimal digits ('bcd').

    With a `test`, `reward` is paid when `number test value` comes true, once an 'episode' or once 'ever' in an env, and
    with `end` the episode ends as a success. Without, `reward` is paid for each unit by which the number rises above
    the highest of the episode ('rise'), or by which it differs from the step before, downwards negatively ('change').
    """

    name: str
    places: tuple[int | tuple[int, int], ...]
    test: str | None = None
    value: int = 0
    mask: int = 255
    reward: float = 0.0
    size: int = 1
    order: str = "little"
    read: str = "number"
    once: str = "episode"
    pays: str = "rise"
    end: bool = False


def load_quest(path: StrPath, rom_sha256: str, symbols: Symbols | None = None) -> list[Condition]:
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
    if not isinstance(rows, list) or not 1 <= len(rows) <= MOST_CONDITIONS:
        raise ConfigError(f"{where}: has no list of conditions: give 1 to {MOST_CONDITIONS:,} of them")
    conditions = [_condition(row, f"{where}: condition {i}", symbols) for i, row in enumerate(rows)]
    if sum(len(condition.places) * condition.size for condition in conditions) > MOST_BYTES:
        raise ConfigError(f"{where}: reads more than {MOST_BYTES:,} bytes: leave some conditions out")
    if len({condition.name for condition in conditions}) < len(conditions):
        raise ConfigError(f"{where}: two conditions have the same name: rename one")
    return conditions


def parse_condition(text: str, source: str, symbols: Symbols | None = None) -> Condition:
    """A condition written as ADDRESS TEST VALUE, e.g. 'C0A3==5', 'C0A3&04!=0' or 'wMoney>=5'; address and mask in
    hexadecimal.

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
            return _condition({"name": text, "address": address.strip(), "test": test, **numbers}, source, symbols)
    raise ConfigError(
        f"{source}: {text!r} is not a condition: give one such as C0A3==15 or C0A3&04!=0, the value decimal"
    )


def _condition(row: Any, where: str, symbols: Symbols | None = None) -> Condition:
    """One row of the table, checked."""
    try:
        rest = dict(row)
        address, name = rest.pop("address"), rest.pop("name")
        listed = address if isinstance(address, list) and address else [address]
        if len(listed) > MOST_BYTES:
            raise ConfigError(f"{where}: has {len(listed):,} addresses, at most {MOST_BYTES:,} are read")
        known = [field.name for field in fields(Condition) if field.name not in ("name", "places")]
        if unknown := [field for field in rest if field not in known]:
            raise ConfigError(
                f"{where} has a field too many ({unknown[0]!r:.60}): it has name, address, {', '.join(known)}"
            )
        places = tuple(parse_address(each, where, symbols) for each in listed)
        if ("test" in rest) != ("value" in rest):
            raise KeyError("value" if "test" in rest else "test")
        condition = Condition(name, places, **rest)
    except ConfigError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{where} lacks a field ({error}): give name, address and, with a test, its value") from None
    _check(condition, where)
    return condition


def _check(c: Condition, where: str) -> None:
    """Raises: ConfigError for a value that a field does not accept."""

    def whole(value: object, least: int, most: int) -> bool:
        return type(value) is int and least <= value <= most

    largest = 255 if c.size == 1 and c.read == "number" and len(c.places) == 1 else MOST
    rules = {
        "name must be text": isinstance(c.name, str),
        f"test must be one of {', '.join(TESTS)}": c.test is None or (isinstance(c.test, str) and c.test in TESTS),
        "size must be a number from 1 to 512, above 7 only with read 'bits'": whole(
            c.size, 1, 512 if c.read == "bits" else 7
        ),
        f"value must be one of the numbers 0..{largest}": whole(c.value, 0, largest),
        "mask must be one of the numbers 0..255": whole(c.mask, 0, 255),
        f"reward must be from -{MOST_REWARD:,} to {MOST_REWARD:,}": type(c.reward) in (int, float)
        and abs(c.reward) <= MOST_REWARD,
        f"order must be one of {', '.join(ORDERS)}": c.order in ORDERS,
        f"read must be one of {', '.join(READS)}": c.read in READS,
        f"once must be one of {', '.join(ONCE)}": c.once in ONCE,
        f"pays must be one of {', '.join(PAYS)}, and 'change' has no test": c.pays in PAYS
        and (c.test is None or c.pays == "rise"),
        "end must be true or false, and needs a test": type(c.end) is bool and (c.test is not None or not c.end),
    }
    for rule, holds in rules.items():
        if not holds:
            raise ConfigError(f"{where}: {rule}")


class Quest(Task):
    """Pays the conditions of a quest. A condition that holds at the start of an episode pays nothing.

    done (num_envs, conditions) bool: True for conditions that hold or held in this episode, or, with once 'ever', in
    any; best (num_envs, conditions) int64: the highest number in this episode, or for a 'change' the last. Allocates
    only in `setup`.
    """

    prefix: ClassVar[str] = "quest"
    checks_numbers: ClassVar[bool] = False

    def __init__(self, conditions: Sequence[Condition]) -> None:
        self.conditions = list(conditions)

    def setup(self, ram: Ram) -> None:
        shape = (ram.num_envs, len(self.conditions))
        self._numbers = _Conditions(ram, self.conditions)

        def zeros(dtype: torch.dtype, shape: tuple[int, ...] = shape) -> torch.Tensor:
            return torch.zeros(shape, dtype=dtype, device=ram.device)

        self.done, self.best = zeros(torch.bool), zeros(torch.int64)
        true, flag, number = zeros(torch.bool), zeros(torch.bool), zeros(torch.int64)
        self._work = (true, flag, number, zeros(torch.float32, shape[:1]), zeros(torch.bool, shape[:1]))
        ends = [i for i, c in enumerate(self.conditions) if c.end]
        terminal = self._work[4] if ends else None
        self._ends = ends
        names = [(c.name, (self.best if c.test is None else self.done)[:, i]) for i, c in enumerate(self.conditions)]
        self._result = StepResult(self._work[3], terminal, statistics=dict(names))

    def test(self) -> torch.Tensor:
        """True for the conditions that hold now, (num_envs, conditions) bool; valid until the next call."""
        true, flag, *_ = self._work
        return self._numbers.test(self._numbers.read(), true, flag)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
        true, flag, number, reward, terminal = self._work
        values = self._numbers.read()
        torch.gt(self._numbers.test(values, true, flag), self.done, out=flag)
        torch.sub(values, self.best, out=number)
        torch.maximum(number, self._numbers.least, out=number)
        reward.zero_()
        for i, condition in enumerate(self.conditions):
            reward.add_((number if condition.test is None else flag)[:, i], alpha=condition.reward)
        self.done.logical_or_(flag)
        self.best.add_(number)
        if self._ends:
            terminal.zero_()
            for i in self._ends:
                terminal.logical_or_(flag[:, i])
        return self._result

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        true, flag, *_ = self._work
        values, rows = self._numbers.read(), which[:, None]
        self._numbers.test(values, true, flag)
        torch.logical_and(self.done, self._numbers.ever, out=flag)
        torch.where(rows, true.logical_or_(flag), self.done, out=self.done)
        torch.where(rows, values, self.best, out=self.best)


class _Conditions:
    """The numbers of all conditions, by one read of their bytes, and whether they pass their tests."""

    def __init__(self, ram: Ram, conditions: Sequence[Condition]) -> None:
        parts = [
            (i, Number(place, c.size, c.read, c.order, c.mask)) for i, c in enumerate(conditions) for place in c.places
        ]
        self._parts = Numbers(ram, [number for _, number in parts])

        def row(values: Sequence[object], dtype: torch.dtype) -> torch.Tensor:
            return torch.tensor(values, dtype=dtype, device=ram.device)

        self._owner = row([i for i, _ in parts], torch.int64)
        self._sums = torch.zeros((ram.num_envs, len(conditions)), dtype=torch.int64, device=ram.device)
        bounds = [TESTS[c.test](c.value) if c.test else (1, 0, False) for c in conditions]
        self._low, self._high = (row([bound[k] for bound in bounds], torch.int64) for k in (0, 1))
        self._turned = row([turned for _, _, turned in bounds], torch.bool)
        self.ever = row([c.once == "ever" for c in conditions], torch.bool)
        self.least = row([-MOST if c.pays == "change" else 0 for c in conditions], torch.int64)  # that is paid at once

    def read(self) -> torch.Tensor:
        """The current numbers, (num_envs, conditions) int64; valid until the next read."""
        return self._sums.zero_().index_add_(1, self._owner, self._parts.read())

    def test(self, values: torch.Tensor, out: torch.Tensor, flag: torch.Tensor) -> torch.Tensor:
        """Sets `out` (num_envs, conditions) bool to True for each number that passes its test; `flag` is
        overwritten."""
        torch.ge(values, self._low, out=out)
        torch.le(values, self._high, out=flag)
        out.logical_and_(flag)
        return out.logical_xor_(self._turned)
