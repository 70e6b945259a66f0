"""What makes a start worth more, and a position likelier, by rules alone."""

from __future__ import annotations

import torch

from gbxcule_puffer.scan import kinds
from gbxcule_puffer.scan.find_start import TESTED, WORTH, _worth  # pyright: ignore[reportPrivateUsage]
from gbxcule_puffer.scan.pokes import Causes
from gbxcule_puffer.scan.statistics import NAMES


def test_a_start_in_which_only_a_moves_something_is_worth_it() -> None:
    """A sprite rises with A in the first Game Boy; A opens another picture in the second; nothing happens elsewhere."""
    sprites, picture = torch.full((3, 2, 82), 80, dtype=torch.uint8), torch.zeros((3, 100), dtype=torch.uint8)
    seen = [(sprites.clone(), picture.clone()) for _ in TESTED]
    lifted, drawn = seen[TESTED.index("A")]
    lifted[:2, :, 8] -= 12
    drawn[0, :5], drawn[1, :60] = 3, 3
    worth = _worth(seen)
    assert worth[0] >= WORTH["jumps"] and worth[1] < 1 and worth[2] == 0


def test_the_road_is_not_where_the_player_is() -> None:
    """Two bytes rise with DOWN and fall with UP, the first more often; sprites follow the second, the first goes on
    without buttons."""
    total = 2
    none, forks = torch.zeros(total), torch.zeros((len(NAMES), total))
    stats = {name: forks.clone() for name in ("higher", "lower", "reacts", "goes_on", "one_way", "back")}
    stats |= {name: forks.clone() for name in ("goes_higher", "goes_lower", "goes_further")}
    for name in ("UP", "DOWN"):
        part = torch.tensor([0.6, 0.5])
        stats["higher" if name == "DOWN" else "lower"][NAMES.index(name)] = part
        for each in ("reacts", "goes_on", "one_way"):
            stats[each][NAMES.index(name)] = part
    stats |= {"distinct": none + 100, "spread": none + 5, "lowest": none, "highest": none + 140}
    stats["noop_rate"] = torch.tensor([1.0, 0.0])
    one = none + 1
    causes = Causes(one.bool(), one, one, one, one, none, torch.tensor([0.0, 0.5]), none, torch.tensor([0.9, 0.0]))
    road, player = kinds.position(stats, causes, "y").tolist()
    assert player > 0.8 and road < 0.7 * player
