"""Reads a game's folder: every field of its game.toml is checked, nothing in it is run, nothing is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import EllipsisType
from typing import TypeVar

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import Kind, StrPath, parse_toml, read_text
from gbxcule_puffer.games.beginnings import read_rom, read_start
from gbxcule_puffer.games.env_options import read_env, schedule_of
from gbxcule_puffer.games.game import Game
from gbxcule_puffer.games.levels import Levels
from gbxcule_puffer.games.names import Names
from gbxcule_puffer.games.parts import FILE, FORMAT, KINDS, VERSION, LevelTable, Scores, Start, Terms
from gbxcule_puffer.games.roms import RomSource
from gbxcule_puffer.games.table import Table, check_inside, check_name, nearest
from gbxcule_puffer.games.terms.nodes import BOOL, DECIMAL, WHOLE, Tape
from gbxcule_puffer.games.terms.parse import TermParser
from gbxcule_puffer.games.variants import ORIGINAL, Variant, read_variant
from gbxcule_puffer.layout import GAMES, find_game_folder
from gbxcule_puffer.tasks.actions import DEFAULT_CODEC, allowed_actions, get_codec
from gbxcule_puffer.tasks.ram import Symbols
from gbxcule_puffer.tasks.ram.symbols import AnySymbols

GAME_FILE = Kind("game", ConfigError, "write it as docs/games.md shows")
LARGEST_FILE = 2**20  # bytes
MOST_WEIGHT = 1e6  # of a reward: sums and products of several stay finite in float32
MOST_WAIT, MOST_WAITS = 3600, 256  # frames of a level, and levels that are waits
MOST_LEVELS, LAST_LEVEL = 2**24, 2**31  # of one range, which is sampled from; and the last one's number
MOST_SCORE = 1e9
Default = TypeVar("Default")
SCORED = ("noop", "random", "played", "solved")
ENDS = ("success", "failure", "truncation")
TABLES = ("terms", "blocked", "reward", "end", "statistics", "milestones", "levels", "variants", "scores")


def load_game(path: StrPath) -> Game:
    """The game in a folder, or one that comes with the package, by its name (own_games).

    Raises: ConfigError for a folder that is missing or has a wrong field; RomError for a ROM that it names and that is
    another one; and errors of its files. Each names the file, the table and the field.
    """
    folder = find_game_folder(path)
    source = str(folder / FILE)
    text = read_text(folder / FILE, GAME_FILE, LARGEST_FILE)
    try:
        content = parse_toml(text)
    except ValueError as error:
        raise ConfigError(f"{source}: is not TOML that can be read ({error}): correct this line") from None
    return _Reader(folder, Table(source, "", content)).read()


def saved_name(path: StrPath) -> str:
    """The text by which a run remembers a game: the name of one that comes with the package, else its folder's full
    path.

    Raises: ConfigError where there is none.
    """
    folder = find_game_folder(path).resolve()
    return folder.name if _is_own(folder) else str(folder)


def _is_own(folder: Path) -> bool:
    """True for the folder of a game that comes with the package."""
    return folder.resolve().parent in {root.resolve() for root in GAMES}


class _Reader:
    """Reads one game.toml."""

    def __init__(self, folder: Path, top: Table) -> None:
        self.folder, self.top, self.source = folder, top, top.source

    def read(self) -> Game:
        """Raises: ConfigError, RomError."""
        top = self.top
        top.take_choice("format", (FORMAT,))
        version = top.take("version", meaning=f"{VERSION}")
        if type(version) is not int or version != VERSION:
            raise top.error("version", f"is {version!r:.40}: this program reads {VERSION}")
        name = top.take_text("name", meaning="the game's name, e.g. orchard")
        if not re.fullmatch(r"[a-z0-9_-]{1,64}", name):
            raise top.error("name", f"{name!r:.80} is not a name: give small letters, digits, _ and -, at most 64")
        title = top.take_text("title", name, longest=200)
        goal, kind = top.take_text("goal", ""), top.take_choice("kind", KINDS, "other")
        task = top.take_text("task", None, "package.module:Class or file.py:Class")
        rom = read_rom(top.take_table("rom"), self._inside)
        start, env = top.take_table("start", None), top.take_table("env", None)
        numbers = top.take_table("numbers", None)
        tables = {name: top.take_table(name, None) for name in TABLES}
        top.done()
        symbols_file, symbols = self._symbols(env, rom)
        names = (numbers or top).checked("", Names, numbers, symbols)
        options = {} if env is None else read_env(env, names, rom.sha256)
        if tables["blocked"] is not None:
            codec = get_codec(options.get("action_codec", DEFAULT_CODEC))
            for name in tables["blocked"].names():
                tables["blocked"].checked(name, allowed_actions, codec, (name,))
        if task is not None and (tables["reward"] or tables["end"]):
            raise top.error("task", "a Task has its own reward and ends, in place of [reward] and [end]: give either")
        terms = self._terms(tables, names)
        begins = Start() if start is None else read_start(start, rom, schedule_of(options), names, self._inside)
        levels = None if tables["levels"] is None else self._levels(tables["levels"], names, task is not None)
        if levels is not None and levels.wait and not (begins.is_played or begins.states) and tables["levels"]:
            raise tables["levels"].error("wait", "comes before the actions of [start]: give some")
        return Game(
            folder=self.folder,
            name=name,
            title=title,
            rom=rom,
            goal=goal,
            kind=kind,
            start=begins,
            env=options,
            symbols=symbols_file,
            numbers=names.numbers,
            terms=terms,
            levels=levels,
            variants={} if tables["variants"] is None else self._variants(tables["variants"], names),
            task=task,
            scores=None if tables["scores"] is None else self._scores(tables["scores"], terms, task is not None),
            is_own=_is_own(self.folder),
            names=tuple(symbols.asked) if isinstance(symbols, AnySymbols) else (),
        )

    def _file(self, table: Table, field: str, default: Default | EllipsisType = ...) -> Path | Default:
        """The path of a file in the folder."""
        given = table.take_path(field, default)
        return self._inside(table, field, given) if isinstance(given, str) else given

    def _inside(self, table: Table, field: str, given: str) -> Path:
        check_inside(table, field, given)
        path, folder = self.folder / given, self.folder.resolve()
        if not path.resolve().is_relative_to(folder):
            raise table.error(
                field, f"{given!r:.80} leads out of the game's folder by a link: put the file itself there"
            )
        try:
            is_there = path.is_file()
        except OSError:  # a name that is too long
            is_there = False
        if not is_there:
            raise table.error(field, f"there is no file {given!r:.80} in the game's folder: put it there")
        return path

    def _symbols(self, env: Table | None, rom: RomSource) -> tuple[Path | None, Symbols | None]:
        """The symbol file that [env] names, and all symbols: of it, and of files beside the ROM in the folder; any, of
        a game whose addresses come from the symbols of the ROM that is played."""
        path = None if env is None else self._file(env, "symbols", None)
        if rom.by_symbols:
            return path, AnySymbols()
        table = env or self.top
        if rom.file is not None:
            Table(self.source, "rom", {}).checked("file", rom.find, self.folder)
        beside = rom.find(self.folder) if path is None else rom.file
        found = table.checked("symbols", Symbols.find_files, path, None if beside is None else str(beside))
        return path, found

    def _terms(self, tables: Mapping[str, Table | None], names: Names) -> Terms:
        tape = Tape()
        parser = names.parser(tape)
        if (named := tables["terms"]) is not None:
            self._name_terms(named, names, parser)
        reward = None if tables["reward"] is None else self._reward(tables["reward"], parser, tape)
        ends: dict[str, int | None] = dict.fromkeys(ENDS)
        if (table := tables["end"]) is not None:
            for name in ENDS:
                texts = table.take_texts(name, ())
                parts = [self._condition(table, name, each, parser) for each in texts]
                if parts:
                    ends[name] = parts[0] if len(parts) == 1 else tape.add("any", parts, BOOL)
            table.done()
        statistics = self._named(tables["statistics"], parser.parse)
        milestones = self._named(tables["milestones"], parser.condition)
        blocked = self._named(tables["blocked"], parser.condition, is_name=False)
        if both := statistics.keys() & milestones.keys():
            raise Table(self.source, "milestones", {}).error(min(both), "is in [statistics], too: rename one")
        return Terms(
            tape,
            tuple(names.columns),
            reward,
            ends["success"],
            ends["failure"],
            ends["truncation"],
            statistics,
            milestones,
            blocked,
        )

    def _name_terms(self, table: Table, names: Names, parser: TermParser) -> None:
        """Reads [terms]: each may use those above it."""
        for name in table.names():
            check_name(table, name, "term")
            if name in names.numbers:
                raise table.error(name, "is in [numbers], too: rename one")
            names.terms[name] = table.checked(name, parser.parse, _as_text(table, name))

    def _condition(self, table: Table, field: str, text: str, parser: TermParser) -> int:
        return table.checked(field, parser.condition, text)

    def _named(self, table: Table | None, parse: Callable[[str], int], is_name: bool = True) -> dict[str, int]:
        found = {}
        for name in [] if table is None else table.names():
            assert table is not None
            if is_name:
                check_name(table, name, table.name.rstrip("s"))
            text = _as_text(table, name)
            found[name] = table.checked(name, parse, text)
        return found

    def _reward(self, table: Table, parser: TermParser, tape: Tape) -> int:
        total: int | None = None
        for name in table.names():
            check_name(table, name, "reward")
            weight = 1.0
            if table.is_table(name):
                row = table.take_table(name)
                text, weight = _as_text(row, "value"), row.take_number("weight", MOST_WEIGHT, 1.0)
                row.done()
            else:
                text = _as_text(table, name)
            node = table.checked(name, parser.parse, text)
            if weight != 1:
                factor = tape.constant(float(weight))
                scaled = tape.scaled(node, factor)
                node = tape.add("multiply", (tape.cast(node, DECIMAL), factor), DECIMAL) if scaled is None else scaled
            if total is None:
                total = tape.cast(node, max(WHOLE, tape.nodes[node].kind))
                continue
            kind = max(WHOLE, tape.nodes[node].kind, tape.nodes[total].kind)
            total = tape.add("add", (tape.cast(total, kind), tape.cast(node, kind)), kind)
        return tape.constant(0) if total is None else total

    def _levels(self, table: Table, names: Names, has_task: bool) -> LevelTable:
        train = self._range(table, "train")
        assert train is not None
        test = self._range(table, "test", None)
        if test is not None and test.first < train.first + train.count and train.first < test.first + test.count:
            raise table.error("test", "has levels of train: give others")
        wait = table.take_whole("wait", 1, MOST_WAIT, None)
        if wait is not None or has_task:
            table.done()
            for each in (train, test) if wait is not None else ():
                if each is not None and each.first + each.count > MOST_WAITS:
                    raise table.error("wait", f"makes a start of each level: give levels below {MOST_WAITS}")
            return LevelTable(train, test, wait=wait or 0)
        where = names.number(table, "write", table.take("write", meaning="a symbol or an address such as C0A5")).where
        given = table.take("bytes", meaning='a list of terms of `level`, e.g. ["level & 255", "level >> 8"]')
        table.done()
        if not isinstance(given, list) or not 1 <= len(given) <= 256:
            raise table.error("bytes", 'is not a list of 1 to 256 terms: give e.g. ["level & 255", "level >> 8"]')
        tape = Tape()
        level = tape.add("number", (), WHOLE, 0)
        parser = TermParser(
            tape,
            lambda name: level if name == "level" else None,
            lambda _: None,
            lambda *_: None,
            lambda: ["level"],
            None,
        )
        values = []
        for each in given:
            if type(each) not in (str, int) or (isinstance(each, int) and not 0 <= each <= 255):
                raise table.error("bytes", f"has {each!r:.40}: give terms of `level`, or numbers from 0 to 255")
            node = table.checked("bytes", parser.parse, str(each))
            if tape.nodes[node].kind == DECIMAL:
                raise table.error("bytes", f"{each!r:.40} is a decimal number: write // instead of /")
            values.append(tape.cast(node, WHOLE))
        if tape.remembering():
            raise table.error("bytes", "remembers something: give terms of `level` alone")
        assert not isinstance(where, str)
        return LevelTable(train, test, where, tape, tuple(values))  # pyright: ignore[reportArgumentType]

    def _scores(self, table: Table, terms: Terms, has_task: bool) -> Scores:
        statistic = table.take_text("statistic", meaning="a name of [statistics] or [milestones], or success")
        known = [*terms.statistics, *terms.milestones, "success"]
        if statistic not in known and not has_task:
            close = nearest(statistic, known)
            remedy = f"did you mean {close[:-2]}?" if close else f"give one of {', '.join(known)}"
            raise table.error("statistic", f"{statistic!r:.60} is not a statistic of this game: {remedy}")
        found = Scores(statistic, *(table.take_number(name, MOST_SCORE) for name in SCORED))
        table.done()
        if found.played == found.random:
            raise table.error("played", "equals random, so nothing can be measured between them: give another trace")
        return found

    def _range(self, table: Table, field: str, default: EllipsisType | None = ...) -> Levels | None:
        """The levels [first, count] of a field."""
        value = table.take(field, default, "[first, count], e.g. [0, 16384]")
        if value is default:
            return value
        good = isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value)
        if not good or value[0] < 0 or not 1 <= value[1] <= MOST_LEVELS or sum(value) > LAST_LEVEL:
            raise table.error(
                field, f"is {value!r:.40}: give [first, count], e.g. [0, 16384], at most {MOST_LEVELS:,} of them"
            )
        return Levels(*value)

    def _variants(self, table: Table, names: Names) -> dict[str, Variant]:
        found = {}
        for name in table.names():
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
                raise table.error(name[:64], "is not a name of a variant: give letters, digits, _ and -")
            if name == ORIGINAL:
                raise table.error(name, "is the game as it is: give the variant another name")
            own = table.take_table(name)
            found[name] = read_variant(name, own, partial(names.number, own), self._file)
        return found


def _as_text(table: Table, field: str) -> str:
    """A term's text; a number stands for itself."""
    value = table.take(field, meaning='a term such as "score.delta"')
    if type(value) in (int, float) and value == value and abs(value) != float("inf"):
        return repr(value)
    if not isinstance(value, str) or not value.strip() or len(value) > 2_000:
        raise table.error(field, 'is not a term: give a text such as "score.delta", of at most 2,000 characters')
    return value
