"""A window with a picture, by the SDL that comes with PyBoy."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import warnings
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from gbxcule_puffer.errors import ConfigError

TRIAL_SECONDS = 10.0
TRIAL = """
import sys, warnings
warnings.simplefilter("ignore")
try:
    import sdl2
except ImportError:
    sys.exit("it needs PySDL2: pip install pysdl2 pysdl2-dll")
if sdl2.SDL_Init(sdl2.SDL_INIT_VIDEO):
    sys.exit(sdl2.SDL_GetError().decode())
print(sdl2.SDL_GetCurrentVideoDriver().decode())
"""
UNSEEN = ("offscreen", "dummy", "evdev")  # SDL's drivers that show nothing, which it takes where no other works
QUIT, DOWN, UP = "quit", "down", "up"


def why_no_window() -> str:
    """The reason why no window can be opened here; empty if one can. SDL would wait forever for a display that is named
    but does not answer, so it is tried in a separate process. A driver of SDL_VIDEODRIVER is taken as it is."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    named = {name: os.environ[name] for name in names if os.environ.get(name)}
    if sys.platform not in ("darwin", "win32") and not named:
        return "DISPLAY and WAYLAND_DISPLAY are not set"
    displays = " ".join(f"{name}={value}" for name, value in named.items())
    try:
        found = subprocess.run(
            [sys.executable, "-P", "-c", TRIAL], capture_output=True, text=True, timeout=TRIAL_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"{displays} does not answer"
    if found.returncode:
        return found.stderr.strip()
    if found.stdout.strip() in UNSEEN and "SDL_VIDEODRIVER" not in named:
        return f"SDL cannot use {displays}: nothing is there, or libX11 or libwayland is missing"
    return ""


@dataclass(frozen=True)
class Event:
    """Something that happened in a window: QUIT, or a key that went DOWN or UP; `key` is a name, or one character."""

    kind: str
    key: str = ""


class Window:
    """A window of `rows` by `columns` pixels, each `scale` pixels wide at first; it can be resized."""

    def __init__(self, title: str, rows: int, columns: int, scale: int, remedy: str) -> None:
        """Raises: ConfigError, which ends with the `remedy`, if no window can be opened."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PySDL2 tells where its binaries are from
            import sdl2
        self._sdl: ModuleType = sdl2
        self._keys = {
            sdl2.SDLK_UP: "up", sdl2.SDLK_DOWN: "down", sdl2.SDLK_LEFT: "left", sdl2.SDLK_RIGHT: "right",
            sdl2.SDLK_RETURN: "enter", sdl2.SDLK_SPACE: "space", sdl2.SDLK_BACKSPACE: "backspace",
            sdl2.SDLK_ESCAPE: "q",
        }  # fmt: skip
        if sdl2.SDL_InitSubSystem(sdl2.SDL_INIT_VIDEO) != 0:
            raise self._no_window("no window can be opened here", remedy)
        centred = sdl2.SDL_WINDOWPOS_CENTERED
        flags = sdl2.SDL_WINDOW_SHOWN | sdl2.SDL_WINDOW_RESIZABLE
        size = columns * scale, rows * scale
        self._window = sdl2.SDL_CreateWindow(title.encode(), centred, centred, *size, flags)
        if not self._window:
            raise self._no_window("no window can be opened here", remedy)
        self._renderer = sdl2.SDL_CreateRenderer(self._window, -1, 0)
        if not self._renderer:
            raise self._no_window("the window cannot be drawn", remedy)
        sdl2.SDL_RenderSetLogicalSize(self._renderer, columns, rows)
        form, access = sdl2.SDL_PIXELFORMAT_RGB24, sdl2.SDL_TEXTUREACCESS_STREAMING
        self._texture = sdl2.SDL_CreateTexture(self._renderer, form, access, columns, rows)
        self._event = sdl2.SDL_Event()

    def show(self, picture: np.ndarray, title: str | None = None) -> None:
        """Draws an RGB picture (rows, columns, 3) uint8."""
        sdl2, pixels = self._sdl, np.ascontiguousarray(picture)
        sdl2.SDL_UpdateTexture(self._texture, None, pixels.ctypes.data_as(ctypes.c_void_p), pixels.strides[0])
        sdl2.SDL_RenderClear(self._renderer)
        sdl2.SDL_RenderCopy(self._renderer, self._texture, None, None)
        sdl2.SDL_RenderPresent(self._renderer)
        if title is not None:
            sdl2.SDL_SetWindowTitle(self._window, title.encode())

    def event(self, milliseconds: int) -> Event | None:
        """The next event; None if none comes in time, or if it is irrelevant."""
        sdl2, event = self._sdl, self._event
        if not sdl2.SDL_WaitEventTimeout(ctypes.byref(event), milliseconds):
            return None
        if event.type == sdl2.SDL_QUIT:
            return Event(QUIT)
        if event.type not in (sdl2.SDL_KEYDOWN, sdl2.SDL_KEYUP):
            return Event("")
        symbol = event.key.keysym.sym
        name = self._keys.get(symbol) or (chr(symbol) if 0x20 < symbol < 0x7F else "")
        return Event(DOWN if event.type == sdl2.SDL_KEYDOWN else UP, name)

    def close(self) -> None:
        """Closes the window."""
        self._sdl.SDL_DestroyWindow(self._window)
        self._sdl.SDL_QuitSubSystem(self._sdl.SDL_INIT_VIDEO)

    def _no_window(self, fault: str, remedy: str) -> ConfigError:
        reason = self._sdl.SDL_GetError().decode()
        self._sdl.SDL_QuitSubSystem(self._sdl.SDL_INIT_VIDEO)
        return ConfigError(f"{fault} ({reason}): {remedy}")
