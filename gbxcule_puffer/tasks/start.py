"""A start state made by playing named actions."""

from __future__ import annotations

import torch

from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.emulator.saves.state_files import load_state_file
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.tasks.actions import Schedule, all_buttons_of
from gbxcule_puffer.tasks.goals.traces import picture_hash, read_actions


def play_to_start(
    rom: StrPath,
    actions: StrPath,
    start_state: StrPath | None = None,
    schedule: Schedule | None = None,
    header: str = "strict",
    model: str = "dmg",
) -> Snapshot:
    """The state behind the actions in a file (traces.read_actions), from `start_state` or power-on.

    A trace is played with its own schedule, also one of real time, and has to be of this ROM and start, and end at the
    picture that it ended at; names of actions are played with `schedule`.

    Raises: ConfigError, ActionError, StateError or RomError.
    """
    from gbxcule_puffer.emulator import Emulator  # takes Warp

    cartridge, schedule = load_cartridge(rom, header, model), schedule or Schedule()
    names, trace = read_actions(actions)
    buttons = all_buttons_of(names)
    if trace is not None:
        schedule = Schedule(trace.frames_per_step, trace.release_after_frames)
        trace.check(actions, cartridge.sha256, schedule.frames_per_step, schedule.release_after_frames)
    emulator = Emulator(
        cartridge,
        screen="full",
        frames_per_step=schedule.frames_per_step,
        release_after_frames=schedule.release_after_frames,
    )
    try:
        if start_state is not None:
            emulator.load(load_state_file(start_state, cartridge).doubled())
        if trace is not None and picture_hash(emulator.screen[0].numpy()) != trace.start_picture:
            raise ConfigError(f"trace {actions}: was recorded from another start: give the --start-state it began at")
        for button in buttons:
            emulator.step(torch.full((1,), button, dtype=torch.uint8))
        if trace is not None and picture_hash(emulator.screen[0].numpy()) != trace.end_picture:
            raise ConfigError(f"trace {actions}: does not end at the picture it was recorded with: record it again")
        return emulator.save(0)
    finally:
        emulator.close()
