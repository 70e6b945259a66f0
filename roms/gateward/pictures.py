"""Pictures of the game: pieces of the tilesets, sprites, letters, fighters, the title; colours.

Pictures are text files in the format of ../homeward/art.py; HOMEWARD's own are used as well. pieces.txt says for pieces
of the tilesets which attribute (instead of their own) and which palettes their rows of cells have:

    NAME [ATTRIBUTE] PALETTE ...

looks.txt lists what objects look like: NAME, the picture's file, PALETTE, and `person` for one with three poses (down,
up, left: NAME-down and so on). colours.txt has 16 palettes, eight of the map and eight of the sprites, of four colours
RRGGBB each.
"""

from __future__ import annotations

import sys
from pathlib import Path

from faults import Fault, Lines
from tables import FONT_TILES

HERE = Path(__file__).parent
HOMEWARD = HERE.parent / "homeward"
sys.path.append(str(HOMEWARD))

from art import TileSet, encode_tile, read_pieces, sprite_tiles  # noqa: E402

ATTRIBUTES = {
    "walk": 0,
    "solid": 1,
    "warp": 2,
    "grass": 3,
    "water": 4,
    "ledge-down": 5,
    "ledge-left": 7,
    "ledge-right": 8,
}
TILESETS = {
    "outdoor": ("outdoor_buildings", "outdoor_ground", "outdoor_things"),
    "indoor": ("indoor_furniture", "indoor_room"),
    "cave": (),
}
PICTURE_SIZE = 40
SPRITE_LIMIT = 128
SPARE_TILE = 0xCC  # behind the letters
TILE_LIMIT = 128 + 256 - SPARE_TILE  # of a map and of the title


def pieces_of(path: Path):
    """The pieces of a file.

    Raises: Fault.
    """
    try:
        return read_pieces(path)
    except (ValueError, OSError) as error:
        raise Fault(str(error)) from None


class Piecework:
    """The pieces of all tilesets by key, with attributes and palettes."""

    def __init__(self) -> None:
        self.special: dict[str, tuple[str | None, list[int]]] = {}
        lines = Lines(HERE / "art" / "pieces.txt")
        for number, line in lines:
            if not line.strip():
                continue
            name, *rest = line.split()
            attribute = rest.pop(0) if rest and rest[0] in ATTRIBUTES else None
            if not rest or not all(word.isdecimal() and int(word) < 8 for word in rest):
                raise lines.fault(number, f"the palettes {' '.join(rest)!r} are not numbers from 0 to 7")
            self.special[name] = (attribute, [int(word) for word in rest])
        self.tilesets = {name: self._tileset(name, files) for name, files in TILESETS.items()}

    def _tileset(self, name: str, files: tuple[str, ...]) -> dict:
        pieces = {}
        for file in files:
            pieces |= {piece.key: piece for piece in pieces_of(HOMEWARD / "art" / f"{file}.txt")}
        for path in sorted((HERE / "art").glob(f"{name}*.txt")):
            pieces |= {piece.key: piece for piece in pieces_of(path)}
        return pieces

    def attribute(self, piece, column: int, row: int) -> int:
        """The attribute of a cell of a piece."""
        own = piece.attribute_at(column, row)
        attribute, _ = self.special.get(piece.name, (None, []))
        return ATTRIBUTES[own if attribute is None or own == "warp" else attribute]

    def palette(self, piece, row: int) -> int:
        """The palette of a row of a piece's cells."""
        if piece.name not in self.special:
            raise Fault(f"pieces.txt: {piece.name} has no palette")
        palettes = self.special[piece.name][1]
        return palettes[min(row, len(palettes) - 1)]


class Looks:
    """Sprites: the tiles of all of them, and each one's first tile."""

    def __init__(self) -> None:
        self.tiles = b"".join(sprite_tiles(piece) for piece in pieces_of(HOMEWARD / "art" / "player.txt"))
        self.looks: dict[str, tuple[int, int, bool]] = {"player": (0, 0, True)}
        lines = Lines(HERE / "art" / "looks.txt")
        files: dict[str, dict] = {}
        for number, line in lines:
            if not line.strip():
                continue
            name, file, palette, *person = line.split()
            if file not in files:
                files[file] = {piece.name: piece for piece in pieces_of(HERE / "art" / f"{file}.txt")}
            first = len(self.tiles) // 16
            poses = [f"{name}-{way}" for way in ("down", "up", "left")] if person == ["person"] else [name]
            if name == "boat":
                poses = ["boat-down", "boat-left"]
            for pose in poses:
                if pose not in files[file]:
                    raise lines.fault(number, f"{file}.txt has no picture {pose}")
                self.tiles += sprite_tiles(files[file][pose])
            self.looks[name] = (first, int(palette), person == ["person"])
        if len(self.tiles) // 16 > SPRITE_LIMIT:
            raise Fault(f"looks.txt: {len(self.tiles) // 16} tiles are more than {SPRITE_LIMIT}")


def font_tiles() -> bytes:
    """Letters, digits and signs."""
    letters = pieces_of(HOMEWARD / "art" / "font.txt")[0]
    digits = pieces_of(HERE.parent / "engine" / "art" / "digits.txt")[0]
    signs = pieces_of(HERE / "art" / "signs.txt")[0]
    tiles = [
        encode_tile(sheet.quarter(x, y))
        for sheet, count in ((letters, 46), (digits, 10), (signs, FONT_TILES - 56))
        for x, y in [(x, y) for y in range(0, sheet.height, 8) for x in range(0, sheet.width, 8)][:count]
    ]
    return b"".join(tiles)


def fighter_tiles(species: list[str]) -> bytes:
    """The pictures of all species, 25 tiles each, row by row."""
    pieces = {piece.name: piece for piece in pieces_of(HERE / "art" / "fighters.txt")}
    data = b""
    for name in species:
        piece = pieces.get(name.lower())
        if piece is None or (piece.width, piece.height) != (PICTURE_SIZE, PICTURE_SIZE):
            raise Fault(f"fighters.txt: {name.lower()} has no picture of {PICTURE_SIZE}x{PICTURE_SIZE}")
        data += b"".join(
            encode_tile(piece.quarter(x, y)) for y in range(0, PICTURE_SIZE, 8) for x in range(0, PICTURE_SIZE, 8)
        )
    return data


def tile_number(index: int) -> int:
    """The number of the tile at an index of a map's list: 128 are at 9000, the rest behind the letters."""
    return index if index < 128 else index - 128 + SPARE_TILE


def title() -> tuple[bytes, bytes]:
    """(tiles, tile numbers) of the title."""
    picture = pieces_of(HERE / "art" / "title.txt")[0]
    tiles = TileSet(TILE_LIMIT)
    try:
        numbers = [tiles.add(picture.quarter(x, y)) for y in range(0, 144, 8) for x in range(0, 160, 8)]
    except ValueError as error:
        raise Fault(f"title.txt: {error}") from None
    return tiles.data(), bytes(map(tile_number, numbers))


def colours() -> bytes:
    """The palettes, two bytes a colour (Pan Docs, "LCD Color Palettes")."""
    lines = Lines(HERE / "art" / "colours.txt")
    data = b""
    for number, line in lines:
        for word in line.split():
            try:
                red, green, blue = bytes.fromhex(word)
            except ValueError:
                raise lines.fault(number, f"{word!r} is not a colour RRGGBB") from None
            data += (red >> 3 | green >> 3 << 5 | blue >> 3 << 10).to_bytes(2, "little")
    if len(data) != 128:
        raise Fault(f"colours.txt: {len(data) // 2} colours are not 64")
    return data


__all__ = [
    "ATTRIBUTES",
    "TILE_LIMIT",
    "Looks",
    "Piecework",
    "colours",
    "encode_tile",
    "fighter_tiles",
    "font_tiles",
    "tile_number",
    "title",
]
