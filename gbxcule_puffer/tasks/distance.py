"""Device code: the distance of a picture to a goal."""

# Kernels: Warp's integers are types of their own.
# pyright: reportOperatorIssue=false, reportArgumentType=false

import warp as wp

from gbxcule_puffer.emulator.hw import intrinsics


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
    """The sum of the differences of shades between an env's picture and the frame of its goal where it is least. An
    integer, the same in any order; all lanes get it."""
    least = int(0x7FFFFFFF)
    for frame in range(first[goal], first[goal + 1]):
        total = int(0)
        for index in range(lane, screen.shape[1], lanes):
            total += intrinsics.byte_differences(screen[env, index], frames[frame, index])
        least = wp.min(least, intrinsics.sum_of_lanes(total))
    return least


@wp.func
def channels(color: int) -> int:
    """Red, green and blue of a colour of 15 bits, a byte each."""
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
    """As goal_difference, of pictures in colour, two pixels a word: the sum over red, green and blue."""
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
    """The least difference from the frames of each env's goal, scaled; dim = (num_envs, lanes)."""
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
    """As kernel_distance, of pictures in colour."""
    env, lane = wp.tid()  # pyright: ignore
    least = color_difference(colors, frames, first, int(goal[env]), env, lane, lanes)
    if lane == 0:
        out[env] = float(least) * scale
