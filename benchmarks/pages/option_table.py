"""The table of the environment's options in docs/environment.md: `python -m benchmarks.pages.option_table`."""

from __future__ import annotations

import argparse
from dataclasses import Field, fields
from typing import Any

from benchmarks.workload import ROOT
from gbxcule_puffer.env.options import EnvOptions, limits_of, type_of

PAGE = ROOT / "docs" / "environment.md"
BEGIN = "<!-- the table is written by `python -m benchmarks.pages.option_table` -->\n"
END = "<!-- end of the table -->\n"


def table(kind: type[EnvOptions] = EnvOptions) -> str:
    """A table of the options of each subject, under a heading."""
    lines, subject = [], ""
    for option in fields(kind):
        if option.metadata["subject"] != subject:
            subject = option.metadata["subject"]
            lines += [
                "",
                f"### {subject}",
                "",
                "| option | default | what it does | values |",
                "| --- | --- | --- | --- |",
            ]
        help, default = option.metadata["help"], repr(option.default).replace("'", '"')
        lines.append(f"| `{option.name}` | `{default}` | {help} | {_values(option)} |")
    return "\n".join(lines[1:]) + "\n"


def _values(option: Field[Any]) -> str:
    """The values of an option in a few words."""
    kind, optional = type_of(option)
    limits = limits_of(option).removeprefix("one of ")
    words = limits if option.metadata["one_of"] else ", ".join(part for part in (kind.words, limits) if part)
    return words + (" or `None`" if optional else "")


def page(text: str, kind: type[EnvOptions] = EnvOptions) -> str:
    """The page `text` with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table(kind)}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    PAGE.write_text(page(PAGE.read_text()))


if __name__ == "__main__":
    main()
