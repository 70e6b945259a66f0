"""A game as its folder describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gbxcule_puffer.emulator import address_space
from gbxcule_puffer.emulator.cartridge import Cartridge, load_cartridge
from gbxcule_puffer.emulator.loops.table import MOST_HOOKS
from gbxcule_puffer.emulator.probes.hooks import rom_index
from gbxcule_puffer.errors import ConfigError, RomError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.games.levels import Levels, choose_levels
from gbxcule_puffer.games.parts import FILE, MAX_STEPS, PLAYED, LevelTable, Scores, Start, Terms
from gbxcule_puffer.games.roms import RomSource
from gbxcule_puffer.games.variants import ORIGINAL, Variant
from gbxcule_puffer.tasks.ram.number import Number

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
    ) -> dict[str, Any]:
        """Keywords of an env: rom, model, header, task, symbols, start_state and the options of [env].

        variant: the name of a variant, or several with commas, of which each env draws one; rom: the ROM's file, else
        it is searched for; levels: as `choose_levels` takes them; task: in place of the folder's reward and ends;
        max_steps: of the env, if it is not the folder's own. Each call makes another Task, for one env.

        Raises: ConfigError for a variant or levels that the game does not have; RomError for a ROM that is missing,
        damaged or another one; StateError for a start that does not fit.
        """
        chosen = self.chosen(variant)
        cartridge = self.cartridge(chosen, rom)
        check_addresses(self, cartridge)
        patched = any(each.patches for each in chosen)
        found = {**self.flags(), "rom": cartridge if patched else cartridge.path}
        if self.symbols is not None:
            found["symbols"] = str(self.symbols)
        if (starts := self._starts(cartridge, patched)) is not None:
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
        if (starts := self._starts(cartridge, patched)) is not None:
            found["start_state"] = starts if isinstance(starts, str) else starts[0]
        if patched:
            from gbxcule_puffer.games.starts import kept_rom

            return {**found, "rom": kept_rom(cartridge)}
        assert cartridge.path is not None
        return {**found, "rom": cartridge.path}

    def chosen(self, variant: str | None) -> list[Variant]:
        """The variants of a text such as 'easy,original'; of None the original.

        Raises: ConfigError for an unknown one, and for several of which one changes the ROM.
        """
        found = []
        for name in (variant or ORIGINAL).split(","):
            name = name.strip()
            if name != ORIGINAL and name not in self.variants:
                listed = ", ".join((*self.variants, ORIGINAL))
                raise ConfigError(
                    f"variant {name!r:.40} is not in {self.source}: give one of {listed}, or several of them"
                )
            if any(each.name == name for each in found):
                raise ConfigError(f"variant {name!r:.40} is there twice: give each once")
            found.append(self.variants.get(name, Variant()))
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
            wanted = f"the ROM of {self.title} is missing (SHA-256 {self.rom.sha256})"
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

    def _starts(self, cartridge: Cartridge, patched: bool) -> str | tuple[str, ...] | None:
        """The files of the start states, None for power-on."""
        if not self.start.actions and not self.start.states:
            return None
        from gbxcule_puffer.games.starts import made_states  # takes Warp

        original = self.cartridge([], cartridge.path) if patched else cartridge
        return made_states(self.source, self.start, self.rom.header, original, cartridge)

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
            return GameTask(self.terms, self.levels, chosen, variants, max_steps)
        if any(each.pokes for each in variants):
            raise ConfigError(
                f"variant {variants[0].name} writes RAM, and a Task of your own replaces what does: leave one out"
            )
        kind = find_class(text) if isinstance(text, str) else text
        if isinstance(kind, type) and issubclass(kind, Leveled) and chosen is not None:
            return kind(chosen)
        return make_task(kind)


def check_addresses(game: Game, cartridge: Cartridge) -> None:
    """Raises: ConfigError for an address that this cartridge does not have, with the name of its field."""

    def check(field: str, where: object, length: int) -> None:
        bank, address = where if isinstance(where, tuple) else (None, where)
        try:
            address_space.row_offset(cartridge, address, 1, bank)  # pyright: ignore[reportArgumentType]
            address_space.row_offset(cartridge, address + length - 1, 1, bank)  # pyright: ignore[reportOperatorIssue]
        except ConfigError as error:
            raise ConfigError(f"{game.source}: {field}: {error}") from None

    for name, number in game.numbers.items():
        check(f"[numbers] {name}", number.where, number.size)
    for number in game.terms.numbers:  # those of symbols, too
        check("a term", number.where, number.size)
    if game.levels is not None and game.levels.where is not None:
        check("[levels] write", game.levels.where, len(game.levels.values))
    for name, variant in game.variants.items():
        for i, poke in enumerate(variant.pokes):
            check(f"[variants.{name}] poke[{i}]", poke.where, len(poke.data))
    instructions = {node.value for node in game.terms.tape.nodes if node.operation == "executions"}
    for value in instructions:
        bank, address = value if isinstance(value, tuple) else (None, value)
        try:
            rom_index(cartridge, bank, address)  # pyright: ignore[reportArgumentType]
        except ConfigError as error:
            raise ConfigError(f"{game.source}: executions: {error}") from None
    if len(instructions) > MOST_HOOKS:
        raise ConfigError(
            f"{game.source}: executions of {len(instructions)} instructions: at most {MOST_HOOKS} are counted"
        )
