"""Maps of the game. A file in maps/ has several, layouts.txt those cells that more than one map has:

    map NAME TILESET              then the cells, one character each, up to an empty line; or
    map NAME like LAYOUT          cells, tileset and `under` of a layout

and then what is there. M is a marker: a character of the cells, which stands on `ground` or on what `under` says.

    ground KEY                    under M KEY ...
    exit M MAP.M [need ITEM TEXT] stepping onto M leads to that marker, if one carries the item
    doors MAP.M ...               the same for the doors of buildings, in reading order; they are .d1, .d2 ...
    sign M TEXT                   wild RATE SPECIES LEVEL ...  (rate of 256, for each step in grass)
    item M ITEM [NUMBER]          lies there until the event found_MAP_M
    trainer M LOOK FACING SIGHT ID   with indented lines `before TEXT` and `after TEXT`; the event beat_ID
    tree M                        is in the way until the event cut_MAP_M, which needs the AXE
    person M LOOK FACING [until EVENT | from EVENT]   with its script (scripts.py) in indented lines
    trigger M                     a script for stepping onto M;   enter   a script for entering the map

A map has at most 16x16 cells. In ROM it is: header of 23 bytes (src/ram.asm), cells, metatiles of 4 tiles, their
attributes and palettes, addresses of tiles, warps, objects, wild fighters, triggers, scripts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from faults import Fault, Lines
from pictures import ATTRIBUTES, TILE_LIMIT, Looks, Piecework, encode_tile, tile_number
from scripts import Script
from tables import Tables, encode_text
from world import QUARTERS, anchor_pieces, cell_quarter

HERE = Path(__file__).parent
FACINGS = ("down", "up", "left", "right")
LIMIT, OBJECT_LIMIT = 16, 12
PERSON, NO_TILE, NO_ITEM = 0x80, 0xFF, 0xFF
WARP, SOLID = ATTRIBUTES["warp"], ATTRIBUTES["solid"]


@dataclass
class Thing:
    """A line below the cells, with its indented lines."""

    at: int
    words: list[str]
    text: str
    body: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class Map:
    """A map as its file has it."""

    lines: Lines
    at: int
    name: str
    number: int
    tileset: str = ""
    rows: list[str] = field(default_factory=list)
    things: list[Thing] = field(default_factory=list)
    ground: str = ""
    under: dict[str, str] = field(default_factory=dict)
    markers: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    kinds: dict[tuple[int, int], int] = field(default_factory=dict)
    warps: dict[tuple[int, int], tuple[int, int, int, str]] = field(default_factory=dict)
    objects: list[dict] = field(default_factory=list)

    @property
    def width(self) -> int:
        """Columns."""
        return len(self.rows[0])

    @property
    def height(self) -> int:
        """Rows."""
        return len(self.rows)

    def fault(self, at: int, text: str) -> Fault:
        """The Fault of a line."""
        return self.lines.fault(at, f"map {self.name}: {text}")

    def key(self, x: int, y: int) -> str | None:
        """The key of the piece at a cell, None outside."""
        if not (0 <= x < self.width and 0 <= y < self.height):
            return None
        character = self.rows[y][x]
        return self.under.get(character, self.ground if character in self.markers else character)


def read_file(path: Path, first: int) -> list[Map]:
    """The maps of a file, with numbers from `first` on."""
    lines, maps = Lines(path), []
    in_cells = False
    for at, line in lines:
        words = line.split()
        if words[:1] == ["map"] or words[:1] == ["layout"]:
            if len(words) not in (3, 4):
                raise lines.fault(at, "a map begins with: map NAME TILESET, or map NAME like LAYOUT")
            maps.append(Map(lines, at, words[1], first + len(maps), " ".join(words[2:])))
            in_cells = words[2] != "like"
        elif not maps and words:
            raise lines.fault(at, "a file begins with a map")
        elif in_cells:
            in_cells = bool(words)
            if words:
                maps[-1].rows.append(line)
        elif line.startswith(" ") and words:
            if not maps[-1].things:
                raise lines.fault(at, "an indented line belongs to nothing")
            maps[-1].things[-1].body.append((at, line.strip()))
        elif words:
            maps[-1].things.append(Thing(at, words, line))
    return maps


class World:
    """All maps, checked; `blob` makes their bytes."""

    def __init__(self, tables: Tables, folder: Path = HERE / "maps") -> None:
        self.tables, self.pieces, self.looks = tables, Piecework(), Looks()
        layouts = {each.name: each for each in read_file(folder / "layouts.txt", 0)}
        self.maps: list[Map] = []
        for path in sorted(folder.glob("*.txt")):
            if path.name != "layouts.txt":
                self.maps += read_file(path, len(self.maps))
        self.by_name = {each.name: each for each in self.maps}
        if len(self.by_name) != len(self.maps):
            raise Fault("two maps have the same name")
        for each in self.maps:
            if each.tileset.startswith("like "):
                layout = layouts.get(each.tileset[5:])
                if layout is None:
                    raise each.fault(each.at, f"there is no layout {each.tileset[5:]}")
                each.tileset, each.rows = layout.tileset, layout.rows
                each.things = layout.things + each.things
            self._shape(each)
        for each in self.maps:
            self._links(each)

    def _shape(self, each: Map) -> None:
        """Size, markers and kinds of cells."""
        if each.tileset not in self.pieces.tilesets:
            raise each.fault(each.at, f"there is no tileset {each.tileset}")
        if not each.rows or len({len(row) for row in each.rows}) != 1:
            raise each.fault(each.at, "its rows have different lengths")
        if not (10 <= each.width <= LIMIT and 9 <= each.height <= LIMIT):
            raise each.fault(each.at, f"{each.width}x{each.height} cells are not 10x9 to 16x16")
        used = set()
        for thing in each.things:
            word, *rest = thing.words
            if word == "ground":
                each.ground = rest[0]
            elif word == "under":
                each.under |= dict.fromkeys(rest[:-1], rest[-1])
            elif word in ("exit", "sign", "item", "trainer", "tree", "person", "trigger", "spot"):
                if not rest or len(rest[0]) != 1:
                    raise each.fault(thing.at, f"{word} needs a marker of one character")
                used.add(rest[0])
                if word == "sign":
                    each.under.setdefault(rest[0], "!")
        for y, row in enumerate(each.rows):
            for x, character in enumerate(row):
                if character in used:
                    each.markers.setdefault(character, []).append((x, y))
        for marker in sorted(used - each.markers.keys()):
            raise each.fault(each.at, f"the marker {marker} is not in its cells")
        pieces = self.pieces.tilesets[each.tileset]
        for y in range(each.height):
            for x in range(each.width):
                if each.key(x, y) not in pieces:
                    raise each.fault(each.at, f"{each.key(x, y)!r} in column {x}, row {y} is not a piece")
        try:
            places = anchor_pieces(each, pieces)
        except ValueError as error:
            raise each.fault(each.at, str(error)) from None
        each.kinds = {cell: self.pieces.attribute(piece, *at) for cell, (piece, *at) in sorted(places.items())}
        doors = sorted((y, x) for (x, y), kind in each.kinds.items() if kind == WARP and each.rows[y][x] not in used)
        each.markers |= {f"d{n}": [(x, y)] for n, (y, x) in enumerate(doors, 1)}

    def where(self, word: str) -> tuple[int, int, int]:
        """(map, column, row) of MAP.MARKER.

        Raises: ValueError.
        """
        name, _, marker = word.partition(".")
        if name not in self.by_name or marker not in self.by_name[name].markers:
            raise ValueError(f"there is no marker {word}")
        return self.by_name[name].number, *self.by_name[name].markers[marker][0]

    def _links(self, each: Map) -> None:
        """Exits and doors."""
        doors = 0
        for thing in each.things:
            word, *rest = thing.words
            try:
                if word == "exit":
                    marker, target, *need = rest
                    if need and (need[0] != "need" or len(need) < 3):
                        raise ValueError("an exit is: exit M MAP.M [need ITEM TEXT]")
                    item = need[1] if need else ""
                    text = thing.text.partition(f"need {item} ")[2] if need else ""
                    self.where(target)
                    name, _, other = target.partition(".")
                    ends = self.by_name[name].markers[other]
                    for index, cell in enumerate(each.markers[marker]):
                        end = ends[min(index, len(ends) - 1)]
                        each.warps[cell] = (self.by_name[name].number, *end, item)
                        each.kinds[cell] = WARP
                        if text:
                            each.warps[cell] += (text,)
                elif word == "doors":
                    for target in rest:
                        doors += 1
                        each.warps[each.markers[f"d{doors}"][0]] = (*self.where(target), "")
            except (ValueError, KeyError, IndexError) as error:
                raise each.fault(thing.at, what_is_wrong(error, word)) from None
        if f"d{doors + 1}" in each.markers:
            raise each.fault(each.at, "it has more doors than `doors` says")


def what_is_wrong(error: Exception, word: str) -> str:
    """What to say of an error in a line that begins with `word`."""
    if isinstance(error, KeyError):
        return f"there is no {error.args[0]}"
    if isinstance(error, IndexError) or "unpack" in str(error):
        return f"{word} needs other words: see maps.py"
    return str(error)


class Pool:
    """All tiles of all maps, each once."""

    def __init__(self) -> None:
        self.index: dict[bytes, int] = {}

    def address(self, tile: bytes) -> int:
        """Where a tile is in its bank."""
        at = self.index.setdefault(tile, len(self.index))
        if at >= 1024:
            raise Fault("the maps have more than 1024 different tiles")
        return 0x4000 + 16 * at


class Encoder:
    """The bytes of one map."""

    def __init__(self, world: World, pool: Pool, each: Map) -> None:
        self.world, self.tables, self.each = world, world.tables, each
        self.wild = b""
        self.objects: list[tuple[list[int], Script, int, int]] = []
        self.triggers: list[tuple[tuple[int, int], Script]] = []
        self.entry: Script | None = None
        self._cells(pool)
        for thing in each.things:
            try:
                self._thing(thing)
            except (ValueError, KeyError, IndexError) as error:
                raise each.fault(thing.at, what_is_wrong(error, thing.words[0])) from None
        if len(self.objects) > OBJECT_LIMIT:
            raise each.fault(each.at, f"{len(self.objects)} objects are more than {OBJECT_LIMIT}")

    def _cells(self, pool: Pool) -> None:
        each, pieces = self.each, self.world.pieces
        tileset = pieces.tilesets[each.tileset]
        tiles: dict[bytes, int] = {}
        metatiles: dict[tuple, int] = {}
        cells = bytearray(each.width * each.height)
        for (x, y), (piece, *at) in anchor_pieces(each, tileset).items():
            quad = [encode_tile(cell_quarter(each, tileset, piece, at, (x, y), q)) for q in QUARTERS]
            numbers = tuple(tile_number(tiles.setdefault(tile, len(tiles))) for tile in quad)
            key = (numbers, each.kinds[x, y], pieces.palette(piece, at[1]))
            cells[y * each.width + x] = metatiles.setdefault(key, len(metatiles))
        if len(tiles) > TILE_LIMIT:
            raise each.fault(each.at, f"{len(tiles)} different tiles are more than {TILE_LIMIT}")
        self.cells, self.metatiles = bytes(cells), metatiles
        self.tiles = b"".join(pool.address(tile).to_bytes(2, "little") for tile in tiles)
        self.tile_count = len(tiles)

    def _script(self, lines: list[tuple[int, str]]) -> Script:
        script = Script(self.tables, self.world.where)
        for at, line in lines:
            try:
                script.line(line)
            except (ValueError, KeyError) as error:
                raise self.each.fault(at, str(error)) from None
        return script

    def _object(self, marker: str, look: str, facing: str, sight: int, script: list[tuple[int, str]],
                event: str = "", condition: int = 0) -> None:  # fmt: skip
        """An object on each cell of a marker."""
        tile, palette, person = NO_TILE, 0, False
        if look:
            if look not in self.world.looks.looks:
                raise ValueError(f"nobody looks like {look}")
            tile, palette, person = self.world.looks.looks[look]
        flag = self.tables.event(event) if event else 0
        for x, y in self.each.markers[marker]:
            head = [x, y, tile, palette, FACINGS.index(facing), (PERSON if person else 0) | sight]
            self.objects.append((head, self._script(script), flag, condition))
            self.each.objects.append(
                {
                    "marker": marker,
                    "cell": (x, y),
                    "event": event,
                    "condition": condition,
                    "sight": sight,
                    "facing": FACINGS.index(facing),
                }
            )

    def _thing(self, thing: Thing) -> None:
        word, *rest = thing.words
        at, name = thing.at, self.each.name
        if word in ("ground", "under", "exit", "doors", "spot"):
            return
        if word == "wild":
            rate, *fighters = rest
            pairs = [
                (self.tables.species[species], int(level))
                for species, level in zip(fighters[::2], fighters[1::2], strict=True)
            ]
            self.wild = bytes([int(rate), len(pairs), *(value for pair in pairs for value in pair)])
        elif word == "sign":
            self._object(rest[0], "", "down", 0, [(at, f"say {thing.text.split(None, 2)[2]}"), *thing.body])
        elif word == "item":
            marker, item, number = (*rest, "1")[:3]
            event = f"found_{name}_{marker}"
            script = [f"give {item} {number}", f"set {event}", "say You found a @!"]
            self._object(marker, "parcel", "down", 0, [(at, line) for line in script], event, 1)
        elif word == "tree":
            event = f"cut_{name}_{rest[0]}"
            script = ["if has AXE goto cut", "say A young tree is in the way. An AXE would fell it.", "end", "cut:",
                      f"set {event}", "say You fell the tree."]  # fmt: skip
            self._object(rest[0], "tree", "down", 0, [(at, line) for line in script], event, 1)
        elif word == "trainer":
            marker, look, facing, sight, identity = rest
            said = dict(line.split(" ", 1) for _, line in thing.body if line.startswith(("before ", "after ")))
            more = [line for line in thing.body if not line[1].startswith(("before ", "after "))]
            script = [f"if beat_{identity} goto after", f"say {said['before']}", f"battle {identity}",
                      f"set beat_{identity}"]  # fmt: skip
            lines = [(at, line) for line in script] + more + [(at, "end"), (at, "after:"), (at, f"say {said['after']}")]
            self._object(marker, look, facing, int(sight), lines, f"beat_{identity}")
        elif word == "person":
            marker, look, facing, *when = rest
            condition = {"until": 1, "from": 2}[when[0]] if when else 0
            self._object(marker, look, facing, 0, thing.body, when[1] if when else "", condition)
        elif word == "trigger":
            self.triggers += [(cell, self._script(thing.body)) for cell in self.each.markers[rest[0]]]
        elif word == "enter":
            self.entry = self._script(thing.body)
        else:
            raise ValueError(f"{word!r} is not known")

    def encode(self, base: int) -> bytes:
        """The map at address `base`."""
        data = bytearray(23)

        def put(part: bytes) -> bytes:
            data.extend(part)
            return (base + len(data) - len(part)).to_bytes(2, "little")

        def script(each: Script) -> bytes:
            try:
                return put(each.encode(base + len(data)))
            except ValueError as error:
                raise self.each.fault(self.each.at, str(error)) from None

        each, numbers = self.each, list(self.metatiles)
        head = bytes([each.width, each.height]) + put(self.cells)
        head += put(b"".join(bytes(quad) for quad, _, _ in numbers)) + put(bytes(kind for _, kind, _ in numbers))
        head += put(bytes(palette for _, _, palette in numbers)) + put(self.tiles) + bytes([self.tile_count])
        warps = b""
        for cell, (number, x, y, item, *text) in each.warps.items():
            refusal = put(encode_text(text[0])) if text else b"\0\0"
            warps += bytes([*cell, number, x, y, self.tables.items[item] if item else NO_ITEM]) + refusal
        head += put(warps + b"\xff")
        objects = b""
        for first, code, flag, condition in self.objects:
            objects += bytes(first) + script(code) + bytes([flag, condition])
        head += put(objects + b"\xff") + (put(self.wild) if self.wild else b"\0\0")
        head += script(self.entry) if self.entry else b"\0\0"
        triggers = b"".join(bytes(cell) + script(code) for cell, code in self.triggers)
        head += put(triggers + b"\xff")
        data[:23] = head
        return bytes(data)
