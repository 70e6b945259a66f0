"""The words of the game: texts.txt in the tile numbers of the font.

texts.txt holds texts, each headed by a line `@ NAME`; then its lines, two a page of the text
box, at most 18 characters each. A line that begins with ; is a comment.

In the ROM a character is its tile number, D0 on; below that are the codes END, LINE, PAGE.
"""

from pathlib import Path

FONT_TILE = 0xD0  # the last 48 tiles, 8D00-8FFF
CHARACTERS = " ABCDEFGHIJKLMNOPQRSTUVWXYZ.,!?'-:()"
# Behind the characters: a frame of eight pieces, the cursor of a choice, the mark that a text waits.
FRAME = ("TOP_LEFT", "TOP", "TOP_RIGHT", "LEFT", "RIGHT", "BOTTOM_LEFT", "BOTTOM", "BOTTOM_RIGHT")
SIGNS = tuple(f"TILE_{name}" for name in (*FRAME, "CURSOR", "MORE"))
END, LINE, PAGE = 0, 1, 2
LINE_LENGTH = 18


def constants():
    """Names of single tiles and of the control codes, for the assembler."""
    names = {name: FONT_TILE + len(CHARACTERS) + n for n, name in enumerate(SIGNS)}
    return {"FONT_TILE": FONT_TILE, "TILE_SPACE": FONT_TILE, **names, "TEXT_LINE": LINE, "TEXT_PAGE": PAGE}


def encode(lines):
    """The bytes of one text: its lines, two a page.

    Raises: ValueError for a line that is too long or has a character that the font lacks.
    """
    data = bytearray()
    for number, line in enumerate(lines):
        if len(line) > LINE_LENGTH or any(c not in CHARACTERS for c in line):
            raise ValueError(f"text line {line!r} is longer than {LINE_LENGTH} or not in the font")
        if number:
            data.append(LINE if number % 2 else PAGE)
        data += bytes(FONT_TILE + CHARACTERS.index(c) for c in line)
    return bytes(data) + bytes([END])


def read_texts(path):
    """Encoded texts by name."""
    texts = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("@"):
            texts[line[1:].strip()] = []
        elif line and not line.startswith(";"):
            texts[next(reversed(texts))].append(line)
    return {name: encode(lines) for name, lines in texts.items()}
