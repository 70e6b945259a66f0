"""Traces: which instructions a piece runs, from where a ROM's code was executed most.

A trace is a path that the code took often: it follows jumps and calls whose target is known, and at a conditional jump
the side that was executed more often. It ends before what only the interpreter does (HALT, EI, STOP), before a loop of
which rounds are skipped, after a write that ends the batch, after a round of a loop that often changes nothing, and at
a jump to its own begin. The first round of a loop that polls LY or STAT can be in it: often that is the only one.

An interrupt comes anywhere in a trace, and its handler returns there. Where a game has many, the parts of its traces
are traces, too, at which native code goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import isa, registers
from gbxcule_puffer.emulator.isa import Instruction
from gbxcule_puffer.emulator.loops import table

MOST_TRACES, MOST_INSTRUCTIONS = 2_000, 6_400  # of a ROM: they bound the time that compiling takes
LEAST_WEIGHT = 3e-5  # of all instructions, at a trace's begin
RETURNED = 0.25  # of the executions of code after a call, at least, come from a return that is in no trace
MOST_OF_TRACE = 48
MOST_OF_SEGMENT = 4
LEAST_IDLE = 0.01  # of all instructions, in rounds of a loop that change nothing
LEAST_RETURNED = 2e-3  # of all instructions: those of a trace after returns of interrupts' handlers into it
LEAST_OF_ENTRY = 3  # instructions of a trace after one that the interpreter executes
INTERPRETED = ("halt", "stop", "ei")  # they end a batch, or may
BRANCHES = ("jump", "jump_relative", "call", "ret", "reti")
ENDING = (registers.addresses(registers.REGISTERS, "batch") | {hw.IE}) - {hw.LY}  # registers whose writes end a batch
AROUND = 3  # bytes at the end of a bank from which no instruction is fetched


@dataclass(frozen=True)
class Step:
    """One instruction of a trace.

    index: in the ROM; code: its three bytes, the first one in bits 7-0; follows: the PC at which the trace goes on
    after it, None where it ends; polls: True for the jump back of a loop that polls LY or STAT; idles: of one whose
    rounds often change nothing.
    """

    index: int
    pc: int
    code: int
    instruction: Instruction
    follows: int | None
    polls: bool = False
    idles: bool = False


@dataclass(frozen=True)
class Segment:
    """Steps of a trace that run where no event is due before their end.

    first: its first one's number in the trace; indices: in the ROM, of all; bound: T-cycles from the begin of the first
    one to the begin of the last one, at most.
    """

    first: int
    indices: Sequence[int]
    bound: int


@dataclass(frozen=True)
class Trace:
    """The steps of a piece."""

    steps: Sequence[Step]

    @property
    def begin(self) -> int:
        """Index in the ROM of its first instruction."""
        return self.steps[0].index

    @property
    def segments(self) -> list[Segment]:
        """Its steps in parts."""
        parts = [
            (first, self.steps[first : first + MOST_OF_SEGMENT]) for first in range(0, len(self.steps), MOST_OF_SEGMENT)
        ]
        return [
            Segment(
                first, [step.index for step in part], sum(4 * step.instruction.m_cycles_taken for step in part[:-1])
            )
            for first, part in parts
        ]


class Tracer:
    """Finds the traces of a ROM. executed: how often each instruction was, by ROM index; loops: where loops begin of
    which rounds are skipped, bool by ROM index; polls: others, that poll LY or STAT; repeated: instructions of rounds
    that changed nothing, by ROM index of the jump that ends them; interrupts: how many were dispatched."""

    def __init__(
        self,
        rom: bytes,
        executed: np.ndarray,
        loops: np.ndarray,
        polls: np.ndarray,
        repeated: np.ndarray,
        interrupts: int = 0,
    ) -> None:
        self.rom, self.executed, self.loops, self.polls = rom, executed, loops, polls
        self.idle = repeated > LEAST_IDLE * executed.sum()
        self._interrupts = interrupts / max(1, executed.sum())  # an instruction
        self._entries = set[int]()  # after what the interpreter executes
        self.table = isa.expand()

    def find(self) -> list[Trace]:
        """The traces, those that begin where most is executed first. What is in one of them counts no more."""
        left = self.executed.astype(np.float64)
        least, found, begins = LEAST_WEIGHT * left.sum(), list[Trace](), set[int]()
        heads, returns = self._heads()
        length, returned = 0, np.where(returns, RETURNED * left, 0)
        while len(found) < MOST_TRACES and length < MOST_INSTRUCTIONS:
            weight = np.where(heads, np.maximum(left, returned), 0)
            begin = int(np.argmax(weight))
            if weight[begin] <= least:
                break
            heads[begin] = False
            trace = self._trace(begin, begins)
            if trace is None:
                continue
            found.append(trace)
            begins.add(begin)
            length += len(trace.steps)
            flow = float(self.executed[begin])
            for step in trace.steps:
                left[step.index] -= min(left[step.index], flow)
                flow *= self._share(step)
                if step.index + step.instruction.length not in begins:
                    heads[step.index + step.instruction.length] = True  # the interpreter may leave the trace here
                for target in self._targets(step):
                    heads[target] = heads[target] or target not in begins
        result = list[Trace]()
        for trace in found:
            parts = self._parts(trace, begins) if length < MOST_INSTRUCTIONS else []
            result += [trace, *parts]
            begins |= {part.begin for part in parts}
            length += sum(len(part.steps) for part in parts)
        return result

    def _parts(self, trace: Trace, begins: set[int]) -> list[Trace]:
        """The parts of a trace but the first, each of a segment, if interrupts' handlers often return into it, without
        those at whose begin a trace begins already."""
        steps = trace.steps
        after = sum(int(self.executed[step.index]) * (len(steps) - number) for number, step in enumerate(steps, 1))
        if self._interrupts * after < LEAST_RETURNED * self.executed.sum():
            return []
        parts = [Trace(steps[segment.first :][: len(segment.indices)]) for segment in trace.segments[1:]]
        return [part for part in parts if part.begin not in begins and not self.polls[part.begin]]

    def _share(self, step: Step) -> float:
        """How often a trace goes on after a step, of the times that it comes to it, by how often each side of a
        conditional jump was executed."""
        targets = self._targets(step)
        if "cond" not in step.instruction.operands or not targets:
            return 1.0
        taken, after = (int(self.executed[index]) for index in (targets[0], step.index + step.instruction.length))
        goes_on = after if step.follows == step.pc + step.instruction.length else taken
        return goes_on / max(1, taken + after)

    def _heads(self) -> tuple[np.ndarray, np.ndarray]:
        """Where traces may begin, bool by ROM index: after a jump, a call or a return, after what ends a trace, and
        where no instruction before leads to; and which of these are led to by what is not known, as a return."""
        size = len(self.rom)
        heads, follows, returns = np.zeros(size, bool), np.zeros(size, bool), np.zeros(size, bool)
        for index in np.flatnonzero(self.executed).tolist():
            step = self._step(index, self.pc_of(index))
            if step is None:
                continue
            after, family = index + step.instruction.length, step.instruction.family
            ends, is_branch = self._is_interpreted(step) or self._written(step) in ENDING, family in BRANCHES
            follows[after] |= not is_branch or "cond" in step.instruction.operands
            returns[after] |= family == "call"
            if ends:
                self._entries.add(after)
            for target in [*self._targets(step), after] if is_branch or ends else ():
                heads[target] = True
        begun = (self.executed > 0) & ~follows & ~heads  # by an interrupt, or `jp hl`
        return heads | begun, returns | begun

    def _is_interpreted(self, step: Step) -> bool:
        """True where an instruction is never a part of a piece."""
        return step.instruction.family in INTERPRETED or self._written(step) == hw.HDMA5  # which copies afterwards

    def _written(self, step: Step) -> int | None:
        """The register, or other byte, at the address in an instruction that writes it."""
        name = isa.operand_names(step.instruction.mnemonic)[:1]
        if name == ["[imm8]"]:
            return 0xFF00 | (step.code >> 8 & 0xFF)
        return step.code >> 8 & 0xFFFF if name == ["[imm16]"] and step.instruction.family != "store_sp" else None

    def pc_of(self, index: int) -> int:
        """The PC of code at an index."""
        return index if index < hw.ROM_BANK_SIZE else hw.ROM_BANK_SIZE + index % hw.ROM_BANK_SIZE

    def _step(self, index: int, pc: int) -> Step | None:
        """The instruction at an index, None where it cannot be in a trace."""
        if index % hw.ROM_BANK_SIZE >= hw.ROM_BANK_SIZE - AROUND:
            return None
        code = int.from_bytes(self.rom[index : index + 3], "little")
        opcode = code & 0xFF
        if opcode == 0xCB:
            opcode = 0x100 | ((code >> 8) & 0xFF)
        if opcode not in self.table:
            return None
        return Step(index, pc, code, self.table[opcode], None)

    def _target(self, step: Step) -> int | None:
        """The PC that a jump or a call leads to, None where it is not known."""
        instruction, after = step.instruction, step.pc + step.instruction.length
        if instruction.family == "jump_relative":
            return (after + ((step.code >> 8 & 0xFF) ^ 0x80) - 0x80) & 0xFFFF
        if instruction.family in ("jump", "call"):
            if "vector" in instruction.operands:
                return int(instruction.operands["vector"])
            if "imm16" in instruction.mnemonic:
                return step.code >> 8 & 0xFFFF
        return None

    def _targets(self, step: Step) -> list[int]:
        """The indices of the target of a jump or a call, if it is known and was executed."""
        pc = self._target(step)
        if pc is None or pc >= hw.VRAM:
            return []
        if pc < hw.ROM_BANK_SIZE:
            return [pc]
        if step.index >= hw.ROM_BANK_SIZE:
            return [step.index - step.pc + pc]
        banks = range(hw.ROM_BANK_SIZE, len(self.rom), hw.ROM_BANK_SIZE)
        return [bank + pc - hw.ROM_BANK_SIZE for bank in banks if self.executed[bank + pc - hw.ROM_BANK_SIZE]]

    def _trace(self, begin: int, begins: set[int]) -> Trace | None:
        """The trace that begins at an index, None where it would be too short: to be called by the interpreter takes as
        long as two instructions."""
        steps, returns, seen = list[Step](), list[int](), set[int]()
        first = pc = self.pc_of(begin)
        shift = begin - first if begin >= hw.ROM_BANK_SIZE else None  # from a PC in the switchable bank to the index
        while len(steps) < MOST_OF_TRACE:
            if pc >= hw.ROM_BANK_SIZE and shift is None:
                shift = self._usual_bank(pc) - pc
            index = pc if pc < hw.ROM_BANK_SIZE else pc + (shift or 0)
            step = self._step(index, pc)
            if step is None or self._is_interpreted(step) or index in seen:
                break
            if steps and (index in begins or self.loops[index]):
                break
            seen.add(index)
            follows = self._follows(step, first, shift, returns)
            follows = follows if follows is not None and follows < hw.VRAM else None
            steps.append(replace(step, follows=follows, polls=self._ends_poll(step), idles=bool(self.idle[index])))
            pc = steps[-1].follows
            if pc is None or pc == first or self._written(step) in ENDING or steps[-1].idles:
                break
        return Trace(steps) if len(steps) >= (LEAST_OF_ENTRY if begin in self._entries else 1) else None

    def _ends_poll(self, step: Step) -> bool:
        """True for the jump back of a loop that polls LY or STAT."""
        target = self._target(step) if step.instruction.family == "jump_relative" else None
        if target is None or not 0 < step.pc - target <= table.LCD_POLL_JUMP:
            return False
        return bool(self.polls[step.index + target - step.pc])

    def _usual_bank(self, pc: int) -> int:
        """The index of the code at a PC in the switchable bank, in the bank where it was executed most."""
        return max(range(pc, len(self.rom), hw.ROM_BANK_SIZE), key=lambda index: int(self.executed[index]))

    def _often(self, pc: int, shift: int | None) -> int:
        """How often the code at a PC was executed; shift: of the switchable bank, None where it is not known."""
        if pc >= hw.VRAM:
            return 0
        if pc < hw.ROM_BANK_SIZE:
            return int(self.executed[pc])
        return int(self.executed[self._usual_bank(pc) if shift is None else pc + shift])

    def _follows(self, step: Step, first: int, shift: int | None, returns: list[int]) -> int | None:
        """Where a trace that began at the PC `first` goes on after a step, None where it ends; returns: the return
        addresses of the calls that it is in."""
        instruction, after, target = step.instruction, step.pc + step.instruction.length, self._target(step)
        is_conditional = "cond" in instruction.operands
        if instruction.family == "ret":
            if is_conditional:
                return after
            return returns.pop() if returns else None
        if instruction.family not in BRANCHES:
            return after
        if is_conditional:
            if target is None or target >= hw.VRAM:
                return after
            if self._ends_poll(step):
                return after
            if target != first and self._often(target, shift) <= self._often(after, shift):
                return after
        if instruction.family == "call":
            returns.append(after)
        return target
