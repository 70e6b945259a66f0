"""The games of roms/owned on stand-ins of ours: each reward to the number, on our Game Boys and on PyBoy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer import env_creator
from gbxcule_puffer.cli import main
from gbxcule_puffer.errors import ConfigError, RomError
from gbxcule_puffer.games import load_game
from gbxcule_puffer.layout import OWNED
from tests.games.standin import CRYSTAL, RED, Entry, build

GAMES = sorted(path.name for path in OWNED.iterdir())
FLAG = "wEventFlags+"
STARTER: list[Entry] = [
    ("wPartyCount", 1), ("wPartyMon1Level", 6), ("wPartyMon1HP", 1, 20), ("wPartyMon1MaxHP", 1, 20),
]  # fmt: skip
WOUND: list[Entry] = [("wPartyMon1HP", 1, 5)]
HEALED: list[Entry] = ["heal", ("wPartyMon1HP", 1, 20)]
FAINT: list[Entry] = [("wPartyMon1HP", 1, 0)]
# What A plays in the stand-in of Red: the starter; a parcel; the museum's ticket, which does not count; money, a battle
# and Brock; a second fighter; the champion.
ON_A: list[list[Entry]] = [
    [*STARTER, f"{FLAG}0x22", "wPokedexSeen+0", "wPokedexOwned+0"],
    [f"{FLAG}0x39", ("wNumBagItems", 1), ("wBagItems", 0x46), ("wBagItems", 1, 1)],
    [f"{FLAG}0x68"],
    [("wPlayerMoney", 0, 0x12), ("wPlayerMoney", 1, 0x34), ("wPlayerMoney", 2, 0x56), ("wEnemyMon2Level", 14)],
    [f"{FLAG}0x77", "wObtainedBadges+0", ("wPartyMon1Level", 13), "wPokedexSeen+74"],
    [("wPartyCount", 2), ("wPartyMon2Level", 10), ("wPartyMon2HP", 1, 10), ("wPartyMon2MaxHP", 1, 20)],
    [f"{FLAG}0x901"],
]
ON_B = [WOUND, HEALED, WOUND, FAINT, HEALED]
ON_A2: list[list[Entry]] = [
    [*STARTER, f"{FLAG}0x1A", "wPokedexSeen+151", "wPokedexCaught+151"],
    [f"{FLAG}0x1E", f"{FLAG}0x1F", ("wMoney", 1, 0x0B), ("wMoney", 2, 0xB8)],
    [f"{FLAG}0x4BD", "wJohtoBadges+0", ("wPartyMon1Level", 14)],
    [("wKantoBadges", 0xFF)],
]
Step = tuple[str, float]

# Button and reward of each step, by hand from what the games' pages say.
WHIDDY: list[Step] = [
    ("RIGHT", 0.0125), ("LEFT", 0), ("DOWN", 0.0125), ("A", 2), ("START", 0), ("B", 0), ("B", 5 * 0.75**2), ("A", 2),
    ("A", 0), ("A", 0), ("A", 2 + 5), ("B", 0), ("B", 0), ("B", 0), ("A", 0), ("UP", 0), ("LEFT", 0.0125), ("A", 2),
]  # fmt: skip
PUFFER: list[Step] = [
    ("RIGHT", 0.029), ("A", 0.727 + 1.1 * 6 + 2.19 + 3.08), ("B", 0), ("B", 0.75), ("B", 0), ("START", 0.0108),
    ("START", 0), ("A", 0.727 + 7.13 + 3.35), ("A", 0), ("A", 0), ("A", 0.727 + 7.13 + 1.94 + 1.1 * 7 + 2.19),
    ("A", 1.1 * (2 + 8 / 4)), ("A", 0.727 + 7.13),
]  # fmt: skip
SECOND: list[Step] = [
    ("DOWN", 0.0125), ("A", 2), ("A", 4), ("B", 0), ("B", 5 * 0.75**2), ("A", 2 + 5), ("RIGHT", 0.0125), ("A", 40),
]  # fmt: skip
PLAYED = {
    "pokemon-red": (RED, ON_A, ON_B, WHIDDY),
    "pokemon-yellow": (RED, ON_A, ON_B, WHIDDY),
    "pokemon-red-puffer": (RED, ON_A, ON_B, PUFFER),
    "pokemon-crystal": (CRYSTAL, ON_A2, ON_B, SECOND),
    "pokemon-gold": (CRYSTAL, ON_A2, ON_B, SECOND),
}
LAST = {
    "pokemon-red": {"badges": 1, "events": 4, "levels": 23, "maps": 0, "money": 123456, "opponent": 14}
    | {"seen": 2, "caught": 1}
    | {"got_starter": 1, "got_parcel": 1, "beat_brock": 1, "beat_champion": 1, "beat_misty": 0},
    "pokemon-red-puffer": {"required": 3, "items": 1, "badges": 1, "levels": 23},
    "pokemon-crystal": {"badges": 9, "events": 4, "money": 3000, "maps": 0, "beat_falkner": 1, "beat_blue": 0},
}  # fmt: skip


def make(tmp_path: Path, game: str, name: str = "gbxcule", num_envs: int = 1, **options: Any) -> Any:
    layout, on_a, on_b, _ = PLAYED[game]
    rom = build(tmp_path, "stand-in", layout, on_a, on_b)
    given = {"rom": str(rom), "io": "numpy", "info_mode": "stats", "log_interval": 1, "visited_obs": 0, **options}
    return env_creator(name, game=game, variant=given.pop("variant", None))(num_envs, **given)


def paid(env: Any, steps: list[Step]) -> tuple[list[float], list[bool], dict[str, float]]:
    """Rewards, ends and the last infos of these buttons."""
    env.reset(seed=1)
    actions = env.codec.actions
    rewards, ends, infos = [], [], {}
    for button, _ in steps:
        _, reward, terminals, _, found = env.step(np.full(env.num_agents, actions.index(button)))
        rewards.append(float(reward[0]))
        ends.append(bool(terminals[0]))
        infos = found[0] if found else infos
    return rewards, ends, infos


@pytest.mark.parametrize("name", ["gbxcule", "pyboy_puffer_single"])
@pytest.mark.parametrize("game", GAMES)
def test_each_reward_is_paid_to_the_number(tmp_path: Path, game: str, name: str) -> None:
    steps = PLAYED[game][3]
    env = make(tmp_path, game, name)
    rewards, ends, infos = paid(env, steps)
    env.close()
    np.testing.assert_allclose(rewards, [reward for _, reward in steps], rtol=1e-6, atol=1e-7)
    assert ends == [False] * (len(steps) - 1) + [True], "the last event is the game's end"
    wanted = LAST.get(game, {})
    assert {key: infos[f"task/{key}"] for key in wanted} == wanted


@pytest.mark.gpu
@pytest.mark.parametrize("game", GAMES)
def test_a_gpu_pays_the_same(tmp_path: Path, game: str) -> None:
    own, other = make(tmp_path, game, num_envs=3), make(tmp_path, game, num_envs=3, device="cuda")
    assert paid(own, PLAYED[game][3]) == paid(other, PLAYED[game][3])


def test_helpers_are_off_unless_they_are_named(tmp_path: Path) -> None:
    env = make(tmp_path, "pokemon-red", io="torch", variant="infinite_money+no_wild_battles")
    env.reset(seed=1)
    assert env.ram.number("wPlayerMoney", 3, "big").tolist() == [0x999999]
    assert load_game("pokemon-red").chosen(None)[0].pokes == ()
    assert [each.name for each in load_game("pokemon-red").chosen("infinite_money, no_wild_battles")] == [
        "infinite_money", "no_wild_battles",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="variant 'infinite_money\\+infinite_money' is named twice"):
        load_game("pokemon-red").chosen("infinite_money+infinite_money")


def test_check_names_each_thing_that_is_missing(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("GBXCULE_ROMS", raising=False)
    assert main(["game", "check", "pokemon-red"]) == 1
    rom_line, symbols_line = capsys.readouterr().out.splitlines()
    assert rom_line.startswith("missing  ROM ") and "--rom" in rom_line and "pret/pokered" in rom_line
    assert symbols_line.startswith("missing  symbols ") and "--symbols" in symbols_line
    rom = build(tmp_path, "red", RED, ON_A, ON_B)
    symbols = rom.with_suffix(".sym")
    text = symbols.read_text()
    symbols.write_text(
        "".join(line for line in text.splitlines(True) if "wEventFlags" not in line and "wCurMap" not in line)
    )
    assert main(["game", "check", "pokemon-red", "--rom", str(rom), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(each["subject"], each["text"].split("'")[1]) for each in found] == [
        ("symbol", "wEventFlags"), ("symbol", "wCurMap"),
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"symbol 'wEventFlags' is not in .*; symbol 'wCurMap' is not"):
        load_game("pokemon-red").options(rom=rom)
    symbols.rename(tmp_path / "other.sym").write_text(text)
    words = ["--rom", str(rom), "--steps", "40", "--num-envs", "4", "--symbols", str(tmp_path / "other.sym")]
    assert main(["game", "check", "pokemon-red", *words]) == 0
    with pytest.raises(RomError, match=r"the ROM of Pokémon Crystal is missing .* or one of 1 others"):
        load_game("pokemon-crystal").options()


def test_a_start_that_is_not_reached_is_one_line(tmp_path: Path) -> None:
    rom = build(tmp_path, "red", RED, ON_A, ON_B)
    folder = tmp_path / "mine"
    folder.mkdir()
    text = (OWNED / "pokemon-red" / "game.toml").read_text()
    text = text.replace('repeat = ["START", "NOOP", "A", "NOOP"]', 'repeat = ["B"]\nmost_steps = 30')
    (folder / "game.toml").write_text(text.replace('"NOOP:600"', '"NOOP:6"'))
    with pytest.raises(ConfigError, match=r"\[start\] actions: until .* does not hold after 30 steps of B: play"):
        load_game(folder).options(rom=rom)


def test_the_start_is_where_the_player_may_walk(tmp_path: Path) -> None:
    env = make(tmp_path, "pokemon-red", io="torch", num_envs=2)
    env.reset(seed=1)
    assert torch.equal(env.ram["wXCoord"], torch.full((2,), 3, dtype=torch.int32))
    assert env.position == (0xD35E, 0xD361, 0xD362)
