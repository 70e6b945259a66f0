"""A flag: a dataclass field with a help text, limits, and the heading of --help that it stands under."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import math
import textwrap
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass
from functools import cache
from typing import Any, Literal, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

from gbxcule_puffer.errors import ConfigError

Kind = TypeVar("Kind")
REQUIRED: Any = MISSING  # in place of a default
METAVARS = {bool: "", int: "N", float: "X", str: "TEXT"}


def flag(
    default: Kind = REQUIRED,
    help: str = "",
    subject: str = "",
    *,
    metavar: str | None = None,
    positional: bool = False,
    bare: str | None = None,
    repeat: bool = False,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
    one_of: Collection[str] = (),
    check: Callable[[Any], object] | None = None,
    **more: object,
) -> Kind:
    """A field of a dataclass that `parse` reads from the command line; without a default it has to be given.

    subject: its heading in --help; metavar: its value in --help; positional: a word without --; bare: its value where
    the flag stands alone; repeat: a tuple with one value of each time that the flag is given; least, most, below,
    one_of: the values that are allowed, of a tuple those of its members; check: raises a ConfigError for others; more:
    what the owner of the dataclass keeps there, such as gpu, the default on a GPU.
    """
    metadata = {"help": help or None, "subject": subject or None, "metavar": metavar, "positional": positional or None}
    metadata |= {"bare": bare, "repeat": repeat or None, "least": least, "most": most, "below": below, "check": check}
    metadata |= {"one_of": tuple(one_of) or None}
    given = {name: value for name, value in metadata.items() if value is not None}
    return dataclasses.field(default=default, metadata=given | more)


def word(help: str, metavar: str, default: Kind = REQUIRED, **limits: Any) -> Kind:
    """A `flag` that is given by its position, without --."""
    return flag(default, help, metavar=metavar, positional=True, **limits)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def command(kind: type[Kind]) -> type[Kind]:
    """A class of flags as a frozen dataclass, all of whose arguments are keywords."""
    return dataclass(frozen=True, kw_only=True)(kind)


@dataclass(frozen=True)
class Flag:
    """A flag as `parse` and --help see it; type: bool, int, float, str, or a tuple of one of them, without None."""

    name: str
    type: Any
    default: Any
    metadata: Mapping[str, Any]

    @property
    def help(self) -> str:
        """Its text in --help, on one line."""
        return " ".join(self.metadata.get("help", "").split())

    @property
    def text(self) -> str:
        """As it is typed."""
        return self.metadata.get("metavar") or self.name.upper() if self.positional else option_name(self.name)

    @property
    def positional(self) -> bool:
        return bool(self.metadata.get("positional"))

    @property
    def required(self) -> bool:
        return self.default is MISSING

    @property
    def one_of(self) -> tuple[str, ...]:
        """The only texts that are allowed; empty for any."""
        return tuple(self.metadata.get("one_of", ()))

    @property
    def is_tuple(self) -> bool:
        return get_origin(self.type) is tuple

    @property
    def has_commas(self) -> bool:
        """True for a list that may be typed as one word: of numbers or of names that are known."""
        return self.is_tuple and (bool(self.one_of) or member_of(self.type) is int)

    @property
    def metavar(self) -> str:
        """Its value in --help."""
        if self.metadata.get("metavar"):
            return self.metadata["metavar"]
        choices = "{" + ",".join(self.one_of) + "}"
        return choices if self.one_of and len(choices) <= 40 else METAVARS[member_of(self.type)]

    def allows(self, value: object) -> None:
        """Raises: ConfigError for a value that is not allowed."""
        limits = self.metadata
        for each in value if isinstance(value, tuple | list) else (value,):
            if each == "" and "" not in (self.default, limits.get("bare")):  # as of a shell's variable that is not set
                raise ConfigError(f"{self.text} is empty: give a value, or leave it out")
            if self.one_of and each not in self.one_of:
                raise ConfigError(f"{self.text} {each!r:.60} is unknown: give one of {', '.join(self.one_of)}")
            if isinstance(each, int | float) and not isinstance(each, bool):
                least, most, below = (limits.get(name) for name in ("least", "most", "below"))
                good = (least is None or least <= each) and (most is None or each <= most)
                if not (good and (below is None or each < below)):
                    raise ConfigError(
                        f"{self.text} {each!s:.60} must be {limits_in_words(limits) or 'a finite number'}"
                    )
        if limits.get("check") is not None:
            limits["check"](value)


def limits_in_words(limits: Mapping[str, Any]) -> str:
    """The numbers that a flag or an option allows; empty where it is all of them."""
    least, most, below = (limits.get(name) for name in ("least", "most", "below"))
    if least is not None and most is not None and math.isfinite(least) and math.isfinite(most):
        return f"from {least:,} to {most:,}"
    bounds = (("at least", least), ("at most", most), ("below", below))
    return " and ".join(f"{text} {bound:,}" for text, bound in bounds if bound is not None and math.isfinite(bound))


def option_name(name: str) -> str:
    """A field's name as it is typed: num_envs as --num-envs, and from_, a word of Python with a _ after it, as
    --from."""
    return "--" + name.rstrip("_").replace("_", "-")


@cache
def flags_of(kind: type) -> tuple[Flag, ...]:
    """The flags of a dataclass, those of a base class after its own; what a class declares again, with another
    default, keeps the rest."""
    hints, known = get_type_hints(kind), {each.name: each for each in dataclasses.fields(kind) if each.init}
    metadata: dict[str, dict[str, Any]] = {name: {} for name in known}
    for name, help in _docstrings(kind).items():
        metadata.get(name, {})["help"] = help
    for each in reversed(kind.__mro__):
        for name in inspect.get_annotations(each).keys() & known.keys():
            metadata[name] |= each.__dict__["__dataclass_fields__"][name].metadata
    order = dict.fromkeys(name for each in kind.__mro__ for name in inspect.get_annotations(each) if name in known)
    return tuple(
        Flag(name, _plain(hints[name]), known[name].default, _with_choices(metadata[name], hints[name]))
        for name in order
    )


def check(flags: object) -> None:
    """Raises: ConfigError for the first value that its flag does not allow."""
    for each in flags_of(type(flags)):
        value = getattr(flags, each.name)
        if value is not None:
            each.allows(value)


def as_words(flags: Mapping[str, Any]) -> list[str]:
    """Flags as the words of a command line; None, which no flag can be set to, is left out."""
    words = []
    for name, value in flags.items():
        if isinstance(value, bool):
            words.append(option_name(name) if value else option_name(f"no-{name}"))
        elif isinstance(value, tuple | list):
            words += [option_name(name), *map(str, value)] if value else []
        elif value is not None:
            words.append(f"{option_name(name)}={value}")
    return words


def at_most_one(flags: object, *names: str) -> None:
    """Raises: ConfigError where several of these flags are given."""
    given = [option_name(name) for name in names if getattr(flags, name) not in (None, False, ())]
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} exclude each other: give one of them")


def _plain(hint: type) -> type:
    """A type without None; of a Literal that of its values."""
    if get_origin(hint) is Literal:
        return type(get_args(hint)[0])
    members = [each for each in get_args(hint) if each is not type(None)]
    if type(None) in get_args(hint) and len(members) == 1:
        return _plain(members[0])
    return hint


def member_of(kind: type) -> type:
    """The type of a tuple's members, of another type itself."""
    return get_args(kind)[0] if get_origin(kind) is tuple else kind


def _with_choices(metadata: Mapping[str, Any], hint: object) -> Mapping[str, Any]:
    """Metadata with the values of a Literal as one_of."""
    inner = next((each for each in (hint, *get_args(hint)) if get_origin(each) is Literal), None)
    return metadata if inner is None else {**metadata, "one_of": get_args(inner)}


def _docstrings(kind: type) -> dict[str, str]:
    """The texts below the fields of a class and its bases, as CleanRL's scripts have them. A class whose fields all
    have a help is not read: Python looks through the whole file for it."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__[:-1]):
        own = each.__dict__.get("__dataclass_fields__", {})
        if all("help" in own[name].metadata for name in inspect.get_annotations(each) if name in own):
            continue
        try:
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        except (OSError, TypeError, SyntaxError):
            continue  # made by make_dataclass
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for field, text in itertools.pairwise(body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(help))):
                    found[name] = help
    return found
