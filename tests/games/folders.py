"""Folders of games for tests: on ORCHARD's ROM, or on none that exists."""

from __future__ import annotations

from pathlib import Path

from gbxcule_puffer.layout import ROMS

ORCHARD = "4f599ba4f30b83e8d7bb2a08296c3a9f1895973e9bf872ba329caf3d0207dc8a"
HEAD = 'format = "gbxcule-game"\nversion = 1\nname = "mine"\n'
ROM = f'[rom]\nsha256 = "{ORCHARD}"\n'


def write(folder: Path, text: str, rom: bool = False) -> Path:
    """A folder with this game.toml; `rom`: and ORCHARD's ROM and symbols."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "game.toml").write_text(text)
    if rom:
        for suffix in (".gb", ".sym"):
            (folder / f"orchard{suffix}").write_bytes((ROMS / f"orchard{suffix}").read_bytes())
    return folder


def game_text(*tables: str, head: str = HEAD, rom: str = ROM) -> str:
    """A game.toml of ORCHARD's ROM with more tables."""
    return "\n".join([head, rom, *tables, ""])
