"""`puffer size`: what the kernels compile to."""

from __future__ import annotations

import argparse


def add(commands: argparse._SubParsersAction) -> None:
    size = commands.add_parser("size", help="print what the kernels compile to")
    size.set_defaults(run=_run)


def _run(_: argparse.Namespace) -> int | None:
    from gbxcule_puffer.apps.size.report import main as report

    return report()
