"""The memory of an environment, before anything is allocated."""

from __future__ import annotations

import torch

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.arrays import memory_needed
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.schedule import PIXEL_STEPS
from gbxcule_puffer.env.fields import FIELDS
from gbxcule_puffer.tasks.observe.layout import ObservationLayout

# Bytes of StepBuffers' results, of `masks` and `teacher_actions`, and of what statistics and the next starts keep
OTHERS = 6 + 1 + 8 + 32


def env_memory(cartridge: Cartridge, num_envs: int, layout: ObservationLayout) -> dict[str, int]:
    """Estimated bytes of an env on a GPU, with a picture goal or none, by part: the machines and the data that they
    share; the step's tensors, observations and final observations."""
    step = PIXEL_STEPS[layout.kind.screen]
    machines = memory_needed(cartridge, num_envs, step)
    is_own = (layout.kind.rows, layout.kind.row_values) != (hw.SCREEN_HEIGHT // step, hw.SCREEN_WIDTH // step)
    observations = 1 + int(is_own or layout.stack_k > 1 or bool(layout.vectors))  # else they are the screen itself
    fields = sum(torch.empty(0, dtype=field.dtype).element_size() for field in FIELDS)
    return {"machines": machines, "steps": num_envs * (observations * layout.dtype.itemsize + fields + OTHERS)}
