"""The option `until`: conditions on RAM that end a step early."""

from __future__ import annotations

from gbxcule_puffer.emulator import ByteTest
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.actions import Schedule
from gbxcule_puffer.tasks.ram.condition import parse_condition
from gbxcule_puffer.tasks.ram.symbols import Symbols


def parse_until(text: str | None, schedule: Schedule, symbols: Symbols | None = None) -> list[ByteTest]:
    """The tests of conditions separated by commas, such as 'wJoyIgnore==0,C0A3&04!=0'; none for None.

    Raises: ConfigError for a text that is not a condition, an unknown address or symbol, or steps that release no
    button.
    """
    tests: list[ByteTest] = []
    if text is None:
        return tests
    if schedule.holds:
        raise ConfigError(f"until {text!r:.80}: buttons that are held end no step: lower release_after_frames")
    for part in text.split(","):
        condition = parse_condition(part.strip(), f"until {text!r:.80}", symbols)
        bank, address = condition.where if isinstance(condition.where, tuple) else (None, condition.where)
        low, high, turned = condition.bounds
        tests.append(ByteTest(bank, address, low, high, condition.mask, turned))
    return tests
