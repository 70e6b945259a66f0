"""Compile art and maps into the two data banks of the ROM and the names of what is in them.

    python3 world.py BUILD_FOLDER

writes bank1.bin (tiles, title), bank2.bin (maps) and data.inc (addresses for the assembler).

A map file has lines of settings, then `cells` and the grid, one character a cell (the KEY of
a piece). A piece larger than a cell is written as a block of its key.

    map NAME                          tileset NAME (art files NAME_*.txt)
    size COLUMNS ROWS                 start X Y FACING (where a new game begins)
    warp X Y MAP X Y FACING           sign X Y TEXT [EVENT] (A in front of it shows the text)
    parcel X Y                        where the parcel lies, when the quest says so
    villager X Y LEFT TOP RIGHT BOTTOM (where she enters, and the cells that she stays in)

Map header in bank 2, 16 bytes: width, height, cells, metatiles, attributes, tiles (bank 1),
tile count, warps, signs, 0. Words are little-endian addresses. Cells have a stride of 64.
A metatile is 4 tile numbers: top left, top right, bottom left, bottom right.
A warp is column, row, map, column, row, facing; a sign is column, row, text, event; FF ends a list.
"""

import sys
from pathlib import Path

import texts
from art import CELL, TileSet, encode_tile, lay_over, read_pieces, sprite_tiles

HERE = Path(__file__).parent
MAP_NAMES = ("house", "village", "cottage")
FACINGS = ("down", "up", "left", "right")
# A ledge is 3 and the direction that it can be jumped in.
ATTRIBUTES = {"walk": 0, "solid": 1, "warp": 2, "ledge-down": 3, "ledge-left": 5, "ledge-right": 6}
EVENTS = ("none", "satchel", "parcel")  # what reading a sign does; src/quest.asm
STRIDE = 64
TILE_LIMIT = 208  # 9000-97FF and 8800-8CFF; 8D00-8FFF is kept for letters
TITLE_LIMIT = 256
BANK_START, BANK_SIZE = 0x4000, 0x4000
QUARTERS = ((0, 0), (8, 0), (0, 8), (8, 8))


class Bank:
    """One 16 KiB ROM bank that is filled from the start."""

    def __init__(self):
        self.data = bytearray()
        self.names = {}

    def put(self, data, name=None):
        """Append bytes; the address they get."""
        address = BANK_START + len(self.data)
        self.data += data
        if len(self.data) > BANK_SIZE:
            raise ValueError("a bank is full")
        if name:
            self.names[name] = address
        return address


class Tileset:
    """Pieces by key, and the tiles and metatiles that the maps made of them."""

    def __init__(self, name):
        self.pieces = {}
        for path in sorted((HERE / "art").glob(f"{name}_*.txt")):
            for piece in read_pieces(path):
                if piece.key in self.pieces:
                    raise ValueError(f"{path}: key {piece.key} is taken")
                self.pieces[piece.key] = piece
        self.tiles = TileSet(TILE_LIMIT)
        self.metatiles = {}

    def metatile(self, quarters, attribute):
        """The number of a metatile; a new one if it was not there yet."""
        key = (tuple(self.tiles.add(q) for q in quarters), ATTRIBUTES[attribute])
        return self.metatiles.setdefault(key, len(self.metatiles))


class Map:
    """One map file."""

    def __init__(self, name):
        self.name = name
        self.start = self.parcel = self.villager = ()
        self.warps, self.signs, self.grid = [], [], []
        lines = (HERE / "maps" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        lines = [line for line in lines if not line.startswith(";")]
        cells = lines.index("cells")
        for word, *values in (line.split() for line in lines[:cells] if line):
            if word == "tileset":
                self.tileset = values[0]
            elif word == "size":
                self.width, self.height = map(int, values)
            elif word == "start":
                self.start = (int(values[0]), int(values[1]), FACINGS.index(values[2]))
            elif word == "warp":
                x, y, target, to_x, to_y, facing = values
                target = MAP_NAMES.index(target)
                self.warps.append((int(x), int(y), target, int(to_x), int(to_y), FACINGS.index(facing)))
            elif word == "sign":
                x, y, text, *event = values
                self.signs.append((int(x), int(y), text, EVENTS.index(*event or ("none",))))
            elif word in ("parcel", "villager"):
                setattr(self, word, tuple(map(int, values)))
        self.grid = lines[cells + 1 :]
        if len(self.grid) != self.height or any(len(r) != self.width for r in self.grid):
            raise ValueError(f"map {name} is not {self.width}x{self.height} cells")

    def constants(self, number):
        """Names for the assembler: the map's number and the places that its code needs."""
        names = {f"MAP_{self.name.upper()}": number}
        if self.start:
            names.update(zip(("START_X", "START_Y", "START_FACING"), self.start, strict=True), START_MAP=number)
        if self.parcel:
            x, y = self.parcel
            names.update({f"PARCEL_{self.name.upper()}_X": x, f"PARCEL_{self.name.upper()}_Y": y})
        if self.villager:
            words = ("MAP", "X", "Y", "LEFT", "TOP", "RIGHT", "BOTTOM")
            names.update({f"VILLAGER_{w}": v for w, v in zip(words, (number, *self.villager), strict=True)})
        return names

    def key(self, x, y):
        """The character at a cell, None outside."""
        if 0 <= x < self.width and 0 <= y < self.height:
            return self.grid[y][x]
        return None


def anchor_pieces(grid_map, pieces):
    """For each cell (x, y): its piece and the cell's place (column, row) inside of the piece."""
    places = {}
    for y in range(grid_map.height):
        for x in range(grid_map.width):
            if (x, y) in places:
                continue
            piece = pieces[grid_map.key(x, y)]
            columns, rows = piece.cells
            for row in range(rows):
                for column in range(columns):
                    if grid_map.key(x + column, y + row) != piece.key:
                        raise ValueError(f"{grid_map.name}: {piece.name} at {x},{y} is cut off")
                    places[x + column, y + row] = (piece, column, row)
    return places


def ground_quarter(grid_map, piece, x, y, qx, qy):
    """One 8x8 block of automatic ground, which looks at the two neighbours and the diagonal."""
    same = piece.key + piece.options.get("joins", "")

    def joined(dx, dy):
        key = grid_map.key(x + dx, y + dy)
        return key is None or key in same

    dx, dy = (-1 if qx == 0 else 1), (-1 if qy == 0 else 1)
    side, above = joined(dx, 0), joined(0, dy)
    if side and above and not joined(dx, dy):
        return piece.quarter(32 + qx, qy)  # inner corner
    # The island is 4x4 blocks: its rim is blocks 0 and 3, its middle 1 and 2.
    column = {(0, False): 0, (0, True): 2, (8, False): 3, (8, True): 1}[qx, side]
    row = {(0, False): 0, (0, True): 2, (8, False): 3, (8, True): 1}[qy, above]
    return piece.quarter(column * 8, row * 8)


def cell_quarter(grid_map, pieces, piece, place, cell, quarter):
    """One 8x8 block of a cell (x, y): `place` (column, row) of `piece`, over the ground that it names."""
    if piece.auto:
        block = ground_quarter(grid_map, piece, *cell, *quarter)
    else:
        block = piece.quarter(place[0] * CELL + quarter[0], place[1] * CELL + quarter[1])
    if "over" in piece.options:
        ground = pieces[piece.options["over"]]
        block = lay_over(block, cell_quarter(grid_map, pieces, ground, (0, 0), cell, quarter))
    return block


def compile_cells(grid_map, tileset):
    """The metatile numbers of a map, with the stride."""
    cells = bytearray(STRIDE * grid_map.height)
    for (x, y), (piece, *place) in anchor_pieces(grid_map, tileset.pieces).items():
        quarters = [cell_quarter(grid_map, tileset.pieces, piece, place, (x, y), q) for q in QUARTERS]
        cells[y * STRIDE + x] = tileset.metatile(quarters, piece.attribute_at(*place))
    if len(tileset.metatiles) > 256:
        raise ValueError(f"{grid_map.tileset}: more than 256 metatiles")
    return bytes(cells)


def word(value):
    """Two bytes, little-endian."""
    return value.to_bytes(2, "little")


def compile_texts(bank1, bank2, constants):
    """Put the font and all texts into the banks; the address of each text by name."""
    (sheet,) = read_pieces(HERE / "art" / "font.txt")
    blocks = [sheet.quarter(x, y) for y in range(0, sheet.height, 8) for x in range(0, sheet.width, 8)]
    bank1.put(b"".join(encode_tile(block) for block in blocks), "font_tiles")
    constants.update(texts.constants(), FONT_TILE_COUNT=len(blocks))
    words = texts.read_texts(HERE / "texts.txt")
    return {name: bank2.put(data, f"text_{name}") for name, data in words.items()}


def compile_maps(bank1, bank2, constants, text_at):
    """Put all tilesets and maps into the banks."""
    maps = [Map(name) for name in MAP_NAMES]
    tilesets = {m.tileset: Tileset(m.tileset) for m in maps}
    cells = {m.name: compile_cells(m, tilesets[m.tileset]) for m in maps}
    headers_at = bank2.put(bytes(2 * len(maps)), "map_table") - BANK_START
    shared = {}
    for name, tileset in tilesets.items():
        quads = b"".join(bytes(quad) for quad, _ in tileset.metatiles)
        attributes = bytes(attribute for _, attribute in tileset.metatiles)
        tiles = tileset.tiles.data()
        count = len(tiles) // 16
        shared[name] = (
            word(bank2.put(quads))
            + word(bank2.put(attributes))
            + word(bank1.put(tiles, f"tiles_{name}"))
            + bytes([count])
        )
        print(f"tileset {name}: {count} tiles, {len(tileset.metatiles)} metatiles")
    for number, m in enumerate(maps):
        body = bytes([m.width, m.height]) + word(bank2.put(cells[m.name])) + shared[m.tileset]
        body += word(bank2.put(b"".join(bytes(w) for w in m.warps) + b"\xff"))
        signs = b"".join(bytes((x, y)) + word(text_at[text]) + bytes([event]) for x, y, text, event in m.signs)
        body += word(bank2.put(signs + b"\xff")) + b"\0"
        address = bank2.put(body, f"map_{m.name}")
        bank2.data[headers_at + 2 * number : headers_at + 2 * number + 2] = word(address)
        constants.update(m.constants(number))


def compile_title(bank1, constants):
    """The title picture: its tiles and the 20x18 tile numbers."""
    (picture,) = read_pieces(HERE / "art" / "title.txt")
    tiles = TileSet(TITLE_LIMIT)
    numbers = [tiles.add(picture.quarter(x, y)) for y in range(0, 144, 8) for x in range(0, 160, 8)]
    data = tiles.data()
    bank1.put(data, "title_tiles")
    bank1.put(bytes(numbers), "title_map")
    constants["TITLE_TILE_COUNT"] = len(data) // 16
    print(f"title: {len(data) // 16} tiles")


def compile_sprites(bank1, constants):
    """The sprite tiles, and the number of the first one of each person and thing."""
    data = b""
    for name in ("player", "villager", "items"):
        pieces = read_pieces(HERE / "art" / f"{name}.txt")
        firsts = {piece.name: len(data) // 16 + 4 * n for n, piece in enumerate(pieces)}
        for piece, first in firsts.items() if name == "items" else ((name, len(data) // 16),):
            constants[f"{piece.upper().replace('-', '_')}_TILE"] = first
        data += b"".join(sprite_tiles(piece) for piece in pieces)
    bank1.put(data, "sprite_tiles")
    constants["SPRITE_TILE_COUNT"] = len(data) // 16


def main():
    build = Path(sys.argv[1])
    bank1, bank2, constants = Bank(), Bank(), {}
    compile_sprites(bank1, constants)
    compile_title(bank1, constants)
    compile_maps(bank1, bank2, constants, compile_texts(bank1, bank2, constants))
    (build / "bank1.bin").write_bytes(bank1.data)
    (build / "bank2.bin").write_bytes(bank2.data)
    names = {**constants, **bank1.names, **bank2.names}
    lines = ["; Written by world.py: numbers and addresses of the data in banks 1 and 2."]
    lines += [f"{name} = 0x{value:04X}" for name, value in names.items()]
    (build / "data.inc").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
