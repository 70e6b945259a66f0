"""Compile the game's text files for the assembler.

    python3 build.py BUILD_FOLDER

writes bank1.bin, bank2.bin, ... (letters, sprites and the title; tiles of maps; fighters; maps), data.inc (numbers and
addresses) and tables.asm (tables and texts of bank 0). A fault in a text file is one line, and exit status 1.
"""

from __future__ import annotations

import sys
from pathlib import Path

from faults import Fault
from maps import Encoder, Pool, World
from pictures import colours, fighter_tiles, font_tiles, title
from tables import Tables

START = "home.s"
BANK_START, BANK_SIZE = 0x4000, 0x4000
GRAPHICS_BANK, POOL_BANK, PICTURE_BANK, FIRST_MAP_BANK = 1, 2, 3, 4
TITLE_PALETTE = 7


def compile_maps(world: World, tables: Tables) -> tuple[bytes, list[bytes]]:
    """(the bank of tiles, the banks of maps); the table of maps goes to `tables`."""
    pool, banks, table = Pool(), [b""], []
    for each in world.maps:
        encoder = Encoder(world, pool, each)
        data = encoder.encode(BANK_START + len(banks[-1]))
        if len(banks[-1]) + len(data) > BANK_SIZE:
            banks.append(b"")
            data = encoder.encode(BANK_START)
        address = BANK_START + len(banks[-1])
        table.append(f"\t.db\t{FIRST_MAP_BANK + len(banks) - 1}, {address & 255}, {address >> 8}\t; {each.name}")
        banks[-1] += data
    tables.put("map_table", table)
    return b"".join(pool.index), banks


def compile_game(build: Path) -> None:
    """Write all files."""
    tables = Tables()
    world = World(tables)
    pool, banks = compile_maps(world, tables)
    unused = sorted(tables.events.keys() - tables.used)
    if unused:
        raise Fault(f"events.txt: {unused[0]} is used nowhere")
    tables.put("map_palettes", colours()[:64])
    tables.put("sprite_palettes", colours()[64:])
    names = tables.constants()
    for word, value in zip(("START_MAP", "START_X", "START_Y"), world.where(START), strict=True):
        names[word] = value
    names |= {"FONT_BANK": GRAPHICS_BANK, "SPRITE_BANK": GRAPHICS_BANK, "TITLE_BANK": GRAPHICS_BANK}
    names |= {"POOL_BANK": POOL_BANK, "PICTURE_BANK": PICTURE_BANK, "TITLE_PALETTE": TITLE_PALETTE}
    names |= {"PLAYER_TILE": 0, "BOAT_TILE": world.looks.looks["boat"][0]}
    title_tiles, title_map = title()
    graphics = b""
    parts = {"font_tiles": font_tiles(), "sprite_tiles": world.looks.tiles, "title_tiles": title_tiles}
    for name, data in (parts | {"title_map": title_map}).items():
        names[name] = BANK_START + len(graphics)
        graphics += data
    names |= {"SPRITE_TILE_COUNT": len(world.looks.tiles) // 16, "TITLE_TILE_COUNT": len(title_tiles) // 16}
    names["picture_tiles"] = BANK_START
    fighters = fighter_tiles(list(tables.species))
    for number, data in enumerate((graphics, pool, fighters, *banks), 1):
        if len(data) > BANK_SIZE:
            raise Fault(f"bank {number} has {len(data)} bytes, more than {BANK_SIZE}")
        (build / f"bank{number}.bin").write_bytes(data)
    lines = [f"{name} = 0x{value:04X}" for name, value in names.items()]
    (build / "data.inc").write_text("\n".join(lines) + "\n", encoding="utf-8")
    head = ["; Written by build.py.", "\t.module tables", "\t.area _CODE"]
    (build / "tables.asm").write_text("\n".join([*head, *tables.lines]) + "\n", encoding="utf-8")
    used = f"{len(world.maps)} maps, {len(tables.events)} events, {len(pool) // 16} tiles, {len(banks)} banks of maps"
    print(used)


def main() -> None:
    build = Path(sys.argv[1])
    build.mkdir(parents=True, exist_ok=True)
    try:
        compile_game(build)
    except Fault as fault:
        sys.exit(str(fault))


if __name__ == "__main__":
    main()
