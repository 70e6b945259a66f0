"""One PyBoy as the references use it: muted unless asked, booted, with steps that release or hold their buttons."""

from __future__ import annotations

import contextlib
import io
import mmap
import warnings
from collections.abc import Callable

import numpy as np

from gbxcule_puffer.emulator.saves.pyboy_color import shades_of
from gbxcule_puffer.emulator.schedule import FRAMES_PER_STEP, RELEASE_AFTER_FRAMES

warnings.filterwarnings("ignore", "Using SDL2 binaries", UserWarning)  # PyBoy imports SDL and opens no window
from pyboy import PyBoy  # noqa: E402

BOOT_FRAMES = 65  # PyBoy's boot ROM reaches PC=0x0100 within the 65th frame, whatever the cartridge
SILENT = 5  # PyBoy's messages go to standard output, and its INFO ranks above CRITICAL
BUTTON_NAMES = ("right", "left", "up", "down", "a", "b", "select", "start")  # bit 0 first, as Emulator.step takes them


class PyBoyMachine:
    """Starts where an Emulator of the model, 'dmg' or 'cgb', starts, and takes the same button masks; save_ram: the
    content of a .ram file. sound: with its sound unit, which makes no samples."""

    def __init__(
        self,
        rom: bytes,
        frames_per_step: int = FRAMES_PER_STEP,
        release_after_frames: int = RELEASE_AFTER_FRAMES,
        save_ram: bytes | None = None,
        model: str = "dmg",
        sound: bool = False,
    ) -> None:
        self.model = model
        self.frames_per_step = frames_per_step
        self.release_after_frames = release_after_frames
        self._held: int | None = 0  # by steps that hold their buttons; None: unknown
        ram = None if save_ram is None else io.BytesIO(save_ram)
        options = {"window": "null", "sound_emulated": sound, "cgb": model == "cgb", "log_level": SILENT}
        self.pyboy = PyBoy(io.BytesIO(rom), ram_file=ram, **options)
        self.pyboy.set_emulation_speed(0)
        self.pyboy.tick(BOOT_FRAMES, True, False)

    def step(self, buttons: int, ends_early: Callable[[], bool] | None = None, frames: int | None = None) -> int:
        """Press the buttons of the mask, run, release them, run; the last frame is rendered. Returns the frames. Where
        the step `holds` its buttons, it only releases those that the one before held and this one does not.

        frames: in place of frames_per_step.
        ends_early: asked after each frame from the one on that the release follows; after a True the next is the last.
        """
        frames = self.frames_per_step if frames is None else frames
        if self.holds:
            changed = 0xFF if self._held is None else buttons ^ self._held
            self._change(changed & ~buttons, changed & buttons)
            self._held = buttons
            self.pyboy.tick(frames, True, False)
            return frames
        held = min(self.release_after_frames, frames)
        frames_after = frames - held
        self._change(0, buttons)
        self.pyboy.tick(held, frames_after == 0, False)
        self._change(buttons, 0)
        if ends_early is not None:
            for left in range(frames_after, 0, -1):
                is_last = left == 1 or ends_early()
                self.pyboy.tick(1, is_last, False)
                if is_last:
                    return frames - left + 1
        elif frames_after > 0:
            self.pyboy.tick(frames_after, True, False)
        return frames

    @property
    def holds(self) -> bool:
        """True where a step releases no button at its end."""
        return self.release_after_frames == self.frames_per_step

    def _change(self, released: int, pressed: int) -> None:
        """Have PyBoy release and press the buttons of two masks before its next frame."""
        for bit, name in enumerate(BUTTON_NAMES):
            if released >> bit & 1:
                self.pyboy.button_release(name)
            elif pressed >> bit & 1:
                self.pyboy.button_press(name)

    def picture(self, every: int = 1, out: np.ndarray | None = None) -> np.ndarray:
        """The last picture as shades 0..3, uint8, every `every`-th line and column: 2 gives the 72x80 observation."""
        if self.model == "cgb":
            return np.positive(shades_of(self.colors(every)), out=out)
        red = self.pyboy.screen.ndarray[::every, ::every, 0]
        return np.floor_divide(255 - red, 85, out=out)  # 255 153 85 0 are the shades 0 1 2 3

    def colors(self, every: int = 1) -> np.ndarray:
        """The last picture of a Game Boy Color, uint16, 5 bits each of red (lowest), green and blue."""
        red, green, blue = (self.pyboy.screen.ndarray[::every, ::every, index] >> 3 for index in range(3))
        return red | green.astype(np.uint16) << 5 | blue.astype(np.uint16) << 10

    def state(self) -> bytes:
        """The state as PyBoy saves it, a .state file; the machine is not disturbed."""
        out = io.BytesIO()
        self.pyboy.save_state(out)
        return out.getvalue()

    def begin_of_state(self, size: int) -> bytes:
        """The first bytes of `state`, in the time that these take: PyBoy writes one byte after the other, three
        quarters of them the picture."""
        with mmap.mmap(-1, size) as out:
            with contextlib.suppress(ValueError):  # of a write past its end
                self.pyboy.save_state(out)
            return out[:]

    def load_state(self, data: bytes) -> None:
        """Load a state as PyBoy does; parts that the format lacks stay as they were (pyboy_emulator.py)."""
        self.pyboy.load_state(io.BytesIO(data))
        self._held = None

    def close(self) -> None:
        """Stop PyBoy without writing a save file."""
        self.pyboy.stop(save=False)
