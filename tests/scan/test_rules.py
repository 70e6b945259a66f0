"""What makes a start worth more, and a position likelier, by rules alone."""

from __future__ import annotations

import pytest
import torch

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.scan import kinds
from gbxcule_puffer.scan.choose import sure_of
from gbxcule_puffer.scan.evidence import evidence_of
from gbxcule_puffer.scan.find_start import (
    MOST_WORK,
    SETTLED_STEPS,
    TESTED,
    WORTH,
    _worth,  # pyright: ignore[reportPrivateUsage]
    earliest,
    is_enough,
    is_tested,
)
from gbxcule_puffer.scan.pokes import Causes
from gbxcule_puffer.scan.recording import Recording
from gbxcule_puffer.scan.result import KINDS
from gbxcule_puffer.scan.statistics import NAMES, like_sprites


def test_a_start_in_which_only_a_moves_something_is_worth_it() -> None:
    """A sprite rises with A in the first Game Boy; A opens another picture in the second; nothing happens elsewhere."""
    sprites, picture = torch.full((3, 2, 82), 80, dtype=torch.uint8), torch.zeros((3, 100), dtype=torch.uint8)
    seen = [(sprites.clone(), picture.clone()) for _ in TESTED]
    lifted, drawn = seen[TESTED.index("A")]
    lifted[:2, :, 8] -= 12
    drawn[0, :5], drawn[1, :60] = 3, 3
    worth = _worth(seen)
    assert worth[0] >= WORTH["jumps"] and worth[1] < 1 and worth[2] == 0


Pair = tuple[float, float]


@pytest.mark.parametrize(
    ("worth", "ago", "work", "enough"),
    [(11, 18, 0, True), (11, 17, 0, False), (8, 60, 1e6, False), (8, 18, MOST_WORK, True), (1, 60, MOST_WORK, False)],
)
def test_a_walk_that_takes_much_work_ends_with_what_moves(worth: float, ago: int, work: float, enough: bool) -> None:
    assert SETTLED_STEPS == 18 and is_enough(worth, ago, work) is enough


@pytest.mark.parametrize(
    ("tests", "steps"),
    [
        ([(3, 0.0, 0), (6, 2.0, 1), (9, 9.0, 2), (12, 4.0, 2), (15, 11.0, 2)], 9),  # has played on since
        ([(3, 10.0, 0), (6, 9.0, 1), (9, 10.0, 2)], 9),  # titles, too, have things to move
        ([(3, 6.0, 2), (6, 10.0, 2)], 6),  # a cursor
        ([(3, 2.0, 1)], 3),
    ],
)
def test_an_earlier_state_of_the_same_scene_is_the_start(tests: list[tuple[int, float, int]], steps: int) -> None:
    assert earliest(tests) == steps


def test_a_walk_is_tested_less_often_later() -> None:
    """A test takes longer than the steps between two of them."""
    tested = [steps for steps in range(1, 91) if is_tested(steps)]
    assert tested[:11] == [3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 36] and len(tested) == 20


def two_ways_up(forks: Pair, moves_alone: Pair = (0, 0), most: int = 140) -> dict[str, torch.Tensor]:
    """Statistics of two bytes of 0 to `most` that rise with DOWN and fall with UP in these parts of the forks, and
    change by themselves at these rates."""
    none, of_branches = torch.zeros(2), torch.zeros((len(NAMES), 2))
    stats = {name: of_branches.clone() for name in ("higher", "lower", "reacts", "goes_on", "one_way", "back")}
    stats |= {name: of_branches.clone() for name in ("goes_higher", "goes_lower", "goes_further")}
    for name in ("UP", "DOWN"):
        for each in ("higher" if name == "DOWN" else "lower", "reacts", "goes_on", "one_way"):
            stats[each][NAMES.index(name)] = torch.tensor(forks)
    stats |= {"distinct": none + 100, "spread": none + 5, "lowest": none, "highest": none + most, "same_step": none}
    return stats | {"noop_rate": torch.tensor(moves_alone), "like_x": none, "like_y": none}


def causes(sprites_y: Pair, camera_y: Pair = (0, 0), sprites_x: Pair = (0, 0)) -> Causes:
    """Effects of changing two bytes, which all stay and show."""
    one, none = torch.ones(2), torch.zeros(2)
    return Causes(
        one.bool(), one, one, one, one, torch.tensor(sprites_x), torch.tensor(sprites_y), none, torch.tensor(camera_y)
    )


def test_the_road_is_not_where_the_player_is() -> None:
    """The first byte moves the camera and goes on without buttons; sprites follow the second one."""
    road, player = kinds.position(two_ways_up((0.6, 0.5), (1, 0)), causes((0, 0.5), (0.9, 0)), "y").tolist()
    assert player > 0.8 and road < 0.7 * player


def test_a_speed_is_not_where_the_player_is() -> None:
    """No sprite moves with the first byte, which takes all values and follows the buttons better. Alone, or with few
    values, it may be a position: in tiles, for example."""
    one, both = (0.6, 0), (0.6, 0.2)
    speed, player = kinds.position(two_ways_up(both, most=255), causes((0, 0.5)), "y").tolist()
    alone, _ = kinds.position(two_ways_up(one, most=255), causes((0, 0)), "y").tolist()
    tiles, _ = kinds.position(two_ways_up(both, most=20), causes((0, 0.5)), "y").tolist()
    assert player > 0.8 and speed < 0.8 * player and alone > 0.7 and tiles > 0.7


def test_what_moves_all_sprites_is_not_where_the_player_is() -> None:
    """All sprites move with the first byte, along both axes: a speed."""
    everywhere = causes((0.6, 0.5), sprites_x=(0.5, 0))
    speed, player = kinds.position(two_ways_up((0.6, 0.2)), everywhere, "y").tolist()
    assert player > 0.8 and speed < 0.9 * player


def test_what_goes_on_and_cannot_turn_back_is_where_the_player_is() -> None:
    """A snake mostly goes down, also without buttons: UP does nothing then, and LEFT and RIGHT end it. The second byte
    goes the same way whatever the buttons, as a ball."""
    stats = two_ways_up((0.2, 0), (0.3, 0.3)) | {"like_y": torch.tensor((0.95, 0.95))}
    ways = {"goes_higher": (0.6, {"DOWN": 0.8, "LEFT": 0.2, "RIGHT": 0.2}), "goes_lower": (0.2, {"UP": 0.4})}
    for name, (share, others) in ways.items():
        stats[name][:] = share
        for button, other in others.items():
            stats[name][NAMES.index(button), 0] = other
    stats["goes_further"] = stats["one_way"] = stats["goes_higher"] + stats["goes_lower"]
    for name in ("LEFT", "RIGHT"):
        stats["reacts"][NAMES.index(name), 0] = 0.6
    snake, ball = kinds.position(stats, causes((0.9, 0.9)), "y").tolist()
    assert snake > 0.7 and ball < 0.1


def test_evidence_leaves_out_what_never_happened() -> None:
    """Of a height that only A changes it does not say that it rises with DOWN in 0% of the forks."""
    envs = {"envs": torch.ones(2)}
    only_a = two_ways_up((0, 0)) | envs
    only_a["reacts"][NAMES.index("A")] = 0.5
    found = causes((1, 1))
    said = evidence_of("y", 0, only_a, found, 64)
    assert said.startswith("changes with A in 50% of the forks, sprites follow it") and " 0%" not in said
    assert evidence_of("y", 0, two_ways_up((0.75, 0)) | envs, found, 64).startswith(
        "rises with DOWN in 75% of the forks, falls with UP in 75%, sprites follow it"
    )


def test_what_is_shot_is_not_what_jumps() -> None:
    """Both are lower with A in a quarter of the forks; the first goes down in equal steps until then."""
    stats, lifted = two_ways_up((0, 0)), NAMES.index("A")
    stats["reacts"][lifted], stats["lower"][lifted] = 0.25, 0.25
    stats["same_step"], stats["like_y"] = torch.tensor([0.95, 0.5]), torch.ones(2)
    shot, jumper = kinds.position(stats, causes((1, 1)), "y").tolist()
    assert jumper > 0.5 and shot < 0.3 * jumper


def test_what_changes_as_a_sprite_moves_is_what_jumps() -> None:
    """No changed byte is seen, as the game is over wherever one was changed; the first one moves with a sprite."""
    stats, lifted = two_ways_up((0, 0)), NAMES.index("A")
    stats["reacts"][lifted], stats["lower"][lifted], stats["higher"][lifted] = 0.5, 0.28, 0.22
    stats["like_y"] = torch.tensor([1.0, 0.3])
    jumper, other = kinds.position(stats, causes((0, 0)), "y").tolist()
    assert jumper > 0.4 and other < 0.1


def test_where_the_player_is_headed_is_not_where_the_player_is() -> None:
    """Sprites move along both axes when the first byte is changed."""
    heading, player = kinds.position(two_ways_up((0.6, 0.6), most=15), causes((0.4, 0.9), sprites_x=(0.4, 0)), "y")
    assert player > 0.8 and heading < 0.7 * player


def test_what_only_a_drives_is_found_by_its_camera() -> None:
    """A and B move both bytes to either side, as they are headed. The camera follows the first one, a sprite the other:
    what A shoots."""
    stats = two_ways_up((0, 0), most=255)
    for name in ("A", "B"):
        for each in ("reacts", "goes_on"):
            stats[each][NAMES.index(name)] = 0.7
        for each in ("higher", "lower"):
            stats[each][NAMES.index(name)] = 0.35
    driven, shot = kinds.position(stats, causes((0, 1), camera_y=(1, 0)), "y").tolist()
    assert driven > 0.5 and shot < 0.2


def lives_stats(**changed: Pair) -> dict[str, torch.Tensor]:
    """Statistics of two bytes that fall by one, from 3 to 0, every eighth look, whatever the buttons, but for what is
    `changed`."""
    none = torch.zeros(2)
    stats = {"rise_count": none, "fall_count": none + 100, "rises_to": none, "rises_to_one": none, "rate": none + 0.006}
    stats |= {"falls_by_one": none + 1, "lowest": none, "highest": none + 3, "start": none + 3, "distinct": none + 4}
    stats |= {"gap": none + 8, "gap_spread": none, "regardless": none + 1, "shown": none, "shown_read": none}
    stats |= {"envs": none + 1, "rules": none, "reacts": torch.ones((len(NAMES), 2)) * 0.01}
    stats |= {name: torch.zeros((len(NAMES), 2)) for name in ("goes_higher", "goes_lower")}
    return stats | {name: torch.tensor(values) for name, values in changed.items()}


def test_lives_that_fall_at_a_constant_rate_are_those_that_end_the_game() -> None:
    """Where the first byte is 0, directions do nothing any more."""
    stats = lives_stats()
    ends, goes_on = kinds.lives({**stats, "rules": torch.tensor([1.0, 0])}, causes((0, 0))).tolist()
    assert ends > 0.8 and goes_on < 0.1
    in_all, in_some = kinds.lives(lives_stats(envs=(1, 0.5)), causes((0, 0))).tolist()
    assert in_some > 0.8 and in_all < 0.3, "a time falls in all Game Boys"


def test_what_start_alone_changes_is_not_lives() -> None:
    """START alone tells both bytes from those without buttons: it changes the second one, and keeps the first one,
    which falls without it."""
    stats = lives_stats(envs=(0.5, 0.5), regardless=(0, 0))
    stats["reacts"][:] = 0
    stats["reacts"][NAMES.index("START")] = 0.1
    stats["goes_lower"][:, 0] = 0.1
    stats["goes_lower"][NAMES.index("START")] = torch.tensor((0.0, 0.1))
    lives, paused = kinds.lives(stats, causes((0, 0))).tolist()
    assert lives > 0.8 and paused < 0.3


def test_what_moves_the_camera_is_not_lives() -> None:
    stats = lives_stats(envs=(0.5, 0.5))
    speed, lives = kinds.lives(stats, causes((0, 0), camera_y=(1, 0))).tolist()
    assert lives > 0.8 and speed < 0.3


def test_what_moves_sprites_along_one_axis_is_not_lives() -> None:
    """A ball's speed moves its sprite; hearts that are sprites leave the picture on both axes."""
    stats = lives_stats(envs=(0.5, 0.5))
    speed, lives = kinds.lives(stats, causes((0.3, 0.5), sprites_x=(1, 0.5))).tolist()
    assert lives > 0.8 and speed < 0.35


def score_stats(**changed: Pair) -> dict[str, torch.Tensor]:
    """Statistics of two bytes of 0 to 8 that rise now and then, and fall to 0, but for what is `changed`."""
    none, of_branches = torch.zeros(2), torch.zeros((len(NAMES), 2))
    stats = {"rise_count": none + 500, "fall_count": none + 450, "falls_to_start": none + 1, "carries": none}
    stats |= {"distinct": none + 9, "lowest": none, "rate": none + 0.007, "noop_rate": none + 0.003, "regardless": none}
    stats |= {"gap": none + 8, "gap_spread": none + 0.7, "shown": none, "shown_read": none}
    stats |= {name: of_branches for name in ("goes_higher", "reacts")}
    return stats | {name: torch.tensor(values) for name, values in changed.items()}


def test_a_score_of_short_games_may_fall_elsewhere_now_and_then() -> None:
    """Among thousands of Game Boys some fall is not to 0; where a tenth is not, the byte is not a score."""
    some, many = kinds.score(score_stats(falls_to_start=(0.995, 0.9)), causes((0, 0))).tolist()
    assert some > 0.4 and many < 0.5 * some


def test_a_number_on_the_screen_is_not_a_menu() -> None:
    """Both bytes say whether directions do something, as a game stands still after each point."""
    stats = two_ways_up((0, 0)) | score_stats(shown=(1, 0), fall_count=(40, 40))
    names = (
        "rises_to_one rises_to falls_by_one start step_spread new_spread agree envs scene scene_rate sets_bits rises"
    )
    stats = {name: torch.zeros(2) for name in names.split()} | stats
    stats |= {"rules": torch.ones(2), "highest": torch.tensor([8.0, 8.0]), "rate": torch.tensor([0.007, 0.007])}
    found = kinds.judge(stats, causes((0, 0)), {axis: torch.zeros(2) for axis in kinds.AXES})
    shown, other = found["score"].tolist()
    assert float(found["menu"][0]) > 0.5 and shown > 0.9 and other < 0.6


def test_a_byte_that_moves_a_sprite_is_like_it() -> None:
    """Of three bytes, the first is added to a sprite's x, but for a leap to another one; the second to its y and moves
    at other times; the third is the sprite's x."""
    steps = torch.randint(-2, 3, (40, 2, 2), generator=torch.Generator().manual_seed(0))
    x, y = (steps[..., axis].cumsum(0) + 80 for axis in (0, 1))
    values = torch.stack([x + 7, y, x], 2).to(torch.uint8)
    values[20:, :, 2] += 60
    recording = Recording.__new__(Recording)
    recording.values, recording.valid = values, torch.ones((40, 2), dtype=torch.bool)
    recording.addresses = torch.tensor([0xC000, 0xC001, hw.OAM + 1])
    found = like_sprites(recording)
    assert found["like_x"][0] > 0.95 and found["like_x"][1] < 0.5 and not found["like_y"].any()


@pytest.mark.parametrize("kind", KINDS)
def test_more_confidence_is_surer(kind: str) -> None:
    sure = [sure_of(kind, step / 100) for step in range(101)]
    assert sure == sorted(sure) and sure[0] == 0 and 0.9 < sure[-1] <= 1
