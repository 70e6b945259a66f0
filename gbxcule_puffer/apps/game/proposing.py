"""Proposals for a new game's folder: numbers from a scan, buttons and frames from trying them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from gbxcule_puffer.apps.game.asking import Ask
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.games.writing import Draft
from gbxcule_puffer.scan.numbers import values_of
from gbxcule_puffer.scan.result import Candidate, ScanResult, text_of
from gbxcule_puffer.tasks.actions import buttons_of
from gbxcule_puffer.tasks.observe.pixels import signed
from gbxcule_puffer.tasks.ram.addresses import parse_address
from gbxcule_puffer.tasks.ram.number import Number
from gbxcule_puffer.tasks.ram.readings import number_of, word_of

# Name of a number: its description for people, and the least confidence of a candidate that is proposed.
WANTED = {
    "score": ("whose rise is the reward", 0.4),
    "lives": ("or health, whose loss ends an episode", 0.4),
    "x": ("of the player, from left to right", 0.4),
    "y": ("of the player, from top to bottom", 0.4),
    "map": ("or room", 0.5),
}
CELLS = ("map", "x", "y")  # without a score, new values of these are rewarded
PLAYED = ("A", "B", "UP", "DOWN", "LEFT", "RIGHT")
TRIED_FRAMES, TRIED_STEPS = 12, 20  # a button is held for one look and left for the next
MOMENTS, WALKED = 6, 20  # moments at which the buttons are tried; looks of random play that each adds
MOVING, FEWEST_LOOKS = 0.4, 8  # share of looks with a change, in a game that goes on by itself; least looks
ACTION, SLOW = (8, 8), (24, 8)  # frames of a step, and of a button in it
FEWEST_FALLS, AGAIN = 8, 0.95  # of a score, and the part of them that ends at the start, where a game begins again
FEW = 9  # the most lives; more are health
OVER_SURE, FEWEST_OVER = 0.7, 8  # least confidence that a byte's value means "directions do nothing"; least times
BEGINS = 16  # looks after START in which a game may begin again
NOTHING = "-"
MOST_NOTE = 180  # letters after a number in game.toml


@dataclass(frozen=True)
class Answers:
    """The game's answers: how much it goes on by itself when nothing is pressed at the start (share_of_changes), and
    the buttons that change the picture."""

    moving: float
    buttons: tuple[str, ...]


@torch.no_grad()
def try_buttons(cartridge: Cartridge, start: Snapshot, seed: int = 0) -> Answers:
    """Tries each button on a Game Boy of its own, beside one that presses nothing: at the start, and after more and
    more random play, as a wall may be in the way, and a button may need something that is picked up."""
    names = ("NOOP", *PLAYED)
    emulator = Emulator(cartridge, len(names), frames_per_step=TRIED_FRAMES, release_after_frames=TRIED_FRAMES)
    held = torch.tensor([buttons_of(name) for name in names], dtype=torch.uint8)
    generator = torch.Generator().manual_seed(seed)
    changes, different = list[list[bool]](), torch.zeros(len(names), dtype=torch.bool)
    try:
        for moment in range(MOMENTS):
            emulator.load(start)
            for _ in range(moment * WALKED):
                emulator.step(held[torch.randint(len(names), (len(names),), generator=generator)])
            emulator.load(emulator.save(0))
            before, changed = None, list[bool]()
            for step in range(TRIED_STEPS):
                emulator.step(held if step % 2 == 0 else torch.zeros_like(held))
                pictures = signed(emulator.colors if emulator.model == "cgb" else emulator.screen).clone()
                different |= (pictures != pictures[:1]).flatten(1).any(1)
                changed += [] if before is None else [bool((pictures[0] != before).any())]
                before = pictures[0]
            changes.append(changed)
    finally:
        emulator.close()
    found = tuple(name for name, differs in zip(names, different.tolist(), strict=True) if differs)
    return Answers(share_of_changes(changes[0]), found)


def share_of_changes(changes: Sequence[bool]) -> float:
    """The share of looks that bring a change, up to the last one that does: who presses nothing may soon have lost."""
    last = max((look for look, changed in enumerate(changes, 1) if changed), default=0)
    return sum(changes) / max(last, FEWEST_LOOKS)


def choose_numbers(result: ScanResult, ask: Ask) -> dict[str, Candidate | Number]:
    """The numbers that a person chooses of a scan's candidates, or gives by address; by their kind.

    Raises: ConfigError for an answer that is neither, or where nothing that can be rewarded was chosen.
    """
    chosen: dict[str, Candidate | Number] = {}
    has_cells = any(each.confidence >= WANTED[kind][1] for kind in CELLS for each in result.of(kind))
    for kind, (words, least) in WANTED.items():
        listed = result.of(kind)
        if kind == "score" and not has_cells:
            least = 0.0  # as there is nothing else to reward
        options = "".join(
            f"\n  {i}  {text_of(each.number.where)} {word_of(each.number)}, {each.confidence:.0%} sure"
            for i, each in enumerate(listed[:5], 1)
        )
        default = "1" if listed and listed[0].confidence >= least else NOTHING
        choice = "the line's number," if options else "nothing was found:"
        question = f"{kind} {words}:{options}\n  {choice} an address such as C0A5 u8, or {NOTHING} for none"
        if (number := ask(question, default, partial(_chosen_of, listed[:5]))) is not None:
            chosen[kind] = number
    if not chosen.keys() & {"score", *CELLS}:
        raise ConfigError("nothing to reward was chosen: choose the score, or a position whose cells are new")
    return chosen


def _chosen_of(listed: Sequence[Candidate], answer: str) -> Candidate | Number | None:
    """What an answer means: a line of the list, an address and a reading, or None for nothing."""
    if answer == NOTHING:
        return None
    is_line = answer.isdecimal() and 1 <= int(answer) <= len(listed)
    return listed[int(answer) - 1] if is_line else given_number(answer)


def number_in(chosen: Candidate | Number) -> Number:
    """The number of a choice."""
    return chosen.number if isinstance(chosen, Candidate) else chosen


def given_number(text: str) -> Number:
    """A number by address and reading: 'C0A5', 'C0A5 bcd3'.

    Raises: ConfigError for another text.
    """
    address, _, word = text.partition(" ")
    where = parse_address(address, "answer")
    return number_of(word.strip() or "u8", where)


def draft_of(
    cartridge: Cartridge,
    name: str,
    title: str,
    result: ScanResult,
    chosen: Mapping[str, Candidate | Number],
    answers: Answers,
    max_steps: int,
) -> Draft:
    """The folder that follows from the choices: the score's rise is the reward, or else cells new in the episode;
    no lives or health is a failure."""
    draft = Draft(
        cartridge.sha256, name, title, cartridge.model, kind="action" if answers.moving >= MOVING else "other"
    )
    draft.state, draft.start_actions = result.start.state, result.start.actions or ()
    for kind, each in chosen.items():
        draft.numbers[kind] = number_in(each)
        if isinstance(each, Candidate):
            note = f"{each.confidence:.0%}: {each.evidence}"
            draft.notes[kind] = textwrap.shorten(note, MOST_NOTE, placeholder=" ...")
    frames, release = ACTION if answers.moving >= MOVING else SLOW
    env: dict[str, object] = {
        "action_codec": ",".join(("NOOP", *answers.buttons)), "frames_per_step": frames,
        "release_after_frames": release, "max_steps": max_steps,
    }  # fmt: skip
    if all(kind in chosen for kind in CELLS):
        env["position"] = "map, y, x"
    draft.env = env
    if "score" in chosen:
        draft.reward["score"] = "score.rise"
        draft.statistics["score"] = "score"
    else:
        cells = [kind for kind in CELLS if kind in chosen]
        coarse = answers.moving >= MOVING
        terms = [f"{kind} // 8" if coarse and kind != "map" else kind for kind in cells]
        draft.reward["cells"] = f"first_visit({', '.join(terms)})"
        draft.statistics |= {kind: kind for kind in cells}
    if "lives" in chosen:
        draft.end["failure"] = [lost(seen(result, draft.numbers["lives"]))]
        draft.statistics["lives"] = "lives"
    elif "score" in chosen and begins_again(result, draft.numbers["score"]):
        draft.end["failure"] = ["score.delta < 0"]
        draft.statistics["score"] = "max(score, score.previous)"  # that of the lost game, not of the next one
    elif (over := game_over(result)) is not None:
        candidate, value = over
        draft.numbers["over"] = candidate.number
        draft.notes["over"] = f"{candidate.confidence:.0%}: directions do nothing at {value}, and START alone goes on"
        draft.end["failure"] = [f"over == {value}"]
    return draft


def begins_again(result: ScanResult, score: Number) -> bool:
    """True for a score that falls, and nearly always to 0 or to what it was at the start: then the game was lost."""
    values = values_of(result.recording, score)
    if values is None:
        return False
    before, after = values[:-1], values[1:]
    falls = (after < before) & result.recording.valid[1:]
    again = falls & ((after == 0) | (after == values[0, 0]))
    return int(falls.sum()) >= FEWEST_FALLS and int(again.sum()) >= AGAIN * int(falls.sum())


def game_over(result: ScanResult) -> tuple[Candidate, int] | None:
    """The byte that says that a game is over, and its value then: directions do nothing any more, and it came to that
    without START, which pauses, and goes back with START alone; None where there is no such byte."""
    recording, best = result.recording, next(iter(result.of("menu")), None)
    if best is None or best.confidence < OVER_SURE or best.number.size > 1:
        return None
    column = recording.index.get(best.number.where)
    if column is None or len(recording.values[..., column].unique()) != 2:
        return None
    values, first = recording.values[..., column], recording.start[column]
    started = (recording.buttons & hw.BUTTON_START) != 0
    lately = started.clone()
    for ago in range(1, BEGINS):
        lately[ago:] |= started[:-ago]
    free = recording.valid[1:] & ~lately[1:]
    came = (values[:-1] == first) & (values[1:] != first)
    went = (values[:-1] != first) & (values[1:] == first)
    if int((came & free).sum()) < FEWEST_OVER or int((went & free).sum()) > (1 - AGAIN) * int((came & free).sum()):
        return None
    return best, int(values[values != first][0])


def lost(values: tuple[int, int] | None) -> str:
    """The term of a lost game, of lives or health that had these lowest and highest values: none are left, or one is
    lost where they are few and never came to 0, as a game may end with its last life."""
    return "lives.delta < 0" if values is not None and values[0] > 0 and values[1] <= FEW else "lives == 0"


def seen(result: ScanResult, number: Number) -> tuple[int, int] | None:
    """The lowest and the highest value of a byte in the recording; None where it was not recorded."""
    where = result.recording.where
    if number.size > 1 or number.where not in where:
        return None
    values = result.recording.values[..., where.index(number.where)]
    return int(values.min()), int(values.max())


def late(result: ScanResult, number: Number) -> str | None:
    """A warning where half of the lives or health that the recording saw are gone at the start, else None."""
    values = seen(result, number)
    if values is None:
        return None
    left = int(result.recording.start[result.recording.where.index(number.where)])
    if 2 * left > values[1]:
        return None
    return (
        f"lives are {left} at the start, and {values[1]} were seen later: if that is late in a game, play to its "
        "beginning (`puffer play`), save the state there, and give it with --start-state"
    )
