"""Scripts of the maps: lines of commands, as bytes for src/script.asm.

    say TEXT              ask LABEL TEXT (YES goes on, NO to the label)     goto LABEL       LABEL:       end
    if EVENT goto LABEL   if has ITEM goto LABEL   if badges NUMBER goto LABEL
    if party goto LABEL   if full goto LABEL
    set EVENT   clear EVENT   give ITEM [NUMBER]   take ITEM   fighter SPECIES LEVEL   heal   rest   shop ITEM ...
    battle TRAINER   badge NUMBER   warp MAP.MARKER   money NUMBER   pay NUMBER else LABEL   back   win

Texts are wrapped to 18 characters and 4 lines a page; | begins a line, || a page, @ is what was given last.
"""

from __future__ import annotations

from collections.abc import Callable

from tables import Tables, decimal, encode_text

OPS = ("say", "show", "ask", "goto", "if", "set", "clear", "give", "take", "has", "fighter", "heal", "shop", "battle",
       "badge", "warp", "rest", "money", "badges", "win", "back", "pay", "party", "full")  # fmt: skip
CODE = {name: number + 1 for number, name in enumerate(OPS)}
Where = Callable[[str], tuple[int, int, int]]
"""(map, column, row) of a marker."""


class Script:
    """One script: bytes, and where labels are and are meant."""

    def __init__(self, tables: Tables, where: Where) -> None:
        self.tables, self.where = tables, where
        self.data = bytearray()
        self.labels: dict[str, int] = {}
        self.jumps: list[tuple[int, str]] = []

    def jump(self, label: str) -> None:
        """The address of a label, filled in later."""
        self.jumps.append((len(self.data), label))
        self.data += b"\0\0"

    def named(self, names: dict[str, int], word: str, kind: str) -> int:
        """The number of a named thing."""
        if word not in names:
            raise ValueError(f"there is no {kind} {word}")
        return names[word]

    def line(self, line: str) -> None:
        """Add a line.

        Raises: ValueError.
        """
        line = line.strip()
        word, _, rest = line.partition(" ")
        if word.endswith(":") and not rest:
            if word[:-1] in self.labels:
                raise ValueError(f"the label {word[:-1]} is there twice")
            self.labels[word[:-1]] = len(self.data)
        elif word in ("say", "ask"):
            self._text(word, rest)
        elif word == "end":
            self.data.append(0)
        elif word == "if":
            self._condition(rest.split())
        elif word in CODE:
            self._command(word, rest.split())
        else:
            raise ValueError(f"{word!r} is not a command")

    def _text(self, word: str, text: str) -> None:
        if word == "say":
            self.data += bytes([CODE["say"]]) + encode_text(text)
            return
        label, _, text = text.partition(" ")
        self.data += bytes([CODE["show"]]) + encode_text(text, 2) + bytes([CODE["ask"]])
        self.jump(label)

    def _condition(self, words: list[str]) -> None:
        if len(words) < 3 or words[-2] != "goto":
            raise ValueError("a condition is: if WHAT goto LABEL")
        what, label = words[:-2], words[-1]
        if what == ["party"] or what == ["full"]:
            self.data.append(CODE[what[0]])
        elif what[0] == "has" and len(what) == 2:
            self.data += bytes([CODE["has"], self.named(self.tables.items, what[1], "item")])
        elif what[0] == "badges" and len(what) == 2:
            self.data += bytes([CODE["badges"], int(what[1])])
        elif len(what) == 1:
            self.data += bytes([CODE["if"], self.tables.event(what[0])])
        else:
            raise ValueError(f"{' '.join(what)!r} is not a condition")
        self.jump(label)

    def _command(self, word: str, words: list[str]) -> None:
        tables = self.tables
        self.data.append(CODE[word])
        try:
            if word == "goto":
                self.jump(*words)
            elif word in ("set", "clear"):
                (event,) = words
                self.data.append(tables.event(event))
            elif word == "give":
                item, number = (*words, "1")[:2]
                self.data += bytes([self.named(tables.items, item, "item"), int(number)])
            elif word == "take":
                self.data.append(self.named(tables.items, *words, "item"))
            elif word == "fighter":
                species, level = words
                self.data += bytes([self.named(tables.species, species, "species"), int(level)])
            elif word == "shop":
                self.data += bytes([len(words), *(self.named(tables.items, item, "item") for item in words)])
            elif word == "battle":
                self.data.append(self.named(tables.trainers, *words, "trainer"))
            elif word == "badge":
                self.data.append(1 << int(*words) - 1)
            elif word == "warp":
                self.data += bytes(self.where(*words))
            elif word == "money":
                self.data += decimal(int(*words), 3)
            elif word == "pay":
                price, _, label = words
                self.data += decimal(int(price), 3)
                self.jump(label)
            elif words:
                raise ValueError(f"{word} takes nothing")
        except TypeError:
            raise ValueError(f"{word} {' '.join(words)}: the wrong number of words") from None

    def encode(self, base: int) -> bytes:
        """The bytes of the script at address `base`.

        Raises: ValueError for a label that is not there.
        """
        data = bytearray(self.data + b"\0")
        for at, label in self.jumps:
            if label not in self.labels:
                raise ValueError(f"there is no label {label}")
            data[at : at + 2] = (base + self.labels[label]).to_bytes(2, "little")
        return bytes(data)
