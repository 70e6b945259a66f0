"""SingleStepTests/sm83: all 12,000 shared single-instruction cases on flat memory, registers, RAM and M-cycles."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gbxcule_puffer.emulator.probes.single_step import run_cases

# The cases' PC and M-cycles of these two are a convention of the emulator that made them (sm83/README.md).
HALT, STOP = 0x76, 0x10
REGISTERS = "AFBCDEHL"
CASES = 12_000
PER_OPCODE = 24

Cases = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def cases(shared: Path) -> Cases:
    with np.load(shared / "conformance" / "sm83" / "cases.npz") as file:
        return {name: file[name] for name in file.files}


@pytest.fixture(scope="module")
def results(cases: Cases) -> Cases:
    r0, sp0, pc0, ime0, addr, v0, nram = (cases[name] for name in ("r0", "sp0", "pc0", "ime0", "addr", "v0", "nram"))
    return run_cases(r0, sp0, pc0, ime0, addr, v0, nram)


@pytest.fixture(scope="module")
def by_convention(cases: Cases) -> np.ndarray:
    """Which cases are HALT or STOP, shape (CASES,), bool."""
    return np.isin(cases["opcode"], (HALT, STOP))


def test_all_opcodes_are_there(cases: Cases, results: Cases) -> None:
    opcodes, counts = np.unique(cases["opcode"], return_counts=True)
    assert len(opcodes) == 500 and (counts == PER_OPCODE).all()
    assert all(len(values) == CASES for values in results.values())


def test_registers(cases: Cases, results: Cases) -> None:
    wrong = (results["r1"] != cases["r1"]).any(axis=1) | (results["sp1"] != cases["sp1"])
    report(
        cases,
        wrong,
        lambda i: f"{registers(cases['r1'], cases['sp1'], i)}, not {registers(results['r1'], results['sp1'], i)}",
    )


def test_memory(cases: Cases, results: Cases) -> None:
    used = np.arange(5) < cases["nram"][:, None]
    wrong = ((results["v1"] != cases["v1"]) & used).any(axis=1)
    report(cases, wrong, lambda i: f"bytes at {cases['addr'][i]}: {cases['v1'][i]}, not {results['v1'][i]}")


def test_program_counter(cases: Cases, results: Cases, by_convention: np.ndarray) -> None:
    wrong = (results["pc1"] != cases["pc1"]) & ~by_convention
    report(cases, wrong, lambda i: f"PC {cases['pc1'][i]:04X}, not {results['pc1'][i]:04X}")


def test_interrupt_enable(cases: Cases, results: Cases, by_convention: np.ndarray) -> None:
    """IME, and the pending enable that EI leaves behind for one instruction."""
    wrong = (results["ime1"] != cases["ime1"]) | ((results["ei_delay"] != 0) != (cases["ei1"] != 0))
    report(
        cases,
        wrong & ~by_convention,
        lambda i: f"IME {cases['ime1'][i]} EI {cases['ei1'][i]}, not {results['ime1'][i]} {results['ei_delay'][i]}",
    )


def test_m_cycles(cases: Cases, results: Cases, by_convention: np.ndarray) -> None:
    wrong = (results["m_cycles"] != cases["mcycles"]) & ~by_convention
    report(cases, wrong, lambda i: f"{cases['mcycles'][i]} M-cycles, not {results['m_cycles'][i]}")


def registers(r: np.ndarray, sp: np.ndarray, i: int) -> str:
    return " ".join(f"{name}={value:02X}" for name, value in zip(REGISTERS, r[i], strict=True)) + f" SP={sp[i]:04X}"


def report(cases: Cases, wrong: np.ndarray, detail: Callable[[int], str], shown: int = 8) -> None:
    """Fail with the opcodes that have wrong cases, the first of them with one case each."""
    opcodes, counts = np.unique(cases["opcode"][wrong], return_counts=True)
    lines = [f"{wrong.sum()} of {len(wrong)} cases differ, in {len(opcodes)} opcodes"]
    for opcode, count in list(zip(opcodes.tolist(), counts.tolist(), strict=True))[:shown]:
        i = int(np.flatnonzero(wrong & (cases["opcode"] == opcode))[0])
        before = f"{registers(cases['r0'], cases['sp0'], i)} PC={cases['pc0'][i]:04X}"
        lines.append(f"{opcode:03X}: {count} of {PER_OPCODE}; case {cases['index'][i]:04X} from {before}: {detail(i)}")
    assert not wrong.any(), "\n".join(lines)
