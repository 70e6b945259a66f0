"""Addresses of RAM as options and files write them."""

from __future__ import annotations

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram.symbols import Symbols

# Flat in an env's memory row, whatever the mapper has switched.
READABLE = ((hw.VRAM, hw.CART_RAM), (hw.WRAM, hw.ECHO), (hw.OAM, hw.OAM_END), (hw.HRAM, hw.IE))


def parse_address(text: object, source: str, symbols: Symbols | None = None) -> int | tuple[int, int]:
    """A place that Ram takes: of a hexadecimal address, e.g. 'C0A3', with a bank for cartridge RAM, e.g. '1:A000', or
    of a symbol.

    Raises: ConfigError, which begins with `source`, for another text or an address that is not RAM.
    """
    bank = None
    try:
        if not isinstance(text, str):
            raise ValueError
        if symbols is not None and text.partition("+")[0].strip() in symbols:
            found = symbols.find(text)
            bank, address = found.bank, found.address
        else:
            first, colon, second = text.partition(":")
            bank, address = (int(first, 16), int(second, 16)) if colon else (None, int(text, 16))
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise ConfigError(f"{source}: {error}") from None
        if symbols is not None and isinstance(text, str):
            try:
                symbols.find(text)
            except ConfigError as unknown:
                raise ConfigError(f"{source}: {unknown}") from None
        raise ConfigError(f"{source}: {text!r:.60} is no hexadecimal address: give one such as C0A3") from None
    if hw.CART_RAM <= address < hw.WRAM and bank is not None:
        return bank, address
    if not any(begin <= address < end for begin, end in READABLE):
        raise ConfigError(f"{source}: {text:.60} is not VRAM, WRAM, OAM or HRAM: give e.g. C000-DFFF, or BANK:A000")
    return address


def parse_visit_key(text: str) -> list[int | tuple[int, int]] | str:
    """'picture' or 'pixels' as it is, the addresses of 'ram:ADDRESS,ADDRESS...'.

    Raises: ConfigError.
    """
    if text in ("picture", "pixels"):
        return text
    kind, _, addresses = text.partition(":")
    if kind != "ram":
        raise ConfigError(
            f"visit_key {text!r} is unknown: give picture, pixels, or ram:ADDRESS,ADDRESS... in hexadecimal"
        )
    return [parse_address(address, f"visit_key {text!r}") for address in addresses.split(",")]
