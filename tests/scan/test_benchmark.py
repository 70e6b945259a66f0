"""The benchmark of scan: its truth, and how it finds ROMs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from benchmarks import scan as benchmark
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.scan.result import KINDS
from gbxcule_puffer.tasks.ram.addresses import parse_address

TRUTH = json.loads(benchmark.TRUTH.read_text())


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_an_entry_names_a_rom_and_addresses(name: str) -> None:
    entry = TRUTH[name]
    assert len(bytes.fromhex(entry["sha256"])) == 32 and entry["half"] in ("tuned on", "not tuned on")
    assert entry.keys() <= {"sha256", "half", "from", "unknown", *KINDS}
    assert set(entry.get("unknown", ())) <= KINDS.keys() - entry.keys()
    for kind in entry.keys() & KINDS.keys():
        assert entry[kind] and all(parse_address(where, "truth") is not None for where in entry[kind])


def test_roms_are_found_by_what_they_contain(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "any name.gbc").write_bytes(b"rom")
    (tmp_path / "notes.txt").write_bytes(b"text")
    digest = hashlib.sha256(b"rom").hexdigest()
    assert benchmark.roms_in([tmp_path]) == {digest: tmp_path / "below" / "any name.gbc"}


def test_an_unknown_game_ends_in_one_line() -> None:
    with pytest.raises(ConfigError, match=r"'pong' is not in .*: give some of orchard"):
        benchmark.run(benchmark.Flags(games=("pong",)))
