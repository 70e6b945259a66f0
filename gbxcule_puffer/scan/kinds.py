"""Confidences for the kinds of bytes, from their statistics and from what depends on them."""

from __future__ import annotations

import torch

from gbxcule_puffer.scan.pokes import Causes
from gbxcule_puffer.scan.shown import READS
from gbxcule_puffer.scan.statistics import NAMES

Stats = dict[str, torch.Tensor]
AXES = {"x": ("RIGHT", "LEFT", "UP", "DOWN"), "y": ("DOWN", "UP", "LEFT", "RIGHT")}
JUMPS = 0.6  # confidence in a height that only A changes
DRIVES = 0.5  # confidence in a position that only A or B changes
SELDOM = 12  # looks between two changes
SEEN, UNSEEN = 0.5, 0.6  # of the doubt in what a sprite follows; what is left of what none does, beside such a one
OWN_WAY = 0.8  # confidence in what follows the directions on its way, but not beside a Game Boy without buttons
LEAST_MOVED = 0.3  # confidence in a position, from which on the table of the sprites is left out
SHOWN = 0.6  # part of the doubt in a score that goes where the picture shows its digits
BRANCH = {name: index for index, name in enumerate(NAMES)}


def soft(values: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """0 up to `low`, 1 from `high` on (or the other way round, where low is above high), and a line between."""
    return ((values - low) / (high - low)).clamp(0, 1)


def ramp(values: torch.Tensor, low: float, high: float, floor: float) -> torch.Tensor:
    """As `soft`, from `floor` to 1."""
    return floor + (1 - floor) * soft(values, low, high)


def axis_parts(stats: Stats, axis: str, own: bool = False) -> Stats:
    """Measures of a byte that follows the two directions of an axis, (bytes,) each: beside the branch without buttons,
    or, with `own`, on its own way, for what never stands still."""
    ahead, behind, cross, cross2 = (BRANCH[name] for name in AXES[axis])
    names = ("goes_higher", "goes_lower", "goes_further") if own else ("higher", "lower", "goes_on")
    higher, lower, further = (stats[name] for name in names)
    reacts = higher + lower if own else stats["reacts"]
    some = (reacts[ahead] + reacts[behind]).clamp(min=1e-6)
    across = (reacts[cross] + reacts[cross2]) / some
    if own:  # a snake goes on without buttons, and cannot turn back: what counts is how much oftener it goes there
        higher, lower = ((each - each[BRANCH["NOOP"]]).clamp(min=0) for each in (higher, lower))
    both = torch.minimum(higher[ahead], lower[behind])
    both_against = torch.minimum(lower[ahead], higher[behind])
    inverse = both_against > both
    with_it, against = higher[ahead] + lower[behind], lower[ahead] + higher[behind]
    return {
        "inverse": inverse,
        "both": torch.maximum(both, both_against),
        "consistent": torch.where(inverse, against, with_it) / (with_it + against).clamp(min=1e-6),
        "cross": across,
        "goes_on": (further[ahead] + further[behind]) / some,
        "one_way": (stats["one_way"][ahead] + stats["one_way"][behind]) / some,
        "back": (stats["back"][ahead] + stats["back"][behind]) / some,
    }


def follows(stats: Stats, axis: str, own: bool) -> torch.Tensor:
    """Confidence that a byte follows an axis, from forks alone."""
    part = axis_parts(stats, axis, own)
    chance = soft(part["both"], 0.005, 0.06)
    chance = chance * ramp(part["consistent"], 0.7, 0.95, 0)
    chance = chance * ramp(part["cross"], 0.6, 0.15, 0.05)
    chance = chance * ramp(part["goes_on"], 0.05, 0.3, 0.75)
    chance = chance * ramp(part["one_way"], 0.3, 0.8, 0.3)
    chance = chance * ramp(part["back"], 0.5, 0.1, 0.1)
    # What moves in every fork is the player; what moves in some, the camera, or what the player pushes.
    moves = torch.where(chance > 0.1, part["both"], 0.0)
    return chance * ramp(part["both"] / moves.max().clamp(min=1e-6), 0.1, 0.7, 0.3)


def jumps(stats: Stats, causes: Causes) -> torch.Tensor:
    """Confidence that a byte is the height of what jumps or flies with A, and that directions do not lift."""
    lifted = BRANCH["A"]
    reacts, higher, lower = stats["reacts"], stats["higher"][lifted], stats["lower"][lifted]
    sideways = (reacts[BRANCH["LEFT"]] + reacts[BRANCH["RIGHT"]]) / (2 * reacts[lifted]).clamp(min=1e-6)
    chance = soft(reacts[lifted], 0.05, 0.25) * ramp(sideways, 0.8, 0.3, 0.1)
    like = soft(stats["like_y"], 0.7, 0.9)  # it moves as a sprite does, also where no changed byte is seen
    one_way = torch.maximum(higher, lower) / (higher + lower).clamp(min=1e-6)
    chance = chance * torch.maximum(ramp(one_way, 0.6, 0.9, 0.2), 0.5 * like)
    drawn = torch.maximum(soft(causes.sprites_y, 0.1, 0.5), like) * (0.4 + 0.6 * like)
    chance = chance * drawn * torch.where(causes.sprites_x > causes.sprites_y, 0.3, 1.0)
    # What is shot goes its way in equal steps, and leaves the picture.
    chance = chance * ramp(stats["same_step"], 0.9, 0.75, 0.1)
    span = (stats["highest"] - stats["lowest"]).float()
    within = torch.maximum(soft(span, 210, 160), 0.6 * soft(stats["same_step"], 0.7, 0.55))
    return JUMPS * chance * ramp(stats["spread"], 1, 3, 0.3) * within


def drives(stats: Stats, causes: Causes, axis: str) -> torch.Tensor:
    """Confidence that a byte is the position of what A or B drives, wherever it is headed: the camera follows it."""
    button = torch.maximum(*(stats["goes_on"][BRANCH[name]] for name in ("A", "B")))
    along, across = (causes.camera_x, causes.camera_y) if axis == "x" else (causes.camera_y, causes.camera_x)
    chance = soft(button, 0.15, 0.4) * soft(along, 0.4, 0.8) * (across <= 0.2 * along)
    return DRIVES * chance * ramp(stats["noop_rate"], 0.6, 0.3, 0.0) * soft(stats["spread"], 3, 5)


def position(stats: Stats, causes: Causes, axis: str) -> torch.Tensor:
    """Confidence that a byte is a position on an axis."""
    drawn = causes.sprites_x + causes.camera_x if axis == "x" else causes.sprites_y + causes.camera_y
    other = causes.sprites_y + causes.camera_y if axis == "x" else causes.sprites_x + causes.camera_x
    chance = torch.maximum(follows(stats, axis, False), OWN_WAY * follows(stats, axis, True))
    chance = chance * ramp(stats["distinct"].float(), 3, 8, 0.05)
    chance = chance * ramp(causes.stays_late, 0.0, 0.5, 0.25)
    chance = chance * ramp(drawn, 0.0, 0.4, 0.75) * ramp(causes.draws_late, 0.0, 0.3, 0.9)
    # What moves without buttons, and no sprite with it, is the road.
    own = torch.maximum(causes.sprites_x if axis == "x" else causes.sprites_y, soft(stats[f"like_{axis}"], 0.85, 0.97))
    chance = chance * torch.where(own > 0.2, 1.0, ramp(stats["noop_rate"], 0.6, 0.3, 0.5))
    if axis == "y":
        height = jumps(stats, causes) * ramp(stats["distinct"].float(), 6, 16, 0.0) * ramp(causes.stays, 0.1, 0.6, 0.2)
        chance = torch.maximum(chance, height)
    chance = torch.maximum(chance, drives(stats, causes, axis) * ramp(causes.stays_late, 0.0, 0.5, 0.25))
    # What moves its sprite along the axis alone is what is seen to move. Beside it, what moves none and takes all
    # values may be a road or a part of a speed, and what moves all sprites a speed.
    across, camera = (causes.sprites_y, causes.camera_x) if axis == "x" else (causes.sprites_x, causes.camera_y)
    sprite = own > 0.2
    seen = torch.where(sprite, across <= 0.5 * own, (camera > 0.2) & (stats["noop_rate"] < 0.3))
    chance = torch.where(sprite & seen & (chance > 0.1), 1 - (1 - chance) * (1 - SEEN * soft(own, 0.2, 0.5)), chance)
    rival = torch.where(sprite & seen, chance, 0.0).max()
    wide = torch.where(sprite, 1.0, soft((stats["highest"] - stats["lowest"]).float(), 128, 224))
    chance = chance * torch.where(seen, 1.0, 1 - (1 - UNSEEN) * soft(rival, 0.1, 0.3) * wide)
    # What moves both ways alike is where the player is headed.
    both = torch.where(other > 0.3, ramp(other / drawn.clamp(min=1e-6), 1.2, 0.8, 0.5), 1.0)
    return (chance * both) ** 0.7 * 0.97


def positions(stats: Stats, causes: Causes, usable: torch.Tensor, sprites: torch.Tensor) -> Stats:
    """Confidence that a byte is a position, for each of AXES; among bytes (bytes,) bool that are usable, or, where none
    of these is likely one, also among those of `sprites`: some games keep a position in the sprites' table alone."""
    found = {}
    for axis in AXES:
        found[axis] = position(stats, causes.of(usable), axis) * usable
        if not bool((found[axis] > LEAST_MOVED).any()):
            chance = position(stats, causes, axis)
            best = torch.where(sprites, chance, -1.0).argmax()  # others are other sprites
            found[axis] = chance * (usable | (sprites & (torch.arange(len(chance), device=chance.device) == best)))
    return found


def irregular(stats: Stats) -> torch.Tensor:
    """Near 0 for what changes often and at a constant rate. Of what changes seldom, forks leave too few gaps to say."""
    return torch.where(stats["gap"] < SELDOM, ramp(stats["gap_spread"], 0.15, 0.5, 0.1), 1.0)


def counts(stats: Stats) -> torch.Tensor:
    """True for bytes that count up or down and begin again, (bytes,) bool: only their digits are looked for."""
    rises, falls = stats["rise_count"].float(), stats["fall_count"].float()
    falls_back = falls * (1 - stats["falls_to_start"]) * (1 - stats["carries"])
    against = torch.minimum(rises * (1 - stats["rises_to_one"]), falls_back)
    seen = (rises + falls >= 8) & (stats["distinct"] >= 3)
    return seen & (against < 0.3 * (rises + falls))


def on_screen(stats: Stats) -> torch.Tensor:
    """1 where the picture shows the digits of a byte; 0 where it does not, and for the number of a tile, which anything
    that is drawn may have."""
    return soft(stats["shown"], 0.6, 0.8) * (stats["shown_read"] != READS.index("digits"))


def score(stats: Stats, causes: Causes) -> torch.Tensor:
    """Confidence that a byte is the lowest one of a score."""
    shown = on_screen(stats)
    rises, falls = stats["rise_count"].float(), stats["fall_count"].float()
    own = falls * (1 - stats["carries"])
    real = own * (1 - stats["falls_to_start"])
    chance = soft(1 - real / (rises + real).clamp(min=1), 0.9, 0.99) * soft(rises, 1, 12)
    # In short games a score falls about as often as it rises, but to its start, and from several values.
    often = 0.6 * soft(real / own.clamp(min=1), 0.05, 0.01) * (stats["distinct"] >= 4)
    chance = chance * torch.maximum(ramp(own / rises.clamp(min=1), 0.9, 0.3, 0.15), often)
    # Some scores are the time: what the picture shows may rise at a constant rate, whatever the buttons.
    timed = ramp(stats["rate"], 0.2, 0.06, 0.0) * irregular(stats) * ramp(stats["regardless"], 0.9, 0.5, 0.1)
    timed = timed * ramp(stats["noop_rate"] / stats["rate"].clamp(min=1e-9), 1.5, 0.6, 0.3)
    chance = chance * torch.maximum(timed, 0.7 * shown)
    chance = chance * ramp(stats["distinct"].float(), 1.5, 4, 0.1)
    # What START raises is a choice of a menu, and surely what A does as well. Where it begins the game again, it lowers
    # a score.
    higher = stats["goes_higher"]
    started = (higher[BRANCH["START"]] - higher[BRANCH["NOOP"]]).clamp(min=0)
    chance = chance * torch.maximum(ramp(started / stats["reacts"].sum(0).clamp(min=1e-6), 0.5, 0.25, 0.3), shown)
    both = torch.minimum(started, stats["reacts"][BRANCH["A"]])
    chance = chance * ramp(both, 0.2, 0.12, 0.2)
    # What the picture shows may be worked out anew from something else; it is then a number, not a tile's.
    anew = 0.6 * shown * (stats["lowest"] == 0)
    chance = chance * torch.maximum(ramp(causes.stays_late, 0.2, 0.8, 0.15), anew)
    chance = chance * torch.where(stats["lowest"] > 0, 0.7, 1.0)  # a picture of a digit, as a tile's number
    moves = torch.maximum(causes.sprites_x, causes.sprites_y) > 0.2
    chance = chance * torch.where(moves, torch.maximum(shown, torch.full_like(shown, 0.5)), 1.0)
    # A best score does not fall where a game begins again, as a score that is shown beside it.
    beside = (shown * (own > 0) * (chance > 0.12)).max()
    chance = chance * torch.where(own > 0, 1.0, 0.85 - 0.35 * beside)
    # A game draws its score anew where it rises: a changed byte is not seen until then.
    chance = chance * torch.maximum(ramp(causes.draws_late, 0.0, 0.15, 0.5), shown) * 0.9
    return 1 - (1 - chance) * (1 - SHOWN * shown * (chance > 0.12))


def lives(stats: Stats, causes: Causes) -> torch.Tensor:
    """Confidence that a byte is a number of lives, or health."""
    rises, falls = stats["rise_count"].float(), stats["fall_count"].float()
    start = stats["start"].float()
    top = stats["rises_to"].float()
    real = rises * (1 - stats["rises_to_one"])
    chance = soft(falls, 1, 8) * soft(stats["rate"], 0.06, 0.015)
    chance = chance * ramp(falls / (falls + real).clamp(min=1), 0.7, 0.97, 0.05)
    chance = chance * ramp(stats["falls_by_one"], 0.2, 0.8, 0.2)
    chance = chance * ramp(stats["lowest"].float(), 8, 2, 0.3)  # digits as text begin at 30
    chance = chance * ramp(rises / falls.clamp(min=1), 1.0, 0.6, 0.3)
    again = (rises > 0) & (top < 0.8 * stats["highest"])  # a game that begins again has all lives
    chance = chance * torch.where(again, 0.3, 1.0) * ((start > 0) | (rises > 0)).float()
    chance = chance * ((stats["highest"] <= 120) & (stats["highest"] >= 1)).float()
    chance = chance * ramp(stats["distinct"].float(), 1.5, 3, 0.1) * ramp(stats["distinct"].float(), 30, 12, 0.2)
    # The digits of a time, too, fall by one, at a constant rate, in all Game Boys, and whatever the buttons. But what
    # says that directions do nothing any more, as it has come to its end, ends the game. A life may be as good as lost
    # when a fork begins.
    timed = irregular(stats) * ramp(stats["regardless"], 0.5, 0.2, 0.3)
    timed = torch.maximum(timed, soft(stats["envs"], 0.8, 0.5))
    ends = soft(stats["rules"], 0.5, 0.9) * soft(stats["highest"].float(), 40, 20)
    chance = chance * torch.maximum(timed, ends) * ramp(causes.stays_late, 0.2, 0.8, 0.15)
    # What moves the camera is a speed. So is what moves sprites along one axis; a heart that is a sprite comes and
    # goes, and a lost game moves both.
    chance = chance * ramp(torch.maximum(causes.camera_x, causes.camera_y), 0.6, 0.2, 0.2)
    chance = chance * ramp((causes.sprites_x - causes.sprites_y).abs(), 0.6, 0.2, 0.35)
    # What START changes, and no other button, says whether the game is played; START may also keep a life, as a pause.
    ways = stats["goes_higher"] + stats["goes_lower"]
    started = (ways[BRANCH["START"]] - ways[BRANCH["NOOP"]]).clamp(min=0)
    chance = chance * ramp(started / stats["reacts"].sum(0).clamp(min=1e-6), 0.9, 0.6, 0.3)
    return chance * torch.maximum(ramp(causes.draws_late, 0.0, 0.3, 0.6), on_screen(stats)) * 0.85


def timer(stats: Stats, causes: Causes) -> torch.Tensor:
    """Confidence that a byte changes at a constant rate, whatever the buttons."""
    chance = soft(stats["agree"], 0.85, 0.97) * soft(stats["gap_spread"], 0.6, 0.1) * soft(stats["envs"], 0.3, 0.9)
    ratio = stats["noop_rate"] / stats["rate"].clamp(min=1e-9)
    chance = chance * ramp(ratio, 0.3, 0.8, 0.05) * ramp(stats["distinct"].float(), 2, 8, 0.1)
    # A random number that is drawn with an event, the same one in all Game Boys, takes another step each time.
    chance = chance * ramp(stats["same_step"], 0.25, 0.5, 0.3)
    return chance * ramp(stats["step_spread"], 4.5, 2.5, 0.1) * ramp(causes.stays, 0.0, 0.5, 0.5) * 0.97


def random(stats: Stats, causes: Causes) -> torch.Tensor:
    """Confidence that a byte is a random number."""
    chance = soft(stats["distinct"].float(), 40, 160) * soft(
        torch.maximum(stats["spread"], stats["new_spread"]), 4.5, 7
    )
    chance = chance * soft(stats["step_spread"], 4, 6.5)
    return chance * ramp(causes.stays, 0.0, 0.5, 0.6) * 0.95


def map_number(stats: Stats, causes: Causes) -> torch.Tensor:
    """Confidence that a byte is the number of a map or room."""
    changes = stats["rise_count"].float() + stats["fall_count"].float()
    lift = (stats["scene"] - stats["scene_rate"]) / (1 - stats["scene_rate"]).clamp(min=1e-6)
    chance = ramp(stats["distinct"].float(), 1.5, 3, 0.5)
    chance = (
        chance
        * soft(stats["gap"], 2, 9)
        * soft(lift, 0.3, 0.9)
        * soft(changes, 2, 12)
        * soft(stats["rate"], 0.01, 0.003)
    )
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
    return chance * ramp(stats["distinct"].float(), 2, 4, 0.35) * 0.5


def menu(stats: Stats, causes: Causes) -> torch.Tensor:
    """Confidence that a byte says whether directions do anything."""
    chance = soft(stats["rules"], 0.35, 0.8) * soft(stats["rate"], 0.04, 0.01)
    return chance * ramp(stats["distinct"].float(), 16, 4, 0.2) * ramp(causes.stays_late, 0.2, 0.8, 0.3) * 0.8


def judge(stats: Stats, causes: Causes, axes: Stats) -> Stats:
    """The confidence of each byte for each kind, (bytes,) each, by the names of KINDS; axes: of the positions."""
    found = dict(axes)
    several = {
        "map": map_number,
        "score": score,
        "lives": lives,
        "timer": timer,
        "random": random,
        "menu": menu,
        "flags": flags,
    }
    found |= {kind: chance(stats, causes) for kind, chance in several.items()}
    # A map is left on foot: in a game without positions, what changes with the picture is something else.
    found["map"] = found["map"] * ramp(torch.maximum(found["x"].max(), found["y"].max()), 0.1, 0.5, 0.3)
    # One byte, one meaning: what is surely a position, a timer or random is less likely anything else.
    taken = torch.stack([found[kind] for kind in ("x", "y", "timer", "random")]).amax(0)
    for kind in ("map", "lives", "menu", "flags"):
        found[kind] = found[kind] * (1 - taken)
    found["score"] = found["score"] * (1 - taken * (1 - 0.8 * on_screen(stats)))
    found["score"] = found["score"] * (1 - 0.7 * found["menu"] * (1 - on_screen(stats)))
    return found
