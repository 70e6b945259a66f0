"""The files of a stable-retro folder: data.json, scenario.json, metadata.json, rom.sha and *.state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import Kind, StrPath, read_object, read_text

JSON_FILE = Kind("stable-retro file", ConfigError, "give a folder as stable-retro has them, with data.json in it")
LARGEST = 2**20  # bytes of a JSON file
MOST_FILES = 10_000  # of the folder, that are looked at
SCENARIO = "scenario"


@dataclass(frozen=True)
class RetroFolder:
    """A folder as stable-retro has them.

    data, scenario, metadata: the objects of its files, empty without the file; hashes: SHA-1 of the ROMs that it is
    for, hex; states: its state files by name, without .state.
    """

    path: Path
    data: Mapping[str, Any]
    scenario: Mapping[str, Any]
    metadata: Mapping[str, Any]
    hashes: tuple[str, ...]
    states: Mapping[str, Path]

    @property
    def name(self) -> str:
        """The game's name: that of the folder without system and version."""
        return re.sub(r"-(GameBoy|GbColor)(-v\d+)?$", "", self.path.resolve().name)

    @property
    def default_state(self) -> str | None:
        """The name of the state that stable-retro begins with; None for power-on."""
        listed = self.metadata.get("default_player_state")
        found = listed[0] if isinstance(listed, list) and listed else self.metadata.get("default_state")
        return found.removesuffix(".state") if isinstance(found, str) else None


def read_folder(path: StrPath, scenario: str = SCENARIO) -> RetroFolder:
    """Reads a folder; `scenario` names the file of rewards and ends, without .json.

    Raises: ConfigError for a folder without data.json, and for a file that is damaged or too large.
    """
    folder = Path(path)
    if re.search(r"[/\\\0]", scenario) or not (folder / "data.json").is_file():
        what = (
            f"scenario {scenario!r:.40} is not a name" if "/" in scenario else f"{folder}: there is no data.json in it"
        )
        raise ConfigError(f"{what}: give a folder as stable-retro has them, e.g. Tetris-GameBoy-v0")
    if scenario != SCENARIO and not (folder / f"{scenario}.json").is_file():
        known = sorted(each.stem for each in folder.glob("*.json") if each.name not in ("data.json", "metadata.json"))
        raise ConfigError(f"{folder}: there is no {scenario:.60}.json in it: give one of {', '.join(known[:20])}")

    def of(name: str) -> dict[str, Any]:
        file = folder / f"{name}.json"
        return dict(read_object(file, JSON_FILE, limit=LARGEST)) if file.exists() else {}

    sha = folder / "rom.sha"
    text = read_text(sha, JSON_FILE, LARGEST) if sha.exists() else ""
    states = {each.stem: each for each in islice(folder.glob("*.state"), MOST_FILES) if not each.name.startswith("_")}
    return RetroFolder(
        folder, of("data"), of(scenario), of("metadata"),
        tuple(re.findall(r"\b[0-9a-f]{40}\b", text.lower())), dict(sorted(states.items())),
    )  # fmt: skip
