"""A stand-in for the games of roms/owned: a ROM of ours with their symbols at their addresses, and events on buttons.

From power-on, START and then three times A lead to `OverworldLoop`. There the arrows walk, and behind column 7 is the
next map; each A plays the next event of a list, and each B the next of another, such as a wound or a healing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.generator import header

LAST_COLUMN = 7
STORE, SET, HEAL, END = 1, 2, 3, 0  # of an entry: write a byte, set bits, run the healing machine; of an event
NEXT_A, NEXT_B, HELD, INTRO = 0xDF00, 0xDF02, 0xDF04, 0xDF05  # the stand-in's own RAM
PLAYED = 3  # presses of A behind START


@dataclass(frozen=True)
class Layout:
    """Names of RAM and their addresses; x, y, map: which of them are the position; ready: (name, value) that says that
    the player may walk; healing: the name of the healing machine's code."""

    names: Mapping[str, int]
    x: str
    y: str
    map: str
    ready: tuple[str, int] | None
    healing: str
    is_color: bool


def _party(first: int, size: int, **offsets: int) -> dict[str, int]:
    return {f"wPartyMon{n}{name}": first + (n - 1) * size + at for n in range(1, 7) for name, at in offsets.items()}


RED = Layout(
    {
        "wCurMap": 0xD35E, "wYCoord": 0xD361, "wXCoord": 0xD362, "wObtainedBadges": 0xD356, "wPlayerMoney": 0xD347,
        "wPartyCount": 0xD163, **_party(0xD16B, 44, HP=1, Status=4, Moves=8, Level=33, MaxHP=34),
        **{f"wEnemyMon{n}Level": 0xD8C5 + (n - 1) * 44 for n in range(1, 7)}, "wIsInBattle": 0xD057,
        "wPokedexOwned": 0xD2F7, "wPokedexSeen": 0xD30A, "wNumBagItems": 0xD31D, "wBagItems": 0xD31E,
        "wEventFlags": 0xD747, "wGrassRate": 0xD887, "wWaterRate": 0xD8A4, "wPlayerDirection": 0xD52A,
        "wBattleType": 0xD05A,
    },
    "wXCoord", "wYCoord", "wCurMap", None, "AnimateHealingMachine", False,
)  # fmt: skip
CRYSTAL = Layout(
    {
        "wMapGroup": 0xDCB5, "wMapNumber": 0xDCB6, "wYCoord": 0xDCB7, "wXCoord": 0xDCB8, "wMoney": 0xD84E,
        "wJohtoBadges": 0xD857, "wKantoBadges": 0xD858, "wPartyCount": 0xDCD7,
        **_party(0xDCDF, 48, Level=31, HP=34, MaxHP=36), "wBattleMode": 0xD22D, "wPokedexCaught": 0xDE99,
        "wPokedexSeen": 0xDEB9, "wEventFlags": 0xDA72, "wMapStatus": 0xD432, "wMornEncounterRate": 0xD25A,
        "wDayEncounterRate": 0xD25B, "wNiteEncounterRate": 0xD25C, "wWaterEncounterRate": 0xD25D,
    },
    "wXCoord", "wYCoord", "wMapNumber", ("wMapStatus", 2), "HealMachineAnim", True,
)  # fmt: skip

Entry = tuple[str, int] | tuple[str, int, int] | str
"""(name, value) or (name, offset, value) that is written; 'NAME+BIT' of a flag that is set; 'heal'."""


class Code:
    """Machine code from 0150 on, with names for its addresses."""

    def __init__(self) -> None:
        self.data, self.labels, self._later = bytearray(), dict[str, int](), list[tuple[int, str]]()

    def add(self, *parts: int | str) -> None:
        """Bytes; a text is the address of a label."""
        for part in parts:
            if isinstance(part, str):
                self._later.append((len(self.data), part))
                self.data += b"\0\0"
            else:
                self.data.append(part & 0xFF)

    def word(self, opcode: int, value: int) -> None:
        """An instruction with an address or another number of 16 bits."""
        self.add(opcode, value, value >> 8)

    def label(self, name: str) -> None:
        self.labels[name] = 0x150 + len(self.data)

    def finish(self) -> bytes:
        """The code, with the addresses of its labels."""
        for at, name in self._later:
            self.data[at : at + 2] = self.labels[name].to_bytes(2, "little")
        return bytes(self.data)


def build(
    folder: Path, name: str, layout: Layout, on_a: Sequence[Sequence[Entry]], on_b: Sequence[Sequence[Entry]]
) -> Path:
    """Writes NAME.gb and NAME.sym; returns the path of the ROM."""
    code = _code(layout)
    for label, events in (("on_a", on_a), ("on_b", on_b)):
        code.label(label)
        for event in events:
            for entry in event:
                code.add(*_entry(layout, entry))
            code.add(END)
        code.add(0xFF)
    rom = bytearray(0x8000)
    rom[0x100:0x104] = bytes([0x00, 0xC3, 0x50, 0x01])
    body = code.finish()
    rom[0x150 : 0x150 + len(body)] = body
    rom[0x143] = 0xC0 if layout.is_color else 0
    header(rom, 0x00, 0)
    path = folder / f"{name}.gb"
    path.write_bytes(rom)
    names = {**layout.names, "OverworldLoop": code.labels["walk"], layout.healing: code.labels["heal"]}
    names["DisplayStartMenu"] = code.labels["menu"]
    path.with_suffix(".sym").write_text("".join(f"00:{at:04x} {key}\n" for key, at in sorted(names.items())))
    return path


def _entry(layout: Layout, entry: Entry) -> tuple[int, ...]:
    if entry == "heal":
        return HEAL, 0, 0, 0
    if isinstance(entry, str):
        name, _, bit = entry.partition("+")
        at = layout.names[name] + int(bit, 0) // 8
        return SET, at & 0xFF, at >> 8, 1 << int(bit, 0) % 8
    name, *offset, value = entry
    at = layout.names[str(name)] + (int(offset[0]) if offset else 0)
    return STORE, at & 0xFF, at >> 8, int(value)


def _code(layout: Layout) -> Code:
    """The program without its lists of events."""
    c = Code()
    x, y, map_ = (layout.names[each] for each in (layout.x, layout.y, layout.map))
    c.add(0xF3)  # di
    c.word(0x31, 0xDFF0)  # ld sp
    c.word(0x21, 0xD000)  # ld hl: clear D000-DF7F
    c.label("clear")
    c.add(0xAF, 0x22, 0x7C, 0xFE, 0xDF, 0xC2, "clear")  # xor a; ld (hl+),a; ld a,h; cp DF; jp nz
    c.word(0x01, 0x0007)  # the stand-in's own bytes, too
    c.label("clear_own")
    c.add(0xAF, 0x22, 0x0D, 0xC2, "clear_own")
    c.add(0xAF, 0xE0, 0x40)  # the LCD off, to write a pattern into the tiles
    c.word(0x21, 0x8000)
    c.label("tiles")
    c.add(0x7D, 0x22, 0x7C, 0xFE, 0x90, 0xC2, "tiles")  # ld a,l; ld (hl+),a; until 9000
    c.add(0x3E, 0xE4, 0xE0, 0x47, 0x3E, 0x91, 0xE0, 0x40)  # palette, LCD on
    c.label("title")
    c.add(0xCD, "frame", 0xCB, 0x58, 0xCA, "title")  # START: bit 3 of B
    c.label("speech")
    c.add(0xCD, "frame", 0xCB, 0x40, 0xCA, "speech")  # A: bit 0
    c.word(0x21, INTRO)
    c.add(0x34, 0x7E, 0xFE, PLAYED, 0xC2, "speech")  # inc (hl); ld a,(hl); cp
    for where, value in ((x, 3), (y, 3), *([(layout.names[layout.ready[0]], layout.ready[1])] if layout.ready else [])):
        c.add(0x3E, value)
        c.word(0xEA, where)
    for at, label in ((NEXT_A, "on_a"), (NEXT_B, "on_b")):
        c.add(0x21, label, 0x7D)  # ld hl,label; ld a,l
        c.word(0xEA, at)
        c.add(0x7C)
        c.word(0xEA, at + 1)
    c.label("walk")
    c.add(0xCD, "frame")
    c.add(0xCB, 0x60, 0xC4, "right", 0xCB, 0x68, 0xC4, "left")  # bits 4 to 7 of B: right, left, up, down
    c.add(0xCB, 0x70, 0xC4, "up", 0xCB, 0x78, 0xC4, "down")
    c.add(0xCB, 0x58, 0xC4, "menu")
    c.add(0xCB, 0x40, 0xC4, "press_a", 0xCB, 0x48, 0xC4, "press_b", 0xC3, "walk")
    c.label("right")
    c.word(0xFA, x)
    c.add(0x3C)
    c.word(0xEA, x)
    c.add(0xFE, LAST_COLUMN + 1, 0xC0, 0xAF)  # ret nz
    c.word(0xEA, x)
    c.word(0xFA, map_)
    c.add(0x3C)
    c.word(0xEA, map_)
    c.add(0xC9)
    for name, where, step in (("left", x, 0x3D), ("up", y, 0x3D)):
        c.label(name)
        c.word(0xFA, where)
        c.add(0xB7, 0xC8, step)  # or a; ret z
        c.word(0xEA, where)
        c.add(0xC9)
    c.label("down")
    c.word(0xFA, y)
    c.add(0x3C, 0xE6, 0x3F)
    c.word(0xEA, y)
    c.add(0xC9)
    c.label("menu")
    c.add(0xC9)
    for name, at in (("press_a", NEXT_A), ("press_b", NEXT_B)):
        c.label(name)
        c.add(0xC5)  # push bc
        c.word(0xFA, at)
        c.add(0x6F)
        c.word(0xFA, at + 1)
        c.add(0x67, 0xCD, "play", 0x7D)  # ld h,a; call play; ld a,l
        c.word(0xEA, at)
        c.add(0x7C)
        c.word(0xEA, at + 1)
        c.add(0xC1, 0xC9)
    c.label("play")  # the event at HL; HL becomes the next one
    c.add(0x7E, 0xFE, 0xFF, 0xC8, 0x23, 0xB7, 0xC8)  # ld a,(hl); cp FF; ret z; inc hl; or a; ret z
    c.add(0x4F, 0x2A, 0x5F, 0x2A, 0x57, 0x2A, 0x47)  # C = kind, DE = address, B = value
    c.add(0x79, 0xFE, HEAL, 0xCC, "heal", 0x79, 0xFE, HEAL, 0xCA, "play")
    c.add(0xFE, STORE, 0x78, 0xCA, "write", 0x1A, 0xB0)  # set bits: ld a,(de); or b
    c.label("write")
    c.add(0x12, 0xC3, "play")  # ld (de),a
    c.label("heal")
    c.add(0xC9)
    c.label("frame")  # waits for a frame; B: buttons that are newly pressed
    c.label("shown")
    c.add(0xF0, 0x44, 0xFE, 0x90, 0xCA, "shown")  # LY
    c.label("showing")
    c.add(0xF0, 0x44, 0xFE, 0x90, 0xC2, "showing")
    c.word(0xFA, x)
    c.add(0xE0, 0x43)
    c.word(0xFA, y)
    c.add(0xE0, 0x42)
    c.add(0x3E, 0x20, 0xE0, 0x00, 0xF0, 0x00, 0xF0, 0x00, 0x2F, 0xE6, 0x0F, 0xCB, 0x37, 0x47)  # arrows in bits 4 to 7
    c.add(0x3E, 0x10, 0xE0, 0x00, 0xF0, 0x00, 0xF0, 0x00, 0x2F, 0xE6, 0x0F, 0xB0, 0x47)  # A, B, SELECT, START below
    c.add(0x3E, 0x30, 0xE0, 0x00)
    c.word(0x21, HELD)
    c.add(0x7E, 0x2F, 0xA0, 0x70, 0x47, 0xC9)  # new = pressed & ~held; ld (hl),b; ld b,a; ret
    return c
