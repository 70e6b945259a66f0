"""A game for tests of milestones: on the stand-in, every third press of A is one."""

from __future__ import annotations

from pathlib import Path

from gbxcule_puffer.games.roms import digest
from tests.games.standin import RED, Entry, build

EVENTS, BETWEEN = 5, 3  # milestones; presses of A that lead from one to the next


def write_events(folder: Path) -> Path:
    """The game's folder; an episode has time for few milestones."""
    idle: list[list[Entry]] = [[]] * (BETWEEN - 1)
    presses = [entry for event in range(EVENTS) for entry in [*idle, [f"wEventFlags+{event}"]]]
    rom = build(folder, "events", RED, presses, [[]])
    milestones = "\n".join(f'event{event} = "bit(wEventFlags, {event})"' for event in range(EVENTS))
    (folder / "game.toml").write_text(
        f'format = "gbxcule-game"\nversion = 1\nname = "events"\n[rom]\nsha256 = "{digest(rom)}"\n'
        '[start]\nactions = ["NOOP:30", "START", "NOOP", "A", "NOOP", "A", "NOOP", "A", "NOOP"]\n'
        '[env]\nmax_steps = 12\naction_codec = "NOOP,A"\nframes_per_step = 4\nrelease_after_frames = 2\n'
        'position = "wCurMap, wYCoord, wXCoord"\n'
        f'[reward]\nevents = "delta(bits(wEventFlags))"\n[milestones]\n{milestones}\n'
    )
    return folder
