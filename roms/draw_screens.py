"""Draw the pictures of our games in the documentation.

    PYTHONPATH=. python3 roms/draw_screens.py homeward docs/images/homeward_stages.png
    PYTHONPATH=. python3 roms/draw_screens.py suite docs/images/suite.png

Four pictures, two in a row at twice the size: of HOMEWARD's committed solution, or of the suite's players at ORCHARD
and STOREROOM. Needs the package and Pillow.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.registry import env_creator
from gbxcule_puffer.suite import GAMES
from gbxcule_puffer.tasks.actions import CODECS, DEFAULT_CODEC

HERE = Path(__file__).parent
SCALE, GAP = 2, 8


def play(stage, actions):
    """The picture after a stage's start and then `actions`, shades 0..3."""
    codec = CODECS[DEFAULT_CODEC]
    emulator = Emulator(HERE / "homeward.gb", screen="full")
    for action in codec.parse([*stage["start_actions"], *actions]):
        emulator.step(torch.tensor([codec.to_buttons(action)], dtype=torch.uint8))
    return emulator.screen[0].numpy().copy()


def homeward_pictures():
    """On the way to the sign, at it, the menu, the parcel at home."""
    second, third = (json.loads((HERE / "homeward" / f"{name}.json").read_text()) for name in ("stage2", "stage3"))
    way, errand = second["solve_actions"], third["solve_actions"]
    return [
        play(second, way[: way.index("A") - 4]),
        play(second, way),
        play(third, [*errand[: errand.index("A") + 2], "START"]),
        play(third, errand),
    ]


def suite_pictures():
    """Two of each game as its player plays it."""
    pictures = []
    for name, steps in (("orchard", (5, 75)), ("storeroom", (1, 11))):
        env = env_creator(f"gbxcule_{name}-test")(1, io="torch", obs="full", info_mode="none")
        player = GAMES[name].player(env)
        env.reset(seed=2)
        for step in range(steps[-1]):
            env.step(player(env.observations))
            if step + 1 in steps:
                pictures.append(env.observations[0, -1].numpy().copy())
    return pictures


def main():
    pictures = {"homeward": homeward_pictures, "suite": suite_pictures}[sys.argv[1]]()
    tiles = [np.pad(255 - 85 * picture, GAP // 2, constant_values=255) for picture in pictures]
    sheet = np.vstack([np.hstack(tiles[:2]), np.hstack(tiles[2:])]).astype(np.uint8)
    image = Image.fromarray(sheet)
    image.resize((image.width * SCALE, image.height * SCALE), Image.Resampling.NEAREST).save(sys.argv[2], optimize=True)


if __name__ == "__main__":
    main()
