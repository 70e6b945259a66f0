"""Decorators that generate the body of a device function from the table of registers (registers.py).

The function itself has its signature and its docstring. The text with the body is stored where inspect finds it,
because Warp reads it back from there.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from gbxcule_puffer.emulator.registers import Register, ranges, read_text, write_text

Function = TypeVar("Function", bound=Callable[..., object])


def reads(rows: Iterable[Register], device: str = "") -> Callable[[Function], Function]:
    """The function returns the value of the register at `address`, FF if it is not in `rows`; device: the file it is
    in."""
    texts = {row: f"return {text}" for row in rows if (text := read_text(row, device))}
    return _body([*_chains(texts, {row for row in texts if row.model == "color"}), "    return 0xFF"])


def writes(rows: Iterable[Register], device: str = "", otherwise: str = "") -> Callable[[Function], Function]:
    """The function writes `value` to the register at `address`, if it is in `rows`; device: the file it is in.
    otherwise: a statement for the other registers."""
    texts = {row: text for row in rows if (text := write_text(row, device))}
    lines = _chains(texts, {row for row in texts if (row.writable or row.model) == "color"})
    return _body(lines + [f"    else:\n        {otherwise}"] * (otherwise != ""))


def is_one_of(addresses: Iterable[int]) -> Callable[[Function], Function]:
    """The function returns True if `address` is in a list."""
    return _body([f"    return {_condition(addresses)}"])


def _chains(texts: Mapping[Register, str], of_color: set[Register]) -> list[str]:
    """A chain of comparisons, and one for the registers `of_color`, which exist only in color_mode."""
    lines = _chain({row: text for row, text in texts.items() if row not in of_color}, "    ")
    if of_color:
        lines += ["    elif c.color_mode != 0:"]
        lines += _chain({row: text for row, text in texts.items() if row in of_color}, "        ")
    return lines


def _chain(texts: Mapping[Register, str], indent: str) -> list[str]:
    """A chain of comparisons; registers with the same text share one."""
    found: dict[str, set[int]] = {}
    for row, text in texts.items():
        found.setdefault(text, set()).update(row.addresses)
    lines, before = list[str](), set[int]()
    for text, addresses in found.items():
        lines += [f"{indent}{'elif' if lines else 'if'} {_condition(addresses, before)}:", f"{indent}    {text}"]
        before |= addresses
    return lines


def _condition(addresses: Iterable[int], before: Iterable[int] = ()) -> str:
    """A comparison of `address` with some addresses, given that it is none of those `before`."""
    parts = [
        f"address == 0x{first:04X}" if end == first + 1 else f"(address >= 0x{first:04X} and address < 0x{end:04X})"
        for first, end in ranges(addresses, before)
    ]
    return " or ".join(parts)


def _body(lines: list[str]) -> Callable[[Function], Function]:
    """The decorator that appends `lines` to a function's docstring, as its body."""

    def decorate(function: Function) -> Function:
        text = inspect.getsource(function)
        node = ast.parse(text).body[0]
        assert isinstance(node, ast.FunctionDef) and len(node.body) == 1, function
        head = text.splitlines()[node.lineno - 1 : node.body[0].end_lineno]
        source = "\n".join([*head, *lines]) + "\n"
        name = f"<{function.__module__}.{function.__name__}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        made: dict[str, Function] = {}
        exec(compile(source, name, "exec", dont_inherit=True), function.__globals__, made)
        return made[function.__name__]

    return decorate
