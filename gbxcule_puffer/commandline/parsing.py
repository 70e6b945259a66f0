"""A command line as a dataclass of flags: tyro reads the values, and every mistake becomes one line."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import io
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from gbxcule_puffer.commandline.flags import Flag, check, flags_of, member_of, option_name
from gbxcule_puffer.commandline.help import help_text
from gbxcule_puffer.errors import ConfigError, GBxCuLEError

Flags = TypeVar("Flags")
KINDS = {int: "whole number", float: "number"}
# Names of our flags in CleanRL's scripts and others.
OTHER_NAMES = {
    "learning_rate": "lr",
    "total_timesteps": "total_env_steps",
    "env_id": "env",
    "gym_id": "env",
    "cuda": "device",
    "capture_video": "media_every",
    "ent_coef": "entropy_coef",
    "vf_coef": "value_coef",
    "clip_vloss": "value_clip",
    "max_grad_norm": "grad_clip",
    "start_e": "eps_start",
    "end_e": "eps_end",
    "exploration_fraction": "eps_steps",
    "train_frequency": "train_every",
    "target_network_frequency": "target_every",
    "save_model": "checkpoint_every",
    "wandb_project": "wandb_project_name",
}


def parse(
    flags: type[Flags],
    prog: str,
    description: str | None = None,
    argv: Sequence[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    look: Callable[[Flags], object] | None = None,
) -> Flags:
    """The words of a command line as a dataclass, with `defaults` replacing some of its own. --help prints and ends the
    process. If the dataclass has a method `defaults`, some flags change the defaults of others: the method returns
    these by name. `look` sees the flags as they were typed, before that method, which may take seconds.

    Raises: ConfigError for a word that no flag has, a value of another type, or a value that is not allowed; what
    `look` raises.
    """
    words, known = list(sys.argv[1:] if argv is None else argv), flags_of(flags)
    own = [each for each in known if "rest" not in each.metadata]
    rest = {each.name: tuple(words[1:]) for each in known if each not in own}
    words = words[:1] if rest else words
    if "-h" in words or "--help" in words:
        known = _with_defaults(flags, [each for each in words if each not in ("-h", "--help")], known, prog)
        print(help_text(prog, description if description is not None else flags.__doc__ or "", known), end="")
        raise SystemExit(0)
    if rest and words and words[0].startswith("-"):
        subject = own[0].text
        raise ConfigError(f"{words[0]} stands before {subject}: give {prog} {subject} {words[0]} ...")
    words = _prepared(words, own, prog)
    values = _values(words, own, prog, defaults or {})
    made = flags(**values, **rest)
    if look is not None:
        look(made)
    if more := getattr(made, "defaults", dict)():
        names = {each.partition("=")[0] for each in words}
        free = [each.name for each in own if not _is_given(each, names, values)]
        made = flags(**{**values, **{name: more[name] for name in free if name in more}}, **rest)
    check(made)
    return made


def _is_given(each: Flag, names: Collection[str], values: Mapping[str, Any]) -> bool:
    """True for a flag that the command line has; names: what its words begin with."""
    return values[each.name] != each.default if each.positional else _is_named(each, names)


def _is_named(each: Flag, names: Collection[str]) -> bool:
    return each.text in names or option_name(f"no-{each.name}") in names


def _with_defaults(kind: type[Any], words: Sequence[str], known: Sequence[Flag], prog: str) -> Sequence[Flag]:
    """The flags with the defaults that these words bring (`parse`), for --help."""
    if not words or not hasattr(kind, "defaults"):
        return known
    own = [each for each in known if "rest" not in each.metadata]
    missing = {each.name: None for each in own if each.required}
    try:
        found = kind(**_values(_prepared(words, own, prog), own, prog, missing)).defaults()
    except GBxCuLEError:  # of words that are wrong, which --help may be asked for
        return known
    return [_with_default(each, found[each.name]) if each.name in found else each for each in known]


def _with_default(each: Flag, default: object) -> Flag:
    text = each.help.partition(" (default")[0]
    return dataclasses.replace(each, default=default, metadata={**each.metadata, "help": text})


def unknown(kind: str, name: str, known: Collection[str], prog: str) -> ConfigError:
    """A mistyped name of a flag or command, with the probable name."""
    close = difflib.get_close_matches(name, known, 1, 0.7)
    remedy = f"did you mean {close[0]}?" if close else f"see {prog} --help"
    return ConfigError(f"{kind} {name!r:.60} is unknown: {remedy}")


def _prepared(words: Sequence[str], known: Sequence[Flag], prog: str) -> list[str]:
    """The words for tyro: with the values of flags that stand alone, lists with commas split, 1e6 written out for an
    int, and the lists last, each once: `--rom A --rom B` as `--rom A B`.

    Raises: ConfigError for a word that no flag has.
    """
    by_name = {each.text: each for each in known if not each.positional}
    names = {**by_name, **{f"--no-{name[2:]}": each for name, each in by_name.items() if each.type is bool}}
    found, flag, lists = list[str](), None, dict[str, list[str]]()
    for number, text in enumerate(words):
        name, equals, value = text.partition("=")
        if not re.match(r"--|-[A-Za-z]", name):
            (found if flag is None else lists.get(flag.text, found)).extend(_parts(flag, text, prog))
            flag = flag if flag is not None and flag.is_tuple else None
            continue
        name = name.replace("_", "-") if name.startswith("--") else name
        if name not in names:
            other = option_name(OTHER_NAMES.get(name[2:].replace("-", "_"), ""))
            if other in names:
                raise ConfigError(f"flag {name!r:.60} is unknown: here it is {other}")
            for each in known:
                if each.positional and name == option_name(each.name):
                    raise ConfigError(f"flag {name} is unknown: give {each.text} alone, as in {prog} {each.text}")
            raise unknown("flag", name, names, prog)
        flag, bare = names[name], names[name].metadata.get("bare")
        is_alone = number + 1 == len(words) or words[number + 1].startswith("--")
        if flag.is_tuple and bare is None and not flag.metadata.get("repeat"):
            values = lists.setdefault(name, [])
            if equals:
                values += _parts(flag, value, prog)
                flag = None
        elif equals:
            parts = _parts(flag, value, prog)
            found += [f"{name}={parts[0]}"] if len(parts) == 1 else [name, *parts]
            flag = None
        else:
            found.append(name if bare is None or not is_alone else f"{name}={bare}")
            flag = None if flag.type is bool else flag
    return found + [each for name, values in lists.items() for each in (name, *values)]


def _parts(flag: Flag | None, value: str, prog: str) -> list[str]:
    """The value of a flag (not of a positional word): split if it is a list of numbers or names with commas, and 1e6 as
    1000000 for ints.

    Raises: ConfigError for a value that must be a number and is not.
    """
    if flag is None:
        return [value]
    parts, kind = value.split(",") if flag.has_commas else [value], member_of(flag.type)
    for number, part in enumerate(parts):
        if kind is int and re.fullmatch(r"\d+(\.\d+)?[eE]\+?\d{1,2}", part) and float(part).is_integer():
            parts[number] = str(int(float(part)))
        try:
            kind(parts[number])
        except ValueError:
            raise ConfigError(f"{flag.text} {part!r:.60} is not a {KINDS[kind]} (see {prog} --help)") from None
    return parts


def _values(words: Sequence[str], known: Sequence[Flag], prog: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The value of each flag by name, parsed by tyro, which sees only the flags that it has to: it takes 30 ms for all.

    Raises: ConfigError.
    """
    message, names = io.StringIO(), {each.partition("=")[0] for each in words}
    needed = [each for each in known if each.positional or each.required or _is_named(each, names)]
    values = {each.name: defaults.get(each.name, each.default) for each in known}
    if not words and not needed:
        return values
    import tyro

    try:
        with contextlib.redirect_stderr(message):
            kind = tyro_class(needed, defaults)
            values |= vars(
                tyro.cli(kind, prog=prog, args=list(words), add_help=False, config=(tyro.conf.DisallowNone,))
            )
        for each in known:
            if each.required and values[each.name] == ():  # tyro takes a tuple of no words
                raise ConfigError(f"{each.text} is missing: {each.help} (see {prog} --help)")
        return values
    except SystemExit as end:
        if not end.code:
            raise
    raise ConfigError(f"{_mistake(message.getvalue(), words, known)} (see {prog} --help)")


def tyro_class(known: Sequence[Flag], defaults: Mapping[str, Any] | None = None, choices: bool = False) -> type:
    """A dataclass of the flags for tyro; choices: with the allowed texts, for a shell to complete."""
    import tyro

    fields = list[Any]()
    for each in known:
        default = (defaults or {}).get(each.name, each.default)
        kind: Any = each.type
        if choices and each.one_of:
            kind = tuple[Literal[each.one_of], ...] if each.is_tuple else Literal[each.one_of]
            default = default or each.one_of[0]
        kind = kind | None if default is None else kind
        kind = Annotated[kind, tyro.conf.arg(help=each.help, metavar=each.metavar or None, name=each.name.rstrip("_"))]
        if each.positional:
            kind = tyro.conf.Positional[kind]
        if each.metadata.get("repeat"):
            kind = tyro.conf.UseAppendAction[kind]
        fields.append((each.name, kind, dataclasses.field(default=default, kw_only=True)))
    return dataclasses.make_dataclass("Words", fields)


def _mistake(message: str, words: Sequence[str], known: Sequence[Flag]) -> str:
    """One line from the box that tyro prints: its title is in the first line, and rules separate its parts."""
    lines = [line.strip("\u2502 ") for line in message.splitlines()[1:]]
    text = " ".join(line for line in lines if line.strip("\u2500\u2570\u256f-"))
    if match := re.match(r"Missing value for argument '(--[\w-]+)'", text):
        each = next(each for each in known if each.text == match[1])
        return f"{each.text} needs a value: {each.help}"
    if text.startswith("Unrecognized options: "):
        return f"{text.removeprefix('Unrecognized options: ')!r:.60} is one word too many"
    missing = [each for each in known if each.required and re.search(rf"(^| ){re.escape(each.text)}\b", text)]
    return f"{missing[0].text} is missing: {missing[0].help}" if missing else text
