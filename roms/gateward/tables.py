"""Tables of the game, from text files, as assembler data: types, moves, species, items, trainers, events, words.

types.txt     the names of types; then for each the factors in halves against all types, in this order
moves.txt     NAME TYPE POWER ACCURACY (of 256; power 0 heals)
species.txt   NAME TYPE TYPE HP ATTACK DEFENSE SPEED EXPERIENCE CATCH PALETTE (into NAME LEVEL or -) LEVEL MOVE ...
items.txt     NAME KIND STRENGTH PRICE
trainers.txt  ID NAME MONEY SPECIES LEVEL ...
events.txt    one event a line; its number is the line's
words.txt     NAME, and after a space a text of the menus and battles; in text_ | begins a line and || a page, in others
              | ends one string of several

An underscore in a name is a space on the screen. A line that begins with ; is a comment.
"""

from __future__ import annotations

from pathlib import Path

from faults import Fault, Lines

HERE = Path(__file__).parent
CHARACTERS = " ABCDEFGHIJKLMNOPQRSTUVWXYZ.,!?'-:()"  # as in ../homeward/art/font.txt
FRAME = ("TOP_LEFT", "TOP", "TOP_RIGHT", "LEFT", "RIGHT", "BOTTOM_LEFT", "BOTTOM", "BOTTOM_RIGHT", "CURSOR", "MORE")
FONT_TILE = 0x80
DIGIT_TILE = FONT_TILE + len(CHARACTERS) + len(FRAME)
# Behind the digits: the tiles of art/signs.txt.
SLASH_TILE = DIGIT_TILE + 10
BAR_TILE = SLASH_TILE + 1
GATE_TILE = BAR_TILE + 9
FONT_TILES = GATE_TILE + 2 - FONT_TILE
NAME_LIMIT, TEXT_WIDTH, TEXT_ROWS = 9, 18, 4
KINDS = ("quest", "heal", "net", "salve", "thread")
END, LINE, PAGE, STRING = 0, 1, 2, 3


def tile_of(character: str) -> int:
    """The tile of a letter, digit or sign.

    Raises: KeyError.
    """
    if character in CHARACTERS:
        return FONT_TILE + CHARACTERS.index(character)
    if character.isdecimal():
        return DIGIT_TILE + int(character)
    if character == "/":
        return SLASH_TILE
    raise KeyError(character)


def encode(text: str) -> bytes:
    """The tiles of a text in one line; @ is the name in wStringBuffer."""
    return bytes(STRING if character == "@" else tile_of(character) for character in text.upper())


def wrap(text: str, last_rows: int = TEXT_ROWS) -> list[list[str]]:
    """Pages of lines of at most 18 characters. `||` begins a page, `|` a line. The last page has at most `last_rows`.

    Raises: ValueError for a word that is too long.
    """
    pages: list[list[str]] = []
    for part in text.split("||"):
        lines: list[str] = []
        for piece in part.split("|"):
            lines.append("")
            for word in piece.split():
                longer = f"{lines[-1]} {word}".strip()
                if len(word) > TEXT_WIDTH:
                    raise ValueError(f"the word {word!r} is longer than {TEXT_WIDTH} characters")
                if len(longer.replace("@", "@" * NAME_LIMIT)) > TEXT_WIDTH:
                    lines.append(word)
                else:
                    lines[-1] = longer
        pages += [lines[i : i + TEXT_ROWS] for i in range(0, len(lines), TEXT_ROWS)]
    if len(pages[-1]) > last_rows:
        pages[-1:] = [pages[-1][:-last_rows], pages[-1][-last_rows:]]
    return pages


def encode_text(text: str, last_rows: int = TEXT_ROWS) -> bytes:
    """A text as bytes.

    Raises: ValueError for what the font lacks.
    """
    try:
        pages = [bytes([LINE]).join(map(encode, page)) for page in wrap(text, last_rows)]
    except KeyError as error:
        raise ValueError(f"the font has no {error.args[0]!r}") from None
    return bytes([PAGE]).join(pages) + bytes([END])


def decimal(value: int, size: int) -> bytes:
    """Two decimal digits a byte, the highest first."""
    return bytes.fromhex(f"{value:0{2 * size}d}")


class Tables:
    """All tables; numbers of things by their names."""

    def __init__(self, folder: Path = HERE / "tables") -> None:
        self.folder = folder
        self.lines: list[str] = []  # of the assembler
        self._types()
        self._moves()
        self._items()
        self._species()
        self._trainers()
        self._events()
        self._words()

    def rows(self, name: str):
        """Lines of a table as (fault, words)."""
        lines = Lines(self.folder / name)
        for number, line in lines:
            if line.strip():
                yield (lambda text, number=number: lines.fault(number, text)), line.split()

    def number(self, names: dict[str, int], word: str, kind: str, fault) -> int:
        """The number of a named thing."""
        if word not in names:
            raise fault(f"there is no {kind} {word}")
        return names[word]

    def whole(self, word: str, least: int, most: int, what: str, fault) -> int:
        """A whole number in a range."""
        if not word.isdecimal() or not least <= int(word) <= most:
            raise fault(f"{what} is {word!r}: give a number from {least} to {most}")
        return int(word)

    def put(self, name: str, data: bytes | list[str]) -> None:
        """A label with bytes, or with lines of the assembler."""
        self.lines.append(f"{name}::")
        if isinstance(data, bytes):
            data = [f"\t.db\t{', '.join(map(str, data[i : i + 16]))}" for i in range(0, len(data), 16)]
        self.lines += data

    def name_bytes(self, name: str, size: int, fault) -> bytes:
        """A name, ended by 0, in `size` bytes."""
        if len(name) >= size:
            raise fault(f"the name {name} is longer than {size - 1} characters")
        try:
            return encode(name.replace("_", " ")).ljust(size, b"\0")
        except KeyError as error:
            raise fault(f"the font has no {error.args[0]!r}") from None

    def _types(self) -> None:
        rows = list(self.rows("types.txt"))
        self.types = {name: number for number, name in enumerate(rows[0][1])}
        names = b"".join(self.name_bytes(name, 8, rows[0][0]) for name in self.types)
        chart = b""
        for fault, (name, *factors) in rows[1:]:
            if len(factors) != len(self.types):
                raise fault(f"{name} has {len(factors)} factors for {len(self.types)} types")
            self.number(self.types, name, "type", fault)
            chart += bytes(self.whole(factor, 0, 4, "a factor", fault) for factor in factors)
        self.chart = chart
        self.put("type_names", names)
        self.put("type_chart", chart)

    def _moves(self) -> None:
        self.moves: dict[str, int] = {"-": 0}
        self.move_data = [(0, 0, 0)]
        names, data = bytes(10), bytes(4)
        for fault, words in self.rows("moves.txt"):
            if len(words) != 4:
                raise fault("a move is NAME TYPE POWER ACCURACY")
            name, kind, power, accuracy = words
            self.moves[name] = len(self.moves)
            names += self.name_bytes(name, NAME_LIMIT + 1, fault)
            row = (
                self.number(self.types, kind, "type", fault),
                self.whole(power, 0, 150, "the power", fault),
                self.whole(accuracy, 1, 255, "the accuracy", fault),
            )
            self.move_data.append(row)
            data += bytes((*row, 0))
        self.put("move_names", names)
        self.put("move_table", data)

    def _items(self) -> None:
        self.items: dict[str, int] = {}
        data = b""
        for fault, words in self.rows("items.txt"):
            if len(words) != 4:
                raise fault("an item is NAME KIND STRENGTH PRICE")
            name, kind, strength, price = words
            if kind not in KINDS:
                raise fault(f"the kind {kind} is not one of {', '.join(KINDS)}")
            self.items[name] = len(self.items)
            data += self.name_bytes(name, 11, fault)
            data += bytes([KINDS.index(kind), self.whole(strength, 0, 255, "the strength", fault)])
            data += decimal(self.whole(price, 0, 999999, "the price", fault), 3)
        if len(self.items) > 16:
            raise Fault("items.txt: more than 16 items do not fit into the bag")
        self.put("item_table", data)

    def _species(self) -> None:
        rows = list(self.rows("species.txt"))
        self.species = {words[0]: number for number, (_, words) in enumerate(rows)}
        self.species_data = {}
        names, data, moves = b"", [], []
        for fault, words in rows:
            name, type1, type2, *rest = words
            if len(rest) < 9:
                raise fault("a species is NAME TYPE TYPE HP ATTACK DEFENSE SPEED EXPERIENCE CATCH PALETTE INTO ...")
            stats = [self.whole(word, 1, 200, "a number", fault) for word in rest[:6]]
            palette = self.whole(rest[6], 0, 7, "the palette", fault)
            into, level, learns = rest[7], "0", rest[8:]
            if into != "-":
                level, learns = rest[8], rest[9:]
            evolve = [self.whole(level, 0, 40, "the level", fault)]
            evolve.append(self.number(self.species, into, "species", fault) if into != "-" else 0)
            types = [self.number(self.types, type1, "type", fault)]
            types.append(self.number(self.types, type2, "type", fault) if type2 != "-" else types[0])
            learned = [
                (self.whole(a, 1, 40, "the level", fault), self.number(self.moves, b, "move", fault))
                for a, b in zip(learns[::2], learns[1::2], strict=True)
            ]
            if len(dict(learned)) != len(learned):
                raise fault("it learns two moves at one level")
            self.species_data[name] = (types, stats, evolve, learned)
            names += self.name_bytes(name, NAME_LIMIT + 1, fault)
            body = ", ".join(map(str, (*types, *stats, *evolve)))
            data.append(f"\t.db\t{body}\n\t.dw\tmoves_{name}\n\t.db\t{palette}, 0, 0, 0")
            flat = ", ".join(f"{a}, {b}" for a, b in learned)
            moves.append(f"moves_{name}:\t.db\t{flat}, 0")
        self.put("species_names", names)
        self.put("species_table", data)
        self.lines += moves
        self.put("exp_table", [f"\t.dw\t{', '.join(str(level**3) for level in range(42))}"])

    def _trainers(self) -> None:
        self.trainers: dict[str, int] = {}
        self.trainer_teams = {}
        table, records = [], []
        for fault, (identity, name, money, *team) in self.rows("trainers.txt"):
            if identity in self.trainers:
                raise fault(f"there are two trainers {identity}")
            if not team or len(team) % 2:
                raise fault("a trainer is ID NAME MONEY SPECIES LEVEL ...")
            self.trainers[identity] = len(self.trainers)
            pairs = [
                (self.number(self.species, a, "species", fault), self.whole(b, 1, 40, "the level", fault))
                for a, b in zip(team[::2], team[1::2], strict=True)
            ]
            self.trainer_teams[identity] = pairs
            title = self.name_bytes(name, 11, fault).rstrip(b"\0") + b"\0"
            record = title + decimal(self.whole(money, 0, 99999, "the money", fault), 3)
            record += b"".join(bytes(pair) for pair in pairs) + b"\xff"
            table.append(f"\t.dw\ttrainer_{identity}")
            records.append(f"trainer_{identity}:\t.db\t{', '.join(map(str, record))}")
        self.put("trainer_table", table)
        self.lines += records

    def _events(self) -> None:
        self.events: dict[str, int] = {}
        self.used: set[str] = set()
        for fault, (name, *_) in self.rows("events.txt"):
            if name in self.events:
                raise fault(f"the event {name} is there twice")
            self.events[name] = len(self.events)
        if len(self.events) > 256:
            raise Fault("events.txt: more than 256 events")

    def event(self, name: str) -> int:
        """The number of an event.

        Raises: ValueError.
        """
        if name not in self.events:
            raise ValueError(f"the event {name} is not in events.txt")
        self.used.add(name)
        return self.events[name]

    def _words(self) -> None:
        lines = Lines(self.folder / "words.txt")
        for number, line in lines:
            name, _, text = line.partition(" ")
            if not name:
                continue
            try:
                if name.startswith("text_"):
                    data = encode_text(text)
                else:
                    data = b"".join(encode(part) + b"\0" for part in text.split("|"))
            except (KeyError, ValueError) as error:
                raise lines.fault(number, str(error)) from None
            self.put(name, data)

    def constants(self) -> dict[str, int]:
        """Names for the assembler."""
        signs = {f"TILE_{name}": FONT_TILE + len(CHARACTERS) + i for i, name in enumerate(FRAME)}
        signs |= {"FONT_TILE": FONT_TILE, "TILE_SPACE": FONT_TILE, "FONT_TILE_COUNT": FONT_TILES, "TILE_0": DIGIT_TILE}
        signs |= {"TILE_SLASH": SLASH_TILE, "TILE_BAR": BAR_TILE, "TILE_GATE": GATE_TILE, "TILE_NO_GATE": GATE_TILE + 1}
        signs |= {"TILE_COLON": tile_of(":"), "TILE_MINUS": tile_of("-"), "TYPE_COUNT": len(self.types)}
        return signs | {f"ITEM_{name}": number for name, number in self.items.items()}
