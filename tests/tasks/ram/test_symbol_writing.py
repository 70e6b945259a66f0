"""Names written into symbol files: what they become, and that nothing else in the file changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gbxcule_puffer.errors import ConfigError, GBxCuLEError
from gbxcule_puffer.tasks.ram import Number, Symbols
from gbxcule_puffer.tasks.ram.addresses import parse_address
from gbxcule_puffer.tasks.ram.symbol_writing import numbers_in, save_symbols

NUMBERS = {
    "score": Number(0xC122),
    "money": Number(0xD347, 3, "bcd", "big"),
    "save.name": Number((1, 0xA000), 2),
    "wFive": Number((5, 0xD010), 2, "signed", "big"),
    "tiles": Number(0xFF80, 6, "digits", "big", zero=0xF6),
}


def test_a_new_file_is_read_back(tmp_path: Path) -> None:
    """By our reader of symbols, with its banks, and with the readings."""
    path = tmp_path / "new" / "game.sym"
    save_symbols(path, NUMBERS, {"score": "rises with\nan apple", "money": "word " * 99})
    assert numbers_in(path) == NUMBERS
    symbols = Symbols.load(path)
    assert {name: parse_address(name, "", symbols) for name in symbols} == {n: e.where for n, e in NUMBERS.items()}
    assert path.read_text().splitlines()[:2] == [
        "00:C122 score ; puffer: u8, rises with an apple",
        f"01:D347 money ; puffer: bcd3, {'word ' * 39}...",
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize(
    "before", ["", "\ufeff", "; W\u00e4hrung\n", "[labels]\n0000:c0a0 wHealth\n[definitions]\n2 SIZE\n"]
)
def test_other_lines_stay_byte_for_byte(tmp_path: Path, before: str, last: bool, end: str) -> None:
    old = f"{before}00:0150 start ; the entry\n\n00:C0A0   player_map wide\nnonsense line\n[breakpoints]\n00:0150 x"
    if before.startswith("["):
        old = before.rstrip("\n")
    data = (old + ("\n" if last else "")).replace("\n", end).encode("utf-8")
    path = tmp_path / "game.sym"
    path.write_bytes(data)
    known = dict(Symbols.load(path))
    save_symbols(path, {"score": Number(0xC122, 2)})
    assert path.read_bytes().startswith(data)
    added = path.read_bytes()[len(data) :].decode()
    assert end in added and (end == "\r\n" or "\r" not in added)
    assert "00:C122 score" in added
    assert dict(Symbols.load(path)) == known | {"score": Symbols.load(path)["score"]}
    once = path.read_bytes()
    save_symbols(path, {"score": Number(0xC124), "lives": Number(0xC123)})
    assert path.read_bytes().startswith(data), "and its own line is replaced where it is"
    assert numbers_in(path) == {"score": Number(0xC124), "lives": Number(0xC123)}
    assert len(path.read_bytes().splitlines()) == len(once.splitlines()) + 1


def test_a_name_of_another_line(tmp_path: Path) -> None:
    """The same address adds a reading; another address is refused, and nothing is written."""
    path = tmp_path / "game.sym"
    path.write_text("00:C122 score\n00:D000 high\n")
    save_symbols(path, {"score": Number(0xC122, 2), "high": Number(0xD000)})
    assert numbers_in(path) == {"score": Number(0xC122, 2), "high": Number(0xD000)}
    assert Symbols.load(path)["score"].address == 0xC122
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=r"name 'score' is 00:C122 in .*game.sym, not 00:C200: give another name"):
        save_symbols(path, {"new": Number(0xC300), "score": Number(0xC200)})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "give letters, digits"), ("a b", "give letters, digits"), ("a;b", "give letters, digits"),
        ("a\nb", "give letters, digits"), ("1up", "give letters, digits"), ("n" * 201, "at most 200"),
        ("ä", "give letters, digits"), ("C0A5", "reads as a hexadecimal address"), ("dead", "such as dead_"),
    ],
)  # fmt: skip
def test_names_that_are_refused(tmp_path: Path, name: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault) as error:
        save_symbols(tmp_path / "game.sym", {name: Number(0xC000)})
    assert len(str(error.value).splitlines()) == 1 and len(str(error.value)) < 250
    assert not list(tmp_path.iterdir())


def test_files_that_are_refused(tmp_path: Path) -> None:
    """Nothing is changed where a name cannot be written: another format, no text, a link, a folder."""
    one = {"score": Number(0xC122)}
    (tmp_path / "utf16.sym").write_bytes("00:C122 a\n".encode("utf-16"))
    (tmp_path / "zero.sym").write_bytes(b"00:C122 a\0\n")
    (tmp_path / "game.sym").write_text("00:C122 a\n")
    os.symlink(tmp_path / "game.sym", tmp_path / "link.sym")
    (tmp_path / "folder.sym").mkdir()
    os.mkfifo(tmp_path / "fifo.sym")
    before = {path: path.read_bytes() for path in tmp_path.glob("*.sym") if path.is_file()}
    for name in ("game.map", "game", "utf16.sym", "zero.sym", "link.sym", "folder.sym", "fifo.sym", "game.sym/x.sym"):
        with pytest.raises(GBxCuLEError) as error:
            save_symbols(tmp_path / name, one)
        assert name.split("/")[0] in str(error.value) and len(str(error.value).splitlines()) == 1
    assert {path: path.read_bytes() for path in tmp_path.glob("*.sym") if path.is_file()} == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".part")]


def test_comments_of_strangers(tmp_path: Path) -> None:
    """A reading that there is not, no name, no address: the line counts as any other."""
    path = tmp_path / "game.sym"
    path.write_text(
        "00:C100 a ; puffer: u9\n; puffer: u8\n00:C101 ; puffer: u8\n2 SIZE ; puffer: u8\nC102 b ; puffer:\n"
        "00:C103 c ; puffer: digits99\n00:C104 d ;puffer:u16be\n"
    )
    assert numbers_in(path) == {"d": Number(0xC104, 2, order="big")}
    with pytest.raises(ConfigError, match="is a symbol already: give an address"):
        save_symbols(path, {"e": Number("d")})
