"""`puffer copy`: a trainer's single file, or our game, in the user's folder."""

from __future__ import annotations

from pathlib import Path

from gbxcule_puffer.commandline import command, flag, word
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import ROMS, SCRIPTS, trainer_scripts, trainers

GAME = ("homeward.gb", "homeward.sym", "homeward/*.json", "homeward/errand.py")  # of roms/
NAMES = (*trainers(), "evaluate", "homeward")


@command
class Copy:
    """Write a trainer's single file, or our game, into this folder."""

    what: str = word(
        f"{', '.join(trainers())}, to be edited; evaluate: the script of `puffer eval`; homeward: our game with its "
        "symbols, stages and Task, as the documentation uses them",
        "WHAT",
    )
    out: str | None = flag(
        None, "file to write (default: the script's own name), or folder (default: roms)", metavar="PATH"
    )

    def run(self) -> None:
        from gbxcule_puffer.files import make_folder, write_bytes

        if self.what == "homeward":
            target = Path(self.out or "roms")
            sources = [path for pattern in GAME for path in sorted(ROMS.glob(pattern))]
            targets = [target / path.relative_to(ROMS) for path in sources]
            done = f"{target}: our game, its symbols, stages and Task"
        else:
            scripts = {**trainer_scripts(), **trainers(), "evaluate": SCRIPTS / "evaluate.py"}
            if self.what not in scripts:
                raise ConfigError(f"{self.what!r:.40} cannot be copied: give one of {', '.join(NAMES)}")
            sources = [scripts[self.what]]
            targets = [Path(self.out or sources[0].name)]
            done = f"{targets[0]}: edit it, then run it with python {targets[0]}"
        for source, path in zip(sources, targets, strict=True):
            if path.exists() and path.samefile(source):
                raise ConfigError(
                    f"{path} is there already, as this is a clone: use it as it is, from this folder, or give another "
                    f"--out for a copy{' (commands take `homeward` from any folder)' * (self.what == 'homeward')}"
                )
            if path.exists():
                raise ConfigError(f"{path} is there already: give another --out")
        for source, path in zip(sources, targets, strict=True):
            if len(sources) > 1:
                make_folder(path.parent)
            write_bytes(path, source.read_bytes())
        print(done)


COMMAND = Copy
