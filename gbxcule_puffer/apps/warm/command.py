"""`puffer warm`: compile kernels before they are needed."""

from __future__ import annotations

from gbxcule_puffer.apps.flags import ARCHITECTURES, RUNNING
from gbxcule_puffer.commandline import command, flag

WHEEL = "A wheel with kernels"


@command
class Warm:
    """Compile the kernels that most commands need, before they are needed.

    A command compiles the kernels that it lacks when it starts, and keeps them in Warp's cache. After this it has none
    to compile.
    """

    device: str = flag("cpu", "cpu, cuda or cuda:N", RUNNING)
    model: str | None = flag(None, "only for Game Boys of this model: dmg or cgb", RUNNING, one_of=("dmg", "cgb"))
    archive: str | None = flag(
        None, "write the kernels for CPUs and --arch's GPUs into this file instead, for a wheel", WHEEL,
        metavar="FILE.zip",
    )  # fmt: skip
    arch: str = flag(ARCHITECTURES, "compute capabilities of the GPUs, 90 for an H100", WHEEL, metavar="LIST")

    def run(self) -> None:
        import time
        from functools import partial

        from gbxcule_puffer import progress
        from gbxcule_puffer.apps.native.command import checked_architectures
        from gbxcule_puffer.apps.warm.usual import usual_kernels
        from gbxcule_puffer.device import resolve_device, start_warp
        from gbxcule_puffer.kernel_objects import prepare

        models = ("dmg", "cgb") if self.model is None else (self.model,)
        progress.listen(partial(print, flush=True))
        start = time.perf_counter()
        if self.archive is not None:
            from gbxcule_puffer.apps.warm.archive import write_archive

            print(write_archive(self.archive, models, checked_architectures(self.arch)))
            return
        start_warp()
        device = resolve_device(self.device)
        needed = usual_kernels(models, device != "cpu")
        prepare(needed, device)
        print(f"kernels for {device}: {len(needed)}, all compiled after {time.perf_counter() - start:.1f} s")


COMMAND = Warm
