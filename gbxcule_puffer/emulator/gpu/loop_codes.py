"""The machine code of the loops that loops.py skips; descriptors.py marks where a ROM has them."""

from __future__ import annotations


def loop_codes() -> list[bytes]:
    """The machine code of the loops that loops.py knows, each `body / counter / jr nz` back to its begin."""
    copies = ("2A 12 13", "1A 22 13", "1A 13 22")  # ld a,[hl+] / ld [de],a / inc de; the other way round
    fills = ("22", "22 2C 2C 2C")  # ld [hl+],a, also with three times inc l
    wide = ("0B 78 B1", "0B 79 B0")  # dec bc / ld a,b / or c
    heads = [body + counter for body in copies + fills for counter in ("05", "0D")]  # dec b, dec c
    sums = {
        "09": ("3D", "15", "1D"),
        "19": ("3D", "05", "0D"),
        "29": ("3D", "05", "0D", "15", "1D"),
    }  # add hl,rr / dec r
    heads += [body + counter for body, counters in sums.items() for counter in counters]
    heads += [body + counter for body in copies for counter in wide] + [fills[1] + "0C"]  # inc c
    codes = [bytes.fromhex(head) for head in heads]
    return [code + bytes([0x20, 0x100 - len(code) - 2]) for code in codes]
