"""The pictures of saved states, alone or on a contact sheet."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gbxcule_puffer.apps.show.flags import ShowFlags
from gbxcule_puffer.device import room_for
from gbxcule_puffer.emulator.cartridge import Cartridge, load_cartridge
from gbxcule_puffer.emulator.saves.state_files import (
    MAX_START_ENVS,
    RAM_FILES,
    STATE_FILE,
    load_state_file,
    start_files,
)
from gbxcule_puffer.emulator.snapshot import MAGIC, MAX_ENV_SIZE, Snapshot
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.files import read_bytes
from gbxcule_puffer.pictures import png_target, to_rgb, write_png

LINE = 12  # pixels of a name under its picture
LETTER = 6  # pixels of a letter


def show(flags: ShowFlags) -> None:
    """Writes the PNG, and prints a line for it and for each picture in it.

    Raises: StateError for what is not a state, or needs the ROM; ConfigError, RomError.
    """
    paths = [Path(path) for given in flags.states for path in start_files(given)]
    out = png_target(flags.out or (f"{paths[0].stem}.png" if len(paths) == 1 else "states.png"))
    cartridge = None if flags.rom is None else load_cartridge(flags.rom, flags.header, flags.model)
    shown = [(name, picture) for path in paths for name, picture in pictures_of_file(path, cartridge)]
    height, width = (flags.scale * length for length in shown[0][1].shape)
    with room_for(3 * len(shown) * height * width, "cpu", f"{len(shown):,} pictures", "show fewer, or a lower --scale"):
        pictures = [to_rgb(picture, flags.scale) for _, picture in shown]
        names = [name for name, _ in shown]
        write_png(out, pictures[0] if len(shown) == 1 else contact_sheet(pictures, names, flags.columns))
    for number, name in enumerate(names, 1):
        print(f"{number:4} {name}")
    print(f"written {out}")


def pictures_of_file(path: Path, cartridge: Cartridge | None) -> list[tuple[str, np.ndarray]]:
    """(name, picture (144, 160)) of each env in a file.

    Raises: StateError.
    """
    snapshot = _load(path, cartridge).doubled()
    pictures = snapshot.screen if snapshot.model == "dmg" else snapshot.colors
    if snapshot.model == "dmg" and pictures.max() > 3:
        raise StateError(f"state {path} is damaged (a shade is {pictures.max()}, and at most 3): save it again")
    names = [path.name] if len(pictures) == 1 else [f"{path.name} {number}" for number in range(len(pictures))]
    return list(zip(names, pictures, strict=True))


def _load(path: Path, cartridge: Cartridge | None) -> Snapshot:
    if cartridge is not None:
        return load_state_file(path, cartridge)
    is_ram = path.suffix.lower() in RAM_FILES
    if is_ram or not read_bytes(path, STATE_FILE, MAX_START_ENVS * MAX_ENV_SIZE).startswith(MAGIC[:8]):
        kind = "save RAM, which holds no picture" if is_ram else "not a state of this program"
        raise StateError(f"state {path} is {kind}: for save RAM and for states of PyBoy give the --rom, too")
    return Snapshot.from_file(path, MAX_START_ENVS)


def contact_sheet(pictures: list[np.ndarray], names: list[str], columns: int | None = None) -> np.ndarray:
    """RGB pictures (rows, columns, 3) of one size on white, row by row, each with its name below."""
    from PIL import Image, ImageDraw

    height, width = pictures[0].shape[:2]
    across = columns or int(np.ceil(len(pictures) ** 0.5))
    cell = height + LINE + 4, width + 4
    sheet = Image.new("RGB", (across * cell[1], -(-len(pictures) // across) * cell[0]), "white")
    draw = ImageDraw.Draw(sheet)
    for number, (picture, name) in enumerate(zip(pictures, names, strict=True)):
        top, left = number // across * cell[0] + 2, number % across * cell[1] + 2
        sheet.paste(Image.fromarray(picture), (left, top))
        draw.text((left, top + height), name.encode("ascii", "replace").decode()[: width // LETTER], fill="black")
    return np.asarray(sheet)
