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
    for name, field in sorted(FIELDS.items(), key=lambda named: (named[1].bits.word, named[1].bits.shift)):
        bits, instead = field.bits, ", ".join(f"`{other}`" for other in field.instead)
        numbers = f"{bits.shift}-{bits.shift + bits.width - 1}" if bits.width > 1 else f"{bits.shift}"
        lines.append(f"| {bits.word} | {numbers} | `{name}` | {field.meaning} | {instead} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page with the table of today."""
    head, _, rest = text.partition(BEGIN)
    return head + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    write_text(PAGE, page(PAGE.read_text()))
