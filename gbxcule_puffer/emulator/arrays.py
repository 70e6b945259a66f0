"""The arrays of an emulator, and the bytes that they take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import isa
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.gpu import descriptor_table, descriptors
from gbxcule_puffer.emulator.gpu.schedule import lane_order
from gbxcule_puffer.emulator.hw import areas
from gbxcule_puffer.emulator.launch import fill
from gbxcule_puffer.emulator.loops.find import marked_words
from gbxcule_puffer.emulator.probes.hooks import Hooks
from gbxcule_puffer.emulator.probes.until import Until
from gbxcule_puffer.emulator.state import Machine, describe, state_size

ROW_PADDING = 128  # bytes: without them, the same address of all envs would share one set of a cache
ROM_PADDING = 16  # bytes: the data path reads words before it checks whether they cross the end


def memory_needed(cartridge: Cartridge, num_envs: int, pixel_step: int = 2, with_descriptors: bool = True) -> int:
    """Bytes that an Emulator allocates: state, memory row and picture of each env (docs/state.md), and the data that
    all envs share: the ROM as bytes, as 3-byte words and, for the data path, as descriptors, and a table of
    addresses."""
    picture_size = hw.SCREEN_HEIGHT * hw.SCREEN_WIDTH // pixel_step**2
    fields, row = state_size(cartridge, pixel_step)
    per_env = 4 * fields + row + ROW_PADDING + picture_size + 4 + 4 + 1
    shared = 5 * len(cartridge.data) + ROM_PADDING
    if with_descriptors:
        shared += lane_order.memory_needed(num_envs) + areas.SIZE
        shared += 32 * ((cartridge.rom_banks + 2) * descriptors.BANK_STRIDE + 1)
    return num_envs * per_env + shared


@dataclass(frozen=True)
class Arrays:
    """The arrays of state.Machine; those of the ROM are shared by all envs.

    code: the ROM's 3-byte words; state: (fields, num_envs) int32; memory: (num_envs, row) uint8; screen: (num_envs,
    rows, columns) uint8; skipped: (num_envs,) int32; lanes: of the data path, else None.
    """

    machine: Machine
    code: torch.Tensor
    state: torch.Tensor
    memory: torch.Tensor
    screen: torch.Tensor
    skipped: torch.Tensor
    until: Until
    hooks: Hooks
    lanes: lane_order.LaneOrder | None


def allocate(
    cartridge: Cartridge, num_envs: int, device: str, pixel_step: int, frames_per_step: int, datapath: bool
) -> Arrays:
    """The arrays of `num_envs` Game Boys with this cartridge; datapath: also those of the data path."""
    shape = (num_envs, hw.SCREEN_HEIGHT // pixel_step, hw.SCREEN_WIDTH // pixel_step)
    rom = np.frombuffer(cartridge.data, np.uint8)
    words, waits = marked_words(cartridge.data, cartridge.sound)
    code = torch.from_numpy(words).to(device)
    fields, row = state_size(cartridge, pixel_step)
    state = torch.zeros((fields, num_envs), dtype=torch.int32, device=device)
    memory = torch.zeros((num_envs, row + ROW_PADDING), dtype=torch.uint8, device=device)[:, :row]
    screen = torch.zeros(shape, dtype=torch.uint8, device=device)
    skipped = torch.zeros(num_envs, dtype=torch.int32, device=device)
    until = Until(cartridge, num_envs, device, frames_per_step)
    machine = fill(
        Machine(),
        rom=torch.from_numpy(np.concatenate([rom, np.zeros(ROM_PADDING, np.uint8)])).to(device),
        code=code, waits=torch.from_numpy(waits).to(device),
        op_length=torch.tensor(isa.lengths(), dtype=torch.uint8, device=device),
        memory=memory, state=state, screen=screen, skipped=skipped, frames=until.frames, pixel_step=pixel_step,
    )  # fmt: skip
    describe(machine, cartridge)
    lanes = table = None
    if datapath:
        table = torch.from_numpy(descriptor_table.rom_table(cartridge.data, cartridge.sound)).to(device)
        machine.descriptors = wp.from_torch(table, dtype=wp.vec4i)
        lanes = lane_order.LaneOrder(state, skipped)
        fill(machine, order=lanes.order, took=lanes.took, path=lanes.path)
        fill(machine, areas=torch.from_numpy(areas.table()).to(device))
    hooks = Hooks(cartridge, num_envs, code, table)
    return Arrays(machine, code, state, memory, screen, skipped, until, hooks, lanes)
