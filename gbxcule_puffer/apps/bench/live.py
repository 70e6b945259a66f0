"""The table on the terminal while a benchmark runs: finished lines stay, those being measured are redrawn in place."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Sequence
from typing import TextIO

from gbxcule_puffer.apps.bench.measure import Turn
from gbxcule_puffer.apps.bench.records import Record, rates_of
from gbxcule_puffer.apps.bench.workload import Workload

# title, width; text columns are left-aligned, numbers right-aligned
COLUMNS = (
    *(("rom", 24), ("stage", 12), ("contender", 19), ("envs", 7), ("steps/s", 11), ("spread", 8), ("x real", 10)),
    *(("ms/step", 9), ("ratio", 7), ("PCs", 5), ("pictures", 8)),
)
TEXT_COLUMNS = 3


class LiveTable:
    """Writes to `out`: in a terminal the current lines with a bar each, elsewhere each line once, when it is
    complete."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._live, self._drawn = out, out.isatty(), 0
        self._write(line([title for title, _ in COLUMNS]))

    def watch(self, workload: Workload, turns: list[Turn]) -> None:
        """Redraws the contenders that are being measured."""
        if self._live:
            width = shutil.get_terminal_size().columns - 1  # a line that wraps could not be redrawn in place
            self._redraw([_progress(workload, turn)[:width] for turn in turns])

    def finish(self, records: Sequence[Record]) -> None:
        """Replaces them by their results."""
        self._redraw([line(cells(record)) for record in records])
        self._drawn = 0

    def stop(self) -> None:
        """Removes unfinished contenders from the table."""
        self._redraw([])

    def _redraw(self, lines: list[str]) -> None:
        if self._drawn:
            self._out.write(f"\x1b[{self._drawn}A\x1b[J")
        for text in lines:
            self._write(text)
        self._drawn = len(lines) if self._live else 0
        self._out.flush()

    def _write(self, text: str) -> None:
        self._out.write(text + "\n")
        self._out.flush()


def line(values: Sequence[str]) -> str:
    """Cells as aligned text."""
    parts = []
    for index, (value, (_, width)) in enumerate(zip(values, COLUMNS, strict=False)):
        parts.append(value[:width].ljust(width) if index < TEXT_COLUMNS else value.rjust(width))
    return "  ".join(parts).rstrip()


def cells(record: Record) -> list[str]:
    """A record's cells."""
    half = 50 * (record["sps_max"] - record["sps_min"]) / record["sps"]
    return [
        game(record),
        record["stage"],
        contender_label(record["backend"], record["vec_backend"]),
        f"{record['num_envs']:,}",
        f"{record['sps']:,.0f}",
        f"\u00b1{half:.1f} %",
        f"{record['x_realtime']:,.0f}",
        f"{record['ms_per_step']:.3f}",
        f"{record['ratio']:.2f}" if "ratio" in record else "",
        str(record["unique_pcs"]),
        str(record["distinct_pictures"]),
    ]


def game(record: Record) -> str:
    """The name of a record's ROM, and the length of its episodes if they end."""
    return game_label(record["rom"], record["reset_every"])


def game_label(rom: str, reset_every: int) -> str:
    """A ROM's name as the tables and the plot show it."""
    return f"{rom}, reset {reset_every}" if reset_every else rom


def contender_label(name: str, vec_backend: str) -> str:
    """A contender's name as the tables and the plot show it, e.g. 'pyboy vec mp_async'."""
    short = name.replace("pyboy_puffer_", "pyboy ")
    return short if vec_backend == "native" else f"{short} {vec_backend}"


def _progress(workload: Workload, turn: Turn) -> str:
    contender = turn.contender
    name = game_label(workload.rom.stem, workload.reset_every)
    label = contender_label(contender.name, contender.vec_backend)
    rates = rates_of(contender, workload, turn.seconds)
    rate = f"{statistics.median(rates):,.0f}" if rates else ""
    bar = "#" * (20 * turn.done // turn.total)
    return line([name, workload.stage, label, f"{contender.num_envs:,}", rate]) + f"  [{bar:20}] {turn.doing}"
