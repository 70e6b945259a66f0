"""The archive of compiled kernels that a wheel has (shipped_kernels.py)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import warp as wp

from gbxcule_puffer import kernel_objects, shipped_kernels
from gbxcule_puffer.apps.warm.usual import usual_kernels
from gbxcule_puffer.device import start_warp
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import check_output
from gbxcule_puffer.kernel_objects import Needed, compile_for
from gbxcule_puffer.provenance import usable_cores


def write_archive(path: str, models: Sequence[str], architectures: Sequence[int]) -> str:
    """Compile the usual kernels for CPUs and for GPUs of `architectures`, without a GPU, and write them; returns a line
    about the file.

    Raises: ConfigError for a CPU whose code others cannot run, or an architecture that Warp does not know.
    """
    target = check_output(path)
    start_warp()
    if wp.config.cpu_compiler_flags != kernel_objects.LEVEL:
        raise ConfigError("this CPU is older than x86-64-v3, which a wheel's kernels need: use another machine")
    if unknown := [arch for arch in architectures if arch not in wp.get_cuda_supported_archs()]:
        raise ConfigError(f"architecture {unknown[0]} is unknown to this Warp: leave it out")
    work: list[tuple[Needed, int | None]] = [(each, None) for each in usual_kernels(models, False)]
    work += [(each, arch) for arch in architectures for each in usual_kernels(models, True)]
    objects = []
    with ThreadPoolExecutor(usable_cores()) as threads:
        for (needed, arch), found in zip(work, threads.map(lambda each: compile_for(*each), work), strict=True):
            objects.append(found)
            what = needed.name if arch is None else f"{needed.name} for sm_{arch}"
            print(f"{len(objects)} of {len(work)}: {what}, {len(found.data):,} bytes", flush=True)
    shipped_kernels.write(target, objects)
    return f"{target}: {len(objects)} objects, {target.stat().st_size / 1e6:.2f} MB"
