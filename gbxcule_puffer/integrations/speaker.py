"""The sound of a window, by the SDL that comes with PyBoy."""

from __future__ import annotations

import ctypes
import warnings
from types import ModuleType

import numpy as np

from gbxcule_puffer.emulator.probes.samples import SAMPLES_A_SECOND
from gbxcule_puffer.errors import ConfigError

BYTES_A_SECOND = 4 * SAMPLES_A_SECOND  # 16 bits of each side
BUFFERED = 1_024  # samples that the device takes at once
FIRST_SECONDS = 0.04  # of silence before a sound, while the next frames come
MOST_SECONDS = 0.5  # that wait to be played: more is dropped


class Speaker:
    """Plays samples of HeardEmulator, (samples, 2) uint8, one after the other."""

    def __init__(self, remedy: str) -> None:
        """Raises: ConfigError, which ends with the `remedy`, if there is no device for sound."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PySDL2 tells where its binaries are from
            import sdl2
        self._sdl: ModuleType = sdl2
        form = sdl2.SDL_AudioSpec(SAMPLES_A_SECOND, sdl2.AUDIO_S16LSB, 2, BUFFERED)
        begun = sdl2.SDL_InitSubSystem(sdl2.SDL_INIT_AUDIO) == 0
        self._device = sdl2.SDL_OpenAudioDevice(None, 0, ctypes.byref(form), None, 0) if begun else 0
        if not self._device:
            raise ConfigError(f"nothing can be heard here ({sdl2.SDL_GetError().decode()}): {remedy}")
        sdl2.SDL_PauseAudioDevice(self._device, 0)

    @property
    def waiting(self) -> float:
        """Seconds of sound that are still to be played."""
        return self._sdl.SDL_GetQueuedAudioSize(self._device) / BYTES_A_SECOND

    def play(self, samples: np.ndarray) -> None:
        """Play samples after those that wait."""
        waiting = self.waiting
        if not len(samples) or waiting > MOST_SECONDS:
            return
        data = (samples.astype("<i2") << 8).tobytes()
        if not waiting:
            data = bytes(round(FIRST_SECONDS * SAMPLES_A_SECOND) * 4) + data
        self._sdl.SDL_QueueAudio(self._device, data, len(data))

    def close(self) -> None:
        """Close the device."""
        self._sdl.SDL_CloseAudioDevice(self._device)
        self._sdl.SDL_QuitSubSystem(self._sdl.SDL_INIT_AUDIO)
