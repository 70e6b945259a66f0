"""A folder that programs in C open: kernels for each architecture, game.gbx, game.h, and the library that runs them."""

from __future__ import annotations

import contextlib
import hashlib
import re
import struct
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import warp as wp

from gbxcule_puffer.emulator.build import cache
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import PACKED
from gbxcule_puffer.emulator.gpu.schedule.twins import TWINS
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import make_folder, write_bytes, write_text
from gbxcule_puffer.kernel_objects import REMEDY
from gbxcule_puffer.native.launches import Array, Number, Symbol, evenly
from gbxcule_puffer.native.record import NUM_ENVS, Record

MAGIC = b"gbxcule native 1"
GIVEN = ("", "observations", "actions", "rewards", "terminals", "logs")  # as enum gbx_given of gbxcule.c
HERE = Path(__file__).parent
SOURCES = (HERE / "gbxcule.h", HERE / "gbxcule.c")
# The tables of game.gbx, as the structs of gbxcule.c.
HEAD, ARRAY, KERNEL, CUBIN = "<QIIIIIIIIIIII", "<qqQQIi", "<124sI", "<40sIIQQ"
LAUNCH, ARGUMENT, PATCH = "<IIIIIIiiii", "<IIII", "<Iiiiqq"


Cubins = Mapping[tuple[str, int], bytes]  # by the module's name, and the architecture


def export(record: Record, folder: Path, architectures: Sequence[int], sources: Iterable[Path] = SOURCES) -> None:
    """Writes the folder of an env.

    architectures: CUDA compute capabilities, 90 for 9.0; sources: files to copy beside the data.
    Raises: StorageError, ConfigError.
    """
    modules = modules_of(record)
    if unknown := [arch for arch in architectures if arch not in (known := wp.get_cuda_supported_archs())]:
        raise ConfigError(f"architecture {unknown[0]} is unknown: give some of {', '.join(map(str, known))}")
    make_folder(folder)
    write(record, folder, {(name, arch): compiled(modules[name], arch) for name in modules for arch in architectures})
    for source in sources:
        write_text(folder / source.name, source.read_text())


def modules_of(record: Record) -> dict[str, wp.Module]:
    """The modules of the kernels, by their names in files."""
    return {_short(launch.kernel): launch.kernel.module for launch in (*record.resets, *record.steps)}


def write(record: Record, folder: Path, cubins: Cubins) -> None:
    """Writes the kernels, game.gbx and game.h."""
    game = data(record, list(modules_of(record)), cubins)
    folder.mkdir(parents=True, exist_ok=True)
    for (name, arch), code in cubins.items():
        write_bytes(folder / _file(name, arch), code)
    write_bytes(folder / "game.gbx", game)
    write_text(folder / "game.h", header(record, game))


def compiled(module: wp.Module, arch: int) -> bytes:
    """A module's code for an architecture; kept, with its digest, in the cache of kernels."""
    path = cache.directory() / "native" / f"{module.get_module_hash().hex()}.sm_{arch}"
    with contextlib.suppress(OSError):
        noted, code = path.read_bytes().split(b"\n", 1)
        if noted.decode() == hashlib.sha256(code).hexdigest():
            return code
    with tempfile.TemporaryDirectory() as scratch:
        (made,) = wp.compile_aot_module(module, arch=arch, module_dir=scratch, use_ptx=False)
        code = made.read_bytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, hashlib.sha256(code).hexdigest().encode() + b"\n" + code, REMEDY)
    return code


def data(record: Record, modules: Sequence[str], cubins: Cubins) -> bytes:
    """The bytes of game.gbx."""
    launches = [*record.resets, *record.steps]
    kernels = list(dict.fromkeys(launch.kernel for launch in launches))
    kernel_rows = [struct.pack(KERNEL, _symbol(each), modules.index(_short(each))) for each in kernels]
    cubin_rows = [
        struct.pack(CUBIN, _file(name, arch).encode(), modules.index(name), arch, len(code), digest(code))
        for (name, arch), code in cubins.items()
    ]
    launch_rows, argument_rows, patch_rows, raw = [], [], [], bytearray()
    for launch in launches:
        numbers = [part for number in launch.dim for part in _number(number)] + [-1, 1] * (2 - len(launch.dim))
        first = len(argument_rows), len(launch.arguments), len(launch.dim), 0
        launch_rows.append(struct.pack(LAUNCH, kernels.index(launch.kernel), launch.block_dim, *first, *numbers))
        for argument in launch.arguments:
            raw += bytes(-len(raw) % 8)
            row = len(raw), len(argument.raw), len(patch_rows), len(argument.patches)
            argument_rows.append(struct.pack(ARGUMENT, *row))
            for patch in argument.patches:
                where = len(raw) + patch.offset, patch.size, patch.symbol, patch.array
                patch_rows.append(struct.pack(PATCH, *where, patch.fixed, patch.factor))
            raw += argument.raw
    raw += bytes(-len(raw) % 8)
    rows = [*kernel_rows, *cubin_rows, *launch_rows, *argument_rows, *patch_rows, bytes(raw)]
    counts = [len(kernel_rows), len(cubin_rows), len(launches), len(record.resets), len(argument_rows)]
    counts += [len(patch_rows), len(raw)]
    start = len(MAGIC) + 8 + struct.calcsize(HEAD) + struct.calcsize(ARRAY) * len(record.arrays)
    array_rows, contents = _arrays(record.arrays, start + sum(map(len, rows)))
    body = b"".join([*array_rows, *rows, contents])
    size = len(MAGIC) + 8 + struct.calcsize(HEAD) + len(body)
    shape = record.shape.lanes, int(record.shape.twins == PACKED), int(TWINS), _obs_size(record)
    body = struct.pack(HEAD, size, *shape, len(record.arrays), *counts) + body
    return MAGIC + digest(body).to_bytes(8, "little") + body


def _arrays(arrays: Sequence[Array], start: int) -> tuple[list[bytes], bytes]:
    """The rows of arrays, and their contents, which begin at byte `start` of the file."""
    rows, contents = [], bytearray()
    for array in arrays:
        fixed, per_env = evenly(NUM_ENVS, array.sizes)
        given = GIVEN.index(array.name) if array.name in GIVEN else 0
        whole = array.contents[0]
        word = (whole + bytes(4))[:4] if len(whole) < 4 else whole[:4]
        content = size = 0
        if any(each != (word * (len(each) // 4 + 1))[: len(each)] for each in array.contents):
            if len(set(array.contents)) > 1:
                raise ConfigError(f"array {array.name} depends on the envs: a native env cannot have this")
            contents += bytes(-len(contents) % 16)
            content, size, word = start + len(contents), len(whole), bytes(4)
            contents += whole
        rows.append(struct.pack(ARRAY, fixed, per_env, content, size, int.from_bytes(word, "little"), given))
    return rows, bytes(contents)


def header(record: Record, game: bytes) -> str:
    """The text of game.h."""
    env = record.env
    kind, sizes = env.layout.kind, list(env.codec.factors) or [env.codec.num_actions]
    numbers = {
        "GBX_DIGEST": f"0x{int.from_bytes(game[16:24], 'little'):016x}ull",
        "GBX_OBS_SIZE": _obs_size(record),
        "GBX_STACK": env.stack_k,
        "GBX_PLANES": kind.planes,
        "GBX_ROWS": kind.rows,
        "GBX_ROW_SIZE": kind.row_values * np.dtype(kind.dtype).itemsize,
        "GBX_VALUE_SIZE": np.dtype(kind.dtype).itemsize,
        "GBX_PIXELS": {"packed": 4, "shades": 1}.get(kind.form, 0),
        "GBX_NUM_ACTIONS": len(sizes),
        "GBX_ACTION_SIZES": "{" + ", ".join(map(str, sizes)) + "}",
        "GBX_FRAMES_PER_STEP": env.schedule.frames_per_step,
    }
    lines = [f"#define {name} {value}" for name, value in numbers.items()]
    what = f"/* {printable(env.cartridge.title)}: pictures {env.obs}, actions {' '.join(env.codec.actions)}.\n"
    note = " * Written by `puffer native`; an observation is GBX_STACK x GBX_PLANES x GBX_ROWS rows of bytes. */\n"
    return what + note + "#ifndef GBX_GAME_H\n#define GBX_GAME_H\n" + "\n".join(lines) + "\n#endif\n"


def printable(title: str) -> str:
    """The game's title without anything that ends a comment."""
    return re.sub(r"[^\w -]", "?", title)


def digest(content: bytes) -> int:
    """FNV-1a of 64 bits, as gbxcule.c has it."""
    value = 0xCBF29CE484222325
    for byte in content:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def _obs_size(record: Record) -> int:
    return record.env.layout.dtype.itemsize


def _number(number: Number) -> tuple[int, int]:
    return (number.index, 0) if isinstance(number, Symbol) else (-1, number)


def _symbol(kernel: wp.Kernel) -> bytes:
    """The name of a kernel in its module's code."""
    kernel.module.get_module_hash()
    name = f"{kernel.get_mangled_name()}_cuda_kernel_forward".encode()
    assert len(name) < 124, name
    return name


def _short(kernel: wp.Kernel) -> str:
    """A module's name for a file."""
    name = kernel.module.name.rpartition(".")[2]
    name = re.sub(r"(_[0-9a-f]{8,})+$", "", name).removeprefix("gbxcule_").removeprefix("wp_")
    return re.sub(r"^make_kernel__locals__kernel_", "", name)


def _file(name: str, arch: int) -> str:
    return f"{name}.sm_{arch}.cubin"
