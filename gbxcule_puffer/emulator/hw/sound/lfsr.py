"""The noise channel's shift register, many steps at once.

Its lowest bits are a sequence s with s[n + width] = s[n] ^ s[n + 1], so s[n] is a sum of the first bits of s. Which
ones, x^n modulo x^width + x + 1 says, whose coefficients are bits. With a width of 7, the bits above it have the last
eight values that were shifted in. `after` also runs on the host (saves/pyboy_sound.py), so it is plain Python.
"""

import warp as wp

from gbxcule_puffer.emulator.hw.sound import words
from gbxcule_puffer.emulator.hw.sound.words import load, store
from gbxcule_puffer.emulator.state import Cpu

MANY_STEPS = wp.constant(1 << 20)
SHORT = wp.constant(8)  # NR43 bit 3: a width of 7


@wp.func
def one_step(register: int, is_short: int) -> int:
    """The register after a step."""
    bit = (register ^ (register >> 1)) & 1
    result = (register >> 1) & ~0x4000
    if is_short != 0:
        result = (result & ~0x40) | (bit << 6)
    return result | (bit << 14)


@wp.func
def times_x(polynomial: int, width: int) -> int:
    """A polynomial times x, modulo x^width + x + 1."""
    result = polynomial << 1
    if (result >> width) != 0:
        result = result ^ ((1 << width) | 3)
    return result


@wp.func
def parity(value: int) -> int:
    """1 if an odd number of the lowest 16 bits is set."""
    half = value ^ (value >> 8)
    half = half ^ (half >> 4)
    half = half ^ (half >> 2)
    return (half ^ (half >> 1)) & 1


@wp.func
def power_of_x(exponent: int, width: int) -> int:
    """x^exponent modulo x^width + x + 1."""
    result = int(1)
    for i in range(31):
        square = int(0)  # result * result, by Horner's method
        for j in range(width):
            square = times_x(square, width)
            if ((result >> (width - 1 - j)) & 1) != 0:
                square = square ^ result
        result = square
        if ((exponent >> (30 - i)) & 1) != 0:
            result = times_x(result, width)
    return result


@wp.func(inline=False)
def after(register: int, steps: int, is_short: int) -> int:
    """The register after `steps` steps."""
    width = int(15)
    singles = int(0)
    if is_short != 0:
        width = 7
        singles = 8  # they make the bits above the width
        if steps < 8:
            singles = steps
    result = int(register)
    if steps > singles:
        polynomial = int(power_of_x(steps - singles, width))
        result = int(0)
        for i in range(width):
            result = result | (parity(polynomial & register) << i)
            polynomial = times_x(polynomial, width)
    for _i in range(singles):
        result = one_step(result, is_short)
    return result


@wp.func
def make_steps(c: wp.ref[Cpu]) -> int:
    """Make all steps that are due; returns the register."""
    steps = load(c, words.NOISE_STEPS)
    register = load(c, words.NOISE_REGISTER)
    if steps != 0:
        register = after(register, steps, load(c, words.NOISE_CONTROL) & SHORT)
        store(c, words.NOISE_REGISTER, register)
        store(c, words.NOISE_STEPS, 0)
    return register
