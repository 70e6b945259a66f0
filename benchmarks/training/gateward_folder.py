"""A copy of GATEWARD's folder that pays for strength: what the long run of docs/long-games.md trained on.

    python -m benchmarks.training.gateward_folder strong
    puffer train ppo --game strong --visit-bonus 0.3 ...

Its reward has experience as parts of a level, and the size of the team, in place of levels, maps, cells and texts. Its
milestones have, beside the game's, levels of the strongest fighter and the last fighter of each gate's keeper.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from benchmarks.workload import ROOT
from gbxcule_puffer.errors import ConfigError, GBxCuLEError
from gbxcule_puffer.games import load_game

SOURCE = ROOT / "roms" / "gateward"
KEEPERS = ("bruna", "sorrel", "hazel", "brandt", "marit", "volkert", "morwen", "caspar")  # of the gates, in order
TEAM = range(1, 7)
LEVELS = range(8, 41, 2)  # of the strongest fighter, each a milestone


def exchanged(text: str, pattern: str, new: str, count: int = 1) -> str:
    """The text with the lines that begin with `pattern` replaced.

    Raises: ConfigError where there are not `count` of them.
    """
    found, number = re.subn(f"(?m)^(?:{pattern}).*\n", lambda _: new, text)
    if number != count:
        raise ConfigError(
            f"{SOURCE}/game.toml has {number} lines {pattern!r}, not {count}: this copy is of another one"
        )
    return found


def strong(text: str, trainers: str) -> str:
    """GATEWARD's game.toml with another reward and more milestones, of its own text and that of trainers.txt.

    Raises: ConfigError if the game is not as it was.
    """
    people = [line.split() for line in trainers.splitlines() if line and not line.startswith(";")]
    names = [words[0] for words in people]
    numbers = "".join(f'exp{i} = {{address = "wPartyMon{i}Exp+1", size = 2, order = "big"}}\n' for i in TEAM)
    level = "wPartyMon{0}Level"  # level n takes n * n * n experience
    gain = f"clip(delta(exp{{0}}) / (3 * {level} * {level}), 0, 1) if previous({level}) > 0 else 0"
    terms = "".join(f'gain{i} = "{gain.format(i)}"\n' for i in TEAM)
    best = reduce("max({}, {})".format, map(level.format, TEAM))
    gains = " + ".join(f"gain{i}" for i in TEAM)
    text = exchanged(text, "maps = {value|cells = {value|texts = {value", "", 3)
    text = exchanged(
        text, "levels = {value", f'levels = {{value = "{gains}", weight = 0.5}}\nteam = "rise(wPartyCount)"\n'
    )
    text = exchanged(text, re.escape("[terms]"), f'{numbers}\n[terms]\n{terms}best = "{best}"\n')
    for number, keeper in enumerate(KEEPERS, 1):
        who = names.index(keeper)
        last = f"wIsInBattle == 2 and wTrainerNo == {who} and wEnemyMonLevel == {people[who][-1]} and best > 0"
        gate = f'gate{number} = "badges >= {number}"\n'
        text = exchanged(text, re.escape(gate.strip()), f'last_{keeper} = "{last}"\n{gate}')
    more = "".join(f'best_{level} = "best >= {level}"\n' for level in LEVELS)
    return exchanged(text, re.escape("[scores]"), f"{more}\n[scores]\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the folder; exit code 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.training.gateward_folder", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("folder", type=Path, help="a new folder")
    folder = parser.parse_args(argv).folder
    try:
        text = strong((SOURCE / "game.toml").read_text(), (SOURCE / "tables/trainers.txt").read_text())
        folder.mkdir(parents=True)
        (folder / "game.toml").write_text(text)
        for path in (SOURCE / "played.json", ROOT / "roms/gateward.gb", ROOT / "roms/gateward.sym"):
            shutil.copy(path, folder)
        print(f"{folder}: {len(load_game(folder).terms.milestones)} milestones")
    except (GBxCuLEError, OSError) as error:
        print(f"benchmarks.training.gateward_folder: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
