"""Envs whose next steps are expected to be alike: kinds and sets of twins.

The length of a step depends on the state of the game (a menu, a screen full of enemies) and on the buttons. Steps with
the same buttons, stack pointer, program counter and magnitude of the previous step's length have the same *kind*, whose
mean time is learned. *Twins* are envs that are expected to take the same path through the step (forecast.py); mostly
they execute the same instructions to its end. How often they do not is learned per kind.
"""

# pyright: reportOperatorIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

import warp as wp

from gbxcule_puffer.emulator.gpu.schedule import forecast
from gbxcule_puffer.emulator.gpu.schedule.forecast import Forecast
from gbxcule_puffer.emulator.state import INDEX

TEACHERS = wp.constant(16_384)  # the most envs that contribute to the means
BINS = wp.constant(1024)
WIDTH = wp.constant(256)  # instructions of a bin
KINDS = wp.constant(1 << 14)
TWINS = wp.constant(1 << 17)  # sets of twins; paths with the same index share a set
MANY = wp.constant(4096)  # samples of a kind; beyond this, counts are halved
SEPARATE = wp.constant(0.6)  # share of an env's time in which its warp serves no other env
ASTRAY = wp.constant(0.15)  # the same for an expected twin that takes another path in the end
INSTRUCTIONS = wp.constant(INDEX["instructions"])
STACK_POINTER = wp.constant(INDEX["sp"])
PROGRAM_COUNTER = wp.constant(INDEX["pc"])


@wp.struct
class Steps:
    """The last step of each env and the expectation for its next one; arrays of shape (num_envs,)."""

    state: wp.array2d(dtype=wp.int32)  # (fields, num_envs), as in Machine
    skipped: wp.array(dtype=wp.int32)  # as in Machine, as the next two
    took: wp.array(dtype=wp.int32)
    path: wp.array(dtype=wp.int32)
    kind: wp.array(dtype=wp.int32)  # -1 before the first step
    beginning: wp.array(dtype=wp.int32)  # a hash
    set: wp.array(dtype=wp.int32)  # of twins
    number: wp.array(dtype=wp.int32)  # within that set, or within its bin


@wp.struct
class Twins:
    """Sets of twins, one entry per set. A set is split into full warps of `size` envs and a remainder."""

    count: wp.array(dtype=wp.int32)
    leader: wp.array(dtype=wp.int32)  # one of them
    time: wp.array(dtype=wp.float32)  # clocks that one of them is expected to take
    risk: wp.array(dtype=wp.float32)  # share of `time` by which each further twin is expected to prolong the warp
    size: wp.array(dtype=wp.int32)
    first: wp.array(dtype=wp.int32)  # its first warp
    sharing: wp.array(dtype=wp.int32)  # remainders in the warp of its remainder
    rest: wp.array(dtype=wp.int32)  # number of its remainder among those with the same number per warp
    bin: wp.array(dtype=wp.int32)  # by the instructions that one of them is expected to execute, most first


@wp.func
def length(steps: Steps, env: int) -> int:
    """Instructions of the env's last step."""
    return steps.state[INSTRUCTIONS, env] - steps.skipped[env]


@wp.func
def kind(steps: Steps, env: int, buttons: int, last: int) -> wp.uint32:
    """A hash of the beginning of a step, with the magnitude of the last step's length, four values per octave."""
    magnitude = int(4.0 * wp.log2(float(wp.max(last, 0) // WIDTH + 1)))
    value = wp.uint32(magnitude * 256 + buttons) * wp.uint32(0x9E3779B1) + wp.uint32(steps.state[STACK_POINTER, env])
    value = value * wp.uint32(0x85EBCA6B) + wp.uint32(steps.state[PROGRAM_COUNTER, env])
    return value * wp.uint32(0xC2B2AE35)


@wp.kernel(enable_backward=False)
def kernel_learn(
    steps: Steps,
    twins: Twins,
    means: wp.array2d(dtype=wp.float32),
    forecasts: Forecast,
    demand: wp.array(dtype=wp.int32),
    bins: wp.array(dtype=wp.int32),
    listed: wp.array(dtype=wp.int32),
):
    """Learn time, path and the agreement of twins from the last step of at most TEACHERS envs, evenly spread, and reset
    the counts. dim = the larger of num_envs and TWINS."""
    index = wp.tid()
    stride = (steps.kind.shape[0] + TEACHERS - 1) // TEACHERS
    if index < TWINS:
        twins.count[index] = 0
    if index < demand.shape[0]:
        demand[index] = 0
    if index < bins.shape[0]:
        bins[index] = 0
    if index == 0:
        listed[0] = 0
    if index >= steps.kind.shape[0] or index % stride != 0:
        return
    kind = steps.kind[index]
    if kind >= 0:
        wp.atomic_add(means, 0, kind, float(steps.took[index]))
        wp.atomic_add(means, 1, kind, 1.0)
        wp.atomic_add(means, 4, kind, float(length(steps, index)))
        forecast.learn(forecasts, steps.beginning[index], steps.path[index])
        leader = twins.leader[steps.set[index]]
        if leader != index:
            wp.atomic_add(means, 2, kind, wp.where(steps.path[leader] != steps.path[index], 1.0, 0.0))
            wp.atomic_add(means, 3, kind, 1.0)


@wp.kernel(enable_backward=False)
def kernel_count(
    steps: Steps,
    buttons: wp.array(dtype=wp.uint8),
    twins: Twins,
    means: wp.array2d(dtype=wp.float32),
    forecasts: Forecast,
    order: wp.array(dtype=wp.int32),
    listed: wp.array(dtype=wp.int32),
    lanes: int,
):
    """Compute each env's kind, beginning, set of twins and number within the set; listed: the number of sets, then
    their indices. Empties all lanes. dim = the larger of num_envs and lanes."""
    env = wp.tid()
    if env < lanes:
        order[env] = -1
    if env < buttons.shape[0]:
        last = length(steps, env)
        value = kind(steps, env, int(buttons[env]), last)
        of_kind = int((value >> wp.uint32(15)) & wp.uint32(KINDS - 1))
        beginning = int((value + wp.uint32(last)) * wp.uint32(0x27D4EB2F))
        path = wp.uint32(forecast.expected(forecasts, beginning)) * wp.uint32(0x9E3779B1)
        index = int((path >> wp.uint32(13)) & wp.uint32(TWINS - 1))
        number = wp.atomic_add(twins.count, index, 1)
        steps.kind[env] = of_kind
        steps.beginning[env] = beginning
        steps.set[env] = index
        steps.number[env] = number
        if number == 0:
            twins.leader[index] = env
            listed[1 + wp.atomic_add(listed, 0, 1)] = index
            time = float(steps.took[env])
            instructions = float(last)
            if means[1, of_kind] > 0.0:
                time = means[0, of_kind] / means[1, of_kind]
                instructions = means[4, of_kind] / means[1, of_kind]
            twins.bin[index] = BINS - 1 - wp.clamp(int(instructions) // WIDTH, 0, BINS - 1)
            twins.time[index] = wp.max(time, 1.0)
            twins.risk[index] = ASTRAY * (means[2, of_kind] + 0.5) / (means[3, of_kind] + 8.0)


@wp.kernel(enable_backward=False)
def kernel_forget(means: wp.array2d(dtype=wp.float32)):
    """Halve the samples of kinds that have many; dim = KINDS."""
    index = wp.tid()
    if means[1, index] > float(MANY):
        for row in range(means.shape[0]):
            means[row, index] = means[row, index] * 0.5
