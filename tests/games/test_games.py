"""Games of folders at play: on our Game Boys and PyBoy's alike, with levels, starts and variants."""

from __future__ import annotations

import copy
import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer import env_creator
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.errors import ConfigError, RomError, StateError
from gbxcule_puffer.games import load_game
from gbxcule_puffer.layout import ROMS
from gbxcule_puffer.tasks.actions import Schedule
from gbxcule_puffer.tasks.start import play_to_start
from gbxcule_puffer.trainers.evaluation import evaluate, random_policy
from tests.games.events import write_events
from tests.games.folders import HEAD, game_text, write
from tests.support.envs import random_actions

TERMS = (
    '[numbers]\nscore = "score"\nlives = "lives"\nx = "basket_x"',
    '[reward]\napples = {value = "score.delta", weight = 0.3}\ncells = "first_visit(x // 16, lives) / 8"\n'
    'far = "x.rise + x.fall"\nframes = "executions(\\"game_frame\\") * 0.001"\nfirst = "once(score >= 1)"\n'
    'ever = "once_ever(lives == 2)"\nbits = "delta(bits(score))"',
    '[end]\nfailure = "lives == 0 and lives.previous > 0"\ntruncation = "score.delta < 0"',
    '[statistics]\nscore = "score"\nmean = "(score + lives) / 2"\n[milestones]\none = "score > 0"',
    '[env]\nmax_steps = 50',
    '[levels]\nwrite = "seed"\nbytes = ["level & 255", "level >> 8", 0xA5]\ntrain = [0, 64]\ntest = [64, 64]',
    '[variants.many]\npoke = [{address = "lives", value = 9, when = "always"}]',
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("game"), game_text(*TERMS), rom=True)


def make(folder: Path | str, num_envs: int, name: str = "gbxcule", **options: Any) -> Any:
    game = {key: options.pop(key) for key in ("variant", "levels") if key in options}
    return env_creator(name, game=folder, **game)(num_envs, **{"io": "torch", "info_mode": "none", **options})


def test_levels_that_are_waits(tmp_path: Path) -> None:
    """A level is a wait before the first button: each has a start, the one that its wait leads to."""
    parts = '[start]\nactions = ["NOOP:9", "A"]', "[levels]\nwait = 7\ntrain = [0, 3]\ntest = [3, 2]"
    folder = write(tmp_path, game_text(*parts), rom=True)
    cartridge, ends = load_cartridge(ROMS / "orchard.gb"), {}
    for level in range(5):
        wait = [f"NOOP:{7 * level}"] if level else []
        ends[play_to_start(cartridge.data, [*wait, "NOOP:9", "A"]).bus(cartridge).tobytes()] = level
    assert len(ends) == 5
    for levels, wanted in ((None, {0, 1, 2}), ("test", {3, 4}), (1, {0})):
        env = make(folder, 16, levels=levels)
        env.reset(seed=1)
        assert {ends[env.emulator.save(row).bus(cartridge).tobytes()] for row in range(16)} == wanted
        env.close()


@pytest.mark.parametrize(
    ("name", "more", "variant"),
    [
        *(("pyboy_puffer_single", {}, variant) for variant in (None, "many", "many,original")),
        ("pyboy_puffer_vec", {"backend": "serial", "num_workers": 2}, "many,original"),
    ],
)
def test_pyboy_pays_the_same(folder: Path, name: str, more: dict[str, Any], variant: str | None) -> None:
    n, steps = 4, 60
    options: dict[str, Any] = {"io": "numpy", "info_mode": "stats", "log_interval": steps, "variant": variant}
    own, other = make(folder, n, **options), make(folder, n, name, **options, **more)
    for env in (own, other):
        env.reset(seed=5)
    paid, ends = 0.0, 0
    for row in random_actions(steps, n, seed=3):
        found, wanted = own.step(row), other.step(row)
        for part, same in zip(found[:4], wanted[:4], strict=True):
            np.testing.assert_array_equal(part, same)
        paid, ends = paid + abs(found[1]).sum(), ends + int(found[2].sum())
    assert found[4] == wanted[4] and "task/one" in found[4][0]
    assert paid > 1 and (ends or variant == "many")
    for env in (own, other):
        env.close()


def test_levels_of_a_folder_are_those_that_are_asked_for(folder: Path) -> None:
    for levels, wanted in ((None, range(64)), ("test", range(64, 128)), (3, range(3)), ("2", range(2))):
        env = make(folder, 48, levels=levels)
        env.reset(seed=1)
        found = set(env.task.level.tolist())
        assert found <= set(wanted) and len(found) > min(len(wanted), 20) - 1
        assert torch.equal(env.ram["seed"], (env.task.level & 255).int())
    with pytest.raises(ConfigError, match="levels '65' are unknown: give their number, 1 to 64, or test"):
        env_creator("gbxcule", game=folder, levels=65)


def test_a_variant_of_an_env_follows_from_the_seed_and_its_number(folder: Path) -> None:
    env = make(folder, 32, variant="many,original", max_steps=4)
    drawn = []
    for seed in (1, 2, 1):
        env.reset(seed=seed)
        first = env.task.variant.clone()
        for _ in range(10):
            env.step(torch.zeros(32, dtype=torch.int64))
        assert torch.equal(env.task.variant, first), "the same in each episode"
        assert torch.equal(env.ram["lives"] == 9, first == 0)
        drawn.append(first)
    assert torch.equal(drawn[0], drawn[2]) and not torch.equal(drawn[0], drawn[1])
    assert 4 < int(drawn[0].sum()) < 28
    part = make(folder, 8, variant="many,original", first_env=8)
    part.reset(seed=1)
    assert torch.equal(part.task.variant, drawn[0][8:16])


@pytest.mark.parametrize("name", ["gbxcule", "pyboy_puffer_single", "pyboy_puffer_vec"])
def test_statistics_tell_the_variants_apart(folder: Path, name: str) -> None:
    """Against sums by hand over the episodes of each variant; and a saved state continues them."""
    more: dict[str, Any] = {"backend": "serial", "num_workers": 2} if name.endswith("vec") else {}
    options: dict[str, Any] = {"variant": "many,original", "info_mode": "stats", "log_interval": 10**6, "max_steps": 9}
    n = 8
    env, own = make(folder, n, name, **options, **more), make(folder, n, **options)
    for each in (env, own):
        each.reset(seed=3)
    returns, totals = torch.zeros(n), {number: list[float]() for number in (0, 1)}
    variant = own.task.variant.clone()
    for number, row in enumerate(torch.from_numpy(random_actions(24, n, seed=2))):
        if number == 12 and name == "gbxcule":
            saved = env.state_dict()
            env = make(folder, n, name, **options)
            env.load_state_dict(saved)
        _, rewards, terminals, truncations, _ = env.step(row)
        returns += rewards
        for index in (terminals | truncations).nonzero().flatten().tolist():
            totals[int(variant[index])].append(float(returns[index]))
            returns[index] = 0
    infos = env.read_infos()
    for number, label in enumerate(("many", "original")):
        assert infos[f"task/{label}/return"] == pytest.approx(sum(totals[number]) / len(totals[number]), abs=1e-4)
    assert infos["task/one"] <= 1 and len(totals[0]) != len(totals[1])
    found = evaluate(random_policy(own, 1), own, 2 * n, seed=1)
    assert {"task/many/return", "task/original/return"} <= set(found)


def test_a_poke_at_the_start_is_overwritten_by_the_game(tmp_path: Path) -> None:
    text = game_text(
        '[variants.a]\npoke = [{address = "FFA0", value = [1, 2]}]\n[variants.b]\npoke = {address = 0xC200, value = 7}'
    )
    folder = write(tmp_path, text, rom=True)
    for variant, where, value in (("a", 0xFFA1, 2), ("b", 0xC200, 7), ("original", 0xC200, 0)):
        env = make(folder, 2, variant=variant)
        env.reset(seed=1)
        assert env.ram[where].tolist() == [value] * 2


def test_a_patch_changes_the_rom_in_memory_alone(tmp_path: Path) -> None:
    image = (ROMS / "orchard.gb").read_bytes()
    ips = b"PATCH" + b"\0\x01\x50\0\x02\x18\xfe" + b"\0\x02\0\0\0\0\x04\xaa" + b"EOF"
    states = '[start]\nstates = ["a.state"]\n'
    folder = write(
        tmp_path / "mine",
        game_text(
            states,
            '[variants.a]\npatch = [{offset = 0x150, bytes = "18FE"}]\n[variants.b]\npatch = {ips = "b.ips"}\n'
            '[variants.c]\npatch = {offset = 0x7FFFFF, bytes = "00"}\n'
            '[variants.d]\npatch = {offset = 0x134, bytes = "00"}',
        ),
        rom=True,
    )
    (folder / "b.ips").write_bytes(ips)
    play_to_start(folder / "orchard.gb", ["START"]).to_file(folder / "a.state")
    before = sorted((path.name, path.read_bytes()) for path in folder.iterdir())
    game = load_game(folder)
    for variant, wanted in (("a", image[:0x150] + b"\x18\xfe" + image[0x152:]), ("b", None)):
        cartridge = game.options(variant)["rom"]
        wanted = wanted or image[:0x150] + b"\x18\xfe" + image[0x152:0x200] + b"\xaa" * 4 + image[0x204:]
        assert cartridge.data == wanted and cartridge.sha256 == hashlib.sha256(wanted).hexdigest()
        for name in ("gbxcule", "pyboy_puffer_single"):
            env = make(folder, 1, name, variant=variant)
            env.reset()
            assert env.config["rom_sha256"] == cartridge.sha256
            env.step(torch.zeros(1, dtype=torch.int64))
            env.close()
    for variant, fault in (
        ("c", r"\[variants\.c\] patch\[0\]: offset 0x7fffff and its bytes end beyond the ROM: give at most 0xffff"),
        ("d", r"\[variants\.d\] patch\[0\]: makes a ROM that does not run: ROM: header checksum"),
    ):
        with pytest.raises((ConfigError, RomError), match=fault):
            game.options(variant)
    with pytest.raises(ConfigError, match="variant a changes the ROM, and all envs play one: give it alone"):
        env_creator("gbxcule", game=folder, variant="a,original")
    with pytest.raises(ConfigError, match=r"variant 'e' is not in .*: give one of a, b, c, d, original"):
        env_creator("gbxcule", game=folder, variant="e")
    (folder / "b.ips").write_bytes(ips[:-5])
    with pytest.raises(ConfigError, match=r"IPS patch .*b\.ips: is cut off"):
        game.options("b")
    (folder / "b.ips").write_bytes(ips)
    assert sorted((path.name, path.read_bytes()) for path in folder.iterdir()) == before


@pytest.mark.parametrize("kind", ["names", "text", "trace"])
def test_an_episode_begins_where_the_actions_lead(kind: str, tmp_path: Path) -> None:
    names = ["NOOP:30", "START", "RIGHT"]
    folder = write(
        tmp_path, game_text('[start]\nactions = ["NOOP:30", "START", "right"]\n[env]\nframes_per_step = 12'), rom=True
    )
    rom = folder / "orchard.gb"
    schedule = Schedule(12, 8)
    if kind == "text":
        (folder / "way.txt").write_text("NOOP:30 START\nRIGHT\n")
    if kind == "trace":
        from gbxcule_puffer.apps.play.session import PlaySession

        session = PlaySession(rom, tmp_path, frames_per_step=20, release_after_frames=5)
        for name in ("START", "NOOP", "A+LEFT"):
            session.press(name)
        session.trace().save(folder / "way.json")
        names, schedule = ["START", "NOOP", "A+LEFT"], Schedule(20, 5)
    if kind != "names":
        suffix = "txt" if kind == "text" else "json"
        write(folder, game_text(f'[start]\nactions = "way.{suffix}"\n[env]\nframes_per_step = 12'))
    env = make(folder, 2)
    env.reset(seed=1)
    wanted = play_to_start(rom, names, None, schedule)
    emulator = Emulator(rom, 1, screen="half")
    emulator.load(wanted)
    assert torch.equal(env.emulator.memory[1], emulator.memory[0])
    game = load_game(folder)
    assert game.options()["start_state"] == game.options()["start_state"]
    other = make(folder, 1, "pyboy_puffer_single", io="numpy")
    other.reset(seed=1)
    for action in range(8):
        np.testing.assert_array_equal(
            other.step(np.array([action]))[0][0], env.step(torch.full((2,), action))[0][0].numpy()
        )


@pytest.mark.parametrize("more", ["", '\nactions = ["A"]'])
def test_a_start_that_does_not_fit_names_its_field(more: str, tmp_path: Path) -> None:
    folder = write(tmp_path, game_text(f'[start]\nstates = "a.state"{more}'), rom=True)
    play_to_start("storeroom", ["START"]).to_file(folder / "a.state")
    field = "actions" if more else "states"
    with pytest.raises(StateError, match=rf"game\.toml: \[start\] {field}: state .*: was saved with another ROM"):
        make(folder, 1)


@pytest.mark.parametrize(
    ("tables", "fault"),
    [
        ('[numbers]\nx = "1:A000"', r"\[numbers\] x: .*bank"),
        ('[numbers]\nx = {address = "FFFE", size = 3}', r"\[numbers\] x: address"),
        ('[variants.a]\npoke = {address = "7:A000", value = 1}', r"\[variants\.a\] poke\[0\]: .*bank"),
        ('[levels]\nwrite = "FFFE"\nbytes = [1, 2, 3]\ntrain = [0, 1]', r"\[levels\] write: address"),
        ("[reward]\nx = 'executions(\"9:4000\")'", r"executions: hook at 9:4000: the ROM has banks 0 to 3"),
        ("[reward]\nx = 'executions(\"3FFF\")'", "executions: hook at 3FFF: the last two bytes of a bank"),
    ],
)
def test_an_address_that_the_cartridge_does_not_have(tables: str, fault: str, tmp_path: Path) -> None:
    folder = write(tmp_path, game_text(tables), rom=True)
    with pytest.raises(ConfigError, match=rf"game\.toml: {fault}"):
        make(folder, 1)


def test_a_model_that_is_given_goes_before_the_folders(tmp_path: Path) -> None:
    folder = write(tmp_path, game_text('[start]\nactions = ["START"]'), rom=True)
    env = make(folder, 1, model="cgb")
    env.reset()
    assert env.cartridge.model == env.emulator.model == "cgb"


def test_options_of_the_caller_go_before_the_folders(folder: Path) -> None:
    env = make(folder, 1, max_steps=7, frames_per_step=12)
    assert (env.max_steps, env.schedule.frames_per_step) == (7, 12)
    assert make(folder, 1).max_steps == 50


def test_each_env_of_a_creator_has_a_task_of_its_own(folder: Path) -> None:
    creator: Any = env_creator("gbxcule", game=folder)
    envs = [creator(2, io="torch"), copy.deepcopy(creator)(2, io="torch")]
    for env in envs:
        env.reset()
    assert envs[0].task is not envs[1].task


def test_a_saved_state_has_what_terms_remember(folder: Path) -> None:
    env, other = make(folder, 3), make(folder, 3)
    rows = torch.from_numpy(random_actions(40, 3, seed=1))
    for each in (env, other):
        each.reset(seed=2)
    for row in rows[:20]:
        env.step(row)
    other.load_state_dict(env.state_dict())
    for row in rows[20:]:
        for part, wanted in zip(other.step(row)[:4], env.step(row)[:4], strict=True):
            assert torch.equal(part, wanted)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"name": "gbxcule_orchard", "game": "orchard"}, "'gbxcule_orchard' is a game itself"),
        ({"name": "toy", "game": "orchard"}, "'toy' plays no Game Boy"),
        ({"name": "gbxcule", "variant": "easy"}, "variant and levels need a game: give game, too"),
        ({"name": "gbxcule", "levels": 5}, "variant and levels need a game: give game, too"),
        ({"name": "gbxcule", "game": "orchard", "variant": "one_life,one_life"}, "'one_life' is named twice"),
        ({"name": "gbxcule", "game": "chess"}, "game 'chess': there is no game.toml"),
        ({"name": "gbxcule", "game": 3}, "game 3 must be a path, or a name of"),
    ],
)
def test_creators_that_are_refused(arguments: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        env_creator(**arguments)
    assert fault in str(caught.value)


def test_levels_of_a_game_without_any(tmp_path: Path) -> None:
    folder = write(tmp_path, game_text(head=HEAD), rom=True)
    with pytest.raises(ConfigError, match=r"levels 'test': .*game\.toml has no \[levels\]: leave them out"):
        env_creator("gbxcule", game=folder, levels="test")
    assert load_cartridge(load_game(folder).options()["rom"]).title and os.listdir(tmp_path)


@pytest.mark.parametrize("name", ["gbxcule", "pyboy_puffer_single"])
def test_actions_are_blocked_while_a_term_holds(tmp_path: Path, name: str) -> None:
    """Steps to the right are blocked from column 5 on; the mask says so, also behind a saved state."""
    folder = write_events(tmp_path)
    text = (folder / "game.toml").read_text().replace("[reward]", '[blocked]\nRIGHT = "wXCoord >= 5"\n\n[reward]')
    (folder / "game.toml").write_text(text.replace('"NOOP,A"', '"NOOP,LEFT,RIGHT"').replace("= 12", "= 100"))
    env = make(folder, 1, name)
    env.reset(seed=1)
    found = []
    for step in range(12):
        before = env.action_mask.tolist()
        env.step(torch.tensor([2 if step % 2 else 0]))
        found.append((before[0][2], int(env.ram["wXCoord"][0])))
    assert [column for _, column in found] == [3, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5]
    assert [free for free, _ in found] == [True] * 4 + [False] * 8 and before[0][:2] == [True, True]
    if name == "gbxcule":
        other = make(folder, 1)
        other.load_state_dict(env.state_dict())
        assert other.action_mask.tolist() == [[True, True, False]]
    env.step(torch.tensor([1]))
    assert env.action_mask.tolist() == [[True, True, True]]
    (folder / "game.toml").write_text((folder / "game.toml").read_text().replace('RIGHT = "w', 'UP = "w'))
    with pytest.raises(ConfigError, match=r"\[blocked\] UP: blocked_actions has 'UP', which NOOP,LEFT,RIGHT lacks"):
        load_game(folder)
