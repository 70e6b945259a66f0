"""`puffer arena ...`: train agents on games, record what they reach, verify and compare records."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

from gbxcule_puffer.commandline import command, flag, word
from gbxcule_puffer.errors import ConfigError, GBxCuLEError, printable

EPISODES = flag(
    32, "episodes of a final evaluation: on the training's levels, and on the test levels", least=1, most=1024
)
DEVICE = flag("cpu", "cpu, cuda or cuda:N")
RECORDS = "records, or folders with some"


@command
class Run:
    """Train several agents on several games, several at a time, and record each.

    The same command continues with the runs that have no record yet. Exit code 1 if a run failed.
    """

    game: str = flag(
        help="names of puffer game list, with commas between them; all: those whose ROM is here", metavar="NAME,..."
    )
    script: str = flag("ppo", "trainers, with commas between them", metavar="NAME,...")
    seeds: tuple[int, ...] = flag((1, 2, 3, 4, 5), "seeds, with commas between them")
    seconds: float | None = flag(None, "seconds of each training", least=0)
    steps: int | None = flag(None, "steps of each training over all its Game Boys", least=1)
    device: str = flag("cpu", "cpu, cuda or cuda:N; several with commas between them share the runs")
    jobs: int = flag(1, "runs at a time on each device", least=1)
    out: str = flag("arena", "folder of the records, and of the runs", metavar="DIR")
    agent: str | None = flag(None, "name of --script with --flags in tables (default: the trainer's name)")
    flags: str = flag("", 'flags for the trainers, as one text: --flags="--lr 1e-3"', metavar="TEXT")
    episodes: int = EPISODES

    def run(self) -> int:
        import shlex

        from gbxcule_puffer.apps.arena.records import NAME
        from gbxcule_puffer.apps.arena.running import Plan, jobs_of
        from gbxcule_puffer.apps.side_by_side import SideBySide
        from gbxcule_puffer.device import resolve_device
        from gbxcule_puffer.games import load_game, own_games
        from gbxcule_puffer.layout import trainer_scripts, trainers

        if self.seconds is None and self.steps is None:
            raise ConfigError("--seconds or --steps is missing: give the length of a training")
        if self.game == "all":
            loaded = map(load_game, own_games())
            here = (each for each in loaded if not each.rom.by_symbols and each.rom.find(each.folder) is not None)
            games = [each.name for each in here]
        else:
            games = _names("--game", self.game, own_games(), own_games())
        known = {**trainer_scripts(), **trainers()}
        scripts = _names("--script", self.script, known, trainers())
        agent = self.agent
        if agent is not None and (len(scripts) > 1 or not NAME.fullmatch(agent)):
            raise ConfigError("--agent names one trainer, by letters, digits and _.+-: give one --script, too")
        work = jobs_of(games, [(agent or name, known[name]) for name in scripts], self.seeds)
        runner = SideBySide([resolve_device(each) for each in self.device.split(",")], self.jobs)
        limits = {"seconds": self.seconds, "steps": self.steps, "episodes": self.episodes}
        plan = Plan(work, Path(self.out), runner, **limits, flags=shlex.split(self.flags))
        failed = plan.go()
        print(f"{len(work) - len(failed)} of {len(work)} runs are recorded in {self.out}", flush=True)
        return int(bool(failed))


@command
class Record:
    """Record a run that has ended: its curve, and a final evaluation that anyone can replay.

    Exit code 1 if a replay on the CPU differs from the evaluation.
    """

    run_dir: str = word("a run's folder, of a game of puffer game list", "RUN")
    out: str | None = flag(None, "file to write (default: GAME__AGENT__SEED.json)", metavar="FILE")
    agent: str | None = flag(None, "its name in tables (default: the trainer's name)")
    weights: str | None = flag(
        None, "file to write, NAME.safetensors: the network alone, in half precision; the record evaluates it",
        metavar="FILE",
    )  # fmt: skip
    device: str = DEVICE
    episodes: int = EPISODES
    jobs: int = flag(1, "runs that shared the device with it, itself included", least=1)

    def run(self) -> int:
        from gbxcule_puffer.apps.arena.recording import record_run, score_text
        from gbxcule_puffer.apps.arena.records import NAME
        from gbxcule_puffer.files import check_output
        from gbxcule_puffer.trainers.weights import SUFFIX

        if self.agent is not None and not NAME.fullmatch(self.agent):
            raise ConfigError(f"--agent {self.agent!r:.60} must be letters, digits and _.+-")
        if self.weights is not None and not self.weights.endswith(SUFFIX):
            raise ConfigError(f"--weights {self.weights!r:.60}: name it {SUFFIX}")
        for path in filter(None, (self.out, self.weights)):
            check_output(Path(path))
        record, found = record_run(self.run_dir, self.agent, self.episodes, self.device, self.jobs, self.weights)
        record.write(self.out or f"{record.label}.json")
        print(f"{record.label}: {score_text(record)}, {record.steps:,} steps in {record.seconds:.0f} s")
        for line in found:
            print(f"{record.label}: a replay on the CPU differs: {line}", file=sys.stderr)
        return int(bool(found))


@command
class Verify:
    """Replay all episodes of records on this CPU, and compare them with what the records say.

    Exit code 1 if one differs.
    """

    records: tuple[str, ...] = word(RECORDS, "RECORD")

    def run(self) -> int:
        from gbxcule_puffer.apps.arena.recording import score_text, verify
        from gbxcule_puffer.apps.arena.records import find_records, read_record

        wrong = 0
        for path in find_records(self.records):
            try:
                record = read_record(path)
                found = verify(record, path)
            except GBxCuLEError as error:
                found = [str(error)]
            else:
                count = sum(len(each.actions) for each in record.evaluations.values())
                steps = sum(sum(each.lengths) for each in record.evaluations.values())
                text = f"{count} episodes of {steps:,} steps replayed, {score_text(record)}"
            wrong += bool(found)
            for line in found or [text]:
                print(f"{path}: {'wrong: ' if found else ''}{printable(line)}", flush=True)
        return int(wrong > 0)


@command
class Report:
    """Compare the agents of records: tables and pictures."""

    records: tuple[str, ...] = word(RECORDS, "RECORD")
    out: str = flag("arena.md", "Markdown file; the pictures are beside it: NAME.png, NAME_games.png", metavar="FILE")

    def run(self) -> None:
        from gbxcule_puffer.apps.arena.plots import draw_aggregates, draw_games
        from gbxcule_puffer.apps.arena.records import find_records, read_record
        from gbxcule_puffer.apps.arena.report import report
        from gbxcule_puffer.apps.arena.results import Results
        from gbxcule_puffer.files import check_output, write_text

        out = Path(self.out)
        if out.suffix != ".md":
            raise ConfigError(f"--out {self.out!r:.60} is Markdown: name it .md")
        check_output(out)
        results = Results([read_record(path) for path in find_records(self.records)])
        pictures = {"": draw_aggregates, "_games": draw_games} if results.common else {"_games": draw_games}
        text = report(results)
        for name, draw in pictures.items():
            picture = out.with_name(f"{out.stem}{name}.png")
            draw(results, picture)
            text += f"\n![{'Aggregates' if not name else 'Curves of each game'}]({picture.name})\n"
        write_text(out, text)
        print(out)


def _names(flag_name: str, text: str, known: Collection[str], listed: Collection[str]) -> list[str]:
    """The names in a text, with commas between them. Raises: ConfigError."""
    found = list(dict.fromkeys(each.strip() for each in text.split(",")))
    for name in found:
        if name not in known:
            raise ConfigError(f"{flag_name} {name!r:.60} is unknown: give one of {', '.join(listed)}")
    return found


COMMAND = {"run": Run, "record": Record, "verify": Verify, "report": Report}
