"""Read the art: text files in which one character is one pixel.

A file holds pieces, each headed by a line

    @ KEY NAME SIZE [ATTRIBUTE] [over=KEY] [joins=KEYS] [warp=X,Y]

KEY        the character that stands for the piece in a map
SIZE       WIDTHxHEIGHT in pixels, or "auto" for ground whose rim follows its
           neighbours (48x32: an island, and a cell with the inner corners)
ATTRIBUTE  walk, solid, warp, or ledge-DIRECTION, which can be jumped over that way
over       the ground that shows through the pixels written _
joins      other pieces beside which the ground has no rim
warp       the one cell of a solid piece that is a warp (a house's door)

Pixels: . : o # are the shades 0 (lightest) to 3, _ is see-through. A line that
begins with ; is a comment.
"""

from dataclasses import dataclass, field
from pathlib import Path

SHADES = {".": 0, ":": 1, "o": 2, "#": 3}
SPRITE_COLOURS = {"_": 0, ".": 1, "o": 2, "#": 3}
SEE_THROUGH = "_"
CELL = 16


@dataclass
class Piece:
    """One picture: `rows` are strings of pixel characters."""

    key: str
    name: str
    width: int
    height: int
    auto: bool
    attribute: str
    options: dict
    rows: list = field(default_factory=list)

    @property
    def cells(self):
        """Size in 16x16 cells, as (columns, rows); automatic ground is one cell."""
        return (1, 1) if self.auto else (self.width // CELL, self.height // CELL)

    def attribute_at(self, column, row):
        """The attribute of one cell of the piece."""
        if self.options.get("warp") == f"{column},{row}":
            return "warp"
        return self.attribute

    def quarter(self, x, y):
        """The 8x8 block at pixel (x, y), as a list of strings."""
        return [row[x : x + 8] for row in self.rows[y : y + 8]]


def read_pieces(path):
    """All pieces of one art file, in order.

    Raises: ValueError if a piece has not the size that its head says.
    """
    pieces = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("@"):
            pieces.append(_read_head(line))
        elif line and not line.startswith(";"):
            pieces[-1].rows.append(line)
    for piece in pieces:
        if len(piece.rows) != piece.height or any(len(r) != piece.width for r in piece.rows):
            raise ValueError(f"{path}: {piece.name} is not {piece.width}x{piece.height} pixels")
    return pieces


def _read_head(line):
    _, key, name, size, *rest = line.split()
    auto = size == "auto"
    width, height = (48, 32) if auto else map(int, size.split("x"))
    options = dict(word.split("=", 1) for word in rest if "=" in word)
    attribute = next((word for word in rest if "=" not in word), "solid")
    return Piece(key, name, width, height, auto, attribute, options)


def lay_over(upper, lower):
    """8x8 block `upper` with `lower` showing through."""
    return [
        "".join(b if a == SEE_THROUGH else a for a, b in zip(up, low, strict=True))
        for up, low in zip(upper, lower, strict=True)
    ]


def encode_tile(block, colours=SHADES):
    """The 16 bytes of an 8x8 block: two bit planes a row (Pan Docs, "VRAM Tile Data")."""
    data = bytearray()
    for row in block:
        low = high = 0
        for character in row:
            colour = colours[character]
            low = low << 1 | colour & 1
            high = high << 1 | colour >> 1
        data += bytes((low, high))
    return bytes(data)


def sprite_tiles(piece):
    """Tiles of a 16x16 pose for 8x16 sprites: left top, left bottom, right top, right bottom."""
    return b"".join(encode_tile(piece.quarter(x, y), SPRITE_COLOURS) for x in (0, 8) for y in (0, 8))


class TileSet:
    """Different 8x8 tiles in order of first use."""

    def __init__(self, limit):
        self.limit = limit
        self.index = {}

    def add(self, block):
        """The number of a tile; a new one if it was not there yet."""
        tile = encode_tile(block)
        if tile not in self.index:
            if len(self.index) == self.limit:
                raise ValueError(f"more than {self.limit} different tiles")
            self.index[tile] = len(self.index)
        return self.index[tile]

    def data(self):
        """All tiles one after the other."""
        return b"".join(self.index)
