"""Runs single instructions on flat memory: SM83 single-step cases, thousands per launch."""

from __future__ import annotations

from functools import cache as memoize
from typing import Any

import numpy as np
import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.build import interpreter
from gbxcule_puffer.emulator.cpu import flat_bus
from gbxcule_puffer.emulator.state import INDEX, NUM_FIELDS, Cpu, Machine

REGISTERS = ("a", "f", "b", "c", "d", "e", "h", "l")
BATCH = 4096  # cases per launch, 64 KiB each
T_CYCLES = wp.constant(INDEX["instructions"])  # the field that returns the time of the instruction


@memoize
def kernel() -> wp.Kernel:
    """One instruction of each env, without devices."""
    generated = interpreter.module(flat=True)
    execute, load, store = generated.execute, generated.load, generated.store

    @wp.kernel(enable_backward=False, module="unique")
    def kernel_execute_one(machine: Machine):
        m = machine
        c = Cpu()
        c.env = wp.tid()
        load(m, c)
        c.batch_end = hw.NEVER
        c.next_event = hw.NEVER
        flat_bus.fetch(m, c)
        execute(m, c)
        m.state[T_CYCLES, c.env] = c.now
        store(m, c)

    made: Any = kernel_execute_one  # a function to a type checker
    return made


def run_cases(
    r0: np.ndarray, sp0: np.ndarray, pc0: np.ndarray, ime0: np.ndarray, addr: np.ndarray, values: np.ndarray,
    nram: np.ndarray, device: str = "cpu",
) -> dict[str, np.ndarray]:  # fmt: skip
    """Execute one instruction for each case.

    r0 (N, 8) uint8 in the order of REGISTERS; sp0, pc0, ime0, nram (N,); addr, values (N, K): the first nram[i]
    columns name memory cells and their contents. Returns r1, sp1, pc1, ime1, ei_delay, v1 (values after), m_cycles.
    """
    parts = []
    for begin in range(0, len(r0), BATCH):
        part = slice(begin, begin + BATCH)
        cases = (x[part] for x in (r0, sp0, pc0, ime0, addr, values, nram))
        parts.append(_run_batch(device, *cases))
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _run_batch(
    device: str, r0: np.ndarray, sp0: np.ndarray, pc0: np.ndarray, ime0: np.ndarray, addr: np.ndarray,
    values: np.ndarray, nram: np.ndarray,
) -> dict[str, np.ndarray]:  # fmt: skip
    """One launch."""
    count = len(r0)
    state = np.zeros((NUM_FIELDS, count), np.int32)
    for column, name in enumerate(REGISTERS):
        state[INDEX[name]] = r0[:, column]
    state[INDEX["sp"]], state[INDEX["pc"]], state[INDEX["ime"]] = sp0, pc0, ime0
    memory = np.zeros((count, 0x10000), np.uint8)
    used = np.arange(addr.shape[1]) < nram[:, None]
    cases, columns = np.nonzero(used)
    memory[cases, addr[cases, columns]] = values[cases, columns]
    machine = Machine()
    machine.memory = wp.array(memory, device=device)
    machine.state = wp.array(state, device=device)
    wp.launch(kernel(), dim=count, inputs=[machine], device=device)
    after, cells = machine.state.numpy(), machine.memory.numpy()
    v1 = np.where(used, cells[np.arange(count)[:, None], addr], 0)
    return {
        "r1": np.stack([after[INDEX[name]] for name in REGISTERS], axis=1),
        "sp1": after[INDEX["sp"]],
        "pc1": after[INDEX["pc"]],
        "ime1": after[INDEX["ime"]],
        "ei_delay": after[INDEX["ei_delay"]],
        "v1": v1,
        "m_cycles": after[INDEX["instructions"]] // 4,
    }
