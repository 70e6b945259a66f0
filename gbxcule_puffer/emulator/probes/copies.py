"""Copies of an emulator: copy.copy, copy.deepcopy and pickle give one with its own memory, which goes on equally."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gbxcule_puffer.closing import check_open
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.cpu_steps import CpuSteps
from gbxcule_puffer.emulator.probes.hooks import Hooks
from gbxcule_puffer.emulator.probes.until import ByteTest, Until
from gbxcule_puffer.emulator.schedule import PIXEL_STEPS
from gbxcule_puffer.emulator.snapshot import Snapshot

OPTIONS = ("num_envs", "device", "frames_per_step", "release_after_frames", "kernel", "accuracy", "sound",
           "instruction_budget")  # fmt: skip


class Copies:
    """The part of Emulator that copies it."""

    cartridge: Cartridge
    pixel_step: int
    _autotune: bool
    _cpu_steps: CpuSteps
    _wants_native: bool
    _hooks: Hooks
    _until: Until
    _skipped: torch.Tensor
    hook: Callable[[int, int], None]
    end_steps_when: Callable[[Sequence[ByteTest]], None]
    save: Callable[[], Snapshot]
    load: Callable[[Snapshot], None]

    def __reduce__(self) -> tuple[Any, ...]:
        """What makes the copy: the arguments, the machines, hooks and conditions, and the facts of the last step.

        Raises: ConfigError after `close`.
        """
        check_open(self)
        options: dict[str, Any] = {name: getattr(self, name) for name in OPTIONS}
        screen = next(name for name, step in PIXEL_STEPS.items() if step == self.pixel_step)
        options |= {"screen": screen, "autotune": self._autotune, "num_threads": self._cpu_steps.num_threads}
        options |= {"native": self._wants_native}
        return _copy, (type(self), self.cartridge, options, self.save(), self.facts())

    def facts(self) -> dict[str, Any]:
        """Hooks, conditions and the last step's counts, which no snapshot has; for copies."""
        tensors = {"skipped": self._skipped, "frames": self._until.frames, "counts": self._hooks.counts}
        copies = {name: tensor.clone() for name, tensor in tensors.items()}
        return {"hooks": self._hooks.indices, "tests": self._until.tests, **copies}

    def take_facts(self, facts: dict[str, Any]) -> None:
        """Takes what `facts` returned."""
        for index in facts["hooks"]:
            self.hook(*divmod(index, hw.ROM_BANK_SIZE))
        self.end_steps_when(facts["tests"])
        tensors = {"skipped": self._skipped, "frames": self._until.frames, "counts": self._hooks.counts}
        for name, tensor in tensors.items():
            tensor.copy_(facts[name])
        self._until.are_own = True


def _copy(
    kind: Callable[..., Copies],
    cartridge: Cartridge,
    options: dict[str, Any],
    machines: Snapshot,
    facts: dict[str, Any],
) -> Copies:
    """An emulator of the parts that Copies.__reduce__ gives."""
    made = kind(cartridge, **options)
    made.load(machines)
    made.take_facts(facts)
    return made
