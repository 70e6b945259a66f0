"""A template's slot, the statement PARTS, filled with other statements by libcst."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst


class _Filler(cst.CSTTransformer):
    """Replaces the statement PARTS by others."""

    def __init__(self, statements: Sequence[cst.BaseStatement]) -> None:
        super().__init__()
        self.statements = statements

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        """The slot, or any other line."""
        (first, *_) = original_node.body
        if isinstance(first, cst.Expr) and isinstance(first.value, cst.Name) and first.value.value == "PARTS":
            return cst.FlattenSentinel(self.statements)
        return updated_node


def fill(template: str, lines: Sequence[str]) -> str:
    """The template's source with `lines` in place of its slot."""
    return cst.parse_module(template).visit(_Filler([cst.parse_statement(line) for line in lines])).code
