"""Steps of a game with kernels that count (emulator/hw/counters.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.device import room_for
from gbxcule_puffer.emulator.cartridge import Cartridge, Rom
from gbxcule_puffer.emulator.probes.counting import CountingEmulator
from gbxcule_puffer.emulator.saves.state_files import load_state_file
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.emulator.state import INDEX
from gbxcule_puffer.tasks.actions import ActionCodec


@dataclass(frozen=True)
class Counts:
    """The counts of one kernel over `steps` steps of `num_envs` envs. instructions: per env and step, without those of
    skipped loops, shape (steps, num_envs); rows: those of counters.py."""

    cartridge: Cartridge
    num_envs: int
    steps: int
    frames_per_step: int
    instructions: np.ndarray
    rows: np.ndarray

    def a_step(self, count: float) -> float:
        """A count as its mean over envs and steps."""
        return float(count) / self.num_envs / self.steps


def measure(
    rom: Rom,
    kernel: str,
    codec: ActionCodec,
    *,
    num_envs: int,
    warmup: int,
    steps: int,
    start_state: str | None = None,
    seed: int = 0,
    **options: Any,
) -> Counts:
    """Count `steps` steps with random actions, after `warmup` steps that are not counted.

    options: of Emulator.
    Raises: as Emulator; StateError for a start state that does not fit.
    """
    emulator = CountingEmulator(rom, num_envs, kernel=kernel, **options)
    if start_state is not None:
        snapshot = load_state_file(start_state, emulator.cartridge)
        arrays = (snapshot.state[:, :1], snapshot.memory[:1], snapshot.screen[:1])  # of the first env in the file
        emulator.load(Snapshot(snapshot.rom_sha256, *arrays, profile=snapshot.profile))
    shape = (num_envs, warmup + steps)
    with room_for(
        2 * 8 * num_envs * (warmup + steps), "cpu", f"--steps {steps:,} and --warmup {warmup:,}", "use fewer"
    ):
        rows = np.random.Generator(np.random.PCG64(seed)).integers(0, codec.num_actions, shape).T.copy()
    table = torch.tensor([codec.to_buttons(action) for action in range(codec.num_actions)], dtype=torch.uint8)
    found = []
    for number, actions in enumerate(torch.from_numpy(rows)):
        if number == warmup:
            emulator.counts.zero_()
        emulator.step(table[actions].to(emulator.device))
        if number >= warmup:
            executed = emulator.machine.state.numpy()[INDEX["instructions"]] - emulator.skipped.cpu().numpy()
            found.append(executed)
    counts = emulator.counts.cpu().numpy()
    emulator.close()
    return Counts(emulator.cartridge, num_envs, steps, emulator.frames_per_step, np.array(found), counts)
