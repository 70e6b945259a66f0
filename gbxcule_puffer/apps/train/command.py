"""`puffer train a2c`, `puffer eval RUN` and `puffer copy a2c`: the single-file trainers, and our game. With an
environment's name, PufferLib's own modes: `puffer train | eval | sweep | autotune | export ENV [its flags]`."""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import ROMS, SCRIPTS, trainer_scripts

OWN = "gbxcule"  # of which PufferLib's trainer has an .ini of ours
GAME = ("homeward.gb", "homeward.sym", "homeward/*.json", "homeward/errand.py")  # of roms/, what `copy homeward` copies
HELP = {
    "train": "train with a script of cleanrl_style (a2c, ppo, dqn, pqn), or with PufferLib's own trainer (gbxcule)",
    "eval": "play episodes with a run's checkpoint, or watch a policy of PufferLib's trainer (gbxcule)",
    "sweep": "search hyperparameters with PufferLib",
    "autotune": "let PufferLib time its vector backends",
    "export": "write a policy's weights to one binary file",
}
SUBJECT = {
    "train": "a2c, ppo, dqn or pqn; or gbxcule, or an environment of PufferLib, for PufferLib's trainer",
    "eval": "a run's folder or checkpoint.pt; or gbxcule, or an environment of PufferLib",
}


def add(commands: argparse._SubParsersAction) -> None:
    for mode, text in HELP.items():
        parser = commands.add_parser(mode, help=text)
        parser.parse_known_args = partial(_parse_after_subject, parser, parser.parse_known_args)  # pyright: ignore
        parser.add_argument("env", metavar="WHAT", help=SUBJECT.get(mode, "gbxcule, or an environment of PufferLib"))
        rest = parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its flags; WHAT --help lists them")
        rest.required = False
        parser.set_defaults(run=_run, mode=mode)
    copy = commands.add_parser("copy", help="write a trainer's single file, or our game, into this folder")
    copy.add_argument(
        "what",
        help="a2c, ppo, dqn or pqn, to be edited; evaluate: the script of `puffer eval`; homeward: our game with its "
        "symbols, stages, quest and Task, as the documentation uses them",
    )
    copy.add_argument("--out", help="file to write (default: the script's own name), or folder (default: roms)")
    copy.set_defaults(run=_copy)


def _parse_after_subject(parser: argparse.ArgumentParser, parse: Callable[..., Any], words: Any, *rest: Any) -> Any:
    """Parses the words of a mode; flags before WHAT would be told as unknown ones."""
    if words and words[0].startswith("-") and words[0] not in ("-h", "--help"):
        parser.error(f"{words[0]} stands before WHAT: give {parser.prog} WHAT {words[0]} ...")
    return parse(words, *rest)


def _run(args: argparse.Namespace) -> int | None:
    # Before torch, which complains of a package that PufferLib has installed.
    warnings.filterwarnings("ignore", "The pynvml package is deprecated", FutureWarning)
    script = trainer(args.env) if args.mode == "train" else None
    if args.mode == "eval" and Path(args.env).exists():
        script, args.arguments = SCRIPTS / "evaluate.py", [args.env, *args.arguments]
    if script:
        from gbxcule_puffer.trainers.trained import load_script

        return load_script(script).main(args.arguments)
    _check_subject(args.mode, args.env)
    from gbxcule_puffer.integrations.pufferl.modes import run

    run(args.mode, args.env, args.arguments)
    return None


def _check_subject(mode: str, subject: str) -> None:
    """Raises: ConfigError for what is no trainer and no run, where there is no PufferLib that could know it."""
    if subject == OWN or mode not in SUBJECT or importlib.util.find_spec("pufferlib.pufferl") is not None:
        return
    rest = "other names are PufferLib's environments, and only pufferlib-core is installed"
    if mode == "train":
        raise ConfigError(f"trainer {subject!r:.60} is unknown: give a2c, ppo, dqn or pqn ({rest})")
    raise ConfigError(f"run {subject!r:.60} is not there: give a run's folder or its checkpoint.pt ({rest})")


def trainer(name: str) -> Path | None:
    """The trainer's file of a full name, or of its first word as in a2c; None for another name."""
    scripts = trainer_scripts()
    return scripts.get(name) or {stem.split("_")[0]: path for stem, path in scripts.items()}.get(name)


def _copy(args: argparse.Namespace) -> None:
    from gbxcule_puffer.files import make_folder, write_bytes

    if args.what == "homeward":
        sources, target = [path for pattern in GAME for path in sorted(ROMS.glob(pattern))], Path(args.out or "roms")
        places = [target / path.relative_to(ROMS) for path in sources]
        said = f"{target}: our game, its symbols, stages, quest and Task"
    else:
        source = SCRIPTS / "evaluate.py" if args.what == "evaluate" else trainer(args.what)
        if source is None:
            names = ", ".join([*trainer_scripts(), "evaluate", "homeward"])
            raise ConfigError(f"{args.what!r:.40} cannot be copied: give one of {names}")
        sources, places = [source], [Path(args.out or source.name)]
        said = f"{places[0]}: edit it, then run it with python {places[0]}"
    for place in places:
        if place.exists():
            raise ConfigError(f"{place} is there already: give another --out")
    for source, place in zip(sources, places, strict=True):
        if len(sources) > 1:
            make_folder(place.parent)
        write_bytes(place, source.read_bytes())
    print(said)
