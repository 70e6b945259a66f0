"""`python -m benchmarks.kernel.cpu_parts ROM ... [--model cgb] [--envs N] [--native] [--out FILE]`: the parts of a
step on a CPU.

perf samples the compiled kernel 3,000 times a second of its own time while it steps envs with random buttons on one
core. Each sample belongs to the function that it is in, and each function to a part of the step; what the compiler
inlines counts where it is inlined. Only the kernel counts, so that other work on the machine hardly matters. The
emulator counts the instructions. Needs Linux's perf, and nm of binutils.
"""

from __future__ import annotations

import argparse
import bisect
import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.pieces.source import SYMBOL
from gbxcule_puffer.emulator.state import INDEX
from gbxcule_puffer.kernel_objects import load_address

ENVS, WARMUP, RATE = 16, 24, 3_000
BUTTONS = torch.tensor([0x00, 0x10, 0x20, 0x80, 0x04, 0x08, 0x02, 0x01], dtype=torch.uint8)
# Functions of the kernel by their names' beginnings; the first that fits counts. `run` has the tree of opcodes.
PARTS = {
    "native code": (SYMBOL, "group_0", "group_1", "group_2", "group_3", "group_4", "group_5", "group_6", "group_7"),
    "interpreter": ("make_kernel__locals__run", "run", "alu_", "add"),
    "drawing": ("draw_", "blank", "group_of_line", "first_ten"),
    "length of mode 3": ("extra",),
    "LCD": ("settle", "change", "halt_event", "next_event", "gbxcule_lcd_"),
    "events, interrupts, HALT": (
        "begin_batch", "end_batch", "dispatch", "finish_rare", "next_batch", "ends_early", "end_step",
    ),
    "skipped loops": ("at_mark", "gbxcule_at_mark", "skip_", "delay", "multiply", "count"),
    "registers": ("write_register", "end_write_io", "register"),
    "memory": ("read", "write", "gbxcule_bus_", "store", "load"),
    "timer, DMA, serial": ("advance",),
    "the rest": ("",),
}  # fmt: skip


def step_game(rom: str, model: str, envs: int, steps: int, native: bool) -> None:
    """Step under perf; prints the facts that the samples need, as JSON."""
    torch.set_num_threads(1)
    emulator = Emulator(rom, envs, num_threads=1, model=model, native=native)
    rows = BUTTONS[torch.randint(len(BUTTONS), (WARMUP + steps, envs), generator=torch.Generator().manual_seed(1))]
    for row in rows[:WARMUP]:
        emulator.step(row)
    objects = [object_of(emulator._kernel())]
    if emulator.native is not None:
        emulator.native.find_now()
        assert emulator.native.pieces is not None
        if (found := emulator.native.pieces.compiled) is not None:
            objects.append((str(found.file()), found.symbol, load_address(found)))
    instructions = skipped = 0
    begin = time.process_time()
    for row in rows[WARMUP:]:
        emulator.step(row)
        instructions += int(emulator._state[INDEX["instructions"]].sum())
        skipped += int(emulator.skipped.sum())
    count, seconds = envs * steps, time.process_time() - begin
    facts = {"us": 1e6 * seconds / count, "instructions": instructions / count, "skipped": skipped / count}
    print(json.dumps({"objects": objects, **facts}))


def object_of(kernel: Any) -> tuple[str, str, int]:
    """(path of its object, its symbol there, its address) of a kernel, which is compiled if it is not yet."""
    built = kernel.module.load("cpu", 1)  # the block size of launches on a CPU
    address = ctypes.cast(built.get_kernel_hooks(kernel).forward, ctypes.c_void_p).value
    return str(built.binary_path), f"{kernel.get_mangled_name()}_cpu_forward", int(address or 0)


def symbols_of(path: str) -> list[tuple[int, int, str]]:
    """(begin, size, name) of the functions of an object, by their begin."""
    lines = subprocess.run(["nm", "-C", "-S", path], capture_output=True, text=True, check=True).stdout.splitlines()
    parts = [line.split(maxsplit=3) for line in lines]
    return sorted((int(p[0], 16), int(p[1], 16), p[3].split("(")[0]) for p in parts if len(p) == 4 and p[2] in "tT")


def part_of(name: str) -> str:
    """The part of the step that a function belongs to."""
    return next(part for part, begins in PARTS.items() if name.startswith(begins))


def measure(rom: str, model: str, envs: int, steps: int, native: bool) -> dict[str, Any]:
    """A game's record: microseconds and instructions a step, and the share of each part."""
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/samples"
        child = [sys.executable, "-m", "benchmarks.kernel.cpu_parts", "--child", rom, "--steps", str(steps)]
        child += ["--model", model, "--envs", str(envs)]
        perf = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(RATE), "-o", data, *child, *["--native"] * native]
        facts = json.loads(subprocess.run(perf, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1])
        script = ["perf", "script", "-i", data, "-F", "ip"]
        samples = subprocess.run(script, capture_output=True, text=True, check=True).stdout.split()
    counts = Counter[str]()
    for path, symbol, loaded in facts.pop("objects"):
        symbols = symbols_of(path)
        shift = loaded - next(begin for begin, _, name in symbols if name == symbol)
        begins = [begin for begin, _, _ in symbols]
        for sample in samples:
            address = int(sample, 16) - shift
            begin, size, name = symbols[max(0, bisect.bisect(begins, address) - 1)]
            if begin <= address < begin + size:
                counts[part_of(name)] += 1
    total = sum(counts.values())
    shares = {part: round(counts[part] / total, 3) for part in PARTS if counts[part]}
    own = facts["instructions"] - facts["skipped"]
    facts = {name: round(value, 1) for name, value in facts.items()} | {
        "ns_an_instruction": round(1e3 * facts["us"] / own, 1)
    }
    return {
        "rom": Path(rom).stem,
        "model": model,
        "envs": envs,
        "native": native,
        "samples": total,
        **facts,
        "shares": shares,
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roms", nargs="+", metavar="ROM")
    parser.add_argument("--model", choices=("dmg", "cgb"), default="dmg")
    parser.add_argument("--envs", type=int, default=ENVS)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--native", action="store_true", help="with native code")
    parser.add_argument("--out", type=Path, help="a JSON file for the records")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return step_game(args.roms[0], args.model, args.envs, args.steps, args.native)
    records = []
    for rom in args.roms:
        records.append(measure(rom, args.model, args.envs, args.steps, args.native))
        shares = ", ".join(f"{part} {share:.0%}" for part, share in records[-1]["shares"].items())
        print(f"{records[-1]['rom']}: {records[-1]['us']} us, {records[-1]['instructions']:.0f} instructions: {shares}")
        sys.stdout.flush()
    if args.out:
        args.out.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
