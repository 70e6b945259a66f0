"""The stages of a step as kernels: libcst puts the parts of a stage (env/step_end/parts.py) into one kernel's slot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache as memoize

import libcst as cst
import warp as wp

from gbxcule_puffer.emulator import kernel_cache

STAGES: dict[str, tuple[str, ...]] = {
    # What can be measured by itself, and the whole; `emulate_only` is the frames with nothing after them.
    "emulate_only": (),
    "obs_only": ("observe",),
    "reward_only": ("score",),
    "full_step": ("observe", "score", "keep", "count", "restore", "begin"),
    # The whole in pieces, where something is to be done between them (episodes.Episodes).
    "end": ("observe", "score", "keep", "count"),
    "start": ("restore", "begin"),
    "start_restored": ("begin",),
}

TEMPLATE = '''
"""{stage}: {parts}."""

import warp as wp

from gbxcule_puffer.env.step_end import parts
from gbxcule_puffer.env.step_end.parts import Episode

# No fused multiply-add: it would round differently on a GPU.
wp.set_module_options({{"enable_backward": False, "fuse_fp": False}})


@wp.kernel
def kernel_parts(e: Episode, lanes: int):
    env, lane = wp.tid()
    EPILOG
'''


class _Injector(cst.CSTTransformer):
    """Replaces the statement EPILOG by others."""

    def __init__(self, statements: Sequence[cst.BaseStatement]) -> None:
        super().__init__()
        self.statements = statements

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        """The slot, or any other line."""
        (first, *_) = original_node.body
        if isinstance(first, cst.Expr) and isinstance(first.value, cst.Name) and first.value.value == "EPILOG":
            return cst.FlattenSentinel(self.statements)
        return updated_node


def source(stage: str) -> str:
    """The source of a stage's module; its kernel_parts has dim (num_envs, lanes)."""
    parts = STAGES[stage]
    tree = cst.parse_module(TEMPLATE.format(stage=stage, parts=", ".join(parts)).lstrip())
    calls = [cst.parse_statement(f"parts.{part}(e, env, lane, lanes)") for part in parts]
    return tree.visit(_Injector(calls)).code


@memoize
def kernel(stage: str) -> wp.Kernel:
    """A stage's kernel, compiled where it is launched first."""
    return kernel_cache.import_source(stage, source(stage)).kernel_parts
