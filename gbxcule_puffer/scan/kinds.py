"""What a byte's statistics say of its kind: a confidence for each byte and kind, and the evidence in words."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gbxcule_puffer.scan.pokes import Causes
from gbxcule_puffer.scan.statistics import NAMES

Stats = dict[str, torch.Tensor]
AXES = {"x": ("RIGHT", "LEFT", "UP", "DOWN"), "y": ("DOWN", "UP", "LEFT", "RIGHT")}
BRANCH = {name: index for index, name in enumerate(NAMES)}


def soft(values: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """0 up to `low`, 1 from `high` on (or the other way round, where low is above high), and a line between."""
    return ((values - low) / (high - low)).clamp(0, 1)


def ramp(values: torch.Tensor, low: float, high: float, floor: float) -> torch.Tensor:
    """As `soft`, from `floor` to 1."""
    return floor + (1 - floor) * soft(values, low, high)


def axis_parts(stats: Stats, axis: str) -> dict[str, torch.Tensor]:
    """How a byte follows the two directions of an axis, (bytes,) each."""
    ahead, behind, cross, cross2 = (BRANCH[name] for name in AXES[axis])
    higher, lower, reacts = stats["higher"], stats["lower"], stats["reacts"]
    with_it = higher[ahead] + lower[behind]
    against = lower[ahead] + higher[behind]
    both = torch.minimum(higher[ahead], lower[behind])
    both_against = torch.minimum(lower[ahead], higher[behind])
    inverse = both_against > both
    own = reacts[ahead] + reacts[behind]
    some = own.clamp(min=1e-6)
    return {
        "inverse": inverse,
        "both": torch.maximum(both, both_against),
        "any": torch.where(inverse, against, with_it),
        "consistent": torch.where(inverse, against, with_it) / (with_it + against).clamp(min=1e-6),
        "cross": (reacts[cross] + reacts[cross2]) / some,
        "goes_on": (stats["goes_on"][ahead] + stats["goes_on"][behind]) / some,
        "one_way": (stats["one_way"][ahead] + stats["one_way"][behind]) / some,
        "back": (stats["back"][ahead] + stats["back"][behind]) / some,
        "noop": stats["noop_rate"] / stats["branch_rate"][[ahead, behind]].mean(0).clamp(min=1e-6),
    }


def position(stats: Stats, causes: Causes, axis: str) -> torch.Tensor:
    """Confidence that a byte is a position on an axis."""
    part = axis_parts(stats, axis)
    drawn = causes.sprites_x + causes.camera_x if axis == "x" else causes.sprites_y + causes.camera_y
    other = causes.sprites_y + causes.camera_y if axis == "x" else causes.sprites_x + causes.camera_x
    chance = soft(part["both"], 0.005, 0.06)
    chance = chance * ramp(part["consistent"], 0.7, 0.97, 0)
    chance = chance * ramp(part["cross"], 0.8, 0.15, 0.05)
    chance = chance * ramp(part["goes_on"], 0.05, 0.4, 0.3)
    chance = chance * ramp(part["one_way"], 0.3, 0.8, 0.3)
    chance = chance * ramp(part["back"], 0.5, 0.1, 0.1)
    chance = chance * ramp(stats["distinct"].float(), 3, 8, 0.05)
    chance = chance * ramp(causes.stays_late, 0.0, 0.5, 0.3)
    chance = chance * ramp(drawn, 0.0, 0.4, 0.6) * ramp(causes.draws_late, 0.0, 0.5, 0.7)
    return chance * torch.where(other > 2 * drawn + 0.3, 0.6, 1.0) * 0.97


def score(stats: Stats, causes: Causes) -> torch.Tensor:
    """Confidence that a byte is the lowest one of a score."""
    rises, falls = stats["rise_count"].float(), stats["fall_count"].float()
    real = falls * (1 - torch.maximum(stats["falls_to_start"], stats["carries"]))
    keeps = 1 - real / (rises + real).clamp(min=1)
    chance = soft(keeps, 0.9, 0.99) * soft(rises, 1, 12)
    chance = chance * ramp(stats["rate"], 0.15, 0.04, 0.0) * ramp(stats["gap_spread"], 0.15, 0.5, 0.1)
    chance = chance * ramp(stats["agree"], 0.3, 0.7, 0.2)
    chance = chance * ramp(stats["distinct"].float(), 2, 8, 0.1)
    chance = chance * ramp(stats["noop_rate"] / stats["rate"].clamp(min=1e-9), 1.5, 0.6, 0.3)
    chance = chance * ramp(causes.stays_late, 0.2, 0.8, 0.15)
    return chance * ramp(causes.draws_late, 0.0, 0.3, 0.6) * 0.9


def lives(stats: Stats, causes: Causes) -> torch.Tensor:
    """Confidence that a byte is a number of lives, or health."""
    rises, falls = stats["rise_count"].float(), stats["fall_count"].float()
    start = stats["start"].float()
    real = rises * (1 - stats["rises_to_start"])
    chance = soft(falls, 1, 8) * soft(stats["rate"], 0.02, 0.004)
    chance = chance * ramp(falls / (falls + real).clamp(min=1), 0.6, 0.95, 0.05)
    chance = chance * ramp(stats["falls_by_one"], 0.2, 0.8, 0.2)
    chance = chance * ((start > 0) & (start >= 0.5 * stats["highest"]) & (start <= 120)).float()
    chance = chance * ramp(stats["distinct"].float(), 1.5, 3, 0.1) * ramp(stats["distinct"].float(), 30, 12, 0.2)
    chance = chance * ramp(stats["gap_spread"], 0.1, 0.4, 0.3) * ramp(causes.stays_late, 0.2, 0.8, 0.15)
    return chance * ramp(causes.draws_late, 0.0, 0.3, 0.6) * 0.85


def timer(stats: Stats, causes: Causes) -> torch.Tensor:
    """Confidence that a byte changes at a constant rate, whatever the buttons."""
    chance = soft(stats["agree"], 0.6, 0.95) * soft(stats["gap_spread"], 0.6, 0.1) * soft(stats["envs"], 0.3, 0.9)
    ratio = stats["noop_rate"] / stats["rate"].clamp(min=1e-9)
    chance = chance * ramp(ratio, 0.3, 0.8, 0.05) * ramp(stats["distinct"].float(), 2, 8, 0.1)
    return chance * ramp(stats["step_spread"], 4.5, 2.5, 0.1) * 0.97


def random(stats: Stats, causes: Causes) -> torch.Tensor:
    """Confidence that a byte is a random number."""
    chance = soft(stats["distinct"].float(), 40, 160) * soft(stats["spread"], 4.5, 7)
    chance = chance * soft(stats["step_spread"], 4, 6.5)
    return chance * ramp(causes.stays, 0.0, 0.5, 0.6) * 0.95


def map_number(stats: Stats, causes: Causes) -> torch.Tensor:
    """Confidence that a byte is the number of a map or room."""
    changes = stats["rise_count"].float() + stats["fall_count"].float()
    lift = (stats["scene"] - stats["scene_rate"]) / (1 - stats["scene_rate"]).clamp(min=1e-6)
    chance = soft(lift, 0.3, 0.9) * soft(changes, 2, 12) * soft(stats["rate"], 0.01, 0.003)
    chance = chance * ramp(stats["agree"], 0.8, 0.95, 0.2) * ramp(causes.stays_late, 0.2, 0.8, 0.15)
    chance = chance * ramp(stats["highest"].float(), 128, 32, 0.4)
    return chance * ramp(stats["noop_rate"] / stats["rate"].clamp(min=1e-9), 0.8, 0.2, 0.3) * 0.7


def flags(stats: Stats, causes: Causes) -> torch.Tensor:
    """Confidence that a byte has bits that are set once."""
    rises, falls = stats["rise_count"].float(), stats["fall_count"].float()
    real = falls * (1 - stats["falls_to_start"])
    chance = soft(stats["sets_bits"] / stats["rises"].clamp(min=1e-6), 0.95, 1) * (rises > 0).float()
    chance = chance * ramp(falls / (rises + falls).clamp(min=1), 0.5, 0.1, 0) * (real < 1).float()
    chance = chance * soft(stats["rate"], 0.004, 0.001) * ramp(causes.stays_late, 0.2, 0.8, 0.1)
    return chance * ramp(stats["distinct"].float(), 2, 4, 0.35) * 0.7


def menu(stats: Stats, causes: Causes) -> torch.Tensor:
    """Confidence that a byte says whether directions do anything."""
    chance = soft(stats["rules"], 0.35, 0.8) * soft(stats["rate"], 0.04, 0.01)
    return chance * ramp(stats["distinct"].float(), 24, 8, 0.3) * ramp(causes.stays_late, 0.2, 0.8, 0.3) * 0.8


CHANCES: dict[str, Callable[[Stats, Causes], torch.Tensor]] = {
    "x": lambda stats, causes: position(stats, causes, "x"),
    "y": lambda stats, causes: position(stats, causes, "y"),
    "map": map_number, "score": score, "lives": lives, "timer": timer, "random": random, "menu": menu, "flags": flags,
}  # fmt: skip
