"""The space that a sweep searches: for each flag that varies a range, or a list of values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gbxcule_puffer.commandline.flags import Flag, option_name
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import Kind, parse_toml, read_text

if TYPE_CHECKING:
    from optuna.trial import Trial

SPACE = Kind("space", ConfigError, 'give lines such as lr = "1e-4:1e-2:log"')
FORMS = "LOW:HIGH, LOW:HIGH:log, or a list with commas"
BOOLS = {"true": True, "false": False}
DIGITS = 3  # of a number from a range: the command that is printed is short, and exactly the one that ran


@dataclass(frozen=True)
class Dimension:
    """A flag that varies: from `low` to `high`, on a logarithmic scale or not; or over `choices`, numbers in ascending
    order."""

    name: str
    text: str  # as it was given
    low: float = 0
    high: float = 0
    log: bool = False
    whole: bool = False
    choices: tuple[Any, ...] = ()

    @property
    def is_ordered(self) -> bool:
        """True for numbers: a search may conclude from one to its neighbours."""
        return all(isinstance(each, int | float) and not isinstance(each, bool) for each in self.choices)

    def suggest(self, trial: Trial) -> Any:
        """The flag's value in a new trial."""
        if self.choices and not self.is_ordered:
            trial.suggest_categorical(self.name, self.choices)
        elif self.choices:
            trial.suggest_int(self.name, 0, len(self.choices) - 1)
        elif self.whole:
            trial.suggest_int(self.name, int(self.low), int(self.high), log=self.log)
        else:
            trial.suggest_float(self.name, self.low, self.high, log=self.log)
        return self.value(trial.params[self.name])

    def value(self, parameter: object) -> Any:
        """The flag's value of a trial's parameter: of numbers in a list, which the sampler knows by their index."""
        if self.choices and self.is_ordered:
            assert isinstance(parameter, int)
            return self.choices[parameter]
        if self.choices or self.whole:
            return parameter
        return min(max(float(f"{parameter:.{DIGITS}g}"), self.low), self.high)

    def parameter(self, value: object) -> object:
        """The inverse of `value`; None for one that is not in the space."""
        if self.choices:
            index = self.choices.index(value) if value in self.choices else None
            return index if self.is_ordered else value if index is not None else None
        return value if isinstance(value, int | float) and self.low <= value <= self.high else None


def space_of(
    flags: Sequence[Flag], ranges: Mapping[str, str], vary: Sequence[str], file: str | None, fixed: Collection[str]
) -> list[Dimension]:
    """The dimensions of a search: those of --vary and of the file, else the trainer's own. flags: those that may vary;
    ranges: the trainer's own; fixed: the names of flags that have one value.

    Raises: ConfigError.
    """
    known = {each.name: each for each in flags}
    given = ({} if file is None else _read(file)) | dict(_split(text) for text in vary)
    found = []
    for name, text in (given or {name: None for name in ranges if name not in fixed}).items():
        if name not in known:
            raise ConfigError(f"--vary {option_name(name)[2:]!r:.60} is not a flag of this trainer that can vary")
        if name in fixed:
            raise ConfigError(f"{option_name(name)} is given, and varies: leave out one of the two")
        if text is None and name not in ranges:
            raise ConfigError(f"--vary {option_name(name)[2:]} has no range of its own: give {FORMS}")
        found.append(dimension(known[name], ranges[name] if text is None else text))
    if not found:
        raise ConfigError("nothing varies: give --vary FLAG=LOW:HIGH")
    return found


def own_ranges(declared: Mapping[str, str | tuple[str, str]], on_gpu: bool) -> tuple[dict[str, str], dict[str, str]]:
    """(ranges, single values that flags have in a sweep) of those that a trainer declares as SWEEP, on a CPU or on a
    GPU."""
    texts = {name: text if isinstance(text, str) else text[on_gpu] for name, text in declared.items()}
    ranges = {name: text for name, text in texts.items() if set(text) & set(":,")}
    return ranges, {name: text for name, text in texts.items() if name not in ranges}


def dimension(flag: Flag, text: str) -> Dimension:
    """A flag's dimension from a text: LOW:HIGH, LOW:HIGH:log, or a list with commas.

    Raises: ConfigError.
    """
    parts = text.split(":")
    if len(parts) == 1:
        choices = tuple(_value(flag, each.strip(), text) for each in text.split(","))
        if len(set(choices)) < 2:
            raise _bad(flag, text, "has fewer than two values")
        ordered = all(isinstance(each, int | float) for each in choices)
        return Dimension(flag.name, text, choices=tuple(sorted(choices)) if ordered else choices)
    log = parts[2:] == ["log"]
    if (len(parts) == 3 and not log) or len(parts) > 3 or flag.type not in (int, float):
        raise _bad(flag, text, "is not a range" if flag.type in (int, float) else "is not a list")
    low, high = (_value(flag, each.strip(), text) for each in parts[:2])
    if not low < high or (log and low <= 0):
        raise _bad(flag, text, "needs a LOW above 0" if low < high else "needs a LOW below its HIGH")
    return Dimension(flag.name, text, low, high, log, flag.type is int)


def _value(flag: Flag, text: str, whole: str) -> Any:
    """Raises: ConfigError for a text that is not a value of the flag."""
    try:
        if flag.type is bool:
            value: Any = BOOLS[text]
        elif flag.type is int:
            value = int(float(text)) if float(text).is_integer() else int(text)
        else:
            value = flag.type(text)
    except (KeyError, ValueError, OverflowError):
        raise _bad(flag, whole, f"has {text!r:.40}, which is not a value of it") from None
    flag.allows(value)
    return value


def _bad(flag: Flag, text: str, fault: str) -> ConfigError:
    return ConfigError(f"--vary {flag.text[2:]}={text:.80} {fault}: give {FORMS}")


def _split(text: str) -> tuple[str, str | None]:
    """(flag's name, its range or None) of a --vary."""
    name, equals, rest = text.partition("=")
    return name.strip().replace("-", "_"), rest.strip() if equals else None


def _read(path: str) -> dict[str, str | None]:
    """The ranges of a TOML file: texts, lists of values, or true for a flag's own range.

    Raises: ConfigError.
    """
    text = read_text(path, SPACE)
    try:
        content = parse_toml(text)
    except ValueError as error:
        raise SPACE.bad(path, f"is not TOML ({error})") from None
    found: dict[str, str | None] = {}
    for name, value in content.items():
        text = ",".join(_toml_text(each) for each in value) if isinstance(value, list) else value
        if text is not True and not isinstance(text, str):
            raise SPACE.bad(path, f"has {name!r:.40} = {value!r:.40}, which is not a range")
        found[name.replace("-", "_")] = None if text is True else text
    return found


def _toml_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
