"""The templates' Python as C++, on registers that are constants of the C++.

Each value of a register is a C++ constant of its own (static single assignment), so that the compiler never has to know
a value that nothing reads. The flags, which most instructions set and few read, are not even computed: they are kept as
text, which stands where they are read or where a trace is left.
"""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.build.splice import PAIR_READS
from gbxcule_puffer.emulator.cpu import arithmetic

HALVES = {"b": ("bc", 8), "c": ("bc", 0), "d": ("de", 8), "e": ("de", 0), "h": ("hl", 8), "l": ("hl", 0)}
PAIRS = {ast.unparse(ast.parse(PAIR_READS[pair])): pair for pair in ("bc", "de", "hl")}
ALL = -1
BINARY: dict[type[ast.operator], tuple[str, Callable[[int, int], int]]] = {
    ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_), ast.BitXor: ("^", operator.xor), ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
}  # fmt: skip
COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


@dataclass(frozen=True)
class Value:
    """A C++ expression, and the bits that can be set in it."""

    text: str
    bits: int = ALL

    @property
    def number(self) -> int | None:
        """The value of a literal."""
        return int(self.text) if self.text.lstrip("-").isdigit() else None


def literal(number: int) -> Value:
    """A number."""
    return Value(str(number), number)


@dataclass
class Registers:
    """The registers at a point of a trace.

    pairs: BC, DE and HL as a whole, where they are known so; halves: the others, by name; code: of the instruction,
    with its operands; flags: parts of F, of which each has bits of its own; now, executed: since the trace's begin;
    last: T-cycles of the last instruction.
    """

    a: Value = Value("a", 0xFF)
    flags: tuple[Value, ...] = (Value("f", 0xF0),)
    sp: Value = Value("sp", 0xFFFF)
    ime: Value = Value("ime", 1)
    pc: Value = Value("0", 0)
    code: Value = Value("0", 0)
    pairs: dict[str, Value] = field(default_factory=lambda: {pair: Value(pair, 0xFFFF) for pair in ("bc", "de", "hl")})
    halves: dict[str, Value] = field(default_factory=dict)
    now: int = 0
    executed: int = 0
    last: int | None = None

    def copy(self) -> Registers:
        """Another one with the same values."""
        return replace(self, pairs=dict(self.pairs), halves=dict(self.halves))

    def pair(self, name: str) -> Value:
        """BC, DE or HL."""
        if name in self.pairs:
            return self.pairs[name]
        return Value(f"({self.half(name[0]).text} << 8 | {self.half(name[1]).text})", 0xFFFF)

    def half(self, name: str) -> Value:
        """B, C, D, E, H or L."""
        pair, shift = HALVES[name]
        if name in self.halves:
            return self.halves[name]
        whole = self.pairs[pair].text
        return Value(f"({whole} >> 8)" if shift else f"({whole} & 255)", 0xFF)

    def set_half(self, name: str, value: Value) -> None:
        """Set B, C, D, E, H or L."""
        pair, _ = HALVES[name]
        for each in pair:
            self.halves[each] = value if each == name else self.half(each)
        self.pairs.pop(pair, None)

    def set_pair(self, name: str, value: Value) -> None:
        """Set BC, DE or HL."""
        self.pairs[name] = value
        for each in name:
            self.halves.pop(each, None)

    def flag_bits(self, wanted: int) -> Value:
        """The bits `wanted` of F; others may be set, too."""
        parts = [part for part in self.flags if part.bits & wanted]
        if not parts:
            return literal(0)
        if len(parts) == 1:
            return parts[0]
        bits = functools.reduce(operator.or_, (part.bits for part in parts))
        return Value("(" + " | ".join(part.text for part in parts) + ")", bits)


@dataclass(frozen=True)
class _Function:
    """A device function: its parameters and statements."""

    parameters: list[str]
    body: list[ast.stmt]


@functools.cache
def _function(name: str) -> _Function:
    """A function of arithmetic.py."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(getattr(arithmetic, name).func))).body
    assert isinstance(tree, ast.FunctionDef)
    body = tree.body[1:] if isinstance(tree.body[0], ast.Expr) else tree.body  # without its docstring
    return _Function([argument.arg for argument in tree.args.args], body)


PURE = {"zero_flag": hw.FLAG_Z}
"""Functions of values alone, and the bits that can be set in their result."""


class Translator:
    """Writes C++ of statements to `lines` and follows the registers `r`.

    read, write: called with an address, a value to write, and the access's time since the trace's begin and its
    lookahead, T-cycles; they write the access.
    """

    def __init__(
        self, read: Callable[[Value, int, int], Value], write: Callable[[Value, Value, int, int], None]
    ) -> None:
        self.lines: list[str] = []
        self.r = Registers()
        self._read, self._write, self._names = read, write, 0

    def name(self) -> str:
        """A new one."""
        self._names += 1
        return f"v{self._names}"

    def bind(self, value: Value) -> Value:
        """A constant with a value."""
        if value.text.isidentifier() or value.number is not None:
            return value
        name = self.name()
        self.lines.append(f"const int {name} = {value.text};")
        return Value(name, value.bits)

    def statement(self, node: ast.stmt, scope: dict[str, Value]) -> Value | None:
        """Translate a statement; the value that it returns, if it does."""
        if isinstance(node, ast.Return):
            assert node.value is not None
            return self.value(node.value, scope)
        if isinstance(node, ast.Expr):
            if not isinstance(node.value, ast.Constant):
                self.value(node.value, scope)
        elif isinstance(node, ast.Assign):
            (target,) = node.targets
            if isinstance(target, ast.Attribute):
                self._set(target.attr, node.value, scope)
            else:
                assert isinstance(target, ast.Name)
                scope[target.id] = self.bind(self.value(node.value, scope))
        elif isinstance(node, ast.If):
            self._branch(node, scope)
        else:
            assert isinstance(node, ast.Pass), ast.unparse(node)
        return None

    def _branch(self, node: ast.If, scope: dict[str, Value]) -> None:
        """An `if` that sets local variables, or flags: each becomes a choice between two values."""
        assert not node.orelse
        test = self.bind(self.value(node.test, scope)).text
        for part in node.body:
            assert isinstance(part, ast.Assign)
            (target,) = part.targets
            if isinstance(target, ast.Attribute):
                old, *new = _parts(part.value)
                assert (ast.unparse(target), ast.unparse(old)) == ("c.f", "c.f")
                flags = [self.value(each, scope) for each in new]
                self.r.flags += tuple(Value(f"({test} ? {each.text} : 0)", each.bits) for each in flags)
                continue
            assert isinstance(target, ast.Name)
            name, value = target.id, self.value(part.value, scope)
            before = scope[name]
            scope[name] = self.bind(Value(f"({test} ? {value.text} : {before.text})", value.bits | before.bits))

    def _set(self, name: str, node: ast.expr, scope: dict[str, Value]) -> None:
        """Assign to a register."""
        r = self.r
        if name == "f":
            r.flags = tuple(self.value(part, scope) for part in _parts(node))
        elif name == "now":
            number = self.value(node, scope).number
            assert number is not None
            r.now = number
        elif name != "ei_delay":  # which is 0 where a piece runs
            value = self.bind(self.value(node, scope))
            if name in HALVES:
                r.set_half(name, value)
            else:
                setattr(r, name, value)

    def _get(self, name: str, wanted: int) -> Value:
        """A register, of F at least the bits `wanted`."""
        r = self.r
        if name == "f":
            return r.flag_bits(wanted)
        if name == "now":
            return literal(r.now)
        if name in HALVES:
            return r.half(name)
        value = getattr(r, name)
        assert isinstance(value, Value)
        return value

    def value(self, node: ast.expr, scope: Mapping[str, Value], wanted: int = ALL) -> Value:
        """An expression, of which the bits `wanted` matter."""
        match node:
            case ast.Constant(value=int(number)):
                return literal(number)
            case ast.Name(id=name):
                return scope[name]
            case ast.Attribute(value=ast.Name(id="c"), attr=name):
                return self._get(name, wanted)
            case ast.Attribute(value=ast.Name(id="hw"), attr=name):
                return literal(int(getattr(hw, name)))
            case ast.BinOp():
                if (pair := PAIRS.get(ast.unparse(node))) is not None:
                    return self.r.pair(pair)
                return self._binary(node, scope, wanted)
            case ast.UnaryOp(op=ast.USub() | ast.Invert() as op, operand=operand):
                inner, is_minus = self.value(operand, scope), isinstance(op, ast.USub)
                if inner.number is not None:
                    return literal(-inner.number if is_minus else ~inner.number)
                return Value(f"({'-' if is_minus else '~'}{inner.text})")
            case ast.BoolOp(op=op, values=values):
                word = " && " if isinstance(op, ast.And) else " || "
                return Value("(" + word.join(self.value(each, scope).text for each in values) + ")", 1)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                sides = self.value(left, scope), self.value(right, scope)
                return Value(f"({sides[0].text} {COMPARE[type(op)]} {sides[1].text})", 1)
            case ast.Call():
                return self._call(node, scope)
        raise AssertionError(ast.unparse(node))

    def _binary(self, node: ast.BinOp, scope: Mapping[str, Value], wanted: int) -> Value:
        """An operation of two values."""
        kind = type(node.op)
        if kind is ast.BitAnd:
            right = self.value(node.right, scope)
            left = self.value(node.left, scope, right.number if right.number is not None else ALL)
            bits = left.bits & right.bits
            if right.number is not None and left.bits & ~right.number == 0:
                return left
        elif kind in (ast.LShift, ast.RShift):
            right = self.value(node.right, scope)
            by = right.number
            shifted = ALL if by is None or wanted == ALL else wanted << by if kind is ast.RShift else wanted >> by
            left = self.value(node.left, scope, shifted)
            bits = ALL if by is None else left.bits << by if kind is ast.LShift else left.bits >> by
        else:
            left, right = self.value(node.left, scope), self.value(node.right, scope)
            bits = left.bits | right.bits if kind in (ast.BitOr, ast.BitXor) else ALL
        sign, function = BINARY[kind]
        if left.number is not None and right.number is not None:
            return literal(function(left.number, right.number))
        return Value(f"({left.text} {sign} {right.text})", bits)

    def _call(self, node: ast.Call, scope: Mapping[str, Value]) -> Value:
        """A call of the bus, of Warp, or of a function of arithmetic.py."""
        name = ast.unparse(node.func).removeprefix("arithmetic.")
        arguments = [self.value(each, scope) for each in node.args if ast.unparse(each) not in ("m", "c")]
        if name in ("bus.read", "bus.write"):
            address, t, lookahead = self.bind(arguments[0]), arguments[-2].number, arguments[-1].number
            assert t is not None and lookahead is not None
            if name == "bus.read":
                return self._read(address, t, lookahead)
            self._write(address, self.bind(arguments[1]), t, lookahead)
            return literal(0)
        if name == "int":
            return arguments[0]
        if name.removeprefix("set_") in ("bc", "de", "hl"):
            self.r.set_pair(name.removeprefix("set_"), self.bind(Value(f"({arguments[0].text} & 65535)", 0xFFFF)))
            return literal(0)
        if name in PURE:
            return Value(f"{name}({arguments[0].text})", PURE[name])
        function = _function(name)
        parameters = [each for each in function.parameters if each != "c"]
        inner = dict(zip(parameters, map(self.bind, arguments), strict=True))
        for statement in function.body:
            result = self.statement(statement, inner)
            if result is not None:
                return result
        return literal(0)


def _parts(node: ast.expr) -> list[ast.expr]:
    """The operands of `a | b | c`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_parts(node.left), *_parts(node.right)]
    return [node]


def pure_functions() -> str:
    """The functions PURE as C++."""
    found = []
    for name in PURE:
        function = _function(name)
        (parameter,) = function.parameters
        translator = Translator(lambda *_: literal(0), lambda *_: None)
        scope = {parameter: Value(parameter)}
        results = [translator.statement(statement, scope) for statement in function.body]
        body = "\n".join(f"    {line}" for line in translator.lines)
        (result,) = (each for each in results if each is not None)
        found.append(f"static inline int {name}(int {parameter}) {{\n{body}\n    return {result.text};\n}}")
    return "\n".join(found)
