"""Draw the pictures of our games in the documentation.

    PYTHONPATH=. python3 roms/draw_screens.py homeward docs/images/homeward_stages.png
    PYTHONPATH=. python3 roms/draw_screens.py suite docs/images/suite.png
    PYTHONPATH=. python3 roms/draw_screens.py gateward docs/images/gateward.png

Four pictures, two in a row at twice the size: of HOMEWARD's committed solution, or of the suite's players at ORCHARD
and STOREROOM. Of GATEWARD twelve, four in a row, as a Game Boy Color shows them to its player. Needs the package and
Pillow.
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
GATEWARD_AIMS = {  # of walkthrough.txt, and the buttons after them
    "talk home.2": (),
    "talk lodge.4": ("DOWN",) * 6,
    "talk route1.3": (),
    "talk larkmoor_inn.1": ("START", "A"),
    "talk route3.3": (),
    "talk hollow2.3": (),
    "talk cinderholt_hall.1": ("A",),
    "talk strand.4": (),
    "talk sea1.3": (),
}
GATEWARD_FIGHTS = ("PEBBLIN", "SCORCHEN")


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


def gateward_pictures():
    """The title, and what its player sees at these aims and in these fights."""
    sys.path.append(str(HERE / "gateward"))
    from player import Fighter, Player

    title = Emulator(HERE / "gateward.gb", model="cgb", screen="full")
    title.step(torch.zeros(1, dtype=torch.uint8))
    pictures = [colours(title)]
    aims, fights = dict(GATEWARD_AIMS), list(GATEWARD_FIGHTS)

    class Filmed(Player):
        def fight(self):
            foe = self.species[Fighter.of(self.memory.bytes("wEnemyMon", 44)).species]
            if foe in fights and self.memory["wMenuOpen"]:
                fights.remove(foe)
                pictures.append(colours(self.emulator))
            super().fight()

    player = Filmed(HERE / "gateward.gb", model="cgb", screen="full")
    for line in (HERE / "gateward" / "walkthrough.txt").read_text().splitlines():
        if not aims and not fights:
            return pictures
        if line and line[0] != ";":
            player.follow(line)
        if line in aims:
            before = player.emulator.save()
            for button in aims.pop(line):
                player.step(button)
            pictures.append(colours(player.emulator))
            player.emulator.load(before)
    raise SystemExit("walkthrough.txt does not have all of these aims and fights")


def colours(emulator):
    """The picture of a Game Boy Color, shape (144, 160, 3)."""
    value = emulator.colors[0].numpy().astype(int)
    return np.stack([(value >> shift & 31) * 255 // 31 for shift in (0, 5, 10)], 2)


def main():
    drawings = {"homeward": homeward_pictures, "suite": suite_pictures, "gateward": gateward_pictures}
    pictures = drawings[sys.argv[1]]()
    columns = len(pictures) // 3 if len(pictures) > 4 else 2
    pictures = [picture if picture.ndim == 3 else 255 - 85 * picture for picture in pictures]
    edges = [((GAP // 2,) * 2,) * 2 + ((0, 0),) * (picture.ndim - 2) for picture in pictures]
    tiles = [np.pad(picture, edge, constant_values=255) for picture, edge in zip(pictures, edges, strict=True)]
    rows = [np.hstack(tiles[i : i + columns]) for i in range(0, len(tiles), columns)]
    image = Image.fromarray(np.vstack(rows).astype(np.uint8))
    image.resize((image.width * SCALE, image.height * SCALE), Image.Resampling.NEAREST).save(sys.argv[2], optimize=True)


if __name__ == "__main__":
    main()
