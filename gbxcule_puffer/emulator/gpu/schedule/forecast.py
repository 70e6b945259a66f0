"""A forecast of the path of a step: the path of most steps with the same beginning.

A path is a hash of the number of instructions of each frame, and of PC and SP at its end (Machine.path). Envs on the
same path execute the same instructions at nearly the same time, also if their previous steps differed. So sets of envs
by path are larger than sets by beginning (twins.py).
"""

# pyright: reportOperatorIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

import torch
import warp as wp

BEGINNINGS = wp.constant(1 << 18)  # entries; a beginning replaces another whose trust has fallen to 0
MOST_TRUST = wp.constant(4096)


@wp.struct
class Forecast:
    """A hash table from beginning to path. Both are hashes, any int32."""

    beginning: wp.array(dtype=wp.int32)
    path: wp.array(dtype=wp.int32)
    trust: wp.array(dtype=wp.int32)  # steps with this path minus those with another one; 0 in an empty entry


def make(device: torch.device) -> tuple[Forecast, torch.Tensor]:
    """An empty Forecast, and its tensor (3, BEGINNINGS)."""
    entries = torch.zeros((3, BEGINNINGS), dtype=torch.int32, device=device)
    forecast = Forecast()
    forecast.beginning, forecast.path, forecast.trust = (wp.from_torch(row) for row in entries)
    return forecast, entries


@wp.func
def entry_of(beginning: int) -> int:
    """The index of a beginning's entry."""
    return int((wp.uint32(beginning) >> wp.uint32(11)) & wp.uint32(BEGINNINGS - 1))


@wp.func
def learn(forecast: Forecast, beginning: int, path: int):
    """Record that a step with this beginning took this path. The entry keeps the majority (by Boyer and Moore's vote);
    on a GPU the order of votes differs from run to run."""
    index = entry_of(beginning)
    if forecast.beginning[index] == beginning and forecast.path[index] == path:
        if forecast.trust[index] < MOST_TRUST:
            wp.atomic_add(forecast.trust, index, 1)
    elif wp.atomic_sub(forecast.trust, index, 1) <= 0:
        forecast.beginning[index] = beginning
        forecast.path[index] = path
        forecast.trust[index] = 1


@wp.func
def expected(forecast: Forecast, beginning: int) -> int:
    """The path expected after a beginning, or the beginning itself if no path is known."""
    index = entry_of(beginning)
    known = forecast.trust[index] > 0 and forecast.beginning[index] == beginning
    return wp.where(known, forecast.path[index], beginning)
