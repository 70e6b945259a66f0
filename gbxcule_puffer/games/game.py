"""A game as its folder describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gbxcule_puffer.emulator import address_space
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge, load_cartridge
from gbxcule_puffer.emulator.loops.table import MOST_HOOKS
from gbxcule_puffer.emulator.probes.hooks import rom_index
from gbxcule_puffer.errors import ConfigError, RomError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.games.levels import Levels, choose_levels
from gbxcule_puffer.games.parts import FILE, MAX_STEPS, PLAYED, LevelTable, Scores, Start, Terms
from gbxcule_puffer.games.roms import RomSource
from gbxcule_puffer.games.variants import ORIGINAL, Variant
from gbxcule_puffer.tasks.ram import Symbols
from gbxcule_puffer.tasks.ram.addresses import bank_of
from gbxcule_puffer.tasks.ram.number import Number

MOST_MISSING = 4  # names in one error

if TYPE_CHECKING:
    from gbxcule_puffer.tasks.task import Task, TaskSpec


@dataclass(frozen=True)
class Game:
    """A game's folder, checked (load_game). env: options of the env; task: a Task of its own, as text; is_own: one of
    the games that come with the package, whose Task may run unasked."""

    folder: Path
    name: str
    title: str
    rom: RomSource
    goal: str = ""
    kind: str = "other"
    start: Start = field(default_factory=Start)
    env: Mapping[str, Any] = field(default_factory=dict)
    symbols: Path | None = None
    numbers: Mapping[str, Number] = field(default_factory=dict)
    terms: Terms = field(default_factory=Terms)
    levels: LevelTable | None = None
    variants: Mapping[str, Variant] = field(default_factory=dict)
    task: str | None = None
    scores: Scores | None = None
    is_own: bool = False
    names: tuple[str, ...] = ()  # of the symbol file that the ROM must have

    @property
    def source(self) -> str:
        """The file, for errors."""
        return f"{self.folder / FILE}"

    @property
    def played(self) -> Path | None:
        """The trace of a played episode, where the folder has one."""
        path = self.folder / PLAYED
        return path if path.is_file() else None

    @property
    def scored_levels(self) -> Levels | None:
        """The levels that [scores] are of: the test levels, else those for training; None of a game without any."""
        return None if self.levels is None else self.levels.test or self.levels.train

    def flags(self) -> dict[str, Any]:
        """The options of the env and the machine that stand in the folder, as defaults of a command's flags."""
        return {**self.env, "model": self.rom.model, "header": self.rom.header}

    def options(
        self,
        variant: str | None = None,
        rom: StrPath | None = None,
        levels: str | int | Levels | None = None,
        task: TaskSpec | None = None,
        max_steps: int | None = None,
        symbols: StrPath | None = None,
    ) -> dict[str, Any]:
        """Keywords of an env: rom, model, header, task, symbols, start_state and the options of [env].

        variant: the name of a variant, or several with commas, of which each env samples one; rom: the ROM's file, else
        it is searched for; levels: as `choose_levels` takes them; task: in place of the folder's reward and ends;
        max_steps: of the env, if it is not the folder's own; symbols: a symbol file, in place of the folder's. Each
        call makes another Task, for one env.

        Raises: ConfigError for a variant, levels, addresses or symbols that the game does not have; RomError for a ROM
        that is missing, damaged or another one; StateError for a start that does not fit.
        """
        chosen = self.chosen(variant)
        cartridge = self.cartridge(chosen, rom)
        given = self.symbols if symbols is None else symbols
        known = self.find_symbols(cartridge, given)
        check_addresses(self, cartridge, known)
        patched = any(each.patches for each in chosen)
        found = {**self.flags(), "rom": cartridge if patched else cartridge.path}
        if given is not None:
            found["symbols"] = str(given)
        if (starts := self._starts(cartridge, patched, known, self.check_levels(levels))) is not None:
            found["start_state"] = starts
        found["task"] = self._task(chosen, levels, task, max_steps or self.env.get("max_steps") or MAX_STEPS)
        return found

    def files(self, variant: str | None = None, rom: StrPath | None = None) -> dict[str, str]:
        """The files for a command that plays one Game Boy: rom, of a variant that changes it a file in Warp's cache;
        start_state, the first one, and symbols, where the game has some.

        Raises: as `options`.
        """
        chosen = self.chosen(variant)
        patched = any(each.patches for each in chosen)
        if patched and rom is not None:
            raise ConfigError(f"variant {variant} changes the ROM: leave ROM out, and put it into the game's folder")
        cartridge = self.cartridge(chosen, rom)
        found = {} if self.symbols is None else {"symbols": str(self.symbols)}
        known = self.find_symbols(cartridge, self.symbols)
        if (starts := self._starts(cartridge, patched, known)) is not None:
            found["start_state"] = starts if isinstance(starts, str) else starts[0]
        if patched:
            from gbxcule_puffer.games.starts import kept_rom

            return {**found, "rom": kept_rom(cartridge)}
        assert cartridge.path is not None
        return {**found, "rom": cartridge.path}

    def chosen(self, variant: str | None) -> list[Variant]:
        """The variants of a text such as 'easy,original', or 'rich+easy' for both at once; of None the original.

        Raises: ConfigError for an unknown one, and for several of which one changes the ROM.
        """
        found = []
        for name in (variant or ORIGINAL).split(","):
            parts = [part.strip() for part in name.split("+")]
            for part in parts:
                if part not in self.variants and (part != ORIGINAL or len(parts) > 1):
                    listed = ", ".join((*self.variants, ORIGINAL))
                    raise ConfigError(
                        f"variant {part!r:.40} is not in {self.source}: give one of {listed}, or several of them"
                    )
            if len(set(parts)) < len(parts) or any(each.name == "+".join(parts) for each in found):
                raise ConfigError(f"variant {name.strip()!r:.40} is named twice: name each once")
            found.append(reduce(Variant.with_, (self.variants.get(part, Variant()) for part in parts)))
        if len(found) > 1 and (patching := [each.name for each in found if each.patches]):
            raise ConfigError(f"variant {patching[0]} changes the ROM, and all envs play one: give it alone")
        return found

    def check_levels(self, levels: str | int | Levels | None) -> Levels | None:
        """The levels of a text (choose_levels); None for a game without any.

        Raises: ConfigError for levels that the game does not have.
        """
        if self.levels is not None:
            return choose_levels(levels, self.levels.train, self.levels.test)
        if levels in (None, ""):
            return None
        raise ConfigError(f"levels {levels!r:.40}: {self.source} has no [levels]: leave them out")

    def cartridge(self, variants: list[Variant], rom: StrPath | None = None) -> Cartridge:
        """The ROM with the patches of the variants.

        Raises: RomError for a ROM that is missing, damaged or another one; ConfigError for a patch that does not fit.
        """
        path = self.rom.find(self.folder, rom)
        if path is None:
            more = f" or one of {len(self.rom.others)} others" if self.rom.others else ""
            wanted = f"the ROM of {self.title} is missing (SHA-256 {self.rom.sha256}{more})"
            raise RomError(f"{self.source}: [rom] sha256: {wanted}: {self.rom.remedy()}")
        found = load_cartridge(path, self.rom.header, self.rom.model)
        patches = [patch for each in variants for patch in each.patches]
        if not patches:
            return found
        image = bytearray(found.data)
        for patch in patches:
            patch.apply(image)
        try:
            return replace(load_cartridge(bytes(image), self.rom.header, self.rom.model), path=found.path)
        except RomError as error:
            raise RomError(f"{patches[0].source}: makes a ROM that does not run: {error}") from None

    def find_symbols(self, cartridge: Cartridge, given: StrPath | None = None) -> Symbols | None:
        """The symbols that the folder's names are looked up in: of the `given` file, and of those beside the ROM.

        Raises: ConfigError for a file that cannot be read, and if names are not there (missing_names).
        """
        found = Symbols.find_files(given, cartridge.path)
        if missing := missing_names(self, found):
            raise ConfigError(f"{self.source}: {'; '.join(missing[:MOST_MISSING])}")
        return found

    def _starts(
        self, cartridge: Cartridge, patched: bool, symbols: Symbols | None, levels: Levels | None = None
    ) -> str | tuple[str, ...] | None:
        """The files of the start states, None for power-on. levels: those that are waits have a start each."""
        starts = [self.start]
        if self.levels is not None and self.levels.wait and levels is not None:
            numbers = range(levels.first, levels.first + levels.count)
            starts = [self.start.after(number * self.levels.wait) for number in numbers]
        if not any(each.is_played or each.states for each in starts):
            return None
        from gbxcule_puffer.games.starts import made_states  # takes Warp

        original = self.cartridge([], cartridge.path) if patched else cartridge
        found = [made_states(self.source, each, self.rom.header, original, cartridge, symbols) for each in starts]
        flat = [path for each in found for path in ([each] if isinstance(each, str) else each)]
        return flat[0] if len(flat) == 1 else tuple(flat)

    def _task(
        self, variants: list[Variant], levels: str | int | Levels | None, given: TaskSpec | None, max_steps: int
    ) -> Task:
        from gbxcule_puffer.games.levels import Leveled
        from gbxcule_puffer.games.task import GameTask
        from gbxcule_puffer.tasks.task_code import find_class, make_task

        chosen = self.check_levels(levels)
        if given is None and self.task is not None and not self.is_own:
            raise ConfigError(
                f"{self.source}: task: is code, which runs only where you name it: give --task {self.task}"
            )
        text = given if given is not None else self.task
        if text is None:
            written = chosen if self.levels is not None and not self.levels.wait else None
            return GameTask(self.terms, self.levels if written else None, written, variants, max_steps)
        if any(each.pokes for each in variants):
            raise ConfigError(
                f"variant {variants[0].name} writes RAM, and a Task of your own replaces what does: leave one out"
            )
        kind = find_class(text) if isinstance(text, str) else text
        if isinstance(kind, type) and issubclass(kind, Leveled) and chosen is not None:
            return kind(chosen)
        return make_task(kind)


def missing_parts(game: Game, rom: StrPath | None = None, symbols: StrPath | None = None) -> list[tuple[str, str]]:
    """The parts that a game whose addresses come from a symbol file lacks: (ROM, symbols or symbol, the fault and its
    remedy) of each; of other games nothing, since their files are checked as they are read.

    Raises: RomError or ConfigError for a file that cannot be read.
    """
    if not game.names:
        return []
    path = game.rom.find(game.folder, rom)
    found = [] if path is not None else [("ROM", f"{game.title}: {game.rom.remedy()}")]
    known = Symbols.find_files(game.symbols if symbols is None else symbols, None if path is None else str(path))
    names = missing_names(game, known)
    return [*found, *(("symbols" if known is None else "symbol", text) for text in names)]


def missing_names(game: Game, symbols: Symbols | None) -> list[str]:
    """The names of a game that are missing in its symbol file: a line for each name."""
    if not game.names:
        return []
    if symbols is None:
        of = f" of {game.rom.source:.200}, whose build writes it," if game.rom.source else ""
        remedy = "put it beside the ROM under the ROM's name, or give it with --symbols"
        return [f"the symbol file{of} is missing: {remedy}"]
    missing = []
    for name in game.names:
        try:
            symbols.find(name)
        except ConfigError as error:
            missing.append(str(error))
    return missing


def _located(where: object, symbols: Symbols | None) -> tuple[int | None, int]:
    """(bank or None, address) of where a number or an instruction is.

    Raises: ConfigError for a name that is not in RAM.
    """
    if isinstance(where, str):
        assert symbols is not None
        found = symbols.find(where)
        bank = found.bank if found.address < hw.VRAM else bank_of(found.bank, found.address)
        return bank, found.address
    return where if isinstance(where, tuple) else (None, where)  # pyright: ignore[reportReturnType]


def check_addresses(game: Game, cartridge: Cartridge, symbols: Symbols | None = None) -> None:
    """Raises: ConfigError for an address that this cartridge does not have, with the name of its field."""

    def check(field: str, where: object, length: int) -> None:
        bank, address = _located(where, symbols)
        try:
            address_space.row_offset(cartridge, address, 1, bank)
            address_space.row_offset(cartridge, address + length - 1, 1, bank)
        except ConfigError as error:
            raise ConfigError(f"{game.source}: {field}: {error}") from None

    for name, number in game.numbers.items():
        check(f"[numbers] {name}", number.where, number.length)
    for number in game.terms.numbers:  # those of symbols, too
        check("a term", number.where, number.length)
    if game.levels is not None and game.levels.where is not None:
        check("[levels] write", game.levels.where, len(game.levels.values))
    for name, variant in game.variants.items():
        for i, poke in enumerate(variant.pokes):
            check(f"[variants.{name}] poke[{i}]", poke.where, len(poke.data))
    instructions = {node.value for node in game.terms.tape.nodes if node.operation == "executions"}
    for value in instructions:
        bank, address = _located(value, symbols)
        try:
            rom_index(cartridge, bank, address)
        except ConfigError as error:
            raise ConfigError(f"{game.source}: executions: {error}") from None
    if len(instructions) > MOST_HOOKS:
        raise ConfigError(
            f"{game.source}: executions of {len(instructions)} instructions: at most {MOST_HOOKS} are counted"
        )
