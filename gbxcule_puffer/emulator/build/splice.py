"""Templates with filled slots for operands, ALU and condition: an instruction as statements, and a group of opcodes as
the function that executes them."""

from __future__ import annotations

import inspect
from functools import cache
from typing import TypeGuard

import libcst as cst

from gbxcule_puffer.emulator import isa
from gbxcule_puffer.emulator.build.slots import Filler, line
from gbxcule_puffer.emulator.cpu import templates
from gbxcule_puffer.emulator.isa import Instruction

IMM8 = "((c.code >> 8) & 0xFF)"
IMM16 = "((c.code >> 8) & 0xFFFF)"
HL = "((c.h << 8) | c.l)"
PAIR_READS = {
    "bc": "((c.b << 8) | c.c)", "de": "((c.d << 8) | c.e)", "hl": HL, "sp": "c.sp", "af": "((c.a << 8) | c.f)",
    "imm16": IMM16, "imm8": IMM8, "sp+imm8": IMM8,
}  # fmt: skip
ADDRESSES = {
    "[bc]": PAIR_READS["bc"], "[de]": PAIR_READS["de"], "[hl]": HL, "[hl+]": HL, "[hl-]": HL,
    "[imm8]": f"(0xFF00 | {IMM8})", "[imm16]": IMM16, "[c]": "(0xFF00 | c.c)",
}  # fmt: skip
AFTERWARDS = {"[hl+]": f"arithmetic.set_hl(c, {HL} + 1)", "[hl-]": f"arithmetic.set_hl(c, {HL} - 1)"}
CONDITION_TESTS = {
    "nz": "(c.f & 0x80) == 0", "z": "(c.f & 0x80) != 0", "nc": "(c.f & 0x10) == 0", "c": "(c.f & 0x10) != 0",
}  # fmt: skip


def operands_of(instruction: Instruction) -> dict[str, str]:
    """Slot -> operand of an instruction: {'DST': '[hl]', 'SRC': 'imm8'}."""
    names = isa.operand_names(instruction.mnemonic)
    family = instruction.family
    if family in ("jump", "jump_relative", "call", "ret"):
        if "cond" in instruction.operands:
            names = names[1:]
        target = instruction.operands.get("vector") or (names[0] if names else "")
        return {"TARGET": target, "SRC": target}
    if family in ("alu8", "bit", "add16"):
        return {"SRC": names[1]}
    if family in ("res", "set"):
        return {"DST": names[1]}
    if family == "store_sp":
        return {"SRC": "imm16"}
    if family == "push":
        return {"SRC": names[0]}
    if family == "rotate_a":
        return {"DST": "a"}
    if len(names) == 2:
        return {"DST": names[0], "SRC": names[1]}
    return {"DST": names[0]} if names else {}


Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


class _Filler(Filler):
    """Fills an instruction's slots. Memory operands use its access times in order: first the reads, then the writes."""

    def __init__(self, instruction: Instruction) -> None:
        self.operands = operands_of(instruction)
        accesses = instruction.accesses()
        self.times = [access.t_offset for access in accesses]
        self.lookahead = accesses[0].lookahead if accesses else 0
        extra = 4 * (instruction.m_cycles_taken - instruction.m_cycles)
        condition = instruction.operands.get("cond")
        words = {
            "EXTRA": str(extra),
            "BIT": instruction.operands.get("bit", "0"),
            "ALU": f"arithmetic.alu_{instruction.operands.get('alu')}",
            "ROTATE": f"arithmetic.rotate_{instruction.operands.get('rotate')}",
            "COND": CONDITION_TESTS.get(condition or "", ""),
        }
        words |= {f"T{index}": str(time) for index, time in enumerate(self.times)}
        super().__init__(words | {slot: self.read(operand) for slot, operand in self.operands.items()})

    def read(self, operand: str) -> str:
        """Source text that reads an operand."""
        if operand in ADDRESSES:
            return f"bus.read(m, c, {ADDRESSES[operand]}, c.now + {self.times[0]}, {self.lookahead})"
        if operand in PAIR_READS:
            return PAIR_READS[operand]
        return operand if operand.isdigit() else f"c.{operand}"

    def write(self, operand: str, value: cst.BaseExpression) -> cst.BaseSmallStatement:
        """The statement that writes `value` to an operand."""
        text = cst.Module([]).code_for_node(value)
        if operand in ADDRESSES:
            arguments = f"{ADDRESSES[operand]}, {text}, c.now + {self.times[-1]}, {self.lookahead}"
            return _statement(f"bus.write(m, c, {arguments})")
        if operand in ("bc", "de", "hl", "af"):
            return _statement(f"arithmetic.set_{operand}(c, {text})")
        return _statement(f"c.{operand} = {text}")

    def visit_AssignTarget(self, node: cst.AssignTarget) -> bool:
        """The target of `DST = ...` is not a read."""
        return not (isinstance(node.target, cst.Name) and node.target.value == "DST")

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.BaseSmallStatement:
        """`DST = value` becomes a store."""
        target = original_node.targets[0].target
        if isinstance(target, cst.Name) and target.value == "DST":
            return self.write(self.operands["DST"], updated_node.value)
        return updated_node


def _statement(text: str) -> cst.BaseSmallStatement:
    """A small statement from source text."""
    statement = line(text)
    assert isinstance(statement, cst.SimpleStatementLine)
    return statement.body[0]


@cache
def _template(family: str) -> tuple[cst.BaseStatement, ...]:
    """The statements of a family's template without its docstring."""
    tree = cst.parse_module(inspect.getsource(getattr(templates, family)))
    function = tree.body[0]
    assert isinstance(function, cst.FunctionDef)
    body = function.body.body
    return tuple(body[1:])  # type: ignore[arg-type]


def _is_condition(node: cst.BaseStatement) -> TypeGuard[cst.If]:
    """True for the statement `if COND:`; other tests of a template stay."""
    return isinstance(node, cst.If) and isinstance(node.test, cst.Name) and node.test.value == "COND"


def _is_pass(node: Statement) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], cst.Pass)


def splice(instruction: Instruction, color: bool = False) -> list[Statement]:
    """The statements of one instruction: PC, the filled template, T-cycles; color: on a Game Boy Color."""
    filler = _Filler(instruction)
    statements: list[Statement] = [line(f"c.pc = (c.pc + {instruction.length}) & 0xFFFF")]
    family = "stop_of_color" if color and instruction.family == "stop" else instruction.family
    for node in _template(family):
        if _is_condition(node) and "cond" not in instruction.operands:  # no condition: only the body
            parts = node.body.body
        else:
            parts = (node,)
        for part in parts:
            filled = part.visit(filler)
            assert isinstance(filled, cst.SimpleStatementLine | cst.If)
            statements.append(filled)
    for operand in filler.operands.values():
        if operand in AFTERWARDS:
            statements.append(line(AFTERWARDS[operand]))
    statements.append(line(f"c.now = c.now + {4 * instruction.m_cycles}"))
    return [statement for statement in statements if not _is_pass(statement)]


def group(first: int, size: int, decorator: str, color: bool) -> str:
    """The function that executes opcodes `first` to `first` + `size` - 1, with its decorator, as source."""
    table = isa.expand()
    name = f"execute_{first:03x}"
    orelse: cst.BaseStatement | None = None
    for opcode in reversed(range(first, first + size)):
        if opcode in table:
            body = splice(table[opcode], color)
            comment = table[opcode].mnemonic
        elif opcode == 0xCB:
            continue
        else:
            body, comment = [cst.parse_statement(line) for line in ("c.locked = 1", "c.next_event = c.now")], "illegal"
        test = cst.parse_expression(f"opcode == 0x{opcode:02X}")
        header = cst.TrailingWhitespace(
            whitespace=cst.SimpleWhitespace("  "), comment=cst.Comment(f"# {comment}"), newline=cst.Newline()
        )
        block = cst.IndentedBlock(body=body, header=header)
        if orelse is None:
            orelse = cst.If(test=test, body=block)
        else:
            orelse = cst.If(test=test, body=block, orelse=orelse)
    assert orelse is not None
    parameters = "m: wp.ref[Machine], c: wp.ref[Cpu], opcode: int"
    function = cst.parse_statement(f"{decorator}\ndef {name}({parameters}):\n    pass\n")
    assert isinstance(function, cst.FunctionDef)
    return cst.Module([function.with_changes(body=cst.IndentedBlock(body=[orelse]))]).code
