"""A start state made by playing named actions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import torch

from gbxcule_puffer.emulator.cartridge import Rom, load_cartridge
from gbxcule_puffer.emulator.protocol import EmulatorLike
from gbxcule_puffer.emulator.saves.state_files import load_state_file
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.tasks.actions import Schedule, buttons_of, checked_names, frames_of
from gbxcule_puffer.tasks.goals.traces import picture_hash, read_actions


def play_to_start(
    rom: Rom,
    actions: StrPath | Sequence[str],
    start_state: StrPath | None = None,
    schedule: Schedule | None = None,
    header: str = "strict",
    model: str | None = "dmg",
    until: Callable[[EmulatorLike, Callable[[str], None]], None] | None = None,
) -> Snapshot:
    """The state after some actions, from `start_state` or power-on.

    actions: a file (traces.read_actions), or a list of names, also with their own frames, such as NOOP:60. A trace is
    played with its own schedule, also one of real time, and has to be of this ROM and start, and end at the picture
    that it ended at; names of actions are played with `schedule`. until: called after them with the Game Boy and a
    function that makes a step of one more action.

    Raises: ConfigError, ActionError, StateError or RomError.
    """
    from gbxcule_puffer.emulator import Emulator  # takes Warp

    cartridge, schedule = load_cartridge(rom, header, model), schedule or Schedule()
    names, trace = read_actions(actions) if isinstance(actions, str | os.PathLike) else (actions, None)
    steps = checked_names(names)
    if trace is not None:
        schedule = Schedule(trace.frames_per_step, trace.release_after_frames)
        trace.check(str(actions), cartridge.sha256, schedule.frames_per_step, schedule.release_after_frames)
    emulator = Emulator(
        cartridge,
        screen="full",
        frames_per_step=schedule.frames_per_step,
        release_after_frames=schedule.release_after_frames,
    )

    def press(step: str) -> None:
        frames = frames_of(step)
        own = torch.full((1,), frames, dtype=torch.int32) if frames else None
        emulator.step(torch.full((1,), buttons_of(step), dtype=torch.uint8), own)

    try:
        if start_state is not None:
            emulator.load(load_state_file(start_state, cartridge).doubled())
        if trace is not None and picture_hash(emulator.screen[0].numpy()) != trace.start_picture:
            raise ConfigError(f"trace {actions}: was recorded from another start: give the --start-state it began at")
        for step in steps:
            press(step)
        if trace is not None and picture_hash(emulator.screen[0].numpy()) != trace.end_picture:
            raise ConfigError(f"trace {actions}: does not end at the picture it was recorded with: record it again")
        if until is not None:
            until(emulator, press)
        return emulator.save(0)
    finally:
        emulator.close()
