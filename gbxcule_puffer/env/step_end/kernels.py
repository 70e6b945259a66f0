"""Kernels of the step's end: libcst puts the parts of a sequence (env/step_end/parts.py) into one kernel's slot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache as memoize

import libcst as cst
import warp as wp

from gbxcule_puffer.emulator import kernel_cache

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


class _Injector(cst.CSTTransformer):
    """Replaces the statement PARTS by others."""

    def __init__(self, statements: Sequence[cst.BaseStatement]) -> None:
        super().__init__()
        self.statements = statements

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        """The slot, or any other line."""
        (first, *_) = original_node.body
        if isinstance(first, cst.Expr) and isinstance(first.value, cst.Name) and first.value.value == "PARTS":
            return cst.FlattenSentinel(self.statements)
        return updated_node


def source(name: str) -> str:
    """The source of a sequence's module; its kernel_parts has dim (num_envs, lanes)."""
    parts = SEQUENCES[name]
    tree = cst.parse_module(TEMPLATE.format(name=name, parts=", ".join(parts)).lstrip())
    calls = [cst.parse_statement(f"parts.{part}(e, env, lane, lanes)") for part in parts]
    return tree.visit(_Injector(calls)).code


@memoize
def kernel(name: str) -> wp.Kernel:
    """A sequence's kernel, compiled where it is launched first."""
    return kernel_cache.import_source(name, source(name)).kernel_parts
