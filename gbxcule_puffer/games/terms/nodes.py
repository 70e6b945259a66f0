"""The steps of terms: a list in which each node takes the results of earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

BOOL, WHOLE, DECIMAL = 0, 1, 2  # kinds of results: bool, int64, float64 tensors
MOST_NODES = 8_192  # of all terms of a game
REMEMBERING = ("delta", "rise", "fall", "start", "previous", "once", "once_ever", "first_visit", "total")


@dataclass(frozen=True)
class Node:
    """An operation on the results of the nodes `args`, earlier in the tape. value: of a 'constant' its number, of a
    'number' its column, of 'executions' the location of the instruction."""

    operation: str
    args: tuple[int, ...]
    kind: int
    value: object = None


@dataclass
class Tape:
    """Nodes, each once; equal terms share them."""

    nodes: list[Node] = field(default_factory=list)
    _index: dict[Node, int] = field(default_factory=dict)

    def add(self, operation: str, args: Sequence[int], kind: int, value: object = None) -> int:
        """The index of this node, which is new or known."""
        # The kind keeps True, 1 and 1.0 apart, which are equal as keys.
        node = Node(operation, tuple(args), kind, value)
        if node not in self._index:
            self._index[node] = len(self.nodes)
            self.nodes.append(node)
        return self._index[node]

    def cast(self, index: int, kind: int) -> int:
        """The same value as a result of this kind."""
        node = self.nodes[index]
        if node.kind == kind:
            return index
        if node.operation == "constant":
            make = (bool, int, float)[kind]
            return self.constant(make(node.value))  # pyright: ignore[reportArgumentType]
        return self.add("cast", (index,), kind)

    def scaled(self, first: int, second: int) -> int | None:
        """The product of a whole number and a decimal constant, which needs no cast; None for others."""
        a, b = self.nodes[first], self.nodes[second]
        if a.kind == WHOLE and a.operation != "constant" and b.operation == "constant" and b.kind == DECIMAL:
            return self.add("multiply", (first, second), DECIMAL)
        return None

    def constant(self, value: bool | int | float) -> int:
        """A number as a node."""
        return self.add(
            "constant", (), BOOL if isinstance(value, bool) else WHOLE if isinstance(value, int) else DECIMAL, value
        )

    def remembering(self) -> set[int]:
        """The nodes that a new episode computes: those that remember something, and their arguments."""
        wanted = {index for index, node in enumerate(self.nodes) if node.operation in REMEMBERING}
        for index in range(len(self.nodes) - 1, -1, -1):
            if index in wanted:
                wanted.update(self.nodes[index].args)
        return wanted
