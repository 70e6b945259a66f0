"""Words that a viewer types to see RAM: names of a symbol file, and addresses."""

from __future__ import annotations

from typing import Any

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram.addresses import parse_address
from gbxcule_puffer.tasks.ram.symbols import Symbols

MOST_WORDS = 16


def find_words(words: object, cartridge: Cartridge, symbols: Symbols | None) -> list[dict[str, Any]]:
    """For each of the first MOST_WORDS words: the `word`, `where` it is, as BANK:ADDRESS or ADDRESS, the `column` in
    a memory row, and `ones`, the bits that the CPU reads as 1; or the `error`, in one line."""
    if not isinstance(words, list):
        return []
    return [_find(word, cartridge, symbols) for word in words[:MOST_WORDS] if isinstance(word, str)]


def _find(word: str, cartridge: Cartridge, symbols: Symbols | None) -> dict[str, Any]:
    from gbxcule_puffer.emulator.address_space import row_offset  # imports Warp: only where somebody asks

    try:
        found = parse_address(word, "RAM", symbols)
        bank, address = found if isinstance(found, tuple) else (None, found)
        column = row_offset(cartridge, address, 1, bank)
    except ConfigError as error:
        return {"word": word, "error": str(error)}
    half = hw.CART_RAM <= address < hw.WRAM and not cartridge.mapper.has_plain_ram
    where = f"{address:04X}" if bank is None else f"{bank}:{address:04X}"
    return {"word": word, "where": where, "column": column, "ones": 0xF0 if half else 0}
