"""The functions that kernels of terms call, with the results of games/terms/run.py."""

# Kernels: Warp's integers are types of their own.
# pyright: reportOperatorIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

import warp as wp

# No fused multiply-add: it would round differently on a GPU.
wp.set_module_options({"enable_backward": False, "fuse_fp": False})
MOST_SHIFT = wp.constant(wp.int64(62))
PAIRS, FOURS = wp.constant(wp.int64(0x5555555555555555)), wp.constant(wp.int64(0x3333333333333333))
EIGHTS, ONES = wp.constant(wp.int64(0x0F0F0F0F0F0F0F0F)), wp.constant(wp.int64(0x0101010101010101))
ZERO, ONE = wp.constant(wp.int64(0)), wp.constant(wp.int64(1))
NOTHING = wp.constant(wp.float64(0.0))


@wp.struct
class TermArrays:
    """memory: the memory rows; whole, decimal: rows of what terms remember, (rows, num_envs); constants, decimals:
    numbers; the others as in env/fields.py."""

    memory: wp.array2d(dtype=wp.uint8)
    whole: wp.array2d(dtype=wp.int64)
    decimal: wp.array2d(dtype=wp.float64)
    constants: wp.array(dtype=wp.int64)
    decimals: wp.array(dtype=wp.float64)
    rewards: wp.array(dtype=wp.float32)
    terminals: wp.array(dtype=wp.bool)
    truncations: wp.array(dtype=wp.bool)
    failures: wp.array(dtype=wp.bool)
    ended: wp.array(dtype=wp.bool)


@wp.func
def end(g: TermArrays, env: int, success: bool, failure: bool, truncation: bool):
    """Ends an episode: a success is no failure, and an end is no truncation."""
    terminal = g.terminals[env] or success
    failed = failure and not terminal
    terminal = terminal or failed
    truncated = (g.truncations[env] or truncation) and not terminal
    g.failures[env] = failed
    g.terminals[env] = terminal
    g.truncations[env] = truncated
    g.ended[env] = terminal or truncated


@wp.func
def byte(g: TermArrays, env: int, offset: int, zero: int, mask: int) -> wp.int64:
    """The bits of a byte that count, above the byte that stands for 0."""
    return wp.int64((int(g.memory[env, offset]) - zero) & mask)


@wp.func
def equal(x: wp.int64, y: int) -> wp.int64:
    """1 where a byte has this value, else 0."""
    return wp.where(x == wp.int64(y), ONE, ZERO)


@wp.func
def set_bits(x: wp.int64) -> wp.int64:
    """The number of set bits."""
    x = x - ((x >> ONE) & PAIRS)
    x = (x & FOURS) + ((x >> wp.int64(2)) & FOURS)
    x = (x + (x >> wp.int64(4))) & EIGHTS
    return ((x * ONES) >> wp.int64(56)) & wp.int64(255)


@wp.func
def decimal_digits(x: wp.int64) -> wp.int64:
    """The number of two decimal digits."""
    return x - (x >> wp.int64(4)) * wp.int64(6)


@wp.func
def signed_byte(x: wp.int64, top: int) -> wp.int64:
    """A byte whose highest bit is the sign."""
    return (x ^ wp.int64(top)) - wp.int64(top)


@wp.func
def whole(x: bool) -> wp.int64:
    """1 or 0."""
    return wp.where(x, ONE, ZERO)


@wp.func
def shift_left(x: wp.int64, y: wp.int64) -> wp.int64:
    """x << y, y from 0 to 62."""
    return x << wp.clamp(y, ZERO, MOST_SHIFT)


@wp.func
def shift_right(x: wp.int64, y: wp.int64) -> wp.int64:
    """x >> y, y from 0 to 62."""
    return x >> wp.clamp(y, ZERO, MOST_SHIFT)


@wp.func
def divide(x: wp.float64, y: wp.float64) -> wp.float64:
    """x / y, 0 if y is 0."""
    if y == NOTHING:
        return NOTHING
    return x / y


@wp.func
def floor_divide(x: wp.int64, y: wp.int64) -> wp.int64:
    """x // y rounded down, 0 if y is 0."""
    if y == ZERO:
        return ZERO
    quotient = x // y
    rest = x - quotient * y
    if rest != ZERO and (rest < ZERO) != (y < ZERO):
        quotient = quotient - ONE
    return quotient


@wp.func
def modulo(x: wp.int64, y: wp.int64) -> wp.int64:
    """x % y with the sign of y, 0 if y is 0."""
    return wp.where(y == ZERO, ZERO, x - floor_divide(x, y) * y)


@wp.func
def modulo_decimal(x: wp.float64, y: wp.float64) -> wp.float64:
    """x % y with the sign of y, 0 if y is 0."""
    if y == NOTHING:
        return NOTHING
    rest = wp.mod(x, y)
    if rest != NOTHING and (y < NOTHING) != (rest < NOTHING):
        rest = rest + y
    return rest


@wp.func
def floor_divide_decimal(x: wp.float64, y: wp.float64) -> wp.float64:
    """x // y rounded down, 0 if y is 0; in torch's steps, so that it rounds alike."""
    if y == NOTHING:
        return NOTHING
    rest = wp.mod(x, y)
    quotient = (x - rest) / y
    if rest != NOTHING and (y < NOTHING) != (rest < NOTHING):
        quotient = quotient - wp.float64(1.0)
    if quotient == NOTHING:
        return NOTHING
    floor = wp.floor(quotient)
    if quotient - floor > wp.float64(0.5):
        floor = floor + wp.float64(1.0)
    return floor
