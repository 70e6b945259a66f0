"""The C++ source of a ROM's pieces: its traces in one function, made of the templates that the interpreter is made of.

The function holds the registers in variables. A trace checks, at its begin and every few instructions, that no event is
due before the next check; where one is, it leaves for the interpreter with the state of that point. Each access is
checked for being plain memory. For others the interpreter's bus is called, as at that time, and where that ends the
batch, or maps memory anew, the trace is left after the instruction. At its end it goes on with the trace that begins
there, if there is one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache

import libcst as cst
import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import isa
from gbxcule_puffer.emulator.build.splice import splice
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.loops import table
from gbxcule_puffer.emulator.pieces.frame import BEGIN, CALL, COLOR_SHIFT, END, HEAD, LOAD, RUN, SHIFT, STORE
from gbxcule_puffer.emulator.pieces.traces import Step, Trace
from gbxcule_puffer.emulator.pieces.translate import Registers, Translator, Value, literal, pure_functions
from gbxcule_puffer.emulator.state import OF_CARTRIDGE, ColorCpu, Cpu

SYMBOL = "gbxcule_pieces"
MOST_OF_GROUP = 800  # instructions
DOUBLE = {"pop": "+", "ret": "+", "reti": "+", "push": "-", "call": "-", "store_sp": "+"}
"""Families that access two bytes, of which the second one is after or before the first one. One check is for both."""
READ, READ_AHEAD, WRITE, WRITE_AHEAD = range(4)  # kinds of accesses


def source(cartridge: Cartridge, traces: Sequence[Trace], loops: np.ndarray) -> str:
    """The source for a ROM, whose function is SYMBOL; loops: where loops begin of which rounds are skipped, bool by
    ROM index, except those that poll LY or STAT."""
    color, has_plain_ram = cartridge.model == "cgb", OF_CARTRIDGE["has_plain_ram"](cartridge)
    head = HEAD.replace("HAS_PLAIN_RAM", str(int(has_plain_ram)))
    head = head.replace("IS_FORWARD", "c.lcd_wrapped == 0" if color else "true").replace("HAS_COLOR", str(int(color)))
    head = "".join(f"#define {name} {getattr(hw, name)}\n" for name in ("P1", "STAT", "LY")) + head
    begin, end = (text.replace("LOAD", LOAD).replace("STORE", STORE) for text in (BEGIN, END))
    begin = begin.replace("LCD_POLL", str(table.LCD_POLL)).replace("FIRST_HOOK", str(table.FIRST_HOOK))
    begin = begin.replace("NOTE_END", "c.lcd_due = c.lcd_target;" if color else "")
    struct = "\n".join(
        f"    {'int' if kind.__name__ == 'int32' else 'unsigned long long'} {name};" for name, kind in _members(color)
    )
    parts = [f"struct Cpu {{\n{struct}\n}};", COLOR_SHIFT if color else SHIFT, head, pure_functions()]
    numbers = {trace.begin: number for number, trace in enumerate(traces)}
    has_idle = any(step.idles for trace in traces for step in trace.steps)
    check, groups = 0, list(_groups(traces))
    for name, group in enumerate(groups):
        parts += [begin.replace("GROUP", f"group_{name}"), "switch (number) {"]
        parts += [*(f"case {number}: goto L{number};" for number in group), "default: goto done;", "}"]
        for number in group:
            parts += _TraceSource(traces[number], numbers, loops, group, check, color, has_idle).lines(number)
            check += len(traces[number].segments)
        parts.append(end)
    parts.append(RUN)
    calls = [f"number = group_{name}(x, bounds, number, before);" for name in range(len(groups))]
    tests = [f"if (number < {group.stop}) {call}" for group, call in zip(groups, calls, strict=True)]
    return "\n".join([*parts, " else ".join(tests), "    }", "}", CALL.replace("SYMBOL", SYMBOL)])


def _groups(traces: Sequence[Trace]) -> Iterator[range]:
    """The numbers of the traces in a function: the time that one takes to compile grows faster than its length."""
    first, length = 0, 0
    for number, trace in enumerate(traces):
        length += len(trace.steps)
        if length >= MOST_OF_GROUP or number == len(traces) - 1:
            yield range(first, number + 1)
            first, length = number + 1, 0


def _members(color: bool) -> Iterator[tuple[str, type]]:
    """(name, type) of the members of the kernel's struct Cpu, in order."""
    for name, variable in (ColorCpu if color else Cpu).vars.items():  # type: ignore[attr-defined]
        yield name, variable.type


@cache
def _statements(opcode: int) -> list[ast.stmt]:
    """The filled template of an instruction."""
    return ast.parse(cst.Module(list(splice(isa.expand()[opcode]))).code).body  # type: ignore[arg-type]


class _TraceSource:
    """The source of one trace. numbers: of the traces, by the ROM index of their begins; loops: as in `source`;
    group: those in the same function; check: the number of its first check; notes: whether its writes note a change."""

    def __init__(
        self,
        trace: Trace,
        numbers: dict[int, int],
        loops: np.ndarray,
        group: range,
        check: int,
        color: bool,
        notes: bool,
    ) -> None:
        self._trace, self._numbers, self._loops, self._color, self._notes = trace, numbers, loops, color, notes
        self._group, self._check = group, check
        self._code = Translator(self._read, self._write)
        self._before, self._step, self._is_checked = self._code.r, trace.steps[0], False
        self._slow = list[str]()  # for accesses of the instruction: whether the bus was called
        self._shift: int | None = None  # rom_high, once it is known

    def lines(self, number: int) -> Iterator[str]:
        """The trace's lines."""
        first = self._trace.steps[0]
        begins = {segment.first: self._check + offset for offset, segment in enumerate(self._trace.segments)}
        yield f"L{number}: if (left <= bounds[{self._check}]) {{ pc = {first.pc}; code = {first.code}; goto late; }}"
        yield "{"
        for index, step in enumerate(self._trace.steps):
            self._code.lines.append(f"// {step.pc:04X} {step.instruction.mnemonic}")
            self._code.r.pc, self._code.r.code = literal(step.pc), literal(step.code)
            if index and index in begins:
                late = self._leave(self._code.r, "late")
                self._code.lines.append(f"if (left - {self._code.r.now} <= bounds[{begins[index]}]) {late}")
            if self._shift is None and step.pc >= hw.ROM_BANK_SIZE:
                self._shift = step.index - step.pc
                if index:
                    self._code.lines.append(f"if (rom_high != {self._shift}) {self._leave(self._code.r, 'follow')}")
            self._instruction(step, step is self._trace.steps[-1])
        yield from self._code.lines
        yield "}"

    def _instruction(self, step: Step, is_last: bool) -> None:
        """One instruction; after the last one the trace is over."""
        code, instruction = self._code, step.instruction
        self._step, self._before, self._is_checked, self._slow = step, code.r.copy(), False, []
        statements = _statements(instruction.opcode)
        if instruction.family == "reti":  # where an interrupt is pending, it ends the batch
            code.lines.append(f"if ((c.interrupt_flag & c.interrupt_enable & 31) != 0) {self._give_up()}")
            statements = [statement for statement in statements if not isinstance(statement, ast.If)]
        if "cond" in instruction.operands:
            advance, branch, rest = statements
            assert isinstance(branch, ast.If)
            code.statement(advance, {})
            test = code.value(branch.test, {}).text
            stays = step.follows == (code.r.pc.number or 0) and not is_last
            self._side(test if stays else f"!{test}", [*branch.body, rest] if stays else [rest])
            statements = [rest] if stays else [*branch.body, rest]
        for statement in statements:
            code.statement(statement, {})
        self._finish(step)
        if self._slow:
            code.lines.append(f"if ({' | '.join(self._slow)}) if (plain == 0) {self._leave(code.r, 'mapped')}")
        if is_last:
            code.lines.append(self._go_on(code.r))
        elif code.r.pc.number is None:  # a return
            code.lines.append(f"if ({code.r.pc.text} != {step.follows}) {self._go_on(code.r)}")

    def _side(self, test: str, statements: Sequence[ast.stmt]) -> None:
        """The side of a conditional jump that leaves the trace."""
        code, main = self._code, self._code.r
        code.r = main.copy()
        code.lines.append(f"if ({test}) {{")
        for statement in statements:
            code.statement(statement, {})
        self._finish(self._step)
        code.lines += [self._go_on(code.r), "}"]
        code.r, self._is_checked = main, False

    def _finish(self, step: Step) -> None:
        """After an instruction."""
        self._code.r.executed += 1
        self._code.r.last = self._code.r.now - self._before.now

    def _go_on(self, r: Registers) -> str:
        """Go on at the PC of `r`."""
        pc = r.pc.number
        if pc is None or (hw.ROM_BANK_SIZE <= pc < hw.VRAM and self._shift is None):
            return self._leave(r, "follow")
        index = pc if pc < hw.ROM_BANK_SIZE else pc + (self._shift or 0)
        number = self._numbers.get(index) if pc < hw.VRAM else None
        if number is not None and (self._loops[index] or (self._step.polls and pc < self._step.pc)):
            return self._leave(r, "skip", number=number)
        if self._step.idles and pc <= self._step.pc:
            return self._leave(r, "idle", number=-1 if number is None else number)
        if number is None or number not in self._group:
            return self._leave(r, "done", number=-1 if number is None else number)
        return self._leave(r, f"L{number}")

    def _leave(self, r: Registers, label: str, **variables: int) -> str:
        """Set the variables to what the registers are, and others, and go to a label."""
        values = {"a": r.a, "f": r.flag_bits(0xF0), "sp": r.sp, "ime": r.ime}
        values |= {pair: r.pair(pair) for pair in ("bc", "de", "hl")}
        changed = {name: value for name, value in values.items() if value.text != name}
        parts = [f"const int {name}_ = {value.text};" for name, value in changed.items()]
        parts += [f"{name} = {name}_;" for name in changed]
        parts += [f"left -= {r.now};", f"executed += {r.executed};"] if r.executed else []
        parts += [f"last = {r.last};"] if r.last is not None else []
        parts += [f"pc = {r.pc.text};"] if not label.startswith("L") else []
        parts += [f"{name} = {value};" for name, value in variables.items()]
        return f"{{ {' '.join(parts)} goto {label}; }}"

    def _give_up(self) -> str:
        """Leave the instruction to the interpreter, because an access is not plain."""
        return self._leave(self._before, "leave", code=self._step.code, number=-1)

    def _at(self, address: Value) -> str:
        """A byte of the memory row."""
        if not self._color:
            return f"row[{address.text}]"
        return f"row[{address.text} + shift(c, {address.text})]"

    def _read(self, address: Value, t: int, lookahead: int) -> Value:
        """Read a byte."""
        if address.number == hw.P1:
            return self._code.bind(Value("c.p1", 0xFF))
        text = address.text
        where = f"({text} < 16384 ? rom : {text} < 32768 ? banked : row)[{text}]"
        if self._color:
            where = f"({text} < 32768 ? {where} : {self._at(address)})"
        if (is_slow := self._is_slow(READ_AHEAD if lookahead else READ, address)) is None:
            return self._code.bind(Value(where, 0xFF))
        name = self._code.name()
        call = f"read(x, {text}, {self._times(t)}, {lookahead})"
        if address.number in (hw.STAT, hw.LY):
            call = f"{'ly' if address.number == hw.LY else 'stat'}(x, {self._times(t)}, {lookahead})"
        self._code.lines += [
            f"int {name};", f"if ({is_slow}) {{ {name} = {call}; plain = x.plain; }} else {name} = {where};"
        ]  # fmt: skip
        return Value(name, 0xFF)

    def _write(self, address: Value, value: Value, t: int, lookahead: int) -> None:
        """Write a byte."""
        at = self._at(address)
        store = f"store(x, {at}, {value.text});" if self._notes else f"{at} = {value.text};"
        if (is_slow := self._is_slow(WRITE_AHEAD if lookahead else WRITE, address)) is None:
            self._code.lines.append(store)
            return
        if self._color and address.number is None:  # HDMA5: the copy comes after the instruction
            self._code.lines.append(f"if ({address.text} == {hw.HDMA5}) {self._give_up()}")
        call = f"write(x, {address.text}, {value.text}, {self._times(t)}, {lookahead})"
        self._code.lines.append(f"if ({is_slow}) {{ {call}; plain = x.plain; }} else {store}")

    def _times(self, t: int) -> str:
        """When the instruction begins, how long the last one took, and when in it an access at time `t` is."""
        before = self._before
        return f"x.event - left + {before.now}, {'last' if before.last is None else before.last}, {t - before.now}"

    def _is_slow(self, kind: int, address: Value) -> str | None:
        """What is true where the interpreter's bus has to do an access; None where it is plain from here on. An
        instruction that accesses two bytes is left to the interpreter instead."""
        text = address.text
        test = f"!is_plain(plain, {kind}, {text})"
        if (sign := DOUBLE.get(self._step.instruction.family)) is not None:
            if not self._is_checked:
                test += f" || !is_plain(plain, {kind}, ({text} {sign} 1) & 65535)"
                self._code.lines.append(f"if ({test}) {self._give_up()}")
                self._is_checked = True
            return None
        name = self._code.name()
        self._code.lines.append(f"const bool {name} = {test};")
        self._slow.append(name)
        return name
