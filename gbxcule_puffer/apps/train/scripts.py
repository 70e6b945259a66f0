"""A script of cleanrl_style as a command: its flags are read before its imports."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from gbxcule_puffer.apps.flags import check_rom
from gbxcule_puffer.commandline import parse
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import find_game_folder, is_suite
from gbxcule_puffer.trainers.flags import TaskFlags

FLAGS = "Args"  # the class of a script's flags
SWEEP = "SWEEP"  # ranges of its flags for a search, by name


def run_script(path: Path, prog: str, words: Sequence[str]) -> int:
    """Runs a script with these words; --help, and errors in the words, the ROM or the game's name, appear at once.

    Raises: ConfigError for words that its flags do not allow, or a game that is not there; RomError for a damaged ROM.
    """
    # Before torch, which warns about a package that PufferLib has installed.
    warnings.filterwarnings("ignore", "The pynvml package is deprecated", FutureWarning)
    module = flags_module(path)
    parse(getattr(module, FLAGS), prog, module.__doc__, words, look=_check_game)
    from gbxcule_puffer.trainers.trained import load_script

    return load_script(path).main(list(words))


def _check_game(flags: object) -> None:
    """Raises: RomError or ConfigError for a trainer's --rom or --game that is not there."""
    if isinstance(flags, TaskFlags):
        if flags.rom is not None and not is_suite(flags.env):
            check_rom(flags.rom, flags.header, flags.model)
        if flags.game is not None:
            find_game_folder(flags.game)


def flags_module(path: Path) -> ModuleType:
    """A module with only a script's flags: its class `Args`, the ranges for `puffer sweep` if it has any, and the names
    that they use, such as the base class.

    Raises: ConfigError for a file that is not a trainer, with what Python says of it.
    """
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as error:  # ValueError: a zero byte
        where = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise ConfigError(f"trainer {path}{where}: {error.msg if isinstance(error, SyntaxError) else error}") from None
    wanted, kept = {FLAGS, SWEEP}, list[ast.stmt]()
    for node in reversed(tree.body):
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            node.names = [each for each in node.names if (each.asname or each.name) in wanted]
            needed = bool(node.names)
        elif isinstance(node, ast.Import):
            needed = any((each.asname or each.name).split(".")[0] in wanted for each in node.names)
        else:
            needed = isinstance(node, ast.ImportFrom) or bool(_bound(node) & wanted)
        if needed:
            kept.insert(0, node)
            wanted |= _names(node, ast.Load)
    module = ModuleType(f"{path.stem}_flags", ast.get_docstring(tree))
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look up their names there
    try:
        exec(compile(ast.Module(kept, []), str(path), "exec"), vars(module))
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        raise ConfigError(f"trainer {path}: {type(error).__name__}: {first}") from error
    if not hasattr(module, FLAGS):
        raise ConfigError(f"trainer {path} has no class {FLAGS}: write one, as docs/trainers.md shows")
    return module


def _bound(node: ast.stmt) -> set[str]:
    """Names that a statement of a module defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return {node.name}
    return _names(node, ast.Store)


def _names(node: ast.stmt, use: type[ast.expr_context]) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, use)}
