"""Filling templates with libcst. Their slots are names in capitals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import libcst as cst

expression = cache(cst.parse_expression)
line = cache(cst.parse_statement)


class Filler(cst.CSTTransformer):
    """Fills slots that are expressions, and slots that are whole statements.

    expressions: slot to source; statements: slot to the sources of statements.
    """

    def __init__(self, expressions: Mapping[str, str], statements: Mapping[str, Sequence[str]] | None = None) -> None:
        super().__init__()
        self.expressions, self.statements = expressions, statements or {}

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """Replaces a slot; leaves any other name."""
        text = self.expressions.get(original_node.value)
        return updated_node if text is None else expression(text)

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        """Replaces a line that is only a slot; leaves any other line."""
        (first, *_) = original_node.body
        if isinstance(first, cst.Expr) and isinstance(first.value, cst.Name) and first.value.value in self.statements:
            return cst.FlattenSentinel([line(text) for text in self.statements[first.value.value]])
        return updated_node


def fill(template: str, statements: Mapping[str, Sequence[str]]) -> str:
    """A template's source with statements in its slots."""
    return cst.parse_module(template).visit(Filler({}, statements)).code
