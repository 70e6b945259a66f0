"""Instances of device code: copies of its modules in which a constant, an imported name or a function is replaced.

The changes are found in the syntax tree. All other text stays as it is, line by line.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from gbxcule_puffer.emulator.build.cache import PACKAGE


@dataclass(frozen=True)
class Edit:
    """A change of a function: code that equals `pattern` becomes `replacement`.

    function: its name, or '' for the whole module. pattern, replacement: the source of an expression or of a statement.
    In a pattern, the name _ equals every expression. In a replacement, the name IT is the code that is replaced.
    """

    module: str
    function: str
    pattern: str
    replacement: str


@dataclass(frozen=True)
class DeviceCode:
    """The device code of a package: modules of its rooms, and generated modules.

    root: the package. Its rooms (the folders in it) are copied; all instances share the files beside them.
    entries: modules of the rooms, such as 'gpu.run'; the modules of rooms that they import belong to the code, too.
    generated: module name to source.
    """

    root: str
    folder: Path
    entries: tuple[str, ...]
    generated: Mapping[str, str]

    def sources(self) -> dict[str, str]:
        """Module name, below the root, to source, with the rooms' own `__init__`."""
        found, open_names = dict(self.generated), [*self.entries]
        for text in self.generated.values():
            open_names += self._imports(text)
        while open_names:
            name = open_names.pop()
            if name not in found:
                found[name] = self._path(name).read_text()
                open_names += self._imports(found[name])
        for name in [*found]:
            parts = name.split(".")
            for depth in range(1, len(parts)):
                found.setdefault(".".join([*parts[:depth], "__init__"]), "")
        return found

    def _imports(self, text: str) -> Iterator[str]:
        """The modules of the rooms that a module imports."""
        for node in _imports(ast.parse(text)):
            for alias in node.names:
                for name in (f"{node.module}.{alias.name}", str(node.module)):
                    below = name.removeprefix(f"{self.root}.")
                    if below != name and "." in below and self._path(below).is_file():
                        yield below

    def _path(self, name: str) -> Path:
        return self.folder / f"{name.replace('.', '/')}.py"


def instantiate(
    code: DeviceCode,
    constants: Mapping[str, object] | None = None,
    rename: Mapping[str, str] | None = None,
    edits: Iterable[Edit] = (),
) -> dict[str, str]:
    """The sources of an instance, for cache.import_package.

    constants: by module and name, {'hw.model.COLOR': True}. rename: an imported name to the name that replaces it,
    {'Cpu': 'ColorCpu'}; only for imports from outside of the code. edits: applied in this order.
    Raises: ValueError if a constant does not exist, or an edit's pattern is not in its function.
    """
    sources = code.sources()
    for edit in edits:
        sources[edit.module] = _edited(sources[edit.module], edit)
    for path, value in (constants or {}).items():
        module, _, name = path.rpartition(".")
        sources[module] = _with_constant(sources[module], name, value)
    return {name: _moved(text, code.root, sources, rename or {}) for name, text in sources.items()}


def _with_constant(text: str, name: str, value: object) -> str:
    """A module in which a constant has another value."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]:
            return _changed(text, [(node.value, repr(value))])
    raise ValueError(f"there is no constant {name}")


def _moved(text: str, root: str, names: Iterable[str], rename: Mapping[str, str]) -> str:
    """A module that imports the modules of an instance instead of the originals."""
    changes: list[tuple[ast.AST, str]] = []
    inside = {f"{root}.{name}" for name in names}
    for node in _imports(ast.parse(text)):
        is_inside = {node.module in inside or f"{node.module}.{alias.name}" in inside for alias in node.names}
        assert len(is_inside) == 1, f"{ast.unparse(node)} imports from inside and outside of an instance"
        if is_inside == {True}:
            module = ast.Name(id=str(node.module))
            module.lineno, module.col_offset = node.lineno, node.col_offset + len("from ")
            module.end_lineno, module.end_col_offset = node.lineno, module.col_offset + len(str(node.module))
            changes.append((module, PACKAGE + str(node.module).removeprefix(root)))
        else:
            renamed = [alias for alias in node.names if alias.name in rename]
            changes += [(alias, f"{rename[alias.name]} as {alias.asname or alias.name}") for alias in renamed]
    return _changed(text, changes)


def _imports(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    """The `from` imports of a module, which stand at its top."""
    return (node for node in tree.body if isinstance(node, ast.ImportFrom))


def _edited(text: str, edit: Edit) -> str:
    """A module in which a function is changed."""
    is_expression = _expression(edit.replacement) is not None
    wanted = _expression(edit.pattern) if is_expression else ast.parse(edit.pattern).body[0]
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == edit.function]
    changes: list[tuple[ast.AST, str]] = []
    for node in (node for scope in (functions if edit.function else [tree]) for node in ast.walk(scope)):
        is_target = isinstance(getattr(node, "ctx", None), ast.Store)
        if isinstance(node, ast.expr | ast.stmt) and not is_target and _equal(wanted, node):
            before = ast.get_source_segment(text, node) or ""
            after = re.sub(
                r"\bIT\b", lambda _, before=before: f"({before})" if is_expression else before, edit.replacement
            )
            changes.append((node, f"({after})" if is_expression else after.replace("\n", f"\n{' ' * node.col_offset}")))
    if not changes:
        raise ValueError(f"{edit.module}.{edit.function} has no {edit.pattern!r}")
    return _changed(text, changes)


def _expression(source: str) -> ast.expr | None:
    """A source's tree, where it is an expression."""
    try:
        return ast.parse(source, mode="eval").body
    except SyntaxError:
        return None


def _equal(pattern: object, node: object) -> bool:
    """True if two parts of syntax trees are equal except for their positions."""
    if isinstance(pattern, ast.Name) and pattern.id == "_":
        return isinstance(node, ast.expr)
    if isinstance(pattern, ast.AST):
        fields = [name for name in pattern._fields if name not in ("ctx", "kind", "type_comment")]
        same = type(pattern) is type(node)
        return same and all(_equal(getattr(pattern, name), getattr(node, name)) for name in fields)
    if isinstance(pattern, list):
        return (
            isinstance(node, list)
            and len(pattern) == len(node)
            and all(_equal(one, other) for one, other in zip(pattern, node, strict=True))
        )
    return type(pattern) is type(node) and pattern == node


def _changed(text: str, changes: Sequence[tuple[ast.AST, str]]) -> str:
    """A text in which nodes of its syntax tree have other source."""
    data = text.encode()
    starts = [0, *accumulate(len(line) for line in data.splitlines(keepends=True))]
    spans = [
        (starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset, new)  # type: ignore[attr-defined]
        for node, new in changes
    ]
    for begin, end, new in sorted(spans, reverse=True):
        data = data[:begin] + new.encode() + data[end:]
    return data.decode()
