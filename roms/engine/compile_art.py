"""Compile a small game's art, screens and song into its two data banks and the names of what is in them.

    python3 compile_art.py GAME_FOLDER BUILD_FOLDER

writes bank1.bin (tiles), bank2.bin (screens, song) and art.inc (names for the assembler). In GAME_FOLDER:

art.txt      pieces (format: ../homeward/art.py), 8x8 or 16x16; the attribute `sprite` makes one a sprite. A piece named
             `box` becomes BOX, the number of its first tile (top left, top right, bottom left, bottom right).
screens.txt  screens, each headed by `@ NAME`: rows of 20 characters, one a tile: the key of a piece of 8x8, a capital
             letter or a digit of the font, or a space.
song.txt     notes of one length: names such as C4 or F#5, and - for a rest.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "homeward"))

from art import encode_tile, read_pieces, sprite_tiles  # noqa: E402
from texts import CHARACTERS  # noqa: E402

COLUMNS = 20
BANK_START, BANK_SIZE = 0x4000, 0x4000
TILE_LIMIT = 128  # 8000-87FF, and 9000-97FF
NOTES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
NOTE_TICKS = 3  # of the timer, a sixteenth of a second each


def read_art(folder):
    """(sprites' tiles, background's tiles, names of pieces, tile number by key of a screen)."""
    sprites, tiles, names, keys = b"", [], {}, {}
    for piece in read_pieces(folder / "art.txt"):
        if piece.attribute == "sprite":
            names[piece.name.upper().replace("-", "_")] = len(sprites) // 16
            sprites += sprite_tiles(piece)
        else:
            names[piece.name.upper().replace("-", "_")] = keys[piece.key] = len(tiles)
            places = [(x, y) for y in range(0, piece.height, 8) for x in range(0, piece.width, 8)]
            tiles += [encode_tile(piece.quarter(*place)) for place in places]
    letters = next(iter(read_pieces(HERE.parent / "homeward/art/font.txt")))
    digits = next(iter(read_pieces(HERE / "art/digits.txt")))
    for characters, piece in ((CHARACTERS, letters), ("0123456789", digits)):
        names[f"FONT_{characters[0]}".replace(" ", "SPACE")] = len(tiles)
        for number, character in enumerate(characters):
            row, column = divmod(number * 8, piece.width)
            keys.setdefault(character, len(tiles))
            tiles.append(encode_tile(piece.quarter(column, row * 8)))
    if max(len(tiles), len(sprites) // 16) > TILE_LIMIT:
        raise ValueError(f"{folder}: more than {TILE_LIMIT} tiles")
    return sprites, b"".join(tiles), names, keys


def read_screens(path, keys):
    """The screens' tile numbers by name."""
    screens = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("@"):
            screens[line[1:].strip()] = b""
        elif not line.startswith(";"):
            if len(line) != COLUMNS or any(key not in keys for key in line):
                raise ValueError(f"{path}: {line!r} is not {COLUMNS} keys of tiles")
            screens[next(reversed(screens))] += bytes(keys[key] for key in line)
    return screens


def read_song(path):
    """Two bytes a note, for NR23 and NR24 (Pan Docs, "Audio Registers")."""
    data = b""
    for note in path.read_text(encoding="utf-8").split():
        if note == "-":
            data += b"\0\0"
            continue
        semitones = NOTES.index(note[:-1]) - NOTES.index("A") + 12 * (int(note[-1]) - 4)
        period = 2048 - round(131072 / (440 * 2 ** (semitones / 12)))
        data += (period | 0x8000).to_bytes(2, "little")
    return data


def text_bytes(text, keys):
    """A line of text as the assembler's `.db` has it, ended by 0."""
    return ", ".join(str(keys[character]) for character in text) + ", 0"


def main():
    game, build = Path(sys.argv[1]), Path(sys.argv[2])
    sprites, tiles, names, keys = read_art(game)
    if keys[" "] == 0:
        raise ValueError(f"{game}: the art needs a piece before the letters, since tile 0 ends a text")
    screens, song = read_screens(game / "screens.txt", keys), read_song(game / "song.txt")
    names |= {"sprite_tiles": BANK_START, "map_tiles": BANK_START + len(sprites)}
    names |= {"SPRITE_TILES_SIZE": len(sprites), "MAP_TILES_SIZE": len(tiles)}
    bank = b""
    for name, data in (*((f"{name}_screen", data) for name, data in screens.items()), ("song", song)):
        names[name] = BANK_START + len(bank)
        bank += data
    names |= {"SONG_SIZE": len(song), "NOTE_TICKS": NOTE_TICKS}
    lines = [f"{name} = 0x{value:04X}" for name, value in names.items()]
    for line in (game / "texts.txt").read_text(encoding="utf-8").splitlines():
        name, _, text = line.partition(" ")
        lines.append(f"\t.macro\t{name}\n\t.db\t{text_bytes(text, keys)}\n\t.endm")
    if max(len(sprites + tiles), len(bank)) > BANK_SIZE:
        raise ValueError(f"{game}: a bank is full")
    build.mkdir(parents=True, exist_ok=True)
    (build / "bank1.bin").write_bytes(sprites + tiles)
    (build / "bank2.bin").write_bytes(bank)
    (build / "art.inc").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
