"""Registers, stack, code bytes and compile seconds of the GPU's step kernel. Needs no GPU.

    python -m benchmarks.kernel.kernel_size [--arch 90] [--rom ROM] [--model cgb] [--out FILE.json]

The kernel is compiled by NVRTC as on a GPU; the figures stand in the file that comes of it. Registers that do not fit
are spilled to the stack. Run with PYTHONPATH at another tree, it measures that one's.
"""

from __future__ import annotations

import argparse
import json
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import warp as wp

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.build.cache import directory
from gbxcule_puffer.files import write_bytes

HOMEWARD = Path(__file__).resolve().parents[2] / "roms" / "homeward.gb"
ATTRIBUTES = {0x2F: "registers", 0x12: "stack_bytes"}  # of the section .nv.info: EIATTR_REGCOUNT, EIATTR_MIN_STACK_SIZE


def compiled(arch: int, rom: Path, model: str = "dmg") -> bytes:
    """The ELF image of the data path's kernel for a compute capability; rom: any game. It is kept in Warp's cache."""
    kernel = Emulator(rom, 1, "cpu", kernel="datapath", model=model)._kernel()
    kept = directory() / f"{kernel.module.name}_{kernel.module.hash_module().hex()[:16]}.sm{arch}.cubin"
    if not kept.is_file():
        write_bytes(kept, _compile(kernel.module, arch))
    return kept.read_bytes()


def _compile(module: wp.Module, arch: int) -> bytes:
    """A module's ELF image."""
    with tempfile.TemporaryDirectory() as folder:
        (path,) = wp.compile_aot_module(module, arch=arch, module_dir=folder, use_ptx=False)
        return path.read_bytes()


def figures(image: bytes) -> dict[str, int]:
    """Registers, and bytes of stack and code, of a compiled kernel."""
    found = dict.fromkeys((*ATTRIBUTES.values(), "code_bytes"), 0)
    for name, content in sections(image):
        if name.startswith(".text."):
            found["code_bytes"] += len(content)
        elif name == ".nv.info":
            for attribute, value in _attributes(content):
                if attribute in ATTRIBUTES:
                    found[ATTRIBUTES[attribute]] = max(found[ATTRIBUTES[attribute]], value)
    return found


def measure(arch: int, rom: Path, model: str = "dmg") -> dict[str, Any]:
    """The figures, and how long the compiler takes."""
    module = Emulator(rom, 1, "cpu", kernel="datapath", model=model)._kernel().module
    begin = time.perf_counter()
    image = _compile(module, arch)
    return {"arch": arch, "compile_seconds": round(time.perf_counter() - begin, 1), **figures(image)}


def sections(image: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of each section of a 64-bit ELF file."""
    (table,) = struct.unpack_from("<Q", image, 0x28)
    size, count, of_names = struct.unpack_from("<HHH", image, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", image, table + size * number) for number in range(count)]
    names = image[headers[of_names][4] :]
    for name, _, _, _, begin, length in headers:
        yield names[name : names.index(b"\0", name)].decode(), image[begin : begin + length]


def _attributes(section: bytes) -> Iterator[tuple[int, int]]:
    """Number and value of each attribute that a function has."""
    at = 0
    while at < len(section):
        form, number, size = struct.unpack_from("<BBH", section, at)
        at += 4
        if form == 4:  # `size` bytes follow; of a function's attributes its symbol, then the value
            if size == 8:
                yield number, struct.unpack_from("<I", section, at + 4)[0]
            at += size


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", type=int, default=90, help="compute capability, 90 for an H100 or H200")
    parser.add_argument("--rom", type=Path, default=HOMEWARD)
    parser.add_argument("--model", default="dmg", help="dmg, cgb or auto")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    args = parser.parse_args()
    text = json.dumps(measure(args.arch, args.rom, args.model), indent=1)
    print(text)
    if args.out is not None:
        args.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
