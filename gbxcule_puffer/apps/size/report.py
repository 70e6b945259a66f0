"""`make size`: source lines, compile seconds, and for sm_90 registers, stack and code bytes of the kernels.

NVRTC compiles for sm_90 without a GPU. Registers and stack are read from the ELF of the result (the attributes that
`cuobjdump -res-usage` prints). A kernel without a stack frame has no spills. With a frame, `ptxas -v` distinguishes
spills from structs that functions take by address.
"""

from __future__ import annotations

import struct
import tempfile
import time
from pathlib import Path

import warp as wp

from gbxcule_puffer.emulator import pool
from gbxcule_puffer.emulator.build import interpreter, variant
from gbxcule_puffer.env.step_end import kernels as step_end

REGCOUNT, FRAME_SIZE = 0x2F, 0x11  # attribute numbers in .nv.info
HAS_VALUE = 4  # attribute format: size and payload follow


def _sections(elf: bytes) -> dict[str, tuple[bytes, int]]:
    """Section name -> (bytes, index) of a 64-bit little-endian ELF file."""
    (offset,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, offset + i * size) for i in range(count)]
    names = headers[names_index]
    table = elf[names[4] : names[4] + names[5]]
    result = {}
    for index, header in enumerate(headers):
        name = table[header[0] : table.index(b"\0", header[0])].decode()
        result[name] = (elf[header[4] : header[4] + header[5]] if header[1] != 8 else b"", index)
    return result


def resource_usage(cubin: bytes) -> dict[str, dict[str, int]]:
    """Function name -> registers, stack_bytes and code_bytes of each function in a cubin."""
    sections = _sections(cubin)
    symbols, strings = sections[".symtab"][0], sections[".strtab"][0]
    names = []
    for start in range(0, len(symbols), 24):
        (name,) = struct.unpack_from("<I", symbols, start)
        names.append(strings[name : strings.index(b"\0", name)].decode())
    info, position = sections[".nv.info"][0], 0
    found: dict[str, dict[str, int]] = {}
    while position < len(info):
        kind, attribute, size = struct.unpack_from("<BBH", info, position)
        position += 4
        if kind == HAS_VALUE:
            if attribute in (REGCOUNT, FRAME_SIZE):
                symbol, value = struct.unpack_from("<II", info, position)
                key = "registers" if attribute == REGCOUNT else "stack_bytes"
                found.setdefault(names[symbol], {})[key] = value
            position += size
    for name, usage in found.items():
        usage["code_bytes"] = len(sections.get(f".text.{name}", (b"", 0))[0])
    return found


def compile_for_sm90(module: wp.Module) -> tuple[float, dict[str, dict[str, int]]]:
    """Seconds that NVRTC takes for a module's kernels, and resource_usage of the result."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        wp.compile_aot_module(module, arch=90, use_ptx=False, module_dir=folder)
        seconds = time.perf_counter() - start
        (cubin,) = Path(folder).glob("*.cubin")
        return seconds, resource_usage(cubin.read_bytes())


def compile_for_cpu(module: wp.Module) -> float:
    """Seconds that the CPU compiler takes for a module's kernels, without the cache."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        wp.compile_aot_module(module, device="cpu", module_dir=folder)
        return time.perf_counter() - start


def main() -> int:
    """Print the table."""
    wp.init()
    print(f"interpreter: {len(interpreter.source().splitlines())} generated lines")
    compiled: dict[str, wp.Module] = {name: variant.build(name).step.module for name in variant.ENTRIES}
    compiled |= {name: step_end.kernel(name).module for name, parts in step_end.SEQUENCES.items() if parts}
    compiled |= {"picture": variant.build("datapath").draw.module, "pool": pool.kernel_restore.module}
    for name, module in compiled.items():
        cpu = compile_for_cpu(module)
        seconds, usage = compile_for_sm90(module)
        print(f"{name}: CPU {cpu:.1f} s, NVRTC sm_90 {seconds:.1f} s")
        for kernel, facts in usage.items():
            if facts["code_bytes"]:
                print(f"  {kernel}: " + ", ".join(f"{key} {value}" for key, value in facts.items()))
    return 0
