"""Paths of the files that come with the package: beside it in a clone, inside it in a wheel."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath

PACKAGE = Path(__file__).resolve().parent
CLONE = None if (PACKAGE / "roms").is_dir() else PACKAGE.parent
ROMS, SCRIPTS = (CLONE or PACKAGE) / "roms", (CLONE or PACKAGE) / "cleanrl_style"
ARENA = ROMS / "arena"  # folders of games, most of them of other authors (docs/arena-games.md)
OWNED = ROMS / "owned"  # folders of games that people own: no ROM, only names of a symbol file (docs/pokemon_red.md)
GAMES = (ROMS, ARENA, OWNED)  # folders of the games that come with the package
GAME_FILE = "game.toml"
FIRST = {"a2c": "a2c_streaming", "ppo": "ppo_lite", "pqn": "pqn"}
NO_TRAINERS = ("evaluate",)
# The suite's games, each with a folder and levels (docs/suite.md): gbxcule_GAME has the levels to train
# on, gbxcule_GAME-N only the first N of them, gbxcule_GAME-test others.
SUITE_GAMES = ("homeward", "orchard", "storeroom")
SUITE = tuple(f"gbxcule_{name}" for name in SUITE_GAMES)


def find_own(path: StrPath, suffix: str = "") -> str:
    """The path of a file: as given, or where no such file is and one of our own is meant, of that. Ours are meant by
    their name, `homeward` with the `suffix` .gb or .sym, also beside a folder of this name, such as one with its
    stages; and as in a clone, roms/homeward/stages.json."""
    name = os.fspath(path)
    if os.path.exists(name) and not os.path.isdir(name):
        return name
    own = ROMS / f"{name}{suffix}" if suffix and re.fullmatch(r"(micro/)?\w+", name) else ROMS.parent / name
    inside = own.is_relative_to(ROMS) and ".." not in own.parts
    return str(own) if inside and os.path.isfile(own) else name


def find_rom(rom: StrPath) -> str:
    """The path of a ROM, which may be one of ours (find_own)."""
    return find_own(rom, ".gb")


def own_games() -> list[str]:
    """The names of the games that come with the package."""
    return sorted(file.parent.name for root in GAMES for file in root.glob(f"*/{GAME_FILE}"))


def find_game_folder(path: StrPath) -> Path:
    """The folder of a game: as given, also by its game.toml, or, for a name, of one that comes with the package.

    Raises: ConfigError if there is none.
    """
    try:
        given, text = Path(path), str(os.fspath(path))
    except TypeError:
        raise ConfigError(f"game {path!r:.60} must be a path, or a name of `puffer game list`") from None
    try:
        if given.name == GAME_FILE and given.is_file():
            return given.parent
        if (given / GAME_FILE).is_file():
            return given
    except (OSError, ValueError):  # a zero byte, or a name that is too long
        pass
    if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text):
        for root in GAMES:
            if (root / text / GAME_FILE).is_file():
                return root / text
    close = difflib.get_close_matches(text[:100], own_games(), 1)
    remedy = f"did you mean {close[0]}?" if close else "give a game's folder, or a name of `puffer game list`"
    raise ConfigError(f"game {text!r:.80}: there is no {GAME_FILE} in such a folder: {remedy}")


def trainer_scripts() -> dict[str, Path]:
    """The trainers' files by name: a2c_streaming and so on."""
    return {path.stem: path for path in sorted(SCRIPTS.glob("*.py")) if path.stem not in NO_TRAINERS}


def trainers() -> dict[str, Path]:
    """The trainers' files by the names for `puffer train`: the first word of a file's name, such as a2c. If several
    files share a first word, the file that FIRST names has it, and the others have their whole names."""
    scripts = trainer_scripts()
    words = [stem.split("_")[0] for stem in scripts]
    names = [
        word if words.count(word) == 1 or FIRST.get(word) == stem else stem
        for word, stem in zip(words, scripts, strict=True)
    ]
    return dict(sorted(zip(names, scripts.values(), strict=True)))


def child_environment() -> dict[str, str]:
    """The environment variables for a child process in Python: it imports this package from the same path as this
    process, and no module from the current folder, which may be a clone beside the installed package."""
    paths = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(paths)}


def is_suite(name: str) -> bool:
    """True for the name of an environment of the suite, with any levels."""
    return name.partition("-")[0] in SUITE
