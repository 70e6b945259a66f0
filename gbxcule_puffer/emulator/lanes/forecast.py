"""The path that a step is expected to take: that of most steps which began alike.

A step's path is known by a hash of how many instructions each of its frames had, and where PC and SP were at the
frame's end (Machine.path). Envs on the same path execute the same instructions at nearly the same time, though their
steps before may have been different: there are more of them than of those that begin alike (twins.py).
"""

# pyright: reportOperatorIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

import torch
import warp as wp

BEGINNINGS = wp.constant(1 << 18)  # that are remembered; others take their place
MOST_TRUST = wp.constant(4096)


@wp.struct
class Forecast:
    """An entry for each beginning. A beginning and a path are hashes, and may be any int32."""

    beginning: wp.array(dtype=wp.int32)
    path: wp.array(dtype=wp.int32)
    trust: wp.array(dtype=wp.int32)  # by how many steps more this path was right than wrong; 0 in an empty entry


def make(device: torch.device) -> tuple[Forecast, torch.Tensor]:
    """An empty Forecast, and the tensor that it lies in."""
    entries = torch.zeros((3, BEGINNINGS), dtype=torch.int32, device=device)
    forecast = Forecast()
    forecast.beginning, forecast.path, forecast.trust = (wp.from_torch(row) for row in entries)
    return forecast, entries


@wp.func
def place(beginning: int) -> int:
    """The entry of a beginning."""
    return int((wp.uint32(beginning) >> wp.uint32(11)) & wp.uint32(BEGINNINGS - 1))


@wp.func
def learn(forecast: Forecast, beginning: int, path: int):
    """A step that began so took this path. The majority prevails, by the vote of Boyer and Moore; on a GPU, which of
    many envs vote first differs from run to run."""
    index = place(beginning)
    if forecast.beginning[index] == beginning and forecast.path[index] == path:
        if forecast.trust[index] < MOST_TRUST:
            wp.atomic_add(forecast.trust, index, 1)
    elif wp.atomic_sub(forecast.trust, index, 1) <= 0:
        forecast.beginning[index] = beginning
        forecast.path[index] = path
        forecast.trust[index] = 1


@wp.func
def expected(forecast: Forecast, beginning: int) -> int:
    """The path of a step that begins so, or the beginning itself where no step has begun so."""
    index = place(beginning)
    known = forecast.trust[index] > 0 and forecast.beginning[index] == beginning
    return wp.where(known, forecast.path[index], beginning)
