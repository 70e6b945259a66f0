"""The command line as a whole: every command's help, completion by a real bash, and what a mistyped word leads to."""

from __future__ import annotations

import functools
import inspect
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from gbxcule_puffer import cli, progress
from gbxcule_puffer.apps.commands import NAMES, find
from gbxcule_puffer.apps.train.scripts import FLAGS, flags_module
from gbxcule_puffer.commandline.flags import flags_of
from gbxcule_puffer.env.option_flags import OPTIONS
from gbxcule_puffer.env.options import flag_type
from gbxcule_puffer.layout import SCRIPTS, trainer_scripts, trainers
from gbxcule_puffer.trainers.trained import load_script

ROOT = Path(__file__).parents[2]
APPS = ROOT / "gbxcule_puffer/apps"
SECONDS = 1.5  # of the processor, until a help is there
HEAVY = {"torch", "warp", "pyboy", "pufferlib", "gymnasium"}
TIMED = """
import sys, time
from gbxcule_puffer import cli, progress
for words in {commands}:
    try:
        assert cli.main(words) == 0, words
    except SystemExit as end:
        assert not end.code
found = {heavy} & set(sys.modules)
assert not found, found
print(time.process_time(), file=sys.stderr)
"""


@functools.cache
def leaves() -> dict[str, type]:
    """The class of flags of each command by its words, trainers among them."""
    found: dict[str, type] = {}
    page = (ROOT / "docs/commands.md").read_text()
    for name in NAMES:
        assert f"`{name}`" in page
        command = find(name)
        found |= (
            {f"{name} {sub}": kind for sub, kind in command.items()} if isinstance(command, dict) else {name: command}
        )
    return found | {f"train {name}": getattr(flags_module(path), FLAGS) for name, path in trainers().items()}


def shown(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    try:
        assert cli.main([*words, "--help"]) == 0
    except SystemExit as end:
        assert not end.code
    return capsys.readouterr().out


def test_a_command_is_a_folder_and_a_word() -> None:
    """As CONTRIBUTING.md says."""
    assert sorted(NAMES) == sorted(path.parent.name for path in APPS.glob("*/command.py"))
    for name in NAMES:
        command = find(name)
        for kind in command.values() if isinstance(command, dict) else [command]:
            assert inspect.getmodule(kind) is sys.modules[f"gbxcule_puffer.apps.{name}.command"]
            assert kind.__doc__ and callable(kind.run)


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", ["", "goal", *leaves(), "eval RUN"])
def test_help(name: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It names itself as it was typed, fits the terminal, and says each default once."""
    monkeypatch.setenv("COLUMNS", str(columns))
    text = shown(name.split(), capsys)
    assert text.startswith(f"usage: puffer {name}".removesuffix(" RUN").rstrip())
    flat = " ".join(text.split())
    assert not re.search(r"\(default: [^()]*\) \(default:|default: None|MISSING|<class|cleanrl_style/\w+\.py --", flat)
    assert max(len(line) for line in text.splitlines() if not line.startswith("    python ")) <= columns
    for each in flags_of(leaves()[name]) if name in leaves() else ():
        assert each.help and each.text in text, each.name
        if each.default not in (None, ()) and each.default is not False and not each.required:
            assert re.search(rf"{re.escape(each.text)}\b", text) and "default:" in text


def test_help_comes_at_once() -> None:
    """All pages together need less than one page may, and none imports torch or Warp."""
    commands = [["--help"], ["goal", "--help"], *([*name.split(), "--help"] for name in leaves())]
    code = TIMED.format(commands=[*commands, ["eval", "RUN", "--help"]], heavy=HEAVY)
    options: dict[str, Any] = {"cwd": ROOT, "capture_output": True, "text": True}
    result = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT)}, **options)
    assert result.returncode == 0, result.stderr
    assert float(result.stderr.splitlines()[-1]) < 2 * SECONDS


@pytest.mark.parametrize("path", [*trainer_scripts().values(), SCRIPTS / "evaluate.py"], ids=lambda path: path.stem)
def test_flags_without_their_script_are_the_script_s(path: Path) -> None:
    alone, whole = getattr(flags_module(path), FLAGS), getattr(load_script(path), FLAGS)
    assert flags_of(alone) == flags_of(whole)


def test_an_option_of_the_env_has_its_type_in_every_command() -> None:
    for name, kind in leaves().items():
        hints = get_type_hints(kind)
        for each in fields(kind):
            option = OPTIONS.get(each.name)
            if option is not None and each.metadata.get("subject") and "weight" in each.metadata:
                plain = flag_type(option)
                texts = plain if not option.metadata["one_of"] else str
                assert hints[each.name] in (texts, texts | None, plain, plain | None), (name, each.name)


def test_a_trainer_s_first_word_is_its_name() -> None:
    assert {"a2c", "ppo", "dqn", "pqn"} <= trainers().keys()
    assert set(trainers().values()) == set(trainer_scripts().values())
    assert trainers()["a2c"].stem == "a2c_streaming"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["benhc"], "puffer: command 'benhc' is unknown: did you mean bench?"),
        (["fly"], "puffer: command 'fly' is unknown: see puffer --help"),
        (["goal", "mke"], "puffer: command 'mke' is unknown: did you mean make?"),
        (["--rom", "x"], "puffer: --rom stands before COMMAND: give puffer COMMAND --rom ..."),
        (["bench", "--vss", "none"], "puffer: flag '--vss' is unknown: did you mean --vs?"),
        (["train", "ppo", "--learning-rate", "1"], "puffer: flag '--learning-rate' is unknown: here it is --lr"),
        (
            ["train", "ppo", "--total-timesteps=9"],
            "puffer: flag '--total-timesteps' is unknown: here it is --total-env-steps",
        ),
        (["train", "ppo", "--ent-coef", "0"], "puffer: flag '--ent-coef' is unknown: here it is --entropy-coef"),
        (["train", "ppo", "--vf-coef", "0"], "puffer: flag '--vf-coef' is unknown: here it is --value-coef"),
        (["train", "ppo", "--max-grad-norm", "1"], "puffer: flag '--max-grad-norm' is unknown: here it is --grad-clip"),
        (
            ["train", "dqn", "--train-frequency", "1"],
            "puffer: flag '--train-frequency' is unknown: here it is --train-every",
        ),
        (
            ["plot"],
            "puffer: RUN is missing: a run's folder; seeds of one experiment are one line (see puffer plot --help)",
        ),
        (["show"], "puffer: STATE is missing: state files, or folders of them (see puffer show --help)"),
        (["--completion", "tcsh"], "puffer: --completion 'tcsh' is unknown: give one of bash, zsh, fish"),
    ],
)
def test_mistyped_words(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 2
    assert capsys.readouterr().err == f"{line}\n"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_hears_what_takes_long(
    is_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as the command runs."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    monkeypatch.setattr(find("size"), "run", lambda _: progress.say("compiling"))
    assert cli.main(["size"]) == 0
    progress.say("compiling more")
    assert capsys.readouterr().err == ("compiling\n" if is_terminal else "")


def completed(script: str, words: list[str], folder: Path) -> set[str]:
    """What bash offers for the last of the words of a command line."""
    code = f'{script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _tyro_puffer; printf \'%s\\n\' "${{COMPREPLY[@]}}"'
    file = folder / "complete.bash"
    file.write_text(code)
    result = subprocess.run(["/bin/bash", "--norc", str(file), *words], capture_output=True, text=True, cwd=folder)
    assert result.returncode == 0 and not result.stderr, result.stderr
    return set(result.stdout.split())


def test_a_real_bash_completes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["--completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert set(NAMES) <= completed(script, ["puffer", ""], tmp_path)
    assert completed(script, ["puffer", "be"], tmp_path) == {"bench"}
    assert completed(script, ["puffer", "goal", "ca"], tmp_path) == {"calibrate"}
    assert trainers().keys() <= completed(script, ["puffer", "train", ""], tmp_path)
    assert completed(script, ["puffer", "train", "ppo", "--gae"], tmp_path) == {"--gae-lambda"}
    assert completed(script, ["puffer", "record", "x.gb", "--model", ""], tmp_path) == {"dmg", "cgb", "auto"}
    (tmp_path / "saved.state").touch()
    assert completed(script, ["puffer", "play", "x.gb", "--start-state", "sav"], tmp_path) == {"saved.state"}


def test_bash_completes_as_it_is_typed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Through readline: `puffer ben`, Tab and Enter run `puffer bench`."""
    assert cli.main(["--completion", "bash"]) == 0
    (tmp_path / "rc").write_text('puffer() { echo "<$*>"; }\n' + capsys.readouterr().out)
    (tmp_path / "typed").write_text("puffer ben\tpyboy\t\nexit\n")
    command = f"script -qec 'bash --noprofile --rcfile {tmp_path}/rc -i' /dev/null"
    with open(tmp_path / "typed") as typed:
        result = subprocess.run(command, shell=True, stdin=typed, capture_output=True, text=True, timeout=120)
    assert "<bench" in result.stdout, result.stdout


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_of_other_shells(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--completion", shell]) == 0
    script = capsys.readouterr().out
    assert "puffer" in script and "gae-lambda" in script
