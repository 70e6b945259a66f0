"""Whole pictures of a Game Boy whose env draws every second pixel, in the server's process, on the CPU."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.errors import GBxCuLEError

if TYPE_CHECKING:
    from gbxcule_puffer.emulator import Emulator

NO_FRAMES = -1  # a step has the emulator's number of frames


@dataclass(frozen=True)
class Machine:
    """The settings of an emulator on which a step's result depends. until: the fields of each ByteTest."""

    cartridge: Cartridge
    frames_per_step: int
    release_after_frames: int
    accuracy: str
    instruction_budget: int
    until: tuple[tuple[Any, ...], ...]


class WholePicture:
    """Plays a step of one Game Boy once more (`Lens`), in an emulator of its own that draws all 144x160 pixels.

    The emulator, for which torch is loaded and perhaps a kernel compiled, gets ready in a thread from the first call
    on. `error` says why there is none.
    """

    def __init__(self, machine: Machine) -> None:
        self.error: str | None = None
        self.in_color = machine.cartridge.model == "cgb"  # whatever its env observes
        self._machine, self._emulator, self._thread = machine, None, None

    def draw(self, data: bytes) -> bytes | None:
        """The picture that the step of a `Lens.data` led to, encoded for the page; None while there is no emulator."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._prepare, name="whole picture", daemon=True)
            self._thread.start()
        return None if self._emulator is None else _played(self._emulator, data)

    def _prepare(self) -> None:
        try:
            from gbxcule_puffer.emulator import ByteTest, Emulator

            machine = self._machine
            emulator = Emulator(
                machine.cartridge,
                screen="full",
                frames_per_step=machine.frames_per_step,
                release_after_frames=machine.release_after_frames,
                accuracy=machine.accuracy,
                instruction_budget=machine.instruction_budget,
                num_threads=1,
            )
            emulator.end_steps_when([ByteTest(*test) for test in machine.until])
            self._emulator = emulator
        except (GBxCuLEError, ImportError) as error:
            self.error = str(error)


def _played(emulator: Emulator, data: bytes) -> bytes:
    import torch
    import warp as wp

    from gbxcule_puffer.trainers.wall.encoding import encoded

    state = wp.to_torch(emulator.machine.state)
    numbers = torch.from_numpy(np.frombuffer(data, np.int32, len(state) + 2).copy())
    state[:, 0] = numbers[:-2]
    emulator.memory_without_colors[0] = torch.from_numpy(np.frombuffer(data, np.uint8, offset=4 * len(numbers)).copy())
    frames = numbers[-1:]
    emulator.step(numbers[-2:-1].to(torch.uint8), None if int(frames) == NO_FRAMES else frames)
    return encoded(emulator.colors if emulator.model == "cgb" else emulator.screen).numpy().tobytes()
