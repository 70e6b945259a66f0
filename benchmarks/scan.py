"""Precision, recall and calibration of `puffer scan` on games whose bytes are known.

python -m benchmarks.scan --out benchmarks/results/cpu/scan.json
python -m benchmarks.scan --device cuda --out benchmarks/results/h100/scan.json

scan_truth.json says which bytes are right, of which ROM (SHA-256), and for some games where the ROM may be had ("from":
a repository, a commit and a file); games whose ROM is not there are left out. A kind that is neither listed nor
"unknown" is one that the game does not have: each candidate for it is wrong.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from gbxcule_puffer.commandline import command, flag, parse
from gbxcule_puffer.errors import ConfigError, GBxCuLEError
from gbxcule_puffer.files import write_json
from gbxcule_puffer.layout import ROMS
from gbxcule_puffer.provenance import device_name, git_sha
from gbxcule_puffer.scan.result import KINDS, ScanResult, text_of
from gbxcule_puffer.scan.scan import scan

TRUTH = Path(__file__).with_name("scan_truth.json")
SHOWN = 0.5  # confidence from which a candidate counts as an answer
BINS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.01)


@command
class Flags:
    """Scan games whose bytes are known, and compare."""

    games: tuple[str, ...] = flag(
        (), "names of scan_truth.json (default: all whose ROM is there)", metavar="NAME", repeat=True
    )
    roms: tuple[str, ...] = flag(
        ("../shared/roms",), "folder in which ROMs are looked for, by what they contain", metavar="DIR", repeat=True
    )
    device: str = flag("cpu", "cpu, cuda or cuda:N")
    num_envs: int | None = flag(None, "Game Boys in parallel", least=16)
    seed: int = flag(0, "seed")
    out: str | None = flag(None, "the JSON to write, anew after each game", metavar="FILE")


def run(flags: Flags) -> dict[str, Any]:
    """The record: a row for each game, and totals of each kind."""
    truth = json.loads(TRUTH.read_text())
    if unknown := set(flags.games) - truth.keys():
        raise ConfigError(f"{min(unknown)!r:.40} is not in {TRUTH.name}: give some of {', '.join(truth)}")
    roms = roms_in([ROMS, *map(Path, flags.roms)])
    rows: list[dict[str, Any]] = []
    for name in flags.games or truth:
        rom = roms.get(truth[name]["sha256"])
        if rom is None:
            print(f"{name}: no ROM", file=sys.stderr)
            continue
        result = scan(rom, device=flags.device, num_envs=flags.num_envs, seed=flags.seed)
        rows.append(row_of(name, truth[name], result))
        print(json.dumps(rows[-1]), flush=True)
        if flags.out:
            write_json(flags.out, record_of(rows, flags.device))
    return record_of(rows, flags.device)


def record_of(rows: list[dict[str, Any]], device: str) -> dict[str, Any]:
    """The record of some games that were scanned on a device."""
    made = {"git_sha": git_sha(), "device_name": device_name(device)}
    return made | {"games": rows, "kinds": totals(rows), "calibration": calibration(rows)}


def roms_in(folders: Iterable[Path]) -> dict[str, Path]:
    """The ROMs in folders and below them, by their SHA-256."""
    files = (path for folder in folders for path in sorted(folder.rglob("*.gb*")) if path.is_file())
    return {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in files}


def row_of(name: str, known: dict[str, Any], result: ScanResult) -> dict[str, Any]:
    """Of a game: each candidate, and whether it is right; known kinds, and whether they were found."""
    addresses = {kind: set(known.get(kind, ())) for kind in KINDS}
    candidates = []
    for each in result.candidates:
        own = {text_of(where) for where in bytes_of(each.number.where, each.number.size)}
        right = bool(own & addresses[each.kind])
        right = right or bool({text_of(where) for where in each.aliases} & addresses[each.kind])
        candidates.append(
            {
                "kind": each.kind,
                "address": text_of(each.number.where),
                "confidence": round(each.confidence, 2),
                "right": right,
            }
        )
    return {
        "game": name, "half": known["half"], "seconds": result.facts["seconds"],
        "seconds_of_steps": result.facts["seconds_of_steps"], "memory_mib": result.facts["memory_mib"],
        "known": sorted(kind for kind in KINDS if addresses[kind]),
        "unknown": known.get("unknown", []), "candidates": candidates,
    }  # fmt: skip


def bytes_of(where: object, size: int) -> list[Any]:
    """The locations of a number's bytes."""
    if isinstance(where, tuple):
        return [(where[0], where[1] + i) for i in range(size)]
    assert isinstance(where, int)
    return [where + i for i in range(size)]


def totals(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each half of the games and each kind: how many games have it, in how many the best candidate and any candidate
    is right, and how many of the candidates that are shown as likely are."""
    found = []
    for half in ("tuned on", "not tuned on"):
        games = [row for row in rows if row["half"] == half]
        for kind in KINDS:
            judged = [row for row in games if kind not in row["unknown"]]
            have = [row for row in judged if kind in row["known"]]
            of = {row["game"]: [c for c in row["candidates"] if c["kind"] == kind] for row in judged}
            likely = [c for each in of.values() for c in each if c["confidence"] >= SHOWN]
            found.append(
                {
                    "half": half, "kind": kind, "games": len(have),
                    "first": sum(bool(of[row["game"]]) and of[row["game"]][0]["right"] for row in have),
                    "any": sum(any(c["right"] for c in of[row["game"]]) for row in have),
                    "likely": len(likely), "likely_right": sum(c["right"] for c in likely),
                }
            )  # fmt: skip
    return found


def calibration(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The number of candidates in each range of confidence, and of those that are right."""
    several = [c for row in rows for c in row["candidates"] if c["kind"] not in row["unknown"]]
    found = []
    for low, high in pairwise(BINS):
        part = [c for c in several if low <= c["confidence"] < high]
        found.append(
            {"from": low, "to": min(high, 1.0), "candidates": len(part), "right": sum(c["right"] for c in part)}
        )
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Scans, prints the tables and writes the record; exit code 2 for bad input."""
    try:
        flags = parse(Flags, "python -m benchmarks.scan", argv=argv)
        record = run(flags)
    except GBxCuLEError as error:
        print(f"benchmarks.scan: {error}", file=sys.stderr)
        return 2
    print("half          kind    games  best right  any right  likely  of these right")
    for each in record["kinds"]:
        print("{half:13} {kind:7} {games:5}  {first:10}  {any:9}  {likely:6}  {likely_right:14}".format(**each))
    for each in record["calibration"]:
        print("confidence {from:.1f} to {to:.1f}: {right} of {candidates} right".format(**each))
    return 0


if __name__ == "__main__":
    sys.exit(main())
