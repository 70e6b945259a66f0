"""RAM by the words that a viewer types: names, addresses, banks, and what is neither."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from gbxcule_puffer.emulator.cartridge import Cartridge, load_cartridge
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.tasks.ram import Symbols
from gbxcule_puffer.tasks.source import ROM
from gbxcule_puffer.trainers.wall.ram_words import MOST_WORDS, find_words
from gbxcule_puffer.trainers.wall.wall import Wall
from tests.support.browser import PATIENCE, wait_for
from tests.support.roms import tiny_rom
from tests.support.viewers import next_picture, receive_picture, receive_text, viewer

SYMBOLS = ROM.with_suffix(".sym")


def one(word: str, cartridge: Cartridge, symbols: Symbols | None = None) -> dict[str, Any]:
    (found,) = find_words([word], cartridge, symbols)
    assert found["word"] == word and ("error" in found) != ("column" in found)
    return found


def test_what_is_not_understood_is_one_line() -> None:
    cartridge, symbols = load_cartridge(ROM), Symbols.load(SYMBOLS)
    for word, text in (
        ("C1G0", "'C1G0' is not a hexadecimal address"),
        ("4000", "4000 is not VRAM, WRAM, OAM or HRAM"),
        ("FFFF", "FFFF is not VRAM"),
        ("A000", "A000 is not VRAM"),
        ("9:A000", "bank 9 of cartridge RAM"),
        ("player", "'player' is not a hexadecimal address"),
        ("\n\x1b[31m", "is not a hexadecimal address"),
        ("x" * 4000, "is not a hexadecimal address"),
    ):
        error = one(word, cartridge)["error"]
        assert text in error and "\n" not in error and "\x1b" not in error and len(error) < 300, error
    near = one("player_facin", cartridge, symbols)["error"]
    assert near.startswith("RAM: symbol 'player_facin' is not in") and "did you mean player_facing" in near


def test_numbers_of_words() -> None:
    cartridge = load_cartridge(ROM)
    assert find_words("C000", cartridge, None) == find_words(None, cartridge, None) == []
    found = find_words([1, None, ["C000"], *["C000"] * 50], cartridge, None)
    assert [word["word"] for word in found] == ["C000"] * (MOST_WORDS - 3)


def test_half_bytes_read_as_the_cpu_reads_them(tmp_path: Path) -> None:
    """MBC2's RAM has four bits, the upper ones are ones."""
    cartridge = load_cartridge(tiny_rom(tmp_path / "half.gb", b"\x18\xfe", 0x06))
    assert one("0:A010", cartridge)["ones"] == 0xF0 and one("C010", cartridge)["ones"] == 0


@pytest.mark.parametrize("model", ["dmg", "cgb"])
def test_a_viewer_reads_bytes_by_their_names(model: str) -> None:
    """Those of the chosen Game Boy, as `Ram` reads them; the answer says where each is."""
    env = GBxCuLEEnv(ROM, 4, io="torch", model=model, symbols=str(SYMBOLS), max_steps=64)
    env.reset(seed=1)
    words = ["player_facing", "step_left", "wrong", "C0A1", "FF80", "player_facing+1", "0:A000", "9800"]
    wheres = ["player_facing", "step_left", 0xC0A1, 0xFF80, "player_facing+1", (0, 0xA000), 0x9800]
    with Wall(env, "ram", dict, "127.0.0.1:0") as wall, viewer(wall) as connection:
        assert json.loads(connection.recv(timeout=PATIENCE))["symbols"] == len(Symbols.load(SYMBOLS))
        connection.send(json.dumps({"focus": 2, "watches": words}))
        answer = receive_text(connection, "watches")
        assert [word["word"] for word in answer] == words
        assert ["error" in word for word in answer] == [word == "wrong" for word in words]
        columns = [word["column"] for word in answer if "column" in word]
        wait_for(lambda: wall._watches == tuple(columns))
        generator = torch.Generator().manual_seed(1)
        for _ in range(5):
            env.step(torch.randint(8, (4,), generator=generator))
            next_picture(wall)
            wall.look()
            header, payload = receive_picture(connection)
            assert header["watches"] == columns
            assert list(payload[12 * 4 :][: len(columns)]) == [int(env.ram[where][2]) for where in wheres]
    env.close()


def test_numbers_that_are_not_columns_are_left_out() -> None:
    """The training looks at them itself: it does not trust the server's process."""
    env = GBxCuLEEnv(ROM, 2, io="torch")
    env.reset(seed=1)
    with Wall(env, "columns", dict, "127.0.0.1:0") as wall:
        size = env.emulator.memory.shape[1]
        wall._receive({"watches": [0, -1, size, size - 1, True, "0", 1.0, None, 10**30]})
        assert wall._watches == (0, size - 1)
        wall._receive({"watches": list(range(100))})
        assert wall._watches == tuple(range(MOST_WORDS))
    env.close()
