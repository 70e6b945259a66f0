"""`puffer scan`: what the bytes of a game's RAM mean."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from gbxcule_puffer.apps.flags import GAME, DeviceFlags, GameFlags, check_rom
from gbxcule_puffer.commandline import at_most_one, command, flag, page_width

if TYPE_CHECKING:
    from gbxcule_puffer.scan.result import ScanResult

OUTPUT, SEEN = "Output", "What is seen"
NO_START = "no start was found in which directions move anything: give one by --start-state or --start-actions"


@command
class Scan(GameFlags, DeviceFlags):
    """Find out what the bytes of a game's RAM mean, by playing it many times at once."""

    start_state: str | None = flag(
        None, "snapshot or PyBoy .state file to start from (default: scan looks for a start)", GAME, metavar="FILE"
    )
    start_actions: str | None = flag(
        None,
        "trace, or file of action names, that leads to the start (default: scan looks for one)",
        GAME,
        metavar="FILE",
    )
    num_envs: int | None = flag(None, "Game Boys in parallel (default: 64, on a GPU 16,384)", least=16)
    seconds: float | None = flag(None, "seconds that each plays (default: 100, on a GPU 36)", metavar="X", least=1)
    where: tuple[str, ...] = flag(
        (),
        "list the numbers in RAM that meet this condition, on a number in a picture of the film (--out), e.g. "
        "'start: 3', '12: fell by 1', 'end: 120'; repeat for more",
        SEEN,
        metavar="PICTURE:CONDITION",
        repeat=True,
    )
    name: str = flag("seen", "name, in --sym, of the number that --where finds", SEEN, metavar="NAME")
    out: str | None = flag(None, "folder for start.state, start.txt, scan.json, film and strips", OUTPUT, metavar="DIR")
    sym: str | None = flag(None, "symbol file to write the names into", OUTPUT, metavar="FILE")
    json: bool = flag(False, "print JSON instead of the table", OUTPUT)

    def run(self) -> None:
        at_most_one(self, "start_actions", "start_state")
        check_rom(self.rom, self.header, self.model)
        from gbxcule_puffer.apps.scan.where import Leftovers
        from gbxcule_puffer.files import check_output, make_folder
        from gbxcule_puffer.scan.film import Seen
        from gbxcule_puffer.scan.scan import film_pictures, scan
        from gbxcule_puffer.tasks.ram.symbol_writing import check_name, save_symbols

        seen = [Seen.of(text) for text in self.where]
        for each in seen:
            each.check(film_pictures(self.seconds, self.device))
        check_name(self.name)
        if self.sym:
            check_output(self.sym)
        out = make_folder(self.out) if self.out else None
        result = scan(
            self.rom, start=self.start_state, start_actions=self.start_actions, num_envs=self.num_envs,
            device=self.device, seed=self.seed, seconds=self.seconds, header=self.header, model=self.model,
        )  # fmt: skip
        if out is not None:
            write_folder(result, out)
        left = None if not seen else Leftovers(result.recording.film, self.where, seen)
        if self.json:
            print(json.dumps(result.as_json() | ({} if left is None else {"where": left.as_json()}), indent=2))
        else:
            print(table(result) if left is None else f"{table(result)}\n{left.table()}")
        if not result.start.moves:
            print(f"warning: {NO_START}", file=sys.stderr)
        if self.sym:
            names = [each.name for each in result.write_symbols(self.sym)]
            if left is not None:
                save_symbols(self.sym, left.numbers(self.name))
                names += left.numbers(self.name)
            if not self.json:
                print(f"symbols  {self.sym}: {', '.join(names)}")
        if out is not None and not self.json:
            print(f"folder   {out}: start.state, start.txt, scan.json, film, and a picture strip of each candidate")


def table(result: ScanResult) -> str:
    """The candidates for a terminal."""
    from gbxcule_puffer.scan.result import text_of
    from gbxcule_puffer.tasks.ram.readings import word_of

    facts, actions, width = result.facts, result.start.actions, page_width() - 2
    lines = [
        f"{facts['title']}: {facts['num_envs']:,} Game Boys played {facts['game_seconds']} s each; "
        f"{facts['bytes_that_change']:,} bytes of RAM change ({facts['seconds']:.0f} s on {facts['device']})"
    ]
    if actions is not None:
        lines.append(textwrap.shorten(f"start: {' '.join(actions)}", width, placeholder=" ..."))
    lines.append(f"{'name':8} {'address':8} {'reading':8} {'sure':>4}  evidence")
    for each in result.candidates:
        head = f"{each.name:8} {text_of(each.number.where):8} {word_of(each.number):8} {each.confidence:>4.0%}  "
        also = f"; the same: {', '.join(map(text_of, each.aliases[:6]))}" if each.aliases else ""
        text = textwrap.wrap(each.evidence + also, width - len(head))
        lines += [head + text[0], *(" " * len(head) + more for more in text[1:])]
    return "\n".join(lines)


def write_folder(result: ScanResult, out: Path) -> None:
    """The start, the report, the film, and a picture strip of each candidate: before changes above, after below."""
    from gbxcule_puffer.apps.show.show import contact_sheet
    from gbxcule_puffer.files import make_folder, write_text
    from gbxcule_puffer.pictures import save_png, to_rgb, write_png

    result.start.state.to_file(out / "start.state")
    if result.start.actions is not None:
        write_text(out / "start.txt", " ".join(result.start.actions) + "\n")
    write_text(out / "scan.json", json.dumps(result.as_json(), indent=2) + "\n")
    film = make_folder(out / "film")
    for index, picture in enumerate(result.recording.film.pictures.cpu().numpy()):
        save_png(film / f"{index:03}.png", picture, 2)
    for each in result.candidates:
        if (strip := result.strip(each)) is not None:
            pictures, values = strip
            names = ["" if value is None else f"{each.name} {value}" for value in values]
            write_png(
                out / f"{each.name}.png", contact_sheet([to_rgb(each, 2) for each in pictures], names, len(names) // 2)
            )


COMMAND = Scan
