"""The cost of a turn of the GPU's data path, from its machine code. Needs no GPU.

    python -m benchmarks.kernel.turn_cost [--arch 90] [--model cgb] [--list] [--out FILE.json]

A turn is one pass through the common path of gpu/run.py: the shortest cycle of machine instructions with a vote, the
load of a descriptor and a store to memory. Of it are counted:

instructions    machine instructions
integers        those of the pipe for integers, which takes two clocks for each
clocks          the clocks that the compiler has a warp wait after each instruction, added up: memory is not in it
local_accesses  loads and stores of the stack: values that did not fit into registers

The rest (registers, stack_bytes, code_bytes) is of the whole kernel: kernel_size.py.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections import deque
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from benchmarks.kernel import kernel_size

PACKAGE = "nvidia-cuda-nvdisasm"
MODELS = ("dmg", "cgb")
SIZE = 16  # bytes of a machine instruction
STALL_SHIFT = 105  # four bits of an instruction: clocks until the warp issues its next one
INTEGERS = frozenset(
    ["IADD3", "ISETP", "LEA", "LOP3", "PLOP3", "PRMT", "R2P", "SEL", "SHF", "VIADD", "VIADDMNMX", "VIMNMX"]
)
LOCAL = ("LDL", "STL")


@dataclass(frozen=True)
class Instruction:
    """One machine instruction."""

    opcode: str
    operands: str
    predicate: str
    stall: int  # clocks

    def __str__(self) -> str:
        return f"{self.stall:3} {self.predicate:>5} {self.opcode} {self.operands}"


def disassembler() -> Path | None:
    """nvdisasm of its pip package, where that is installed."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.stem == "nvdisasm"), None)


def measure(model: str, arch: int = 90) -> dict[str, int]:
    """The figures of a model's kernel."""
    image = kernel_size.compiled(arch, kernel_size.HOMEWARD, model)
    turn = turn_of(disassemble(image))
    counts = {
        "instructions": len(turn),
        "integers": sum(_base(step) in INTEGERS for step in turn),
        "clocks": sum(step.stall for step in turn),
        "local_accesses": sum(_base(step) in LOCAL for step in turn),
    }
    return {**counts, **kernel_size.figures(image)}


def disassemble(image: bytes) -> list[Instruction]:
    """The machine instructions of a compiled kernel, in the order of their addresses."""
    program = disassembler()
    if program is None:
        raise SystemExit(f"{PACKAGE} is not installed: pip install -c constraints.txt {PACKAGE}")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(image)
        file.flush()
        text = subprocess.run([program, "-json", file.name], capture_output=True, check=True, text=True).stdout
    _, functions = json.loads(text)
    listed = [step for function in functions for step in function["sass-instructions"]]
    (code,) = (content for name, content in kernel_size.sections(image) if name.startswith(".text."))
    assert len(code) == SIZE * len(listed)
    words = (int.from_bytes(code[at : at + SIZE], "little") for at in range(0, len(code), SIZE))
    return [
        Instruction(step["opcode"], step.get("operands", ""), step.get("predicate", ""), word >> STALL_SHIFT & 15)
        for step, word in zip(listed, words, strict=True)
    ]


def turn_of(code: list[Instruction]) -> list[Instruction]:
    """The turn: the shortest cycle through a vote and the load of a descriptor in which something is stored."""
    loads = [at for at, step in enumerate(code) if step.opcode.startswith("LDG.E.128")]
    votes = [at for at, step in enumerate(code) if step.opcode.startswith("VOTE.ANY")]
    cycles = []
    for vote in votes:
        for load in loads:
            there, back = _shortest(code, vote, load), _shortest(code, load, vote)
            if there and back and any(_base(code[at]) == "STG" for at in there + back):
                cycles.append(there + back)
    return [code[at] for at in min(cycles, key=len)]


def _shortest(code: list[Instruction], begin: int, end: int) -> list[int]:
    """What is executed after `begin` until `end`, with it, in the fewest instructions; empty where there is no way."""
    before = {after: begin for after in _successors(code, begin)}
    queue = deque(before)
    while queue and end not in before:
        at = queue.popleft()
        for after in _successors(code, at):
            if after not in before:
                before[after] = at
                queue.append(after)
    if end not in before:
        return []
    path = [end]
    while before[path[-1]] != begin:
        path.append(before[path[-1]])
    return path[::-1]


def _successors(code: list[Instruction], at: int) -> list[int]:
    """The instructions that may follow one; a function that it calls is left out, and so is BRA.DIV's way."""
    step = code[at]
    after = []
    if step.opcode == "BRA":
        after.append(int(step.operands.rpartition(",")[2], 16) // SIZE)
    always = not step.predicate and "," not in step.operands  # a branch can have a second condition among its operands
    leaves = step.opcode.startswith(("BRA", "EXIT", "RET")) and step.opcode != "BRA.DIV"
    return after if leaves and always else [*after, at + 1]


def _base(step: Instruction) -> str:
    """An opcode without its modifiers."""
    return step.opcode.partition(".")[0]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", type=int, default=90, help="compute capability, 90 for an H100 or H200")
    parser.add_argument("--model", choices=MODELS, help="default: both")
    parser.add_argument("--list", action="store_true", help="list the turn's instructions, each after its clocks")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    args = parser.parse_args()
    models = [args.model] if args.model else MODELS
    if args.list:
        for model in models:
            image = kernel_size.compiled(args.arch, kernel_size.HOMEWARD, model)
            print(model, *turn_of(disassemble(image)), sep="\n")
        return
    text = json.dumps({model: measure(model, args.arch) for model in models}, indent=1)
    print(text)
    if args.out is not None:
        args.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
