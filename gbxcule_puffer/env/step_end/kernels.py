"""Kernels of the step's end: libcst (slot.py) puts the parts of a sequence (parts.py) into one kernel's slot."""

from __future__ import annotations

from functools import cache as memoize
from pathlib import Path

import warp as wp

from gbxcule_puffer.emulator import kernel_cache

IMPORT = "from gbxcule_puffer.env.step_end import parts"

SEQUENCES: dict[str, tuple[str, ...]] = {
    # What can be measured by itself, and the whole; `emulate_only` is the frames with nothing after them.
    "emulate_only": (),
    "obs_only": ("observe",),
    "reward_only": ("score",),
    "full_step": ("observe", "score", "keep", "count", "restore", "begin"),
    # The whole in pieces, where something is to be done between them (episodes.Episodes).
    "end": ("observe", "score", "keep"),
    "count": ("count",),
    "start": ("restore", "begin"),
    "start_restored": ("begin",),
}

TEMPLATE = '''
"""{name}: {parts}."""

import warp as wp

from gbxcule_puffer.env.fields import Episode
from gbxcule_puffer.env.step_end import parts

# No fused multiply-add: it would round differently on a GPU.
wp.set_module_options({{"enable_backward": False, "fuse_fp": False}})


@wp.kernel
def kernel_parts(e: Episode, lanes: int):
    env, lane = wp.tid()
    PARTS
'''


def source(name: str) -> str:
    """The source of a sequence's module; its kernel_parts has dim (num_envs, lanes)."""
    makers = sorted(Path(__file__).parent.glob("*.py"))
    return kernel_cache.remembered(name, makers, lambda: generate(name))


def generate(name: str) -> str:
    """The source, generated anew."""
    from gbxcule_puffer.env.step_end.slot import fill  # with libcst, which takes a quarter of a second to import

    parts = SEQUENCES[name]
    template = TEMPLATE.format(name=name, parts=", ".join(parts)).lstrip()
    return fill(template, [f"parts.{part}(e, env, lane, lanes)" for part in parts])


@memoize
def kernel(name: str, in_color: bool = False) -> wp.Kernel:
    """A sequence's kernel, compiled where it is launched first; in_color: of observations in colour."""
    text = source(name)
    if in_color:
        name, text = f"{name}_color", text.replace(IMPORT, f"import {_parts_in_color()} as parts")
    return kernel_cache.import_source(name, text).kernel_parts


@memoize
def _parts_in_color() -> str:
    """The name of a copy of the parts, imported."""
    text = Path(__file__).with_name("parts.py").read_text()
    assert text.count("\nCOLOR = False\n") == 1
    return kernel_cache.import_source("parts_color", text.replace("\nCOLOR = False\n", "\nCOLOR = True\n")).__name__
