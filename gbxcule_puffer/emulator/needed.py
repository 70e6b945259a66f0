"""The kernels of an emulator's steps, to be compiled at the same time, or before they are needed."""

from __future__ import annotations

from gbxcule_puffer.emulator.build.variant import Variant, build
from gbxcule_puffer.emulator.gpu.schedule import lane_order, twins
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import MEASURED, LaunchShape
from gbxcule_puffer.kernel_objects import Needed, prepare

USUAL_SHAPE = MEASURED[max(MEASURED)]


def kernels_of_steps(variant: Variant, kernel: str, shape: LaunchShape | None) -> list[Needed]:
    """The kernels that steps launch. kernel: as of Emulator; shape: of the launches on a GPU, None on a CPU."""
    built, which = build(kernel, variant), ", ".join(variant.names)
    name = f"the emulator ({which})" if which else "the emulator"
    found = [Needed(name, built.step) if shape is None else Needed(name, built.step, shape.block_dim)]
    if shape is not None and kernel == "datapath":
        found += [
            Needed("its pictures", built.draw),
            Needed("its lanes", lane_order.kernel_demand),
            Needed("its twins", twins.kernel_learn),
        ]
    return found


def prepare_steps(variant: Variant, kernel: str, shape: LaunchShape | None, device: str) -> None:
    """Compiles the kernels of an emulator's first steps, where they are not compiled yet; as kernels_of_steps."""
    prepare(kernels_of_steps(variant, kernel, shape), device)
