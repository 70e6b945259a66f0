"""The table of a descriptor's fields in docs/internals.md: `python -m benchmarks.pages.descriptor_fields`."""

from __future__ import annotations

import argparse

from benchmarks.workload import ROOT
from gbxcule_puffer.emulator.gpu.descriptors import FIELDS
from gbxcule_puffer.files import write_text

PAGE = ROOT / "docs" / "internals.md"
BEGIN = "<!-- the table is written by `python -m benchmarks.pages.descriptor_fields` -->\n"
END = "<!-- end of the table -->\n"


def table() -> str:
    """The fields in the order of their bits."""
    lines = ["| word | bits | field | meaning | instead of |", "| ---: | ---: | --- | --- | --- |"]
    for field in sorted(FIELDS, key=lambda field: (field.word, field.low)):
        high = field.mask.bit_length() - 1
        bits = str(high) if high == field.low else f"{field.low}-{high}"
        instead = ", ".join(f"`{name}`" for name in field.instead)
        lines.append(f"| {field.word} | {bits} | `{field.name}` | {field.meaning} | {instead} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page with the table of today."""
    head, _, rest = text.partition(BEGIN)
    return head + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    write_text(PAGE, page(PAGE.read_text()))
