"""The seed of a new game: bytes of RAM from which its random numbers come. Each episode may get other values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import torch

from gbxcule_puffer.apps.game.asking import Ask
from gbxcule_puffer.apps.game.proposing import NOTHING, given_number
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.scan.result import ScanResult, text_of
from gbxcule_puffer.tasks.actions import buttons_of
from gbxcule_puffer.tasks.observe.pixels import signed
from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.ram.number import Number
from gbxcule_puffer.tasks.ram.readings import word_of
from gbxcule_puffer.tasks.ram.view import Where

CHANGES = (0x01, 0x55, 0xAA, 0x0F, 0xF0, 0x33, 0xCC)  # of a byte, in a Game Boy each
LOOK, LOOKS, SOON = 12, 40, 1  # frames of a look; looks until games must differ; first looks, equal in all
BUTTONS = ("NOOP", "NOOP", "A", "LEFT", "RIGHT", "UP", "DOWN")
MOST_TRIED, LEAST = 4, 0.2  # candidates of a scan, and their least confidence


def choose_seed(cartridge: Cartridge, result: ScanResult, ask: Ask) -> Number | None:
    """The seed that a person chooses, of a scan's random numbers or by address; None for none.

    Raises: ConfigError for an answer that is not an address.
    """
    likely = [each.number for each in result.of("random") if each.confidence >= LEAST]
    found = find_seed(cartridge, result.start.state, likely)
    proposed = NOTHING if found is None else f"{text_of(found.where)} {word_of(found)}"
    text = f"seed of random numbers, new in each episode:\n  an address such as C0A5 u16, or {NOTHING} for none"
    return ask(text, proposed, _seed_of)


def _seed_of(answer: str) -> Number | None:
    """The number that an answer means; None for none."""
    if answer == NOTHING:
        return None
    number = given_number(answer)
    if not is_plain(number.where) or number.size > 2:
        raise ConfigError(f"seed {answer!r:.40} must be one or two bytes of WRAM or HRAM, e.g. C0A5 u16")
    return number


def find_seed(cartridge: Cartridge, start: Snapshot, numbers: Sequence[Number], seed: int = 0) -> Number | None:
    """The first of some numbers that makes the game's random numbers, with its second byte where it has two.

    Raises: the errors of Emulator.
    """
    for where in [number.where for number in numbers if is_plain(number.where)][:MOST_TRIED]:
        if makes_chance(cartridge, start, where, seed):
            for other in (where - 1, where + 1):
                if is_plain(other) and makes_chance(cartridge, start, other, seed):
                    return Number(min(where, other), 2)
            return Number(where)
    return None


def is_plain(where: Where) -> TypeGuard[int]:
    """True for an address of WRAM or HRAM."""
    return isinstance(where, int) and (hw.WRAM <= where < hw.ECHO or hw.HRAM <= where < hw.IE)


@torch.no_grad()
def makes_chance(cartridge: Cartridge, start: Snapshot, where: Where, seed: int = 0) -> bool:
    """True if most Game Boys in which this byte was changed at the start show the same pictures at first and others
    later, with the same buttons. A position or a tile would show at once."""
    emulator = Emulator(cartridge, 1 + len(CHANGES), frames_per_step=LOOK, release_after_frames=LOOK)
    try:
        emulator.load(start)
        ram = Ram(emulator)
        changed = torch.tensor([0, *CHANGES], dtype=torch.uint8)
        ram.poke(where, (ram[where].to(torch.uint8) ^ changed)[:, None], changed > 0)
        generator = torch.Generator().manual_seed(seed)
        for look in range(LOOKS):
            button = buttons_of(BUTTONS[int(torch.randint(len(BUTTONS), (1,), generator=generator))])
            emulator.step(torch.full((emulator.num_envs,), button, dtype=torch.uint8))
            pictures = signed(emulator.colors if emulator.model == "cgb" else emulator.screen)
            differ = (pictures[1:] != pictures[:1]).flatten(1).any(1)
            if look < SOON and bool(differ.any()):
                return False
        return float(differ.float().mean()) > 0.5
    finally:
        emulator.close()


def levels_of(number: Number) -> dict[str, object]:
    """The table [levels] in which a level is the seed itself. Level 0 is left out: a generator may stop at 0."""
    where = number.where
    assert isinstance(where, int)
    if number.size == 1:
        return {"write": f"{where:04X}", "bytes": ["level"], "train": [1, 191], "test": [192, 64]}
    return {
        "write": f"{where:04X}", "bytes": ["level & 255", "level >> 8"], "train": [1, 16_384], "test": [32_768, 16_384]
    }  # fmt: skip
