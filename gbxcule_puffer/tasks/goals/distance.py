"""The distance of pictures to a goal, on the device."""

# Kernels: Warp's integers are types of their own.
# pyright: reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import warp as wp

from gbxcule_puffer.emulator.hw import intrinsics
from gbxcule_puffer.emulator.launch import Launcher, words


@wp.func
def goal_difference(
    screen: wp.array2d(dtype=wp.int32),
    frames: wp.array2d(dtype=wp.int32),
    first: wp.array(dtype=wp.int32),
    goal: int,
    env: int,
    lane: int,
    lanes: int,
) -> int:
    """The sum of the differences of shades between an env's picture and the nearest frame of its goal. An integer, the
    same in any order; all lanes get it."""
    least = int(0x7FFFFFFF)
    for frame in range(first[goal], first[goal + 1]):
        total = int(0)
        for index in range(lane, screen.shape[1], lanes):
            total += intrinsics.byte_differences(screen[env, index], frames[frame, index])
        least = wp.min(least, intrinsics.sum_of_lanes(total))
    return least


@wp.func
def channels(color: int) -> int:
    """Red, green and blue of a colour of 15 bits, one byte each."""
    return (color & 0x1F) | ((color & 0x3E0) << 3) | ((color & 0x7C00) << 6)


@wp.func
def color_difference(
    colors: wp.array2d(dtype=wp.int32),
    frames: wp.array2d(dtype=wp.int32),
    first: wp.array(dtype=wp.int32),
    goal: int,
    env: int,
    lane: int,
    lanes: int,
) -> int:
    """As goal_difference, for pictures in colour, two pixels per word: the sum over red, green and blue."""
    least = int(0x7FFFFFFF)
    for frame in range(first[goal], first[goal + 1]):
        total = int(0)
        for index in range(lane, colors.shape[1], lanes):
            ours = colors[env, index]
            theirs = frames[frame, index]
            total += intrinsics.byte_differences(channels(ours), channels(theirs))
            total += intrinsics.byte_differences(channels(ours >> 16), channels(theirs >> 16))
        least = wp.min(least, intrinsics.sum_of_lanes(total))
    return least


@wp.kernel(enable_backward=False)
def kernel_distance(
    screen: wp.array2d(dtype=wp.int32),
    frames: wp.array2d(dtype=wp.int32),
    first: wp.array(dtype=wp.int32),
    goal: wp.array(dtype=wp.int64),
    lanes: int,
    scale: float,
    out: wp.array(dtype=wp.float32),
):
    """The smallest difference from the frames of each env's goal, scaled; dim = (num_envs, lanes)."""
    env, lane = wp.tid()  # pyright: ignore
    least = goal_difference(screen, frames, first, int(goal[env]), env, lane, lanes)
    if lane == 0:
        out[env] = float(least) * scale


@wp.kernel(enable_backward=False)
def kernel_color_distance(
    colors: wp.array2d(dtype=wp.int32),
    frames: wp.array2d(dtype=wp.int32),
    first: wp.array(dtype=wp.int32),
    goal: wp.array(dtype=wp.int64),
    lanes: int,
    scale: float,
    out: wp.array(dtype=wp.float32),
):
    """As kernel_distance, for pictures in colour."""
    env, lane = wp.tid()  # pyright: ignore
    least = color_difference(colors, frames, first, int(goal[env]), env, lane, lanes)
    if lane == 0:
        out[env] = float(least) * scale


class GoalDistance:
    """Mean absolute difference of shades / 3, or of red, green and blue / 31, in [0, 1]: the minimum over a goal's
    frames. Allocates only here.

    `frames` are the pictures of one goal, or a list with those of several goals, each [frame, row, column]; every env
    has its own goal. `frames` and `first` (goals + 1,) int32, the index of each goal's first frame, are tensors;
    `scale` is the factor from a sum to a distance; in_color: the frames are colours, uint16.
    """

    def __init__(self, frames: np.ndarray | Sequence[np.ndarray], num_envs: int, device: str | torch.device) -> None:
        goals = [frames] if isinstance(frames, np.ndarray) else list(frames)
        self._launch = Launcher(torch.device(device))
        self.frames = torch.from_numpy(np.concatenate(goals)).to(device)
        self.first = torch.from_numpy(np.cumsum([0, *map(len, goals)], dtype=np.int32)).to(device)
        self.in_color = goals[0].dtype == np.uint16
        self.scale = 1.0 / ((3 * 31 if self.in_color else 3) * goals[0][0].size)
        self._goal_0 = torch.zeros(num_envs, dtype=torch.int64, device=device)

    def measure(self, screen: torch.Tensor, out: torch.Tensor, goal: torch.Tensor | None = None) -> None:
        """Distance of each env's picture in `screen` (num_envs, rows, columns), shades or colours as the frames, into
        `out` (num_envs,) float32.

        goal (num_envs,) int64: the goal of each env, the first if None. The sums are integers, the same in any order,
        so CPU and GPU give the same bits.
        """
        goal, lanes = self._goal_0 if goal is None else goal, self._launch.lanes
        inputs = words(screen), words(self.frames), self.first, goal, lanes, self.scale, out
        kernel = kernel_color_distance if self.in_color else kernel_distance
        self._launch(kernel, (len(out), lanes), *inputs)


def distances_to(frames: np.ndarray, pictures: np.ndarray, device: str) -> np.ndarray:
    """Distance of each of `pictures` [picture, row, column] to a goal's `frames`, float32."""
    out = torch.empty(len(pictures), device=device)
    GoalDistance(frames, len(pictures), device).measure(torch.from_numpy(pictures).to(device), out)
    return out.cpu().numpy()
