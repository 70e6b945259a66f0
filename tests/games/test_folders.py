"""A game's folder: what is read from it, and each wrong field as one line that names file, table and field."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from gbxcule_puffer.env.options import EnvOptions
from gbxcule_puffer.errors import ConfigError, GBxCuLEError, RomError
from gbxcule_puffer.games import load_game, own_games
from gbxcule_puffer.games.folder import GAME_FILE
from gbxcule_puffer.layout import ARENA, OWNED, ROMS
from gbxcule_puffer.tasks.ram import Number
from tests.games.folders import HEAD, ORCHARD, ROM, game_text, write


def fault_of(folder: Path) -> str:
    with pytest.raises(GBxCuLEError) as caught:
        load_game(folder).options()
    return str(caught.value)


def test_our_own_games_are_found_by_name() -> None:
    assert own_games() == sorted(own_games()) and {"homeward", "orchard", "storeroom", "squishy-the-turtle"} < {
        *own_games()
    }
    for name in own_games():
        folder = next(root / name for root in (ROMS, ARENA, OWNED) if (root / name).is_dir())
        assert load_game(name).name == name and load_game(folder / "game.toml").is_own
    with pytest.raises(ConfigError, match=r"game 'orchrd': .*: did you mean orchard"):
        load_game("orchrd")


def test_everything_that_a_folder_may_have(tmp_path: Path) -> None:
    (tmp_path / "names.sym").write_text(
        "00:C122 wScore\n00:C123 wLives\n00:C0A0 Seed\n01:4000 Lost\n00:C0A3 Game.state\n"
    )
    (tmp_path / "start.txt").write_text("START A NOOP:60")
    folder = write(
        tmp_path,
        game_text(
            '[start]\nactions = "start.txt"',
            '[env]\nframes_per_step = 12\nrelease_after_frames = 4\nmax_steps = 64\nobs = "grey"\nstack_k = 2\n'
            'action_codec = "NOOP,A,LEFT,RIGHT"\nsymbols = "names.sym"\nram_obs = "lives,wScore:1"\n'
            'position = "lives,C124"\nblocked_actions = ["A"]\nvisit_key = "ram:lives"\nuntil = "Game.state==1"',
            '[numbers]\nscore = {address = "wScore", size = 1, read = "bcd", order = "big", mask = 0x7F}\n'
            'lives = "C123"\nhigh = 0xFFA0\nsaved = "0:A010"\nword = {address = "wScore+1", size = 2, read = "signed"}',
            '[reward]\nscore = "score.delta / 100"\ncells = {value = "first_visit(lives, Seed)", weight = 0.1}\n'
            "bias = 2",
            '[end]\nsuccess = ["score >= 32", "executions(\\"Lost\\") > 3"]\nfailure = "lives"\ntruncation = []',
            '[statistics]\nscore = "score"\nstate = "Game.state"',
            '[milestones]\nsome = "bits(word) >= 3"',
            '[levels]\nwrite = "Seed"\nbytes = ["level & 255", 7, "level // 256"]\ntrain = [0, 100]\ntest = [100, 50]',
            '[variants.easy]\npoke = [{address = "lives", value = 9}, \n'
            ' {address = "word", value = -2, when = "always"}, {address = "C0A3", value = [1, 2]}]',
            '[variants.hard]\npatch = [{offset = 0x150, bytes = "00 fF"}, {ips = "a.ips"}]',
        ),
        rom=True,
    )
    with pytest.raises(ConfigError, match=r"\[variants.hard.patch\[1\]\] ips: there is no file 'a.ips'"):
        load_game(folder)
    (tmp_path / "a.ips").write_bytes(b"PATCHEOF")
    game = load_game(folder)
    assert game.start.actions == ("START", "A", "NOOP:60") and game.start.schedule.frames_per_step == 12
    assert game.numbers["word"] == Number(0xC123, 2, "signed") and game.numbers["saved"] == Number((0, 0xA010))
    assert game.env["position"] == "C123,C124" and game.env["ram_obs"] == "C123,wScore:1"
    assert game.env["visit_key"] == "ram:C123" and game.env["blocked_actions"] == ("A",)
    assert len(game.terms.numbers) == 5, "score, lives, Seed, state and the bits of word"
    assert game.variants["easy"].pokes[1].data == (0xFE, 0xFF) and game.variants["easy"].pokes[1].always
    assert game.variants["hard"].patches[0].data == b"\x00\xff"
    EnvOptions(**{name: value for name, value in game.flags().items()})


TABLES: list[tuple[str, str]] = [
    # [rom] and the file itself
    ('[rom]\nsha256 = "12"', "[rom] sha256: '12' is not a SHA-256: give 64 hexadecimal digits"),
    ("[rom]", "[rom] sha256: is missing: give the SHA-256 of the ROM's file"),
    ("[rom]\nsha256 = 5", "[rom] sha256: is 5: give the SHA-256"),
    (ROM + 'modle = "dmg"', "[rom] modle: is not a known field: did you mean model?"),
    (ROM + 'model = "gba"', "[rom] model: 'gba' is unknown: give one of dmg, cgb, auto"),
    (ROM + "header = true", "[rom] header: true is unknown: give one of strict, pyboy"),
    (ROM + 'file = "../orchard.gb"', "[rom] file: '../orchard.gb' leads out of the game's folder"),
    (ROM + 'file = "/etc/passwd"', "[rom] file: '/etc/passwd' leads out of the game's folder"),
    (ROM + 'file = "none.gb"', "[rom] file: there is no file 'none.gb' in the game's folder"),
    (ROM + "license = []", "[rom] license: is an empty list: give a text"),
    (ROM + "[sound]\nx = 1", "game.toml: sound: is not a known table: give some of format, version"),
    (ROM + "[rewards]\nx = 1", "game.toml: rewards: is not a known table: did you mean reward?"),
    # [start]
    ("[start]", "[start] has neither states nor actions"),
    ("[start]\nstates = 5", "[start] states: is 5: give a file in the game's folder, or a list of them"),
    ('[start]\nstates = ["a.state"]', "[start] states: there is no file 'a.state'"),
    ('[start]\nstates = "../a.state"', "[start] states: '../a.state' leads out"),
    ('[start]\nactions = ["JUMP"]', "[start] actions: action 0 is 'JUMP', which is not a button"),
    ('[start]\nactions = ["A", "NOOP:0"]', "[start] actions: action 1 is 'NOOP:0', whose frames"),
    ("[start]\nactions = [1]", "[start] actions: is not a list of at most 100,000 actions"),
    ('[start]\nactions = "a.json"', "[start] actions: there is no file 'a.json'"),
    ('[start]\naction = "A"', "[start] action: is not a known field: did you mean actions?"),
    # [env]
    ("[env]\nmax_step = 5", "[env] max_step: is not an option that a game may set: did you mean max_steps?"),
    ("[env]\nmax_steps = 0", "[env] max_steps: max_steps 0 must be from 1 to"),
    ('[env]\nmax_steps = "many"', "[env] max_steps: max_steps 'many' must be a whole number, from 1 to"),
    ("[env]\nframes_per_step = 4", "[env] release_after_frames 8 must be from 1 to frames_per_step 4"),
    ('[env]\nio = "torch"', "[env] io: is not an option that a game may set"),
    ('[env]\ntask = "a.py:B"', "[env] task: is not an option that a game may set"),
    ('[env]\nrom = "a.gb"', "[env] rom: is not an option that a game may set"),
    ('[env]\nstart_state = "a"', "[env] start_state: is not an option that a game may set: it is [start] states"),
    ('[env]\nmodel = "cgb"', "[env] model: is not an option that a game may set: it is [rom] model"),
    ("[env]\nnum_threads = 2", "[env] num_threads: is not an option"),
    ('[env]\nobs = "shade"', "[env] obs: "),
    ('[env]\nposition = "C000"', "[env] position: position 'C000' has 1 parts"),
    ('[env]\nposition = "here,there"', "[env] position: "),
    ('[env]\nram_obs = "score"', "[env] ram_obs: "),
    ('[env]\nuntil = "score"', "[env] until: "),
    ('[env]\nvisit_key = "ram:score"', "[env] visit_key: "),
    ('[env]\naction_codec = "JUMP,A"', "[env] action_codec: "),
    ('[env]\nblocked_actions = ["JUMP"]', "[env] blocked_actions: blocked_actions has 'JUMP', which"),
    ("[env]\nblocked_actions = {A = 1}", "[env] blocked_actions: blocked_actions {'A': 1} must be names"),
    ("[env]\nvisited_obs = 3", "[env] visited_obs: needs position"),
    ("[env]\nmax_steps = '" + "9" * 1900 + "'", "[env] max_steps: max_steps '999"),
    ("[start]\nactions = '" + "9" * 1900 + "'", "[start] actions: there is no file '999"),
    ('[env]\nsymbols = "a.sym"', "[env] symbols: there is no file 'a.sym'"),
    ("[env]\nsticky_actions = " + "9" * 400, "is not TOML that can be read (a number has more than 300 digits)"),
    ("[env]\nsticky_actions = 1.5", "[env] sticky_actions: sticky_actions 1.5 must be"),
    ("env = 5", "[env] is 5: write it as a table, [env]"),
    # [numbers]
    ('[numbers]\n2x = "C000"', "[numbers] 2x: is not a name of a number"),
    ('[numbers]\nand = "C000"', "[numbers] and: is a word of terms"),
    ('[numbers]\nx = "G000"', "[numbers] x: 'G000' is not a hexadecimal address"),
    ('[numbers]\nx = "4000"', "[numbers] x: 4000 is not VRAM, WRAM, OAM or HRAM"),
    ("[numbers]\nx = 16384", "[numbers] x: 4000 is not VRAM, WRAM, OAM or HRAM"),
    ("[numbers]\nx = 1.5", "[numbers] x: 1.5 is not an address"),
    ("[numbers]\nx = true", "[numbers] x: True is not an address"),
    ("[numbers]\nx = {}", "[numbers.x] address: is missing"),
    ('[numbers]\nx = {address = "C000", sise = 2}', "[numbers.x] sise: is not a known field: did you mean size?"),
    ('[numbers]\nx = {address = "C000", size = 8}', "[numbers.x] size: is 8: give a whole number from 1 to 7"),
    ('[numbers]\nx = {address = "C000", size = true}', "[numbers.x] size: is true"),
    ('[numbers]\nx = {address = "C000", read = "hex"}', "[numbers.x] read: 'hex' is unknown: give one of number"),
    ('[numbers]\nx = {address = "C000", order = "x"}', "[numbers.x] order: 'x' is unknown: give one of little, big"),
    ('[numbers]\nx = {address = "C000", mask = 256}', "[numbers.x] mask: is 256: give a whole number from 0 to 255"),
    # [reward], [end], [statistics], [milestones]
    ('[reward]\nx = "mony.delta"', "[reward] x: name 'mony' is unknown"),
    ("[reward]\nx = true", "[reward] x: is not a term"),
    ('[reward]\nx = ""', "[reward] x: is not a term"),
    ('[reward]\nx = {value = "1", weigth = 2}', "[reward.x] weigth: is not a known field: did you mean weight?"),
    ("[reward]\nx = {weight = 2}", '[reward.x] value: is missing: give a term such as "score.delta"'),
    ('[reward]\nx = {value = "1", weight = "2"}', "[reward.x] weight: is '2': give a number from -1,000,000"),
    ('[reward]\nx = {value = "1", weight = inf}', "[reward.x] weight: is inf"),
    ("[reward]\nx = nan", "[reward] x: is not a term"),
    ("[reward]\n'a b' = 1", "[reward] a b: is not a name of a reward"),
    ('[end]\nfailure = "lives =="', "[end] failure: 'lives ==' is not a term"),
    ("[end]\nfailure = 0", "[end] failure: is 0: give a text or a list of texts"),
    ('[end]\nsuccess = ["1", 2]', "[end] success: is a list"),
    ('[end]\nfail = "1"', "[end] fail: is not a known field: did you mean failure?"),
    ('[statistics]\nx = "y"', "[statistics] x: name 'y' is unknown"),
    ('[milestones]\nx = "min(1)"', "[milestones] x: min takes 2 to 64 arguments, not 1"),
    ('[statistics]\nx = 1\n[milestones]\nx = "1"', "[milestones] x: is in [statistics], too"),
    # [levels]
    ("[levels]", "[levels] train: is missing: give [first, count]"),
    ("[levels]\ntrain = [0]", "[levels] train: is [0]: give [first, count]"),
    ("[levels]\ntrain = [0, 0]", "[levels] train: is [0, 0]"),
    ("[levels]\ntrain = [-1, 5]", "[levels] train: is [-1, 5]"),
    ("[levels]\ntrain = [0, 10]\ntest = [5, 10]", "[levels] test: has levels of train"),
    ("[levels]\ntrain = [0, 10]", "[levels] write: is missing"),
    ('[levels]\ntrain = [0, 10]\nwrite = "C000"', "[levels] bytes: is missing"),
    ('[levels]\ntrain = [0, 10]\nwrite = "C000"\nbytes = "level"', "[levels] bytes: is not a list"),
    ('[levels]\ntrain = [0, 10]\nwrite = "C000"\nbytes = [-1]', "[levels] bytes: has -1: give terms of `level`"),
    ('[levels]\ntrain = [0, 10]\nwrite = "C000"\nbytes = ["levl"]', "[levels] bytes: name 'levl' is unknown: did you"),
    ('[levels]\ntrain = [0, 10]\nwrite = "C000"\nbytes = ["level / 2"]', "[levels] bytes: 'level / 2' is a decimal"),
    ('[levels]\ntrain = [0, 10]\nwrite = "C000"\nbytes = ["level.delta"]', "[levels] bytes: remembers something"),
    ("[start]\nactions = ['A']\n[levels]\ntrain = [0, 10]\nwait = 0", "[levels] wait: "),
    ("[levels]\ntrain = [0, 10]\nwait = 7", "[levels] wait: comes before the actions of [start]: give some"),
    ("[start]\nactions = ['A']\n[levels]\ntrain = [0, 257]\nwait = 7", "[levels] wait: makes a start of each level"),
    ("[start]\nactions = ['A']\n[levels]\ntrain = [0, 9]\nwait = 7\nwrite = 'C000'", "[levels] write: "),
    # [variants]
    ("[variants.easy]", "[variants.easy] changes nothing: give poke or patch"),
    ("[variants]\neasy = 1", "[variants.easy] is 1: write it as a table"),
    ("[variants.original]\npoke = []", "[variants] original: is the game as it is"),
    ("[variants.'a b']\npoke = []", "[variants] a b: is not a name of a variant"),
    ("[variants.easy]\npoke = 5", "[variants.easy] poke: is not a list of at most 256 tables"),
    ("[variants.easy]\npoke = [{}]", "[variants.easy.poke[0]] address: is missing"),
    ('[variants.easy]\npoke = [{address = "C000"}]', "[variants.easy.poke[0]] value: is missing"),
    ('[variants.easy]\npoke = [{address = "C000", value = 256}]', "poke[0]] value: 256 must be a whole number"),
    ('[variants.easy]\npoke = [{address = "C000", value = [256]}]', "poke[0]] value: has something other than bytes"),
    ('[variants.easy]\npoke = [{address = "C000", value = 1, when = "now"}]', "when: 'now' is unknown: give one of"),
    ('[variants.easy]\npoke = [{adress = "C000", value = 1}]', "[variants.easy.poke[0]] address: is missing"),
    ("[variants.easy]\npatch = [{offset = -1}]", "[variants.easy.patch[0]] offset: is -1: give a whole number from 0"),
    ('[variants.easy]\npatch = [{offset = 1, bytes = "0G"}]', "bytes: '0G' is not hexadecimal"),
    ('[variants.easy]\npatch = [{ips = "../x.ips"}]', "ips: '../x.ips' leads out of the game's folder"),
    ('[variants.easy]\npoke = [{address = "C000", value = 1}]\nx = 1', "[variants.easy] x: is not a known field"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "fault"), TABLES, ids=[fault[:50] for _, fault in TABLES])
def test_a_wrong_field(table: str, fault: str, tmp_path: Path) -> None:
    is_rom = table.startswith("[rom]")
    text = f"{HEAD}{table}\n{'' if is_rom else ROM}" if is_rom or table[0] != "[" else game_text(table)
    found = fault_of(write(tmp_path / "mine", text))
    assert fault in found and found.startswith(f"{tmp_path / 'mine/game.toml'}: ") and "\n" not in found
    assert len(found) < 900 and os.listdir(tmp_path / "mine") == ["game.toml"]


@pytest.mark.parametrize(
    ("head", "fault"),
    [
        ("", "format: is missing: give one of gbxcule-game"),
        ('format = "x"', "format: 'x' is unknown: give one of gbxcule-game"),
        ('format = "gbxcule-game"', "version: is missing: give 1"),
        ('format = "gbxcule-game"\nversion = 2', "version: is 2: this program reads 1"),
        ('format = "gbxcule-game"\nversion = true', "version: is True"),
        ('format = "gbxcule-game"\nversion = 1', "name: is missing"),
        ('format = "gbxcule-game"\nversion = 1\nname = "A B"', "name: 'A B' is not a name"),
        (HEAD + 'kind = "chess"', "kind: 'chess' is unknown: give one of action, puzzle"),
        (HEAD + "title = 5", "title: is 5: give a text"),
        (HEAD + "task = 5", "task: is 5: give package.module:Class or file.py:Class"),
        (HEAD + "x = 1979-05-27", "x: is not a known field"),
        ("a = [", "is not TOML that can be read (Invalid value (at "),
        ("a = " + "[" * 5000, "is not TOML that can be read"),
        ("a = " + "9" * 5000, "is not TOML that can be read"),
        ("a = '\x01'", "is not TOML"),
    ],
)
def test_a_wrong_head(head: str, fault: str, tmp_path: Path) -> None:
    found = fault_of(write(tmp_path, f"{head}\n{ROM}"))
    assert fault in found and found.startswith(f"{tmp_path / 'game.toml'}: ") and "\n" not in found and len(found) < 500


def test_a_file_that_is_none(tmp_path: Path) -> None:
    write(tmp_path, "").joinpath("game.toml").write_bytes(b"\xff\xfe")
    assert fault_of(tmp_path).endswith(f"{GAME_FILE.remedy}")
    (tmp_path / "game.toml").write_text("#" * 2**21)
    assert "at most 1,048,576 are allowed" in fault_of(tmp_path)
    for path in (tmp_path / "none", "a\0b", "x" * 5000, "../orchard", ""):
        with pytest.raises(ConfigError, match=r"there is no game\.toml in such a folder"):
            load_game(path)


def test_the_rom_is_found_by_its_digest(tmp_path: Path) -> None:
    folder = write(tmp_path / "here" / "mine", game_text())
    told = fault_of(folder)
    assert f"[rom] sha256: the ROM of mine is missing (SHA-256 {ORCHARD})" in told and "--rom" in told
    image = (ROMS / "orchard.gb").read_bytes()
    for place in (tmp_path / "here" / "any name.GBC", folder / "own.gb"):
        place.write_bytes(image)
        assert load_game(folder).options()["rom"] == str(place.resolve())
    (tmp_path / "else.bin").write_bytes(image)
    assert load_game(folder).options(rom=tmp_path / "else.bin")["rom"] == str(tmp_path / "else.bin")
    with pytest.raises(RomError, match="is not the game's ROM, its SHA-256 is"):
        load_game(folder).options(rom="storeroom")
    (folder / "own.gb").write_bytes(image[:-1] + b"\1")
    assert load_game(folder).options()["rom"] == str((tmp_path / "here" / "any name.GBC").resolve())
    write(folder, game_text(rom=ROM + 'file = "own.gb"\nsource = "https://example.org"'))
    told = fault_of(folder)
    assert "[rom] file: " in told and "is not the game's ROM" in told and "get it from https://example.org, and" in told


def test_what_editors_and_people_write(tmp_path: Path) -> None:
    """A byte order mark, other line ends, dotted keys, tables in one line, terms of several lines."""
    text = f"""format = "gbxcule-game"
version = 1
name = "2048"
title = "Größe"
rom.sha256 = "{ORCHARD.upper()}"
numbers = {{max = "score", level = 0xC123, start = {{address = "C0A0", size = 2}}}}
[reward]
score = \'\'\'
  max(max.delta,
      0)
  + level.start
\'\'\'
"""
    folder = write(tmp_path, "", rom=True)
    (folder / "game.toml").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    game = load_game(folder)
    assert game.name == "2048" and game.rom.sha256 == ORCHARD and len(game.terms.numbers) == 2


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", game_text('[start]\nstates = "a.state"'))
    (tmp_path / "secret").write_text("x")
    (folder / "a.state").symlink_to(tmp_path / "secret")
    assert "[start] states: 'a.state' leads out of the game's folder by a link" in fault_of(folder)


def test_a_strangers_task_runs_only_where_it_is_named(tmp_path: Path) -> None:
    code = "from gbxcule_puffer.tasks.task import Task\nopen('made', 'w')\nclass Own(Task):\n    pass\n"
    folder = write(tmp_path, game_text(head=HEAD + 'task = "own.py:Own"\n'), rom=True)
    (folder / "own.py").write_text(code)
    told = fault_of(folder)
    assert re.search(r"game.toml: task: is code, which runs only where you name it: give --task own.py:Own", told)
    assert not Path("made").exists() and not (folder / "made").exists()
    given: Any = "roms/homeward/errand.py:Errand"
    assert type(load_game(folder).options(task=given)["task"]).__name__ == "Errand"
    write(folder, game_text('[reward]\nx = "1"', head=HEAD + 'task = "own.py:Own"\n'))
    assert "game.toml: task: a Task has its own reward and ends, in place of [reward] and [end]" in fault_of(folder)
    write(folder, game_text(head=HEAD + 'task = "gbxcule_puffer.suite.homeward:Homeward"\n'))
    assert "task: is code" in fault_of(folder), "also of the package's, which a stranger's folder names"


def test_terms_have_names_and_flags_have_numbers(tmp_path: Path) -> None:
    """[terms], bit and read = "count": the nodes that they become."""
    (tmp_path / "names.sym").write_text("00:C100 wFlags\n00:C140 wBag\n")
    text = game_text(
        '[env]\nsymbols = "names.sym"',
        '[numbers]\nkey = {address = "wBag", size = 3, every = 2, read = "count", of = 0x3F}\n'
        'wide = {address = "wFlags+1", size = 2}',
        '[terms]\nboss = "bit(wFlags, 37)"\nboth = "boss + bit(wide, 15) + min(key, 1)"',
        '[reward]\nboth = "rise(both) + rise(boss)"',
    )
    game = load_game(write(tmp_path, text))
    assert game.numbers["key"] == Number(0xC140, 3, "count", every=2, of=0x3F) and game.numbers["key"].length == 5
    assert {(number.where, number.mask) for number in game.terms.numbers} == {
        (0xC104, 32),
        (0xC102, 128),
        (0xC140, 255),
    }
    for wrong, fault in (
        ('"bit(wide, 16)"', r"\[terms\] boss: bit 16 of wide is not there: give 0 to 15"),
        ('"bit(wFlags, both)"', r"bit takes a name and a number: bit\(flags, 12\)"),
        ('"bit(wFlag, 3)"', "name 'wFlag' is unknown: did you mean wFlags"),
        ('"later"', "name 'later' is unknown"),
    ):
        (tmp_path / "game.toml").write_text(text.replace('"bit(wFlags, 37)"', wrong))
        assert re.search(fault, fault_of(tmp_path)), fault_of(tmp_path)
    (tmp_path / "game.toml").write_text(text.replace("of = 0x3F", "of = 256"))
    assert "[numbers.key] of: is 256: give a whole number from 0 to 255" in fault_of(tmp_path)
    (tmp_path / "game.toml").write_text(text.replace("[reward]", '[reward]\ntwo = "bit(boss, 1)"'))
    assert "bit takes a name of [numbers] or a symbol, not the term boss: write boss >> n & 1" in fault_of(tmp_path)
