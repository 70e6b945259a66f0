"""The terms of a game.toml as kernels: rewards and ends after a step, levels and memory at an episode's start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from gbxcule_puffer.emulator import address_space
from gbxcule_puffer.emulator.build import cache
from gbxcule_puffer.emulator.launch import fill
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.games.parts import Terms
from gbxcule_puffer.games.task import GameTask
from gbxcule_puffer.games.terms.nodes import BOOL, DECIMAL, REMEMBERING, WHOLE, Node, Tape
from gbxcule_puffer.native.term_functions import TermArrays
from gbxcule_puffer.tasks.ram.number import BASES, TOP_BIT, Number
from gbxcule_puffer.tasks.ram.view import Where

HEAD = '''
"""The terms of a game."""

import warp as wp

from gbxcule_puffer.env.randomness import TASK
from gbxcule_puffer.native import term_functions as f
from gbxcule_puffer.native.kernels import Batch, sample

# No fused multiply-add: it would round differently on a GPU.
wp.set_module_options({"enable_backward": False, "fuse_fp": False})
STREAM = wp.constant(TASK)
'''
STEP = '''
@wp.kernel
def kernel_terms(g: f.TermArrays):
    """Adds the reward of each env's step and ends its episode; dim = num_envs."""
    env = wp.tid()
'''
BEGIN = '''
@wp.kernel
def kernel_begin_terms(b: Batch, g: f.TermArrays, seed: wp.int64):
    """Begins the terms of the envs whose episode has ended, which are restored; dim = num_envs."""
    env = wp.tid()
    if g.ended[env]:
'''
TYPES = ("wp.bool", "wp.int64", "wp.float64")
FORMS = {
    "add": "{0} + {1}", "subtract": "{0} - {1}", "divide": "f.divide({0}, {1})",
    "bit_and": "{0} & {1}", "bit_or": "{0} | {1}", "bit_xor": "{0} ^ {1}", "invert": "~{0}",
    "shift_left": "f.shift_left({0}, {1})", "shift_right": "f.shift_right({0}, {1})", "negative": "-{0}",
    "not": "not {0}", "abs": "wp.abs({0})", "equal": "{0} == {1}", "unequal": "{0} != {1}", "less": "{0} < {1}",
    "at_most": "{0} <= {1}", "more": "{0} > {1}", "at_least": "{0} >= {1}", "min": "wp.min({0}, {1})",
    "max": "wp.max({0}, {1})", "where": "wp.where({0}, {1}, {2})", "bits": "f.set_bits({0})",
}  # fmt: skip
BY_KIND = {
    ("floor_divide", WHOLE): "f.floor_divide({0}, {1})", ("floor_divide", DECIMAL): "f.floor_divide_decimal({0}, {1})",
    ("modulo", WHOLE): "f.modulo({0}, {1})", ("modulo", DECIMAL): "f.modulo_decimal({0}, {1})",
    ("bit_and", BOOL): "{0} and {1}", ("bit_or", BOOL): "{0} or {1}", ("bit_xor", BOOL): "{0} != {1}",
}  # fmt: skip
CASTS = {
    (BOOL, WHOLE): "f.whole({0})", (BOOL, DECIMAL): "wp.float64(f.whole({0}))", (WHOLE, DECIMAL): "wp.float64({0})",
    (WHOLE, BOOL): "{0} != wp.int64(0)", (DECIMAL, BOOL): "{0} != wp.float64(0.0)",
}  # fmt: skip


@dataclass(frozen=True)
class CompiledTerms:
    """The kernels of an env's GameTask, and their arrays."""

    module: ModuleType
    arrays: Any


def compile_terms(env: GBxCuLEEnv, task: GameTask) -> CompiledTerms:
    """The terms of an env's task.

    Raises: ConfigError for terms that need more than the bytes of RAM, and for several variants.
    """
    writer = TermWriter(env)
    module = cache.import_source("native_terms", writer.source(task))
    episodes = env._episodes
    t, n = episodes.envs, env.num_envs
    memory: Any = episodes.emulator
    arrays = fill(
        TermArrays(), memory=memory.memory, rewards=t.rewards, terminals=t.terminals, truncations=t.truncations,
        failures=t.failures, ended=t.ended,
        constants=torch.tensor(list(writer.constants) or [0], dtype=torch.int64),
        decimals=torch.tensor(writer.decimals or [0.0], dtype=torch.float64),
        whole=torch.zeros((max(1, writer.slots[WHOLE]), n), dtype=torch.int64),
        decimal=torch.zeros((max(1, writer.slots[DECIMAL]), n), dtype=torch.float64),
    )  # fmt: skip
    return CompiledTerms(module, arrays)


class TermWriter:
    """Writes the kernels of a GameTask. constants, decimals: numbers that they read from arrays, because Warp's
    literals have 32 bits; slots: rows of memory that the terms need, by kind."""

    def __init__(self, env: GBxCuLEEnv) -> None:
        self.cartridge, self._ram = env.cartridge, env.ram
        self.constants: dict[int, int] = {}
        self.decimals: list[float] = []
        self.slots = {WHOLE: 0, DECIMAL: 0}

    def source(self, task: GameTask) -> str:
        """The source of a module with kernel_terms and kernel_begin_terms."""
        if len(task.variants) > 1:
            raise ConfigError("several variants need Python, and a native env runs without it: give one")
        terms, tape = task.terms, task.terms.tape
        slots = self._slots_of(tape)
        pokes = [poke for variant in task.variants for poke in variant.pokes]
        step = [line for poke in pokes if poke.always for line in self._poke(poke.where, poke.data)]
        step += self._numbers(tape, terms.numbers, range(len(tape.nodes)))
        step += [line for i, node in enumerate(tape.nodes) for line in self._node(tape, i, node, slots.get(i))]
        step += self._results(terms)
        begin = self._level(task)
        begin += [line for poke in pokes for line in self._poke(poke.where, poke.data)]
        wanted = sorted(tape.remembering())
        begin += self._numbers(tape, terms.numbers, wanted)
        begin += [line for i in wanted for line in self._begin(tape, i, tape.nodes[i], slots.get(i))]
        bodies = "".join(f"    {line}\n" for line in step), "".join(f"        {line}\n" for line in begin or ["pass"])
        return "".join((HEAD.lstrip(), STEP, bodies[0], "\n", BEGIN, bodies[1]))

    def _results(self, terms: Terms) -> list[str]:
        """Rewards and ends of a step, as TaskRunners sums them up."""
        lines = []
        if terms.reward is not None:
            lines.append(f"g.rewards[env] = g.rewards[env] + wp.float32(v{terms.reward})")
        ends = {name: getattr(terms, name) for name in ("success", "failure", "truncation")}
        if any(node is not None for node in ends.values()):
            given = [f"v{node}" if node is not None else "False" for node in ends.values()]
            lines.append(f"f.end(g, env, {', '.join(given)})")
        return lines or ["pass"]

    def _slots_of(self, tape: Tape) -> dict[int, int]:
        """The row of memory of each node that remembers."""
        slots = {}
        for index, node in enumerate(tape.nodes):
            if node.operation in ("executions", "first_visit"):
                raise ConfigError(f"{node.operation}(...) needs Python, and a native env runs without it: leave it out")
            if node.operation in REMEMBERING:
                kind = max(node.kind, WHOLE)
                slots[index] = self.slots[kind]
                self.slots[kind] += 1
        return slots

    def _constant(self, value: int) -> str:
        return f"g.constants[{self.constants.setdefault(value, len(self.constants))}]"

    def _offset(self, where: Where) -> int:
        """The offset of a byte of RAM in the memory row."""
        bank, address = self._ram.locate(where)
        if self.cartridge.model == "cgb":
            raise ConfigError("terms of a Game Boy Color's game need Python: a native env of it has none")
        if not self.cartridge.mapper.has_plain_ram and 0xA000 <= address < 0xC000:
            raise ConfigError(f"address {address:04X} has half bytes, which a native env's terms cannot have")
        return address_space.row_offset(self.cartridge, address, 1, bank)

    def _poke(self, where: Where, data: Sequence[object]) -> list[str]:
        """Writes bytes: numbers, or the texts of expressions."""
        first = self._offset(where)
        values = [each if isinstance(each, str) else self._constant(int(str(each))) for each in data]
        return [f"g.memory[env, {first + i}] = wp.uint8({value})" for i, value in enumerate(values)]

    def _level(self, task: GameTask) -> list[str]:
        """Samples a level and writes it."""
        if task.levels is None or task.table is None:
            return []
        first, count = self._constant(task.levels.first), self._constant(task.levels.count)
        lines = [f"level = {first} + sample(b, seed, STREAM, env, b.episode[env]) % {count}"]
        tape = task.table.tape
        for i, node in enumerate(tape.nodes):
            lines += self._node(tape, i, node, None, level=True)
        assert task.table.where is not None
        return lines + self._poke(task.table.where, [f"l{node}" for node in task.table.values])

    def _numbers(self, tape: Tape, numbers: Sequence[Number], nodes: Iterable[int]) -> list[str]:
        """The numbers that some nodes take, as n0, n1 and so on."""
        used = {int(str(tape.nodes[i].value)) for i in nodes if tape.nodes[i].operation == "number"}
        return [f"n{column} = {self._number(numbers[column])}" for column in sorted(used)]

    def _number(self, number: Number) -> str:
        """The value of a number, from its bytes."""
        bank, address = self._ram.locate(number.where)
        mask, parts = number.mask & (0x0F if number.read == "digits" else 0xFF), []
        for byte in range(number.size):
            power = byte if number.order == "little" else number.size - 1 - byte
            at = address + byte * number.every
            offset = self._offset(at if bank is None else (bank, at))
            part = f"f.byte(g, env, {offset}, {number.zero}, {mask})"
            if number.read == "bits":
                part = f"f.set_bits({part})"
            elif number.read == "count":
                part = f"f.equal({part}, {number.of})"
            elif number.read == "bcd":
                part = f"f.decimal_digits({part})"
            elif number.read == "signed" and power == number.size - 1:
                part = f"f.signed_byte({part}, {TOP_BIT})"
            weight = BASES[number.read] ** power
            parts.append(part if weight == 1 else f"{part} * {self._constant(weight)}")
        return " + ".join(parts)

    def _node(self, tape: Tape, index: int, node: Node, slot: int | None, level: bool = False) -> list[str]:
        """The result of a node after a step, and what it remembers; level: of the tape of a level."""
        letter = "l" if level else "v"
        name, args = f"{letter}{index}", [f"{letter}{arg}" for arg in node.args]
        if slot is None:
            return [f"{name} = {self._plain(tape, node, args, level)}"]
        (now,), row = args, self._row(node, slot)
        before = f"({row} != wp.int64(0))" if node.kind == BOOL else row
        stored = f"f.whole({now})" if node.kind == BOOL else now
        zero = f"{TYPES[node.kind]}(0)"
        match node.operation:
            case "start":
                return [f"{name} = {before}"]
            case "delta":
                return [f"{name} = {now} - {before}", f"{row} = {stored}"]
            case "previous":
                return [f"{name} = {before}", f"{row} = {stored}"]
            case "rise":
                return [f"{name} = wp.max({now} - {before}, {zero})", f"{row} = wp.max({before}, {now})"]
            case "fall":
                return [f"{name} = wp.max({before} - {now}, {zero})", f"{row} = wp.min({before}, {now})"]
            case "total":
                return [f"{row} = {before} + {now}", f"{name} = {row}"]
            case _:  # once, once_ever
                return [f"{name} = {now} and not {before}", f"{row} = f.whole({now} or {before})"]

    def _begin(self, tape: Tape, index: int, node: Node, slot: int | None) -> list[str]:
        """The result of a node at an episode's start, and what it remembers."""
        if slot is None:
            return self._node(tape, index, node, None)
        row, now = self._row(node, slot), f"v{node.args[0]}"
        stored = f"f.whole({now})" if node.kind == BOOL else now
        if node.operation == "once_ever":
            stored = f"f.whole({now} or {row} != wp.int64(0))"
        zero = "False" if node.kind == BOOL else f"{TYPES[node.kind]}(0)"
        if node.operation == "total":
            stored = zero
        result = now if node.operation in ("start", "previous") else zero
        return [f"{row} = {stored}", f"v{index} = {result}"]

    def _row(self, node: Node, slot: int) -> str:
        return f"g.{'decimal' if node.kind == DECIMAL else 'whole'}[{slot}, env]"

    def _plain(self, tape: Tape, node: Node, args: Sequence[str], level: bool) -> str:
        """The expression of a node that remembers nothing."""
        kinds = [tape.nodes[arg].kind for arg in node.args]
        match node.operation:
            case "constant" if node.kind == DECIMAL:
                self.decimals.append(float(str(node.value)))
                return f"g.decimals[{len(self.decimals) - 1}]"
            case "constant":
                return str(bool(node.value)) if node.kind == BOOL else self._constant(int(str(node.value)))
            case "number":
                return "level" if level else f"n{node.value}"
            case "cast":
                return CASTS[kinds[0], node.kind].format(*args)
            case "all" | "any":
                return (" and " if node.operation == "all" else " or ").join(args)
            case "multiply":
                forms = ["{0}" if kind == node.kind else CASTS[kind, node.kind] for kind in kinds]
                return " * ".join(form.format(arg) for form, arg in zip(forms, args, strict=True))
        return (BY_KIND.get((node.operation, node.kind)) or FORMS[node.operation]).format(*args)
