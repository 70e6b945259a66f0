"""PufferLib's own modes: `puffer train | eval | sweep | autotune | profile | export ENV [its flags]`."""

from __future__ import annotations

import argparse
import warnings

HELP = {
    "train": "train with PufferLib's own trainer, e.g. puffer train gbxcule",
    "eval": "watch a trained policy in the terminal, or save a GIF",
    "sweep": "search hyperparameters with PufferLib",
    "autotune": "let PufferLib time its vector backends",
    "profile": "PufferLib's profiler",
    "export": "write a policy's weights to one binary file",
}


def add(commands: argparse._SubParsersAction) -> None:
    for mode, text in HELP.items():
        parser = commands.add_parser(mode, help=text)
        parser.add_argument("env", help="gbxcule, or an environment of PufferLib")
        rest = parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its flags; ENV --help lists them")
        rest.required = False
        parser.set_defaults(run=_run, mode=mode)


def _run(args: argparse.Namespace) -> None:
    # Before torch, which complains of a package that PufferLib has installed.
    warnings.filterwarnings("ignore", "The pynvml package is deprecated", FutureWarning)
    from gbxcule_puffer.integrations.pufferl.modes import run

    run(args.mode, args.env, args.arguments)
