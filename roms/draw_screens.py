"""Draw the pictures of HOMEWARD in the documentation.

    PYTHONPATH=. python3 roms/draw_screens.py docs/images/homeward_stages.png

Four pictures of the committed solution, two in a row at twice the size. Needs the package and Pillow.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from gbxcule_puffer.emulator import Emulator
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


def main():
    second, third = (json.loads((HERE / "homeward" / f"{name}.json").read_text()) for name in ("stage2", "stage3"))
    way, errand = second["solve_actions"], third["solve_actions"]
    pictures = [
        play(second, way[: way.index("A") - 4]),
        play(second, way),
        play(third, [*errand[: errand.index("A") + 2], "START"]),
        play(third, errand),
    ]
    tiles = [np.pad(255 - 85 * picture, GAP // 2, constant_values=255) for picture in pictures]
    sheet = np.vstack([np.hstack(tiles[:2]), np.hstack(tiles[2:])]).astype(np.uint8)
    image = Image.fromarray(sheet)
    image.resize((image.width * SCALE, image.height * SCALE), Image.Resampling.NEAREST).save(sys.argv[1], optimize=True)


if __name__ == "__main__":
    main()
