"""`puffer size`: what the kernels compile to."""

from __future__ import annotations

from gbxcule_puffer.commandline import command


@command
class Size:
    """Print what the kernels compile to."""

    def run(self) -> int | None:
        from gbxcule_puffer.apps.size.report import main as report

        return report()


COMMAND = Size
