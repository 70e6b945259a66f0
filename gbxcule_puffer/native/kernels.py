"""The kernels of a step that torch does in Python: actions to buttons, starts of episodes, results and statistics."""

# Kernels: Warp's integers are types of their own.
# pyright: reportOperatorIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

import warp as wp

from gbxcule_puffer.emulator.gpu.schedule.lane_order import BINS, COUNTS
from gbxcule_puffer.env import randomness

# Columns of Batch.logs: sums over the episodes that ended, the last one their number. bad_actions counts all steps.
LOGS = ("episode_return", "episode_length", "success", "truncated", "locked", "bad_actions", "n")
BAD_ACTIONS = wp.constant(LOGS.index("bad_actions"))
SEED_FACTOR = wp.constant(wp.uint64(randomness.OF_SEED))
STREAM_FACTOR = wp.constant(wp.uint64(randomness.OF_STREAM))
KEY_MASK = wp.constant(wp.uint64((1 << 62) - 1))
MIX = wp.constant(wp.int64(0x4F51AFD7ED558CCD))
HALF = wp.constant(wp.int64(33))
SHIFT = wp.constant(wp.int64(randomness.SHIFT))
SAMPLES = wp.constant(wp.int64(randomness.RANGE - 1))

# No fused multiply-add: it would round differently on a GPU.
wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class Batch:
    """Arrays and numbers of the kernels here; arrays of (num_envs,) but for tables, `actions` and `logs`."""

    actions: wp.array2d(dtype=wp.float32)  # (num_envs, choices), as trainers in C give them
    terminals: wp.array(dtype=wp.float32)  # 1 where an episode has ended
    rewards: wp.array(dtype=wp.float32)
    logs: wp.array2d(dtype=wp.float32)  # (num_envs, LOGS)
    returns: wp.array(dtype=wp.float32)
    choices: wp.array(dtype=wp.int32)  # how many options each choice has
    table: wp.array(dtype=wp.uint8)  # buttons of each action
    lengths: wp.array(dtype=wp.int32)  # frames of each action
    sets_frames: int
    sticky: int  # the probability, in randomness.RANGE
    # As in env/fields.py.
    action: wp.array(dtype=wp.int64)
    last_action: wp.array(dtype=wp.int64)
    clock: wp.array(dtype=wp.int64)
    episode: wp.array(dtype=wp.int64)
    age: wp.array(dtype=wp.int32)
    length: wp.array(dtype=wp.int32)
    sampled_slot: wp.array(dtype=wp.int32)
    ended: wp.array(dtype=wp.bool)
    was_locked: wp.array(dtype=wp.bool)
    reached_end: wp.array(dtype=wp.bool)  # the field `terminals`
    failures: wp.array(dtype=wp.bool)
    truncations: wp.array(dtype=wp.bool)
    # Of the emulator.
    buttons: wp.array(dtype=wp.uint8)
    frames: wp.array(dtype=wp.int32)
    # Running sums of the weights of the slots at which episodes begin; empty where there is only one.
    cumulative: wp.array(dtype=wp.int64)
    first_env: int


@wp.func
def sample(b: Batch, seed: wp.int64, stream: int, env: int, counter: wp.int64) -> wp.int64:
    """CounterRandom.sample, of one env."""
    key = (wp.uint64(seed) * SEED_FACTOR + wp.uint64(stream) * STREAM_FACTOR) & KEY_MASK
    value = (wp.int64(b.first_env + env) * wp.int64(4294967296) + counter) ^ wp.int64(key)
    for _ in range(3):
        value = (value ^ (value >> HALF)) * MIX
    return (value >> HALF) & SAMPLES


@wp.func
def choose_start(b: Batch, seed: wp.int64, env: int):
    """Samples the slot of the env's next episode, as curriculum.starts.pick does."""
    count = b.cumulative.shape[0]
    slot = int(0)
    if count > 1:
        value = (sample(b, seed, randomness.START, env, b.episode[env]) * b.cumulative[count - 1]) >> SHIFT
        high = int(count)
        while slot < high:
            middle = (slot + high) // 2
            if b.cumulative[middle] <= value:
                slot = middle + 1
            else:
                high = middle
    b.sampled_slot[env] = slot


@wp.kernel
def kernel_begin(b: Batch, seed: wp.int64):
    """Lets an episode begin in every env; dim = num_envs."""
    env = wp.tid()
    b.ended[env] = True
    choose_start(b, seed, env)
    b.rewards[env] = 0.0
    b.terminals[env] = 0.0


@wp.kernel
def kernel_press(b: Batch, seed: wp.int64):
    """Turns actions into buttons, as action_input.ActionInput does, and samples the next start; dim = num_envs. An
    action out of range becomes the nearest one, and is counted."""
    env = wp.tid()
    action = int(0)
    largest = b.table.shape[0] - 1
    wrong = bool(False)
    for index in range(b.choices.shape[0]):
        given = b.actions[env, index]
        choice = int(wp.clamp(given, -1.0, 1.0e6))
        if given != float(choice) or choice < 0 or choice >= b.choices[index]:
            wrong = True
        action = action * b.choices[index] + choice
    if wrong:
        wp.atomic_add(b.logs, env, BAD_ACTIONS, 1.0)
        if b.choices.shape[0] > 1:
            action = 0
    taken = wp.int64(wp.clamp(action, 0, largest))
    if b.sticky > 0:
        if b.age[env] != 0 and sample(b, seed, randomness.STICKY, env, b.clock[env]) < wp.int64(b.sticky):
            taken = b.last_action[env]
        b.last_action[env] = taken
    b.action[env] = taken
    b.clock[env] = b.clock[env] + wp.int64(1)
    b.buttons[env] = b.table[int(taken)]
    if b.sets_frames != 0:
        b.frames[env] = b.lengths[int(taken)]
    choose_start(b, seed, env)


@wp.kernel
def kernel_report(b: Batch):
    """Gives the ends of episodes, and adds those that ended to the logs; dim = num_envs."""
    env = wp.tid()
    total = b.returns[env] + b.rewards[env]
    ended = b.reached_end[env] or b.truncations[env]
    b.terminals[env] = wp.where(ended, 1.0, 0.0)
    if ended:
        b.logs[env, 0] = b.logs[env, 0] + total
        b.logs[env, 1] = b.logs[env, 1] + float(b.length[env])
        b.logs[env, 2] = b.logs[env, 2] + wp.where(b.reached_end[env] and not b.failures[env], 1.0, 0.0)
        b.logs[env, 3] = b.logs[env, 3] + wp.where(b.truncations[env], 1.0, 0.0)
        b.logs[env, 4] = b.logs[env, 4] + wp.where(b.was_locked[env], 1.0, 0.0)
        b.logs[env, 6] = b.logs[env, 6] + 1.0
        total = 0.0
    b.returns[env] = total


@wp.kernel
def kernel_sums(bins: wp.array(dtype=wp.int32)):
    """Running sums of rows of bins, of which LaneOrder has two tables; dim = (rows, BINS). Each thread adds up its own
    sum: on a GPU that takes no longer than sharing the work."""
    row, index = wp.tid()  # pyright: ignore
    total = int(0)
    for before in range(index + 1):
        total = total + bins[row * BINS + before]
    bins[COUNTS + row * BINS + index] = total
