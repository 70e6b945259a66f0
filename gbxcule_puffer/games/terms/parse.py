"""Terms from text: a small part of Python's expressions, taken apart by `ast` and never evaluated by it."""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Sequence
from typing import NoReturn

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.games.table import nearest
from gbxcule_puffer.games.terms.nodes import BOOL, DECIMAL, MOST_NODES, WHOLE, Tape

LARGEST = 2**62  # of a whole number in a term
MOST_SHIFT = 62
ARITHMETIC = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "modulo",
}
BITWISE = {ast.BitAnd: "bit_and", ast.BitOr: "bit_or", ast.BitXor: "bit_xor"}
SHIFTS = {ast.LShift: "shift_left", ast.RShift: "shift_right"}
COMPARISONS = {
    ast.Eq: "equal",
    ast.NotEq: "unequal",
    ast.Lt: "less",
    ast.LtE: "at_most",
    ast.Gt: "more",
    ast.GtE: "at_least",
}
OF_A_NUMBER = ("delta", "rise", "fall", "start", "previous")  # also after a dot
# Functions and how many arguments they take.
FUNCTIONS = {
    "abs": (1, 1), "min": (2, 64), "max": (2, 64), "clip": (3, 3), "bits": (1, 1), "bit": (2, 2), "changed": (1, 1),
    "once": (1, 1),
    "once_ever": (1, 1), "first_visit": (1, 8), "total": (1, 1), "executions": (1, 1),
    **dict.fromkeys(OF_A_NUMBER, (1, 1)),
}  # fmt: skip
KNOWN = (
    "numbers, names, + - * // / % & | ^ ~ << >>, comparisons, and, or, not, A if B else C, "
    f"{', '.join(FUNCTIONS)}, and NAME.{', NAME.'.join(OF_A_NUMBER)}"
)
WORD_OF = {
    ast.Pow: "**", ast.MatMult: "@", ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
    ast.Subscript: "NAME[...]", ast.List: "a list", ast.Tuple: "a tuple", ast.Dict: "a dict", ast.Set: "a set",
    ast.Lambda: "lambda", ast.JoinedStr: "a text", ast.Starred: "*", ast.NamedExpr: ":=", ast.ListComp: "a loop",
    ast.GeneratorExp: "a loop", ast.SetComp: "a loop", ast.DictComp: "a loop", ast.Await: "await", ast.Yield: "yield",
}  # fmt: skip

Name = Callable[[str], int | None]  # the node of a name, None for an unknown one
Bit = Callable[[str, int], int | None]  # that of one of its bits


class TermParser:
    """Adds terms to `tape`.

    name: returns the node of a name's number; bits: that of its set bits; bit: of one of them; names: for suggestions;
    location: checks the text of executions("...") and returns where the instruction is.
    """

    def __init__(
        self,
        tape: Tape,
        name: Name,
        bits: Name,
        bit: Bit,
        names: Callable[[], Sequence[str]],
        location: Callable[[str], object] | None,
    ) -> None:
        self.tape, self._name, self._bits, self._bit = tape, name, bits, bit
        self._names, self._location = names, location

    def parse(self, text: str) -> int:
        """The node of a term.

        Raises: ConfigError, which says what is wrong in the text.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python comments on odd text; here it is taken or refused
                tree = ast.parse(" ".join(text.split()), mode="eval")  # also of several lines
        except SyntaxError as error:
            self._fail(f"{text!r:.80} is not a term ({error.msg}): write it as in Python")
        except (ValueError, RecursionError, MemoryError):
            self._fail(f"{text!r:.80} is not a term: write it as in Python, with fewer parentheses")
        try:
            found = self._node(tree.body)
        except RecursionError:
            self._fail(f"{text!r:.80} is too deep: write it with fewer parentheses")
        if len(self.tape.nodes) > MOST_NODES:
            self._fail(f"the terms have more than {MOST_NODES:,} operations: leave some out")
        return found

    def condition(self, text: str) -> int:
        """The node of a term as True or False: numbers other than 0 are True."""
        return self.tape.cast(self.parse(text), BOOL)

    def _fail(self, fault: str) -> NoReturn:
        raise ConfigError(fault)

    def _node(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return self._constant(value)
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute():
                return self._attribute(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, left, right)
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, operand)
            case ast.BoolOp(op=op, values=values):
                parts = [self.tape.cast(self._node(each), BOOL) for each in values]
                return self.tape.add("all" if isinstance(op, ast.And) else "any", parts, BOOL)
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._compare(ops, [left, *others])
            case ast.IfExp(test=test, body=body, orelse=other):
                chosen = self.tape.cast(self._node(test), BOOL)
                parts, kind = self._same([self._node(body), self._node(other)], BOOL)
                return self.tape.add("where", (chosen, *parts), kind)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._call(name, args)
        self._unknown(node)

    def _unknown(self, node: ast.AST) -> NoReturn:
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            self._fail(f"{node.value!r:.40} is a text, which only executions(...) takes: give {KNOWN}")
        text = ast.unparse(node) if isinstance(node, ast.expr) else ""
        what = WORD_OF.get(type(node), f"{text!r:.40}" if text else type(node).__name__)
        self._fail(f"{what} is not known in terms: give {KNOWN}")

    def _constant(self, value: bool | int | float) -> int:
        if isinstance(value, float) and not math.isfinite(value):
            self._fail("a number is infinite: give a smaller one")
        if not isinstance(value, float) and abs(value) > LARGEST:
            self._fail(f"a number is larger than {LARGEST:,}: give a smaller one")
        return self.tape.constant(value)

    def _named(self, name: str) -> int:
        found = self._name(name)
        if found is None:
            known = list(self._names())
            close = nearest(name, known)
            if name in FUNCTIONS:
                self._fail(f"{name} is a function: write {name}(...)")
            listed = (
                f"give one of {', '.join(known[:12])}{' ...' if len(known) > 12 else ''}" if known else "there are none"
            )
            self._fail(f"name {name!r:.60} is unknown: {f'did you mean {close[:-2]}?' if close else listed}")
        return found

    def _attribute(self, node: ast.Attribute) -> int:
        dotted = ast.unparse(node)
        is_dotted = all(isinstance(each, ast.Attribute | ast.Name | ast.expr_context) for each in ast.walk(node))
        if is_dotted and (found := self._name(dotted)) is not None:  # a local label of a symbol file
            return found
        if node.attr in OF_A_NUMBER:
            return self._remember(node.attr, self._node(node.value))
        if isinstance(node.value, ast.Name) and self._name(node.value.id) is None:
            return self._named(dotted)
        close = nearest(node.attr, OF_A_NUMBER)
        remedy = f"did you mean .{close[:-2]}?" if close else f"give one of .{', .'.join(OF_A_NUMBER)}"
        self._fail(f".{node.attr:.40} is unknown: {remedy}")

    def _remember(self, operation: str, of: int) -> int:
        kind = (
            max(self.tape.nodes[of].kind, WHOLE) if operation in ("delta", "rise", "fall") else self.tape.nodes[of].kind
        )
        return self.tape.add(operation, (self.tape.cast(of, kind),), kind)

    def _same(self, parts: Sequence[int], least: int = WHOLE) -> tuple[list[int], int]:
        """The parts as results of one kind, and the kind."""
        kind = max(least, *(self.tape.nodes[part].kind for part in parts))
        return [self.tape.cast(part, kind) for part in parts], kind

    def _whole(self, index: int, what: str) -> int:
        if self.tape.nodes[index].kind == DECIMAL:
            self._fail(f"{what} takes whole numbers, not decimals: write // instead of /, or leave the decimals out")
        return self.tape.cast(index, WHOLE)

    def _binary(self, op: ast.operator, left: ast.expr, right: ast.expr) -> int:
        first, second = self._node(left), self._node(right)
        kind, divisor = type(op), self.tape.nodes[second]
        if kind in (ast.Div, ast.FloorDiv, ast.Mod) and divisor.operation == "constant" and not divisor.value:
            self._fail("divides by 0: give another divisor")
        if kind is ast.Div:
            parts = [self.tape.cast(each, DECIMAL) for each in (first, second)]
            return self.tape.add("divide", parts, DECIMAL)
        if kind is ast.Mult and (scaled := self.tape.scaled(first, second)) is not None:
            return scaled
        if kind in ARITHMETIC:
            parts, result = self._same([first, second])
            return self.tape.add(ARITHMETIC[kind], parts, result)
        if kind in BITWISE:
            if self.tape.nodes[first].kind == self.tape.nodes[second].kind == BOOL:
                return self.tape.add(BITWISE[kind], (first, second), BOOL)
            return self.tape.add(BITWISE[kind], [self._whole(each, "& | ^") for each in (first, second)], WHOLE)
        if kind in SHIFTS:
            value = divisor.value
            if divisor.operation == "constant" and not (isinstance(value, int) and 0 <= value <= MOST_SHIFT):
                self._fail(f"shifts by {value}: give a whole number from 0 to {MOST_SHIFT}")
            return self.tape.add(SHIFTS[kind], [self._whole(each, "<< >>") for each in (first, second)], WHOLE)
        self._unknown(op)

    def _unary(self, op: ast.unaryop, operand: ast.expr) -> int:
        index = self._node(operand)
        node = self.tape.nodes[index]
        if isinstance(op, ast.Not):
            return self.tape.add("not", (self.tape.cast(index, BOOL),), BOOL)
        if isinstance(op, ast.Invert):
            return self.tape.add("invert", (self._whole(index, "~"),), WHOLE)
        index = self.tape.cast(index, max(node.kind, WHOLE))
        if isinstance(op, ast.UAdd):
            return index
        node = self.tape.nodes[index]
        if node.operation == "constant" and isinstance(node.value, int | float):
            return self.tape.constant(-node.value)
        return self.tape.add("negative", (index,), node.kind)

    def _compare(self, ops: Sequence[ast.cmpop], values: Sequence[ast.expr]) -> int:
        nodes = [self._node(each) for each in values]
        found = []
        for op, first, second in zip(ops, nodes, nodes[1:], strict=False):
            if type(op) not in COMPARISONS:
                self._unknown(op)
            parts, _ = self._same([first, second])
            found.append(self.tape.add(COMPARISONS[type(op)], parts, BOOL))
        return found[0] if len(found) == 1 else self.tape.add("all", found, BOOL)

    def _call(self, name: str, args: Sequence[ast.expr]) -> int:
        if name not in FUNCTIONS:
            close = nearest(name, FUNCTIONS)
            remedy = f"did you mean {close[:-2]}?" if close else f"give one of {', '.join(FUNCTIONS)}"
            self._fail(f"function {name!r:.40} is unknown: {remedy}")
        least, most = FUNCTIONS[name]
        if not least <= len(args) <= most or any(isinstance(each, ast.Starred) for each in args):
            count = f"{least}" if least == most else f"{least} to {most}"
            self._fail(f"{name} takes {count} argument{'s' * (most > 1)}, not {len(args)}")
        if name == "executions":
            return self._executions(args[0])
        if name == "bits" and (found := self._bits_of(args[0])) is not None:
            return found
        if name == "bit":
            return self._bit_of(*args)
        nodes = [self._node(each) for each in args]
        if name in OF_A_NUMBER:
            return self._remember(name, nodes[0])
        if name == "changed":
            before = self._remember("previous", nodes[0])
            return self.tape.add("unequal", (nodes[0], before), BOOL)
        if name in ("once", "once_ever"):
            return self.tape.add(name, (self.tape.cast(nodes[0], BOOL),), BOOL)
        if name == "first_visit":
            return self.tape.add(name, [self._whole(each, name) for each in nodes], BOOL)
        if name == "total":
            kind = max(self.tape.nodes[nodes[0]].kind, WHOLE)
            return self.tape.add(name, (self.tape.cast(nodes[0], kind),), kind)
        if name == "bits":
            return self.tape.add("bits", (self._whole(nodes[0], name),), WHOLE)
        return self._folded(name, nodes)

    def _folded(self, name: str, nodes: Sequence[int]) -> int:
        """abs, min, max and clip."""
        parts, kind = self._same(nodes)
        if name == "abs":
            return self.tape.add("abs", parts, kind)
        steps = [("max", parts[1]), ("min", parts[2])] if name == "clip" else [(name, part) for part in parts[1:]]
        found = parts[0]
        for operation, part in steps:
            found = self.tape.add(operation, (found, part), kind)
        return found

    def _bits_of(self, node: ast.expr) -> int | None:
        """The set bits of a name's bytes; None for another expression."""
        return self._bits(ast.unparse(node)) if isinstance(node, ast.Name | ast.Attribute) else None

    def _bit_of(self, node: ast.expr, index: ast.expr) -> int:
        """One bit of a name's bytes."""
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(index, ast.Constant):
            self._fail("bit takes a name and a number: bit(flags, 12)")
        if type(index.value) is not int:
            self._fail(f"bit {index.value!r:.40} is not a whole number: give one from 0 on")
        name = ast.unparse(node)
        found = self._bit(name, index.value)
        if found is None:
            self._named(name)
            self._fail(f"bit takes a name of [numbers] or a symbol, not the term {name:.60}: write {name:.60} >> n & 1")
        return found

    def _executions(self, node: ast.expr) -> int:
        if self._location is None or not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            self._fail('executions takes the text of an instruction\'s symbol or address: "game_over" or "1:4A20"')
        return self.tape.add("executions", (), WHOLE, self._location(node.value))
