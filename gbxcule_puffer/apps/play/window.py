"""`puffer play` in a window, by the SDL that PyBoy brings: one step a key, also while it is held."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np

from gbxcule_puffer.apps.play.session import PlaySession
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.pictures import to_rgb

SCALE = 4
WIDTH, HEIGHT = 160, 144
IDLE_MS = 200
TRIAL_SECONDS = 10.0
TRIAL = """
import sys, warnings
warnings.simplefilter("ignore")
try:
    import sdl2
except ImportError:
    sys.exit("it needs PySDL2: pip install pysdl2 pysdl2-dll")
sys.exit(sdl2.SDL_GetError().decode() if sdl2.SDL_Init(sdl2.SDL_INIT_VIDEO) else 0)
"""


def why_no_window() -> str:
    """The reason why no window can be opened here; empty where one can. A display that is named but does not answer
    would keep SDL waiting for ever: it is tried in a process of its own."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    named = {name: os.environ[name] for name in names if os.environ.get(name)}
    if sys.platform not in ("darwin", "win32") and not named:
        return "DISPLAY and WAYLAND_DISPLAY are not set"
    try:
        found = subprocess.run([sys.executable, "-c", TRIAL], capture_output=True, text=True, timeout=TRIAL_SECONDS)
    except subprocess.TimeoutExpired:
        return f"{' '.join(f'{name}={value}' for name, value in named.items())} does not answer"
    return found.stderr.strip()


def play_in_window(session: PlaySession) -> None:
    """Shows the session in a window until it is finished or the window is closed.

    Raises: ConfigError where no window can be opened.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySDL2 tells where its binaries are from
        import sdl2
    if sdl2.SDL_Init(sdl2.SDL_INIT_VIDEO) != 0:
        raise ConfigError(f"no window can be opened here ({sdl2.SDL_GetError().decode()}): give --terminal")
    try:
        _play(session, sdl2)
    finally:
        sdl2.SDL_Quit()


def _play(session: PlaySession, sdl2: Any) -> None:
    keys = {
        sdl2.SDLK_UP: "up", sdl2.SDLK_DOWN: "down", sdl2.SDLK_LEFT: "left", sdl2.SDLK_RIGHT: "right",
        sdl2.SDLK_RETURN: "enter", sdl2.SDLK_SPACE: "space", sdl2.SDLK_ESCAPE: "q",
    }  # fmt: skip
    centred, event = sdl2.SDL_WINDOWPOS_CENTERED, sdl2.SDL_Event()
    flags = sdl2.SDL_WINDOW_SHOWN | sdl2.SDL_WINDOW_RESIZABLE
    window = sdl2.SDL_CreateWindow(b"puffer play", centred, centred, WIDTH * SCALE, HEIGHT * SCALE, flags)
    if not window:
        raise ConfigError(f"no window can be opened here ({sdl2.SDL_GetError().decode()}): give --terminal")
    renderer = sdl2.SDL_CreateRenderer(window, -1, 0)
    if not renderer:
        raise ConfigError(f"the window cannot be drawn ({sdl2.SDL_GetError().decode()}): give --terminal")
    sdl2.SDL_RenderSetLogicalSize(renderer, WIDTH, HEIGHT)
    form, access = sdl2.SDL_PIXELFORMAT_RGB24, sdl2.SDL_TEXTUREACCESS_STREAMING
    texture = sdl2.SDL_CreateTexture(renderer, form, access, WIDTH, HEIGHT)
    print(session.help, flush=True)
    while not session.finished:
        pixels = np.ascontiguousarray(to_rgb(session.picture))
        sdl2.SDL_UpdateTexture(texture, None, pixels.ctypes.data_as(ctypes.c_void_p), 3 * WIDTH)
        sdl2.SDL_RenderClear(renderer)
        sdl2.SDL_RenderCopy(renderer, texture, None, None)
        sdl2.SDL_RenderPresent(renderer)
        sdl2.SDL_SetWindowTitle(window, session.status.encode())
        if not sdl2.SDL_WaitEventTimeout(ctypes.byref(event), IDLE_MS):
            continue
        if event.type == sdl2.SDL_QUIT:
            session.quit()
        elif event.type == sdl2.SDL_KEYDOWN:
            symbol = event.key.keysym.sym
            session.key(keys.get(symbol) or (chr(symbol) if 0x20 < symbol < 0x7F else ""))
