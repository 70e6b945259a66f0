"""Code blocks of the documentation: what they are, the commands in them, and how one is parsed or run.

A comment before a block says how it differs from its kind: `<!-- not run: REASON -->` for Python and console blocks,
which run otherwise; `<!-- run -->` for shell blocks, whose commands are only parsed otherwise; `<!-- file PATH -->` for
a block that later blocks of its page find as this file. A text block right
behind a Python block is what that prints; `...` in an output stands for anything.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import doctest
import io
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

from gbxcule_puffer import cli
from gbxcule_puffer.commandline import parsing
from gbxcule_puffer.integrations.pufferl.config import own_config
from gbxcule_puffer.layout import trainers

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("roms/*.md")])
LANGUAGES = ("python", "sh", "console", "json", "toml", "c", "text")
PROGRAMS = ("puffer", "python", "torchrun", "make", "pip", "tensorboard", "sbatch", "sky", "docker")
IMAGE = "gbxcule-puffer"  # of clusters/Dockerfile, which starts puffer
NAMES = {name: name for name in PROGRAMS} | {".venv-puffer/bin/puffer": "puffer"}
ELLIPSIS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: `line` is that of its first line of text, `note` the comment before it."""

    page: Path
    line: int
    language: str
    text: str
    note: str = ""
    follows_code: bool = False

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs(self) -> bool:
        """True where the block runs, not only its parsers."""
        return not self.note.startswith("not run") if self.language != "sh" else self.note == "run"

    @property
    def file(self) -> str | None:
        """The path of the file that the block is, if it is one."""
        return self.note.removeprefix("file ") if self.note.startswith("file ") else None


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page in order.

    Raises: AssertionError for an indented block, which has no language, and for a language not in LANGUAGES.
    """
    found: list[Block] = []
    lines = page.read_text().splitlines()
    number, note, after_code, blank = 0, "", False, True
    while number < len(lines):
        line = lines[number]
        number += 1
        if line.startswith("```"):
            begin = number
            while lines[number] != "```":
                number += 1
            language = line[3:]
            assert language in LANGUAGES, f"{page.name}:{begin}: give a block one of {LANGUAGES}"
            text = "\n".join(lines[begin:number]) + "\n"
            found.append(Block(page, begin + 1, language, text, note, after_code))
            number += 1
            note, after_code = "", language == "python"
        elif comment := re.fullmatch(r"<!-- (.+) -->", line):
            note = comment[1]
        elif line.strip():
            assert not (blank and line.startswith("    ")), f"{page.name}:{number}: fence this block"
            note, after_code = "", False
        blank = not line.strip()
    return found


def write_files(page: Path, folder: Path) -> None:
    """Writes the blocks of a page that are files into a folder."""
    for block in blocks(page):
        if block.file is not None:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)


def commands(script: str) -> list[Sequence[str]]:
    """The programs that a shell script calls, with their arguments; bash reads it, and nothing but bash runs.

    Raises: AssertionError for a script that bash refuses, or that calls something else than PROGRAMS.
    """
    record = "\n".join(
        f"{name}() {{ printf '%s\\0' $(($# + 1)) {program} \"$@\"; }}" for name, program in NAMES.items()
    )
    lines = f"PATH=/nonexistent\nsource() {{ :; }}\n{record}\n{script}"
    result = subprocess.run(["/bin/bash", "-euc", lines], capture_output=True)
    assert result.returncode == 0, result.stderr.decode()
    words, found = result.stdout.decode().split("\0")[:-1], list[Sequence[str]]()
    while words:
        count = int(words[0])
        found.append(words[1 : count + 1])
        words = words[count + 1 :]
    return found


def sessions(text: str) -> Iterator[tuple[Sequence[str], str]]:
    """Each command of a console block, as arguments, and the output below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        script = re.match(r"(?:.*\\\n)*.*\n", part)
        assert script is not None
        (command,) = commands(script[0])
        yield command, part[script.end() :]


class Parsed(BaseException):
    """A program has parsed its arguments."""


def check_arguments(command: Sequence[str]) -> None:
    """Run a program until it has parsed its arguments.

    Raises: SystemExit, with the program's message on stderr, where it refuses them; AssertionError where make does.
    """
    name, *arguments = command
    if name == "sbatch":
        script = next(i for i, word in enumerate(arguments) if word.startswith("clusters/"))
        assert (ROOT / arguments[script]).is_file(), arguments[script]
        check_arguments(["python", *arguments[script + 1 :]])
    elif name == "sky":
        assert (ROOT / arguments[-1]).is_file(), arguments[-1]
    elif name == "docker":
        if arguments[0] == "run":
            check_arguments(["puffer", *arguments[arguments.index(IMAGE) + 1 :]])
        else:
            assert (ROOT / arguments[arguments.index("-f") + 1]).is_file() and IMAGE in arguments, command
    elif name == "make":
        result = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
    elif name == "torchrun":
        from torch.distributed.run import parse_args

        args = parse_args(arguments)
        check_arguments(["python", *["-m"] * args.module, args.training_script, *args.training_script_args])
    elif name == "puffer" or arguments[:2] == ["-m", "gbxcule_puffer"]:
        arguments = arguments if name == "puffer" else arguments[2:]
        _until_parsed(lambda: cli.main(arguments))
        _check_ini_flags(arguments)
    elif name == "python":
        start = runpy.run_path
        if arguments[0] == "-m":
            start, arguments = runpy.run_module, arguments[1:]
        path = sys.path
        with mock.patch.object(sys, "argv", arguments), mock.patch.object(sys, "path", [str(ROOT), *path]):
            _until_parsed(lambda: start(arguments[0], run_name="__main__"))


def _check_ini_flags(arguments: Sequence[str]) -> None:
    """Flags such as --train.seed, which PufferLib would parse: our sections have their keys."""
    ini = own_config()
    for flag in arguments:
        section, _, key = flag.removeprefix("--").partition(".")
        if flag.startswith("--") and key:
            assert key.replace("-", "_") in ini[section], f"{flag} is no key of our .ini"


def _until_parsed(program: Any) -> None:
    parse_args, check = argparse.ArgumentParser.parse_args, parsing.check

    def parsed(*args: Any, **options: Any) -> NoReturn:
        parse_args(*args, **options)
        raise Parsed

    def checked(flags: Any) -> None:
        check(flags)
        if getattr(flags, "subject", None) not in trainers():  # whose own flags are parsed next
            raise Parsed

    with (
        mock.patch.object(argparse.ArgumentParser, "parse_args", parsed),
        mock.patch.object(parsing, "check", checked),
        contextlib.suppress(Parsed),
    ):
        raise SystemExit(program())


def output_of(command: Sequence[str]) -> str:
    """What a command of our own prints, run in this process and the current folder."""
    assert command[0] == "puffer" or list(command[:3]) == ["python", "-m", "gbxcule_puffer"], (
        f"{command} does not run here"
    )
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), contextlib.suppress(SystemExit):
        cli.main(command[1:] if command[0] == "puffer" else command[3:])
    return output.getvalue()


def output_of_python(block: Block, namespace: dict[str, Any]) -> str:
    """What a Python block prints; a traceback has the page's lines."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile("\n" * (block.line - 1) + block.text, str(block.page), "exec"), namespace)
    return output.getvalue()


def is_output(expected: str, found: str) -> bool:
    """Whether an output is as the page has it, with `...` for anything and spaces of any width."""
    return doctest.OutputChecker().check_output(expected, found, ELLIPSIS)


def unknown_imports(text: str) -> list[str]:
    """Names that Python code imports from this repository and that are not there; SyntaxError where it is no Python.
    No module is run: some need a library that is not installed here."""
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    own = [node for node in imports if (node.module or "").split(".")[0] == "gbxcule_puffer"]
    return [f"{node.module}.{a.name}" for node in own for a in node.names if a.name not in _names_in(node.module or "")]


def _names_in(module: str) -> set[str]:
    """What a module of this repository offers: its top level, __all__ and the modules in it."""
    path = ROOT / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    names = {child.stem for child in path.glob("*")}
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
            if "__all__" in names and node.value is not None:
                names |= set(ast.literal_eval(node.value))
                names.discard("__all__")
    return names
