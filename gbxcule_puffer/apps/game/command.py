"""`puffer game ...`: make, check and import folders of games."""

from __future__ import annotations

import json as json_text
import sys
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from gbxcule_puffer.apps.flags import GAME, DeviceFlags, check_rom
from gbxcule_puffer.commandline import at_most_one, command, flag, word
from gbxcule_puffer.env.option_flags import option_flag
from gbxcule_puffer.errors import ConfigError

if TYPE_CHECKING:
    from gbxcule_puffer.apps.game.checking import Report
    from gbxcule_puffer.games import Game
    from gbxcule_puffer.games.parts import Scores

FOLDER = "a game's folder, or a name of `puffer game list`"
TRIED = "Trying it"
ALL = "all"
SEARCH = "The search"
MOST_NOTES = 200


@command
class CheckFlags(DeviceFlags):
    """The flags of a try of a folder."""

    num_envs: int = flag(64, "Game Boys in parallel", TRIED, least=2)
    steps: int | None = flag(None, "most steps of an episode (default: 1,000, or for [scores] all)", TRIED, least=4)
    rom: str | None = flag(None, "Game Boy image (default: in the folder, or beside it)", GAME, metavar="ROM")
    symbols: str | None = flag(None, "symbol file (default: beside the ROM)", GAME, metavar="FILE")

    def tried(self, folder: str, variant: str | None = None) -> Report:
        """The report of a folder."""
        from gbxcule_puffer.apps.game.checking import check_game
        from gbxcule_puffer.games import load_game

        return check_game(
            load_game(folder), rom=self.rom, variant=variant, num_envs=self.num_envs, steps=self.steps,
            device=self.device, seed=self.seed, symbols=self.symbols,
        )  # fmt: skip


@command
class Check(CheckFlags):
    """Try a game's folder: does it begin in play, is anything rewarded, do episodes end?

    Exit code 1 if something has to be mended.
    """

    dir: str = word(FOLDER, "FOLDER")
    variant: str | None = flag(None, "variant of the game", GAME, metavar="NAME")
    json: bool = flag(False, "print JSON")

    def run(self) -> int:
        from gbxcule_puffer.games import load_game
        from gbxcule_puffer.games.game import missing_parts

        if missing := missing_parts(load_game(self.dir), self.rom, self.symbols):
            rows = [{"subject": subject, "state": "missing", "text": text} for subject, text in missing]
            lines = [f"missing  {subject:8} {text}" for subject, text in missing]
            print(json_text.dumps({"ok": False, "findings": rows}, indent=1) if self.json else "\n".join(lines))
            return 1
        report = self.tried(self.dir, self.variant)
        show(report, self.json)
        return int(report.is_wrong)


@command
class New(DeviceFlags):
    """Make a folder for a game: scan its memory, choose numbers, write game.toml, try it."""

    rom: str = word("Game Boy image", "ROM")
    out: str | None = flag(None, "folder to make (default: the ROM's name, in the current folder)", metavar="DIR")
    yes: bool = flag(False, "take all proposals, ask nothing")
    pictures: str | None = flag(
        None, "folder for the scan, with pictures of the moments at which each candidate changed", metavar="DIR"
    )
    start_state: str | None = flag(None, "state where episodes begin (default: one is found)", GAME, metavar="FILE")
    start_actions: str | None = flag(
        None, "trace, or file of action names, that leads to the start", GAME, metavar="FILE"
    )
    header: str = option_flag("header", GAME)
    model: str = option_flag("model", GAME)
    num_envs: int | None = flag(None, "Game Boys of the scan (default: 64, on a GPU 16,384)", TRIED, least=16)
    seconds: float | None = flag(
        None, "seconds that each plays in the scan (default: 100, on a GPU 36)", TRIED, metavar="X", least=1
    )
    max_steps: int = flag(1_000, "steps after which an episode is cut", TRIED, least=1)

    def run(self) -> None:
        at_most_one(self, "start_actions", "start_state")
        check_rom(self.rom, self.header, self.model)
        from gbxcule_puffer.apps.game import proposing, seeding
        from gbxcule_puffer.apps.game.asking import again, check_answers, propose, question, whole
        from gbxcule_puffer.apps.game.checking import check_game
        from gbxcule_puffer.apps.scan.command import NO_START, table, write_folder
        from gbxcule_puffer.emulator.cartridge import load_cartridge
        from gbxcule_puffer.files import make_folder
        from gbxcule_puffer.games import load_game
        from gbxcule_puffer.games.writing import check_new_folder, game_name, game_title, write_game
        from gbxcule_puffer.scan.scan import scan
        from gbxcule_puffer.tasks.actions import MOST_FRAMES, get_codec

        if not self.yes:
            check_answers()
        name = game_name(self.out or self.rom)
        out = check_new_folder(self.out or name)
        folder = make_folder(self.pictures) if self.pictures else None
        cartridge = load_cartridge(self.rom, self.header, self.model)
        result = scan(
            self.rom, start=self.start_state, start_actions=self.start_actions, num_envs=self.num_envs,
            device=self.device, seed=self.seed, seconds=self.seconds, header=self.header, model=self.model,
        )  # fmt: skip
        print(table(result), flush=True)
        if folder is not None:
            write_folder(result, folder)
            print(f"pictures  {folder}: a strip of each candidate", flush=True)
        if not result.start.moves:
            print(f"warning: {NO_START}", file=sys.stderr)
        answers = proposing.try_buttons(cartridge, result.start.state)
        if not answers.buttons:
            raise ConfigError(
                "no button changes the picture at the start that was found: play to where the game begins (puffer play "
                f"{self.rom}), save the state there, and give it with --start-state"
            )
        ask = propose if self.yes else question
        choose = partial(proposing.choose_numbers, result, ask)
        chosen = choose() if self.yes else again(choose)
        if "lives" in chosen and (advice := proposing.late(result, proposing.number_in(chosen["lives"]))):
            print(f"warning: {advice}", file=sys.stderr)
        chance = seeding.choose_seed(cartridge, result, ask)
        title = ask("title", game_title(cartridge.title, self.rom), str)
        draft = proposing.draft_of(cartridge, name, title, result, chosen, answers, self.max_steps)
        draft.header, draft.levels = self.header, {} if chance is None else seeding.levels_of(chance)
        draft.goal = ask("goal, in one line", "Score as much as possible." if "score" in chosen else "Explore.", str)
        env = dict(draft.env)
        env["action_codec"] = ask("actions", str(env["action_codec"]), lambda answer: get_codec(answer).name)
        frames = ask("frames of a step", str(env["frames_per_step"]), whole("frames of a step", MOST_FRAMES))
        env |= {"frames_per_step": frames, "release_after_frames": min(int(str(env["release_after_frames"])), frames)}
        draft.env = env
        path = write_game(draft, out)
        print(f"written   {path}: game.toml, start.state, {name}.sym", flush=True)
        show(check_game(load_game(path), rom=self.rom, device=self.device, seed=self.seed))
        print(f"train     puffer train ppo --game {path} --rom {self.rom}")


@command
class Import:
    """Convert a folder of stable-retro into a folder of ours (docs/games-import.md)."""

    dir: str = word("a game's folder of stable-retro, with data.json in it", "FOLDER")
    rom: str = flag(help="the game's ROM", subject=GAME, metavar="FILE")
    scenario: str = flag("scenario", "which of the folder's scenarios, without .json", GAME, metavar="NAME")
    state: str | None = flag(None, "which of the folder's states (default: its default_state)", GAME, metavar="NAME")
    start_state: str | None = flag(None, "start state in place of the folder's", GAME, metavar="FILE")
    start_actions: str | None = flag(
        None, "trace, or file of action names, from power-on to the start", GAME, metavar="FILE"
    )
    frames_per_step: int = flag(4, "frames of a step; stable-retro has 1", GAME, least=1, most=240)
    header: str = option_flag("header", GAME)
    out: str | None = flag(None, "folder to make (default: the game's name, in the current folder)", metavar="DIR")

    def run(self) -> None:
        at_most_one(self, "start_actions", "start_state", "state")
        from gbxcule_puffer.apps.game.importing import import_folder

        out, notes = import_folder(
            self.dir, self.rom, self.out, scenario=self.scenario, state=self.state, start_state=self.start_state,
            start_actions=self.start_actions, frames_per_step=self.frames_per_step, header=self.header,
        )  # fmt: skip
        for note in notes[:MOST_NOTES]:
            print(f"differs   {''.join(each if each.isprintable() else '?' for each in note)}")
        if len(notes) > MOST_NOTES:
            print(f"differs   and {len(notes) - MOST_NOTES:,} more things")
        print(f"written   {out}")
        print(f"check     puffer game check {out} --rom {self.rom}")


def show(report: Report, json: bool = False) -> None:
    """The findings as lines or as JSON."""
    from gbxcule_puffer.apps.game.checking import lines_of

    print(json_text.dumps(report.as_json(), indent=1) if json else "\n".join(lines_of(report)), flush=True)


@command
class Solve:
    """Play an episode well by a search over copies of Game Boys, and write its trace.

    Many Game Boys try bursts of random buttons; those with the highest return are copied, and the others dropped.
    """

    dir: str = word(FOLDER, "FOLDER")
    out: str | None = flag(None, "trace to write (default: played.json in the folder)", metavar="FILE")
    rom: str | None = flag(None, "Game Boy image (default: in the folder, or beside it)", GAME, metavar="ROM")
    num_envs: int = flag(251, "Game Boys in parallel", SEARCH, least=2)
    keep: int = flag(24, "Game Boys that survive a burst", SEARCH, least=1)
    burst: int = flag(8, "steps of a burst", SEARCH, least=1)
    hold: int = flag(4, "most steps that a button is held", SEARCH, least=1)
    seconds: float = flag(60.0, "time after which the best episode so far is taken", SEARCH, least=1)
    seed: int = flag(0, "seed of the buttons", SEARCH)

    def run(self) -> None:
        from gbxcule_puffer.apps.game.solving import Search, solve
        from gbxcule_puffer.files import check_output
        from gbxcule_puffer.games import load_game
        from gbxcule_puffer.games.parts import PLAYED

        game = load_game(self.dir)
        path = check_output(self.out or game.folder / PLAYED)
        search = Search(self.num_envs, self.keep, self.burst, self.hold, self.seconds, self.seed)
        found = solve(game, search, self.rom, lambda line: print(line, flush=True))
        found.trace.save(path)
        score = "" if found.score is None else f"score {found.score:g}, "
        print(f"written   {path}: {score}return {found.total:g}, {len(found.trace.actions):,} steps")


@command
class Fetch:
    """Copy ROMs that do not come with the package from a folder of yours, found by their digests."""

    game: str = word("a name of `puffer game list`, a game's folder, or all", "NAME")
    from_: str = flag(help="folder to search, with those below it", subject=GAME, metavar="FOLDER")

    def run(self) -> int:
        from gbxcule_puffer.games import load_game, own_games
        from gbxcule_puffer.games.fetching import fetch_roms

        games = [load_game(name) for name in (own_games() if self.game == ALL else [self.game])]
        if self.game == ALL:
            games = [
                game for game in games if not game.rom.by_symbols
            ]  # those that a person owns are asked for by name
        absent = [game for game in games if game.rom.find(game.folder) is None]
        for game in games:
            if game not in absent:
                print(f"here      {game.name}: {game.rom.find(game.folder)}")
        found = fetch_roms(absent, self.from_)
        for game in absent:
            if game.name in found:
                print(f"fetched   {game.name}: {found[game.name]}")
            else:
                where = f"; get it from {game.rom.source}" if game.rom.source else ""
                print(f"missing   {game.name}: no file in {self.from_} has SHA-256 {game.rom.sha256}{where}")
        return int(len(found) < len(absent))


@command
class List:
    """Name the games that come with the package: kind, whether the ROM is here, scores, goal."""

    json: bool = flag(False, "print JSON")

    def run(self) -> None:
        from gbxcule_puffer.games import load_game, own_games

        games = [load_game(name) for name in own_games()]
        if self.json:
            print(json_text.dumps([_facts(game) for game in games], indent=1))
            return
        width = max(len(game.name) for game in games)
        for game in games:
            facts = _facts(game)
            rom = "here" if facts["rom"] else "no ROM"
            scores = "" if game.scores is None else _scores(game.scores)
            print(f"{game.name:{width}}  {game.kind:10} {facts['model']:4} {rom:6}  {scores:64}  {game.goal}")


def _facts(game: Game) -> dict[str, object]:
    """A game for a list."""
    rom = game.rom.find(game.folder)
    return {
        "name": game.name, "title": game.title, "kind": game.kind, "model": game.rom.model, "goal": game.goal,
        "rom": None if rom is None else str(rom), "sha256": game.rom.sha256, "author": game.rom.author,
        "license": game.rom.license, "source": game.rom.source,
        "scores": None if game.scores is None else asdict(game.scores),
    }  # fmt: skip


def _scores(scores: Scores) -> str:
    values = (f"{name} {getattr(scores, name):g}" for name in ("noop", "random", "played", "solved"))
    return f"{scores.statistic}: {', '.join(values)}"


COMMAND = {"new": New, "check": Check, "import": Import, "list": List, "fetch": Fetch, "solve": Solve}
