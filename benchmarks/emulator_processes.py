"""One emulator in one process on one core; lines on stdin say how many steps to take (benchmarks.emulators).

    PYTHON benchmarks/emulator_processes.py NAME ROM NUM_ENVS CORE

Imports nothing but NumPy and the emulator, so that each may have an interpreter of its own. It answers a line of JSON:
first its versions, then for each number of steps the seconds that they took and the shades of env 0's last picture.
A step presses a random button for 8 frames, releases it, runs 16 more, and reads the last frame's picture at half its
size, (72, 80) uint8.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

FRAMES, HELD = 24, 8
BOOT_FRAMES = 65  # of PyBoy's boot ROM, behind which the others begin
BUTTONS = ("", "a", "b", "start", "up", "down", "left", "right")
ACTIONS = np.random.Generator(np.random.PCG64(7)).integers(0, len(BUTTONS), 1_000_000)
Step = Callable[[int], Any]


def gbxcule(rom: str, num_envs: int, **options: Any) -> Step:
    """`num_envs` Game Boys of this project as an environment: a step has also rewards, episodes and statistics."""
    from gbxcule_puffer.env import GBxCuLEEnv

    env = GBxCuLEEnv(
        rom, num_envs, num_threads=1, max_steps=1_000_000, frames_per_step=FRAMES, release_after_frames=HELD, **options
    )
    env.reset(seed=0)
    offsets = np.arange(num_envs)

    def step(index: int) -> np.ndarray:
        env.step(ACTIONS[index + offsets * 1000].astype(np.int32))
        return env.observations[0].reshape(72, 80)

    return step


def pyboy(rom: str, sound: bool) -> Step:
    """PyBoy; sound: its samples are made too."""
    from pyboy import PyBoy

    game = PyBoy(rom, window="null", sound_emulated=sound, cgb=False, log_level="ERROR")
    game.set_emulation_speed(0)
    game.tick(BOOT_FRAMES, False, False)
    shades = {255: 0, 153: 1, 85: 2, 0: 3}
    table = np.array([shades.get(level, 0) for level in range(256)], dtype=np.uint8)

    def step(index: int) -> np.ndarray:
        button = BUTTONS[ACTIONS[index]]
        if button:
            game.button_press(button)
        game.tick(HELD, False, sound)
        if button:
            game.button_release(button)
        game.tick(FRAMES - HELD, True, sound)
        return table[game.screen.ndarray[::2, ::2, 0]]

    return step


def stable_retro(rom: str) -> Step:
    """stable-retro's Game Boy core, gambatte, without its Gymnasium env; it always makes pictures and sound."""
    import stable_retro  # pyright: ignore[reportMissingImports]

    game = stable_retro.RetroEmulator(rom)
    names = ["b", "", "select", "start", "up", "down", "left", "right", "a"]
    masks = {name: np.array([bool(name) and each == name for each in names], dtype=np.uint8) for name in BUTTONS}

    def step(index: int) -> np.ndarray:
        game.set_button_mask(masks[BUTTONS[ACTIONS[index]]], 0)
        for _ in range(HELD):
            game.step()
        game.set_button_mask(masks[""], 0)
        for _ in range(FRAMES - HELD):
            game.step()
        return 3 - game.get_screen()[::2, ::2, 0] // 64

    return step


CONTENDERS: dict[str, tuple[str, Callable[[str, int], Step]]] = {
    "gbxcule": ("warp-lang", lambda rom, n: gbxcule(rom, n)),
    "gbxcule, native": ("warp-lang", lambda rom, n: gbxcule(rom, n, native=True)),
    "pyboy": ("pyboy", lambda rom, _: pyboy(rom, False)),
    "pyboy, sound": ("pyboy", lambda rom, _: pyboy(rom, True)),
    "stable-retro": ("stable-retro", lambda rom, _: stable_retro(rom)),
}


def main() -> None:
    name, rom, num_envs, core = sys.argv[1:]
    os.sched_setaffinity(0, {int(core)})
    package, make = CONTENDERS[name]
    step = make(rom, int(num_envs))
    print(json.dumps({package: version(package), "numpy": np.__version__}), flush=True)
    done = 0
    for line in sys.stdin:
        start, picture = time.perf_counter(), None
        for done in range(done, done + int(line)):  # noqa: B020
            picture = step(done)
        seconds = time.perf_counter() - start
        done += 1
        print(json.dumps({"seconds": seconds, "picture": np.asarray(picture).tobytes().hex()}), flush=True)


if __name__ == "__main__":
    main()
