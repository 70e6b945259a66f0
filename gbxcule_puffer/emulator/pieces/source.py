"""The C++ source of a ROM's pieces: its traces in one function, made of the templates that the interpreter is made of.

The function holds the registers in variables. A trace checks, at its begin and every few instructions, that no event is
due before the next check, and each access for being plain memory; where something is not so, it leaves for the
interpreter with the state of that point. At its end it goes on with the trace that begins there, if there is one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache

import libcst as cst

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import isa
from gbxcule_puffer.emulator.build.splice import splice
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.pieces.traces import Step, Trace
from gbxcule_puffer.emulator.pieces.translate import Registers, Translator, Value, literal, pure_functions
from gbxcule_puffer.emulator.state import OF_CARTRIDGE, ColorCpu, Cpu

SYMBOL = "gbxcule_pieces"
MOST_OF_GROUP = 800  # instructions
DOUBLE = {"pop": "+", "ret": "+", "push": "-", "call": "-", "store_sp": "+"}
"""Families that access two bytes, of which the second one is after or before the first one. One check is for both."""
READ, READ_AHEAD, WRITE, WRITE_AHEAD = range(4)  # kinds of accesses

HEAD = """
typedef unsigned char byte;

static inline bool is_high(int address) { return (unsigned)(address - 0xFF80) < 0x7F; }
// plain: for each kind of access eight bits, one for each 8 KiB
static inline bool is_plain(int plain, int kind, int address) {
    return ((plain >> (8 * kind + (address >> 13 & 7))) & 1) != 0 || is_high(address);
}
// A piece is of one address, and ROM can also be seen at others
static inline bool is_elsewhere(int pc, int index) { return (pc < 0x4000) != (index < 0x4000); }
"""
# A group of traces from the trace `number` on; the number of the one that another group goes on with, else -1.
# before: instructions executed when the interpreter called.
BEGIN = """
static __attribute__((noinline)) int GROUP(Cpu& c, const long long* bounds, int number, const int before) {
    const byte* const rom = (const byte*)c.rom;
    const byte* const banked = rom + c.rom_high;
    byte* const row = (byte*)c.row;
    const int rom_high = c.rom_high, event = c.next_event;
    const int vram = IS_FORWARD && ((c.lcdc & 0x80) == 0 || c.ly >= 144) ? 0x10 : 0;
    const int written = c.render && c.next_line < 144 ? 0 : 0x10;
    const int ram = HAS_PLAIN_RAM && c.ram_enabled == 1 && c.ram_offset == 0x2000 ? 0x60 : 0x40;
    const int plain = 0x1F | ram | (0x0F | vram | ram) << 8 | (written | ram) << 16 | ((vram & written) | ram) << 24;
    int a = c.a, f = c.f, sp = c.sp, ime = c.ime, executed = 0, pc = c.pc, code = -1;
    int bc = c.b << 8 | c.c, de = c.d << 8 | c.e, hl = c.h << 8 | c.l;
    int left = event - c.now, last = c.now - c.previous;
    goto enter;
follow: {
    number = -1;
    if (pc >= 0x8000) goto done;
    const int index = (pc < 0x4000 ? 0 : rom_high) + pc, word = ((const int*)c.words)[index];
    if (word >= 0 || is_elsewhere(pc, index)) goto done;
    number = word & 0xFFFFFF;
}
enter:
"""
END = """
late:
    number = -1;
    if (c.executed + executed == before) goto leave;
done:
    code = -1;
leave:
    c.a = a; c.f = f; c.sp = sp; c.ime = ime; c.pc = pc; c.code = code;
    c.b = bc >> 8; c.c = bc & 255; c.d = de >> 8; c.e = de & 255; c.h = hl >> 8; c.l = hl & 255;
    c.now = event - left; c.previous = c.now - last; c.executed += executed;
    return number;
}
"""
RUN = """
extern "C" void SYMBOL(Cpu& c, const long long* bounds) {
    const byte* const rom = (const byte*)c.rom;
    const int index = (c.pc < 0x4000 ? c.rom_low : c.rom_high) + c.pc;
    int number = c.code & 0xFFFFFF;
    c.code = rom[index] | rom[index + 1] << 8 | rom[index + 2] << 16;
    if ((c.ei_delay | c.dma_active | c.rom_low) != 0 || is_elsewhere(c.pc, index)) return;
    const int before = c.executed;
    while (number >= 0) {
"""
COLOR_SHIFT = """
static inline int shift(const Cpu& c, int address) {
    return (address >> 12) == 13 ? c.wram_shift : address < 0xA000 ? c.vram_shift : 0;
}
"""


def source(cartridge: Cartridge, traces: Sequence[Trace]) -> str:
    """The source for a ROM, whose function is SYMBOL."""
    color, has_plain_ram = cartridge.model == "cgb", OF_CARTRIDGE["has_plain_ram"](cartridge)
    begin = BEGIN.replace("HAS_PLAIN_RAM", str(int(has_plain_ram)))
    begin = begin.replace("IS_FORWARD", "c.lcd_wrapped == 0" if color else "true")
    struct = "\n".join(
        f"    {'int' if kind.__name__ == 'int32' else 'unsigned long long'} {name};" for name, kind in _members(color)
    )
    parts = [f"struct Cpu {{\n{struct}\n}};", HEAD, COLOR_SHIFT if color else "", pure_functions()]
    numbers = {trace.begin: number for number, trace in enumerate(traces)}
    check, groups = 0, list(_groups(traces))
    for name, group in enumerate(groups):
        parts += [begin.replace("GROUP", f"group_{name}"), "switch (number) {"]
        parts += [*(f"case {number}: goto L{number};" for number in group), "default: goto done;", "}"]
        for number in group:
            parts += _TraceSource(traces[number], numbers, group, check, color).lines(number)
            check += len(traces[number].segments)
        parts.append(END)
    parts.append(RUN.replace("SYMBOL", SYMBOL))
    calls = [f"number = group_{name}(c, bounds, number, before);" for name in range(len(groups))]
    tests = [f"if (number < {group.stop}) {call}" for group, call in zip(groups, calls, strict=True)]
    return "\n".join([*parts, " else ".join(tests), "    }", "}", ""])


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
    """The source of one trace. numbers: of the traces, by the ROM index of their begins; group: those in the same
    function; check: the number of its first check."""

    def __init__(self, trace: Trace, numbers: dict[int, int], group: range, check: int, color: bool) -> None:
        self._trace, self._numbers, self._group, self._check, self._color = trace, numbers, group, check, color
        self._code = Translator(self._read, self._write)
        self._before, self._step, self._is_checked = self._code.r, trace.steps[0], False
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
        self._step, self._before, self._is_checked = step, code.r.copy(), False
        statements = _statements(instruction.opcode)
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
        number = self._numbers.get(pc if pc < hw.ROM_BANK_SIZE else pc + (self._shift or 0)) if pc < hw.VRAM else None
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

    def _read(self, address: Value, ahead: bool) -> Value:
        """Read a byte."""
        text = address.text
        self._require(READ_AHEAD if ahead else READ, text)
        where = f"({text} < 16384 ? rom : {text} < 32768 ? banked : row)[{text}]"
        if self._color:
            where = f"({text} < 32768 ? {where} : {self._at(address)})"
        return self._code.bind(Value(where, 0xFF))

    def _write(self, address: Value, value: Value, ahead: bool) -> None:
        """Write a byte."""
        self._require(WRITE_AHEAD if ahead else WRITE, address.text)
        self._code.lines.append(f"{self._at(address)} = {value.text};")

    def _require(self, kind: int, text: str) -> None:
        """Leave where an access is not plain."""
        if self._is_checked:
            return
        test = f"!is_plain(plain, {kind}, {text})"
        if (sign := DOUBLE.get(self._step.instruction.family)) is not None:
            test += f" || !is_plain(plain, {kind}, ({text} {sign} 1) & 65535)"
            self._is_checked = True
        self._code.lines.append(f"if ({test}) {self._give_up()}")
