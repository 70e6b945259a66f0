"""Names of registers, of addresses in the code, and of what stops the data path."""

from __future__ import annotations

import bisect

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.gpu import stop_counters as stops
from gbxcule_puffer.emulator.registers import REGISTERS
from gbxcule_puffer.tasks.ram.symbols import Symbols

NAMES = {
    address: row.name if row.model == "dmg" else f"{row.name}, no register of a DMG"
    for row in REGISTERS
    for address in row.addresses
}
CAUSES = {
    stops.EVENT: "an event is due: an interrupt, a change of the LCD that can be noticed, the end of a frame",
    stops.AFTER_EI: "EI takes effect",
    stops.EI: "EI",
    stops.HALT: "HALT",
    stops.LOOP: "a loop begins that is skipped, or that may be",
    stops.RARE: "STOP",
    stops.BANK: "a bank is selected, or data cross the end of one",
    stops.CARTRIDGE_RAM: "cartridge RAM that is not plain memory",
    stops.VRAM: "VRAM, while the LCD locks it or draws",
    stops.OAM: "OAM is accessed",
    stops.IE: "IE is accessed",
    stops.HIGH_RAM: "HRAM during an OAM DMA",
    stops.CODE_IN_RAM: "code in RAM",
    **{stops.PREPARED + number: name for number, name in enumerate(("CCF", "DAA", "POP AF", "PUSH AF", "DI, RETI"), 1)},
}


def register_text(address: int) -> str:
    """An address, with the name of the register there."""
    if address in NAMES:
        return f"{address:04X} ({NAMES[address]})"
    if hw.IO <= address < hw.HRAM:
        return f"{address:04X} (no register of a DMG)"
    return f"{address:04X}"


def cause_text(cause: int) -> str:
    """A cause of gpu/stop_counters.py in words; all sound registers have the same."""
    if cause in CAUSES:
        return CAUSES[cause]
    is_write = cause >= stops.REGISTER_WRITE
    address = hw.IO + cause - (stops.REGISTER_WRITE if is_write else stops.REGISTER_READ)
    name = "a sound register" if hw.NR10 <= address < hw.WAVE_RAM_END else register_text(address)
    return f"{name} is {'written' if is_write else 'read'}"


class AddressNames:
    """Names of addresses in the code, from symbols if there are any."""

    def __init__(self, symbols: Symbols | None = None) -> None:
        pairs = () if symbols is None else symbols.pairs()
        self._names = {(location.bank, location.address): name for name, location in pairs}
        self._sorted = sorted(self._names)

    def text(self, bank: int, address: int) -> str:
        """An address such as 01:4003, with the nearest name before it in its bank: 01:4003 main+3."""
        text = f"{bank:02X}:{address:04X}"
        index = bisect.bisect_right(self._sorted, (bank, address)) - 1
        if index >= 0 and self._sorted[index][0] == bank:
            distance = address - self._sorted[index][1]
            text += f" {self._names[self._sorted[index]]}" + (f"+{distance}" if distance else "")
        return text
