"""The kernels that most commands need."""

from __future__ import annotations

from collections.abc import Iterable

from gbxcule_puffer.emulator import pool
from gbxcule_puffer.emulator.build.variant import Variant
from gbxcule_puffer.emulator.needed import USUAL_SHAPE, kernels_of_steps
from gbxcule_puffer.env import rows
from gbxcule_puffer.env.curriculum import archive, progress, starts, visits
from gbxcule_puffer.env.needed import AT_ONCE, DISTANCE, OF_OBJECTS, WITH_TASKS, kernels_of_ends
from gbxcule_puffer.kernel_objects import Needed
from gbxcule_puffer.scan import tally
from gbxcule_puffer.tasks.observe import objects
from gbxcule_puffer.tasks.ram import bits

SMALL = [
    DISTANCE,
    Needed("pools of states", pool.kernel_restore),
    Needed("rows", rows.kernel_copy_rows),
    Needed("samples of starts", starts.kernel_cumulate),
    Needed("progress at stages", progress.kernel_posterior),
    Needed("visits", visits.kernel_visit),
    Needed("the archive", archive.kernel_claim),
    Needed("tiles and sprites", objects.kernel_tiles),
    Needed("bits of RAM", bits.kernel_bits_set),
    Needed("a scan's counts", tally.kernel_changes),
]


def usual_kernels(models: Iterable[str], on_gpu: bool) -> list[Needed]:
    """The kernels for Game Boys of `models`, 'dmg' and 'cgb'; without sound, and for observations as they are by
    default."""
    found = []
    for model in models:
        variant = Variant(color=model == "cgb")
        if on_gpu:
            found += kernels_of_steps(variant, "datapath", USUAL_SHAPE)
        else:
            found += kernels_of_steps(variant, "interpreter", None)
            # Native code counts with it what a game executes.
            found += kernels_of_steps(Variant(color=model == "cgb", counted=True), "interpreter", None)
    return [*found, *kernels_of_ends(dict.fromkeys((*AT_ONCE, *WITH_TASKS, *OF_OBJECTS))), *SMALL]
