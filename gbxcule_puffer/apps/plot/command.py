"""`puffer plot`: the learning curves of runs as a PNG."""

from __future__ import annotations

from pathlib import Path

from gbxcule_puffer.commandline import command, flag, word


@command
class Plot:
    """Draw runs' reward, success, distance, entropy and speed against steps."""

    runs: tuple[str, ...] = word("a run's folder; seeds of one experiment are one line", "RUN")
    out: str | None = flag(None, "PNG file (default: RUN/curves.png, or curves.png for several runs)", metavar="FILE")
    smooth: int = flag(4, "each point of a curve is the mean of this many records", least=1)

    def run(self) -> None:
        from gbxcule_puffer.apps.plot.plot import draw

        paths = [Path(run) for run in self.runs]
        out = Path(self.out) if self.out else (paths[0] / "curves.png" if len(paths) == 1 else Path("curves.png"))
        draw(paths, out, self.smooth)
        print(out)


COMMAND = Plot
