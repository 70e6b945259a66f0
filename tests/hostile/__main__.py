"""`make fuzz-files`: damaged files of every format; prints what became of them, exit code 1 where any was not refused
in one line or accepted.

    python -m tests.hostile --mutants 10000 --out mutants
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.hostile.formats import FORMATS
from tests.hostile.run import fuzz


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=5000, help="of each format")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    parser.add_argument("--format", choices=[one.name for one in FORMATS], help="only this one, in this process")
    parser.add_argument("--out", type=Path, help="folder for the files that are neither accepted nor refused")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.mutants)
    if args.format:
        (one,) = (one for one in FORMATS if one.name == args.format)
        with tempfile.TemporaryDirectory() as folder:
            tally = fuzz(one, Path(folder), seeds, args.out)
        print(json.dumps({"accepted": tally.accepted, "refused": tally.refused, "others": tally.others}))
        return int(bool(tally.others))
    others, total = [], 0
    print(f"{'format':16} {'mutants':>8} {'accepted':>9} {'refused':>8} {'anything else':>14}", flush=True)
    for one in FORMATS:  # a process for each, which a crash would end
        command = [sys.executable, "-m", "tests.hostile", *sys.argv[1:], "--format", one.name]
        found = subprocess.run(command, capture_output=True, text=True)
        try:
            tally = json.loads(found.stdout.splitlines()[-1])
        except (IndexError, ValueError):
            last = found.stderr.strip().splitlines()[-1:] or [""]
            tally = {"accepted": 0, "refused": 0, "others": [f"{one.name}: exit code {found.returncode} {last[0]}"]}
        count = tally["accepted"] + tally["refused"] + len(tally["others"])
        numbers = f"{count:8,} {tally['accepted']:9,} {tally['refused']:8,} {len(tally['others']):14,}"
        print(f"{one.name:16} {numbers}", flush=True)
        others, total = others + tally["others"], total + count
    print(f"{'all':16} {total:8,}")
    print("\n".join(others[:50]))
    return int(bool(others))


if __name__ == "__main__":
    sys.exit(main())
