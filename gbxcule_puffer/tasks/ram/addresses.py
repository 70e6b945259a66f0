"""Addresses of RAM in options and files."""

from __future__ import annotations

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram.symbols import Symbols

# Flat in an env's memory row, whatever the mapper has selected.
READABLE = ((hw.VRAM, hw.CART_RAM), (hw.WRAM, hw.ECHO), (hw.OAM, hw.OAM_END), (hw.HRAM, hw.IE))


def bank_of(bank: int | None, address: int) -> int | None:
    """The bank with which RAM is read, for a `bank` from a file or an option. None for the usual one: bank 0 of VRAM,
    bank 1 of WRAM from D000 on, and the only bank elsewhere."""
    if bank is None or hw.CART_RAM <= address < hw.WRAM:
        return bank
    usual = 1 if hw.BANKED_WRAM <= address < hw.ECHO else 0
    has_banks = usual or hw.VRAM <= address < hw.CART_RAM
    return bank if has_banks and bank > usual else None


def parse_address(text: object, source: str, symbols: Symbols | None = None) -> int | tuple[int, int]:
    """A location that Ram takes: of a hexadecimal address, e.g. 'C0A3', with a bank, e.g. '1:A000', or of a symbol.

    Raises: ConfigError, which begins with `source`, for another text or an address that is not RAM.
    """
    bank = None
    try:
        if not isinstance(text, str):
            raise ValueError
        if symbols is not None and symbols.knows(text.partition("+")[0].strip()):
            found = symbols.find(text)
            bank, address = found.bank, found.address
        else:
            first, colon, second = text.partition(":")
            bank, address = (int(first, 16), int(second, 16)) if colon else (None, int(text, 16))
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise ConfigError(f"{source}: {error}") from None
        if symbols is not None and isinstance(text, str) and text.strip():
            try:
                symbols.find(text)
            except ConfigError as unknown:
                raise ConfigError(f"{source}: {unknown}") from None
        names = "" if symbols is not None else ", or a name and its symbol file (symbols)"
        raise ConfigError(
            f"{source}: {text!r:.60} is not a hexadecimal address: give one such as C0A3{names}"
        ) from None
    if hw.CART_RAM <= address < hw.WRAM and bank is not None:
        return bank, address
    if bank is not None and bank < 0:
        raise ConfigError(f"{source}: {text:.60} has bank {bank}: give one from 0 on")
    if not any(begin <= address < end for begin, end in READABLE):
        raise ConfigError(f"{source}: {text:.60} is not VRAM, WRAM, OAM or HRAM: give e.g. C000-DFFF, or BANK:A000")
    bank = bank_of(bank, address)
    return address if bank is None else (bank, address)


def later(where: int | tuple[int, int], bytes_later: int) -> int | tuple[int, int]:
    """The location some bytes after another."""
    return (where[0], where[1] + bytes_later) if isinstance(where, tuple) else where + bytes_later


MILESTONES = "milestones"  # in a visit key: those that the env has reached


def has_milestones(visit_key: str) -> bool:
    """True if the milestones that an env has reached are part of its cell."""
    return MILESTONES in (entry.strip() for entry in visit_key.partition(":")[2].split(","))


def check_visit_key(text: str) -> None:
    """Raises: ConfigError for an unknown kind of cell; addresses may be symbols, which the env knows."""
    if text not in ("picture", "pixels") and text.partition(":")[0] != "ram":
        raise ConfigError(
            f"visit_key {text!r:.80} is unknown: give picture, pixels, or ram:ADDRESS,ADDRESS:LENGTH... in hexadecimal"
        )


def parse_visit_key(text: str, symbols: Symbols | None = None) -> list[int | tuple[int, int]] | str:
    """'picture' or 'pixels' as it is, the locations of 'ram:ADDRESS,ADDRESS:LENGTH,milestones', which may be symbols.

    Raises: ConfigError.
    """
    check_visit_key(text)
    if text in ("picture", "pixels"):
        return text
    source = f"visit_key {text!r:.80}"
    found = []
    for entry in text.partition(":")[2].split(","):
        if entry.strip() == MILESTONES:
            continue
        address, colon, length = entry.strip().rpartition(":")
        if not (colon and length.isdecimal() and len(length) < 4):  # else an address after a bank
            address, length = entry.strip(), "1"
        if not int(length):
            raise ConfigError(f"{source}: {entry!r:.60} has 0 bytes: give from 1 to 999")
        where = parse_address(address, source, symbols)
        found += [later(where, byte) for byte in range(int(length))]
    return found
