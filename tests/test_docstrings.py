"""Docstrings begin with what something is or does: a noun phrase or a verb, not a clause."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(
    path for room in ("gbxcule_puffer", "cleanrl_style", "baselines") for path in (ROOT / room).rglob("*.py")
)
CLAUSES = {"What", "Where", "How", "Whether", "Who", "Whose", "Which", "When", "If", "Why"}
ENDS = (".", ":", "!", "?", ")")


def public_docstrings(node: ast.AST, name: str = "module") -> Iterator[tuple[str, str]]:
    """Name and docstring of a module, of its public classes and functions, and of what is public in those."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
        yield name, text
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef) and not child.name.startswith("_"):
            yield from public_docstrings(child, child.name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_are_phrases(path: Path) -> None:
    found = list(public_docstrings(ast.parse(path.read_text())))
    clauses = [f"{name}: {text.splitlines()[0]}" for name, text in found if re.split(r"\W", text)[0] in CLAUSES]
    assert clauses == []
    # Of an instruction, what happens to the flags stands behind the sentence.
    summaries = {name: re.split(r"\n\n| Flags: ", text)[0] for name, text in found}
    assert [name for name, summary in summaries.items() if not summary.endswith(ENDS)] == []


# Words that a reader has to read twice; architecture and style are in CONTRIBUTING.md.
UNCLEAR = re.compile(r"\b(made up|so many|told)\b", re.IGNORECASE)
PROSE = sorted([*FILES, *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("roms/*.md")])


@pytest.mark.parametrize("path", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_words_are_clear(path: Path) -> None:
    lines = enumerate(path.read_text().splitlines(), 1)
    assert [f"{number}: {line.strip()}" for number, line in lines if UNCLEAR.search(line)] == []
