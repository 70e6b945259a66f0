"""Terms on the device: the nodes of a tape, one after the other, for all envs at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gbxcule_puffer.device import room_for
from gbxcule_puffer.games.terms.nodes import REMEMBERING, Node, Tape

OF_NUMBERS = ("delta", "rise", "fall", "start", "previous")
DTYPES = (torch.bool, torch.int64, torch.float64)
EPISODE = (1 << 24) - 1  # bits of a cell's slot that have the number of the episode, which makes older slots empty
PROBES = 32  # slots in which a cell may be
LEAST_SLOTS, MOST_SLOTS = 256, 2**16
MULTIPLIERS = (-0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15)  # SplitMix64's, as int64


def _divide(x: torch.Tensor, y: torch.Tensor, divide: Callable[..., torch.Tensor]) -> torch.Tensor:
    """0 where the divisor is 0: a CPU raises for whole numbers, a GPU gives anything."""
    if not y.dim():  # a constant, which is not 0
        return divide(x, y)
    zero = y == 0
    return torch.where(zero, 0, divide(x, torch.where(zero, 1, y)))


def _floor_divide(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.div(x, y, rounding_mode="floor")


def _set_bits(x: torch.Tensor) -> torch.Tensor:
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((x * 0x0101010101010101) >> 56) & 0xFF


def _every(*parts: torch.Tensor) -> torch.Tensor:
    found = parts[0]
    for part in parts[1:]:
        found = found & part
    return found


def _some(*parts: torch.Tensor) -> torch.Tensor:
    found = parts[0]
    for part in parts[1:]:
        found = found | part
    return found


OPERATIONS: dict[str, Callable[..., torch.Tensor]] = {
    "add": torch.add, "subtract": torch.sub, "multiply": torch.mul,
    "divide": lambda x, y: _divide(x, y, torch.div),
    "floor_divide": lambda x, y: _divide(x, y, _floor_divide),
    "modulo": lambda x, y: _divide(x, y, torch.remainder),
    "bit_and": torch.bitwise_and, "bit_or": torch.bitwise_or, "bit_xor": torch.bitwise_xor,
    "shift_left": lambda x, y: x << (y.clamp(0, 62) if y.dim() else y),
    "shift_right": lambda x, y: x >> (y.clamp(0, 62) if y.dim() else y),
    "invert": torch.bitwise_not, "negative": torch.neg, "not": torch.logical_not, "abs": torch.abs,
    "equal": torch.eq, "unequal": torch.ne, "less": torch.lt, "at_most": torch.le, "more": torch.gt,
    "at_least": torch.ge, "all": _every, "any": _some, "min": torch.minimum, "max": torch.maximum,
    "where": torch.where, "bits": _set_bits,
}  # fmt: skip


def slots_for(max_steps: int) -> int:
    """Slots of an episode's visited cells: twice the cells that it can come to, a power of 2."""
    return min(MOST_SLOTS, max(LEAST_SLOTS, 1 << (2 * max_steps).bit_length()))


@dataclass
class Group:
    """Nodes of one operation on numbers: their columns, whether these are the first ones in order, and what they
    remember (num_envs, nodes) int64."""

    operation: str
    nodes: list[int]
    columns: torch.Tensor
    are_all: bool
    state: torch.Tensor


class TermRunner:
    """The results of a tape, step by step.

    memory: by name the tensors that later results depend on, for the owner to save; results: those of the last step,
    None once episodes have begun. `executions` returns the counts of an instruction; episode (num_envs,) int64: numbers
    of the episodes, from 1.
    """

    def __init__(
        self,
        tape: Tape,
        num_envs: int,
        device: torch.device,
        episode: torch.Tensor,
        executions: Callable[[Any], torch.Tensor],
        max_steps: int,
    ) -> None:
        self.nodes, self.n, self._episode, self._executions = tape.nodes, num_envs, episode, executions
        self._at_start = sorted(tape.remembering())
        self._probes = torch.arange(PROBES, device=device)
        self.memory: dict[str, torch.Tensor] = {}
        self.results: list[torch.Tensor] | None = None
        self._state: list[torch.Tensor | None] = []
        constants: list[torch.Tensor | None] = []
        self._groups = self._grouped(tape)
        for group in self._groups:
            self.memory[f"{group.operation}_of_numbers"] = group.state
        grouped = {index for group in self._groups for index in group.nodes}
        for index, node in enumerate(self.nodes):
            own, constant = None, None
            if index in grouped:
                pass
            elif node.operation == "constant":
                constant = torch.tensor(node.value, dtype=DTYPES[node.kind], device=device)
            elif node.operation == "first_visit":
                shape = (num_envs, slots_for(max_steps))
                with room_for(
                    8 * shape[0] * shape[1], str(device), f"first_visit of {num_envs:,} envs", "use fewer envs"
                ):
                    own = torch.zeros(shape, dtype=torch.int64, device=device)
            elif node.operation in REMEMBERING:
                own = torch.zeros(num_envs, dtype=DTYPES[node.kind], device=device)
            if own is not None:
                self.memory[f"{node.operation}_{index}"] = own
            self._state.append(own)
            constants.append(constant)
        self._constants = constants

    def step(self, numbers: torch.Tensor) -> list[torch.Tensor]:
        """The result of each node after a step, from the numbers (num_envs, columns): (num_envs,), of constants ()."""
        columns, found = numbers.unbind(1), self._of_groups(numbers, None)
        for index, node in enumerate(self.nodes):
            state = self._state[index]
            if index in found:
                continue
            if state is None:
                found[index] = self._plain(index, node, found, columns)
            elif node.operation == "first_visit":
                found[index] = self._visit(node, found, state, None)
            else:
                found[index] = _remembered(node.operation, found[node.args[0]], state)
        self.results = [found[index] for index in range(len(self.nodes))]
        return self.results

    def begin(self, numbers: torch.Tensor, which: torch.Tensor) -> None:
        """Begins the episodes of `which` (num_envs,) bool with these numbers."""
        self.results = None
        columns, found = numbers.unbind(1), self._of_groups(numbers, which)
        for index in self._at_start:
            node, state = self.nodes[index], self._state[index]
            if index in found:
                continue
            if state is None:
                found[index] = self._plain(index, node, found, columns)
            elif node.operation == "first_visit":
                self._visit(node, found, state, which)
                found[index] = torch.zeros_like(which)
            else:
                found[index] = _begun(node.operation, found[node.args[0]], state, which)

    def at_start(self, numbers: torch.Tensor, wanted: Sequence[int]) -> dict[int, torch.Tensor]:
        """The results of some nodes, and of those that they take, at the start of an episode with these numbers; what
        is remembered stays as it is."""
        needed = set(wanted)
        for index in range(len(self.nodes) - 1, -1, -1):
            if index in needed:
                needed.update(self.nodes[index].args)
        columns, found = numbers.unbind(1), dict[int, torch.Tensor]()
        for index in sorted(needed):
            node = self.nodes[index]
            if node.operation in ("start", "previous"):
                found[index] = found[node.args[0]]
            elif node.operation in REMEMBERING:
                found[index] = torch.zeros(self.n, dtype=DTYPES[node.kind], device=numbers.device)
            else:
                found[index] = self._plain(index, node, found, columns)
        return found

    def _of_groups(self, numbers: torch.Tensor, which: torch.Tensor | None) -> dict[int, torch.Tensor]:
        """The results of the nodes that remember numbers, all of an operation at once; in a step, or at the start of
        the episodes of `which`."""
        found: dict[int, torch.Tensor] = {}
        for group in self._groups:
            now = (
                numbers
                if group.are_all and numbers.shape[1] == len(group.nodes)
                else numbers.index_select(1, group.columns)
            )
            if which is None:
                results = _remembered(group.operation, now, group.state)
            else:
                results = _begun(group.operation, now, group.state, which[:, None])
            found.update(zip(group.nodes, results.unbind(1), strict=True))
        return found

    def _grouped(self, tape: Tape) -> list[Group]:
        """The nodes that remember a number itself, by their operation."""
        found = []
        device = self._episode.device
        for operation in OF_NUMBERS:
            nodes = [
                index
                for index, node in enumerate(tape.nodes)
                if node.operation == operation and tape.nodes[node.args[0]].operation == "number"
            ]
            columns = [tape.nodes[tape.nodes[index].args[0]].value for index in nodes]
            state = torch.zeros((self.n, len(nodes)), dtype=torch.int64, device=device)
            if nodes:
                chosen = torch.tensor(columns, dtype=torch.int64, device=device)
                found.append(Group(operation, nodes, chosen, columns == list(range(len(nodes))), state))
        return found

    def _plain(
        self, index: int, node: Node, found: Mapping[int, torch.Tensor], numbers: Sequence[torch.Tensor]
    ) -> torch.Tensor:
        """The result of a node that remembers nothing."""
        if (constant := self._constants[index]) is not None:
            return constant
        if node.operation == "number":
            assert isinstance(node.value, int)
            return numbers[node.value]
        if node.operation == "executions":
            return self._executions(node.value).to(torch.int64)
        if node.operation == "cast":
            return found[node.args[0]].to(DTYPES[node.kind])
        return OPERATIONS[node.operation](*(found[arg] for arg in node.args))

    def _visit(
        self, node: Node, found: Mapping[int, torch.Tensor], slots: torch.Tensor, which: torch.Tensor | None
    ) -> torch.Tensor:
        """True where the cell of these numbers is new in the episode; takes note of it, in the envs of `which`. A cell
        is known by 40 bits of its hash. If all slots that it may be in are taken, it counts as visited."""
        key = self._episode.new_full((self.n,), len(node.args))
        for arg in node.args:
            key = _mix(key * 31 + found[arg])
        own = (key & ~EPISODE) | (self._episode & EPISODE)
        probed = (key[:, None] + self._probes) & (slots.shape[1] - 1)
        there = slots.gather(1, probed)
        empty = (there & EPISODE) != (self._episode & EPISODE)[:, None]
        new = (there != own[:, None]).all(1) & empty.any(1)
        written = new if which is None else new & which
        slot = probed.gather(1, empty.to(torch.uint8).argmax(1, keepdim=True))
        slots.scatter_(1, slot, torch.where(written[:, None], own[:, None], slots.gather(1, slot)))
        return new


def _mix(value: torch.Tensor) -> torch.Tensor:
    """SplitMix64's finaliser on int64, whose right shifts repeat the sign."""
    for shift, multiplier in zip((30, 27), MULTIPLIERS, strict=True):
        value = (value ^ ((value >> shift) & ((1 << (64 - shift)) - 1))) * multiplier
    return value ^ ((value >> 31) & ((1 << 33) - 1))


def _remembered(operation: str, now: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
    """The result of a node that remembers, whose state becomes that after the step."""
    match operation:
        case "start":
            return state.clone()
        case "delta":
            found = now - state
            state.copy_(now)
        case "previous":
            found = state.clone()
            state.copy_(now)
        case "rise":
            found = (now - state).clamp_(min=0)
            torch.maximum(state, now, out=state)
        case "fall":
            found = (state - now).clamp_(min=0)
            torch.minimum(state, now, out=state)
        case "total":
            found = state.add_(now).clone()
        case _:  # once, once_ever
            found = now & ~state
            state.logical_or_(now)
    return found


def _begun(operation: str, now: torch.Tensor, state: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
    """The result at the start of an episode, with which the state of `which` begins."""
    first = now | state if operation == "once_ever" else torch.zeros_like(now) if operation == "total" else now
    torch.where(which, first, state, out=state)
    if operation in ("start", "previous"):
        return now.expand(state.shape)
    return torch.zeros_like(state)
