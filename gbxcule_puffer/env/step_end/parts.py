"""The parts of a step's end: observation, score, new episodes; env/step_end/kernels.py makes kernels of them.

On a GPU the lanes of a warp share one env: all of them compute the same score, and each does a part of the pictures. An
`if COLOR:` statement disappears from the kernels of observations in shades.
"""

# Kernels: Warp's integers are types of their own.
# pyright: reportOperatorIssue=false, reportArgumentType=false

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import intrinsics
from gbxcule_puffer.emulator.pool import restore_slot
from gbxcule_puffer.env.fields import Episode
from gbxcule_puffer.tasks.goals.distance import color_difference, goal_difference
from gbxcule_puffer.tasks.observe.pictures import FORMS

COLOR = False
"""True in the instance of this file that kernels.py makes for observations in colour."""
PACKED = wp.constant(FORMS.index("packed"))
AVERAGED = wp.constant(FORMS.index("averaged"))
LUMA = wp.constant(FORMS.index("luma"))
RGB555 = wp.constant(FORMS.index("rgb555"))
GREY = wp.constant(FORMS.index("grey"))
GREYS = wp.constant(0x000A131F)  # PyBoy's of the shades of a DMG, 5 bits, a byte each, that of shade 0 lowest
AREA = wp.constant(hw.SCREEN_HEIGHT * hw.SCREEN_WIDTH)


@wp.func
def color_of(shade: int) -> int:
    """The colour of a DMG's shade."""
    return ((GREYS >> (8 * shade)) & 31) * 0x421


@wp.func
def rgb555(e: Episode, env: int, index: int) -> int:
    """Two pixels' colours of 15 bits."""
    if e.has_colors != 0:
        return e.colors[env, index]
    shades = e.screen[env, index // 2] >> (16 * (index & 1))
    return color_of(shades & 3) | (color_of((shades >> 8) & 3) << 16)


@wp.func
def luma(color: int) -> int:
    """2 red + 5 green + blue."""
    return 2 * (color & 31) + 5 * ((color >> 5) & 31) + ((color >> 10) & 31)


@wp.func
def rgb(color: int, plane: int) -> int:
    """Red, green or blue as PyBoy has them."""
    return ((color >> (5 * plane)) & 31) << 3


@wp.func
def value(e: Episode, color: int, plane: int) -> int:
    """A byte of a colour in one of the planes."""
    if e.form == LUMA:
        return luma(color)
    return rgb(color, plane)


@wp.func
def brightness(e: Episode, env: int, index: int) -> int:
    """Two pixels of the whole screen from 0 to 255, 16 bits each: PyBoy's greys of shades, luma of colours."""
    if e.has_colors != 0:
        both = e.colors[env, index]
        return 2 * (both & 0x001F001F) + 5 * ((both >> 5) & 0x001F001F) + ((both >> 10) & 0x001F001F)
    shades = e.screen[env, index // 2] >> (16 * (index & 1))
    pair = (shades & 3) | ((shades & 0x300) << 8)
    return 0x00FF00FF - 85 * pair - 17 * (pair & ~(pair >> 1) & 0x00010001)  # 255 153 85 0


@wp.func
def grey_columns(e: Episode, env: int, row: int, first: int, index: int) -> int:
    """Sums of two columns of the screen from line `first` on over a row of the observation, 16 bits each; each pixel
    counts with what the row covers of it, in 1 / e.rows."""
    top = row * hw.SCREEN_HEIGHT
    bottom = top + hw.SCREEN_HEIGHT
    y = int(first)
    total = int(0)
    while y * e.rows < bottom:
        height = wp.min(bottom, (y + 1) * e.rows) - wp.max(top, y * e.rows)
        total = total + height * brightness(e, env, y * (hw.SCREEN_WIDTH // 2) + index)
        y = y + 1
    return total


@wp.func
def grey(e: Episode, env: int, index: int) -> int:
    """Four pixels of the observation, each the mean of the area of the screen that it covers (pictures.area_averaged).
    Lengths across are in 1 / e.columns of the screen's pixels."""
    row = 4 * index // e.columns
    left = (4 * index - row * e.columns) * hw.SCREEN_WIDTH  # of what is still to be added to the pixel
    right = left + hw.SCREEN_WIDTH
    x = left // e.columns
    first = row * hw.SCREEN_HEIGHT // e.rows
    pair = grey_columns(e, env, row, first, x // 2)
    total = int(0)
    word = int(0)
    part = int(0)
    while part < 4:
        end = wp.min((x + 1) * e.columns, right)
        total = total + (end - left) * ((pair >> (16 * (x & 1))) & 0xFFFF)
        left = end
        if end == right:
            word = word | (((total + AREA // 2) // AREA) << (8 * part))
            total = 0
            part = part + 1
            right = right + hw.SCREEN_WIDTH
        if end == (x + 1) * e.columns and part < 4:
            x = x + 1
            if x == hw.SCREEN_WIDTH:  # the next row
                row = row + 1
                first = row * hw.SCREEN_HEIGHT // e.rows
                x = 0
                left = 0
                right = hw.SCREEN_WIDTH
            if (x & 1) == 0:
                pair = grey_columns(e, env, row, first, x // 2)
    return word


@wp.func
def newest_color(e: Episode, env: int, index: int) -> int:
    """A word of the newest picture in colour: two pixels, or one byte of four pixels in one of its planes."""
    if e.form == RGB555:
        return rgb555(e, env, index)
    if e.form == GREY:
        return grey(e, env, index)
    size = e.screen.shape[1]
    plane, four = index // size, index % size
    word = int(0)
    for half in range(2):
        both = rgb555(e, env, 2 * four + half)
        pair = value(e, both & 0x7FFF, plane) | (value(e, (both >> 16) & 0x7FFF, plane) << 8)
        word = word | (pair << (16 * half))
    return word


@wp.func
def averaged(e: Episode, env: int, index: int) -> int:
    """Sums of four 2x2 blocks of pixels of a screen of 160 columns, one byte each."""
    above = 80 * (index // 20) + 2 * (index % 20)  # 40 words a row, two of them for one of 20
    word = int(0)
    for half in range(2):
        both = e.screen[env, above + half] + e.screen[env, above + 40 + half]
        pairs = (both & 0x00FF00FF) + ((both >> 8) & 0x00FF00FF)
        word = word | (((pairs & 0xFF) | ((pairs >> 8) & 0xFF00)) << (16 * half))
    return word


@wp.func
def packed(e: Episode, env: int, index: int) -> int:
    """Sixteen pixels, four per byte, the leftmost in bits 7-6."""
    word = int(0)
    for part in range(4):
        four = e.screen[env, 4 * index + part]
        byte = ((four & 3) << 6) | ((four >> 4) & 0x30) | ((four >> 14) & 0xC) | ((four >> 24) & 3)
        word = word | (byte << (8 * part))
    return word


@wp.func
def shades(e: Episode, env: int, index: int) -> int:
    """Four pixels, one byte each."""
    return e.screen[env, index]


@wp.func
def newest(e: Episode, env: int, index: int) -> int:
    """A word of the newest picture in the observed form."""
    if COLOR:
        return newest_color(e, env, index)
    if e.form == AVERAGED:
        return averaged(e, env, index)
    if e.form == PACKED:
        return packed(e, env, index)
    return shades(e, env, index)


@wp.func
def observe(e: Episode, env: int, lane: int, lanes: int):
    """Puts the screen as the newest picture last in the stack; does nothing if the observation is the screen itself."""
    if e.in_place == 0:
        size = e.observations.shape[1] // e.stack_k
        for index in range(lane, size, lanes):
            for older in range(e.stack_k - 1):
                e.observations[env, older * size + index] = e.observations[env, (older + 1) * size + index]
            e.observations[env, (e.stack_k - 1) * size + index] = newest(e, env, index)


@wp.func
def distance_to(e: Episode, stage: int, env: int, lane: int, lanes: int) -> float:
    """Mean absolute difference of shades / 3 to a stage's goal, or of red, green and blue / 31."""
    if COLOR:
        if e.goal_in_color != 0:
            return float(color_difference(e.colors, e.goal_frames, e.goal_first, stage, env, lane, lanes)) * e.scale
    return float(goal_difference(e.screen, e.goal_frames, e.goal_first, stage, env, lane, lanes)) * e.scale


@wp.func
def score(e: Episode, env: int, lane: int, lanes: int):
    """Computes the reward and the end of the episode; with `chain` an earlier stage's goal leads to the next.

    Products and sums are separate (env/step_end/kernels.py): a fused multiply-add would round differently on a GPU.
    """
    age = e.age[env] + 1
    before = e.stage[env]
    stage = int(before)
    distance = e.distance[env]
    hold = e.hold[env]
    reached = bool(False)
    if e.has_goal != 0:
        distance = distance_to(e, stage, env, lane, lanes)
        hold = hold + 1
        if not (distance < e.taus[stage]):
            hold = 0
        reached = hold >= e.ks[stage]
    reward = (e.previous[env] - distance) * e.alpha
    reward = reward + e.step_cost
    previous = distance
    terminal = reached
    if reached:
        reward = reward + e.goal_bonus
        if e.chain != 0 and stage < e.last_stage:
            terminal = False
            stage = stage + 1
            previous = distance_to(e, stage, env, lane, lanes)
            hold = 0
    locked = e.locked[env] != 0
    truncated = (age >= e.limit[env] or locked) and not terminal
    intrinsics.converge()  # all lanes have read before one writes
    if lane == 0:
        e.age[env] = age
        e.length[env] = age
        e.stage_before[env] = before
        e.stage[env] = wp.int64(stage)
        e.distance[env] = distance
        e.previous[env] = previous
        e.hold[env] = hold
        e.reached[env] = reached
        e.was_locked[env] = locked
        e.rewards[env] = reward
        e.terminals[env] = terminal
        e.truncations[env] = truncated
        e.ended[env] = terminal or truncated
    intrinsics.converge()


@wp.func
def keep(e: Episode, env: int, lane: int, lanes: int):
    """Copies the observation before a new episode replaces it."""
    for index in range(lane, e.final_observation.shape[1], lanes):
        e.final_observation[env, index] = e.observations[env, index]


@wp.func
def count(e: Episode, env: int, lane: int, lanes: int):
    """Adds a finished episode to the counts of the slot at which it began, unless that slot has a new state."""
    if lane == 0:
        slot = e.slots[env]
        e.from_start[env] = slot < e.given
        if e.ended[env] and not e.replaced[env]:
            wp.atomic_add(e.slot_counts, 0, slot, wp.int64(1))
            if e.terminals[env] and not e.failures[env]:
                wp.atomic_add(e.slot_counts, 1, slot, wp.int64(1))
            wp.atomic_add(e.slot_counts, 2, slot, wp.int64(e.length[env]))


@wp.func
def restore(e: Episode, env: int, lane: int, lanes: int):
    """Copies the sampled slot into an env whose episode has ended."""
    if e.ended[env]:
        restore_slot(e.machines, e.pool, e.sampled_slot[env], env, lane, lanes)


@wp.func
def begin(e: Episode, env: int, lane: int, lanes: int):
    """Starts the episode of a restored env; its first picture fills the whole stack."""
    intrinsics.converge()  # the picture is whole
    if e.ended[env]:
        slot = e.sampled_slot[env]
        if lane == 0:
            stage = e.slot_stage[slot]
            e.slots[env] = slot
            e.replaced[env] = False
            e.stage[env] = stage
            e.previous[env] = e.slot_distance[slot]
            limit = e.limits[int(stage)]
            if slot >= e.given:
                limit = wp.min(limit, e.archive_steps)
            e.limit[env] = limit
            e.age[env] = 0
            e.hold[env] = 0
            e.episode[env] = e.episode[env] + wp.int64(1)
        if e.in_place == 0:
            size = e.observations.shape[1] // e.stack_k
            for index in range(lane, size, lanes):
                word = newest(e, env, index)
                for plane in range(e.stack_k):
                    e.observations[env, plane * size + index] = word
