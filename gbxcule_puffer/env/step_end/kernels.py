"""Kernels of the step's end: libcst joins the parts of a sequence (parts.py) into one kernel."""

from __future__ import annotations

import importlib
from functools import cache as memoize
from pathlib import Path

import warp as wp

from gbxcule_puffer.emulator.build import cache
from gbxcule_puffer.emulator.build.instantiate import DeviceCode, instantiate

FOLDER = Path(__file__).parent
SEQUENCES: dict[str, tuple[str, ...]] = {
    # Sequences that can be measured alone, and the whole; `emulate_only` is the frames with nothing after them.
    "emulate_only": (),
    "obs_only": ("observe",),
    "reward_only": ("score",),
    "full_step": ("observe", "score", "keep", "count", "restore", "begin"),
    # The whole for programs in C, which read no final_observation (native/).
    "native_step": ("observe", "score", "count", "restore", "begin"),
    "native_end": ("observe", "score"),
    "native_rest": ("count", "restore", "begin"),
    # The whole in pieces, for work between them (episodes.Episodes).
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
    return cache.remembered(name, sorted(FOLDER.glob("*.py")), lambda: generate(name))


def generate(name: str) -> str:
    """Generate the source."""
    from gbxcule_puffer.emulator.build.slots import fill  # imports libcst, which takes a quarter of a second

    parts = SEQUENCES[name]
    template = TEMPLATE.format(name=name, parts=", ".join(parts)).lstrip()
    return fill(template, {"PARTS": [f"parts.{part}(e, env, lane, lanes)" for part in parts]})


@memoize
def kernel(name: str, in_color: bool = False) -> wp.Kernel:
    """A sequence's kernel, compiled at its first launch; in_color: for observations in colour."""
    module = importlib.import_module(f"{_in_color()}.{name}") if in_color else cache.import_source(name, source(name))
    return module.kernel_parts


@memoize
def _in_color() -> str:
    """The name of the package of all sequences in colour."""
    code = DeviceCode("gbxcule_puffer.env", FOLDER.parent, (), {name: source(name) for name in SEQUENCES})
    return cache.import_package("step_end", instantiate(code, {"step_end.parts.COLOR": True}))
