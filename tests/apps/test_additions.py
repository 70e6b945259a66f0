"""A command and a trainer that are added as CONTRIBUTING.md says: help, checks and completion follow by themselves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gbxcule_puffer import apps, cli, layout
from gbxcule_puffer.apps import completion
from gbxcule_puffer.apps.commands import COMMANDS, NAMES

TITLE = '''
from gbxcule_puffer.commandline import command, word


@command
class Title:
    """Print the name in a ROM's header."""

    rom: str = word("Game Boy image, or homeward", "ROM")

    def run(self) -> int:
        from gbxcule_puffer.emulator.cartridge import load_cartridge

        print(load_cartridge(self.rom).title)
        return 0


COMMAND = Title
'''


def test_a_command_that_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder with a command.py, and a word in COMMANDS."""
    folder, names = tmp_path / "title", [*NAMES, "title"]
    folder.mkdir()
    (folder / "__init__.py").write_text('"""`puffer title`."""\n')
    (folder / "command.py").write_text(TITLE)
    before = set(sys.modules)
    monkeypatch.setattr(apps, "__path__", [*apps.__path__, str(tmp_path)])
    monkeypatch.setitem(COMMANDS, "Check and measure", (*COMMANDS["Check and measure"], "title"))
    monkeypatch.setattr(cli, "NAMES", names)
    monkeypatch.setattr(completion, "NAMES", names)
    try:
        assert cli.main(["title", "homeward"]) == 0 and capsys.readouterr().out == "HOMEWARD\n"
        assert cli.main(["--help"]) == 0 and "Print the name in a ROM's header" in capsys.readouterr().out
        assert cli.main(["titel"]) == 2 and "did you mean title?" in capsys.readouterr().err
        assert cli.main(["title", "x.gb"]) == 2 and "ROM x.gb: cannot be read" in capsys.readouterr().err
        assert cli.main(["title", "--rom"]) == 2
        assert "title" in completion.script("puffer", ["bash"])
    finally:
        for name in set(sys.modules) - before:
            if name.startswith("gbxcule_puffer.apps.title"):
                del sys.modules[name]


def test_a_trainer_that_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One file beside the others."""
    text = (layout.SCRIPTS / "pqn.py").read_text()
    (tmp_path / "sarsa_lite.py").write_text(text.replace('"""PQN', '"""SARSA', 1))
    monkeypatch.setattr(layout, "SCRIPTS", tmp_path)
    assert set(layout.trainers()) == {"sarsa"}
    with pytest.raises(SystemExit):
        cli.main(["train", "sarsa", "--help"])
    assert capsys.readouterr().out.startswith("usage: puffer train sarsa [flags]\n\nSARSA")
    assert cli.main(["train", "sarsa", "--num-env", "4"]) == 2
    assert "did you mean --num-envs?" in capsys.readouterr().err
    assert cli.main(["train", "sarsa", "--rom", "x.gb"]) == 2
    assert "ROM x.gb: cannot be read" in capsys.readouterr().err
