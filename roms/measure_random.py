"""Measure what uniformly random actions reach: how often they solve a stage of HOMEWARD within its max_steps, or
how many maps of GATEWARD they see.

    PYTHONPATH=. python3 roms/measure_random.py --stage stage1 --episodes 2048
    PYTHONPATH=. python3 roms/measure_random.py --gateward 10000 --episodes 64

An episode counts as a success when the picture of the stage's last state is seen at the end of 4 steps in a row.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.registry import env_creator
from gbxcule_puffer.tasks.actions import CODECS, DEFAULT_CODEC

HERE = Path(__file__).parent
GOAL_STEPS = 4
NUM_ENVS = 256


def count_maps(steps, episodes, seed):
    """Print the number of maps of GATEWARD that random players see in this many steps from the bedroom on."""
    options = {"io": "torch", "info_mode": "none", "max_steps": steps}
    env = env_creator("gbxcule", game="gateward")(episodes, **options)
    env.reset(seed=seed)
    generator = torch.Generator().manual_seed(seed)
    maps = torch.zeros((episodes, 256), dtype=torch.bool)
    for _ in range(steps):
        maps.scatter_(1, env.ram["wCurMap"].long()[:, None], True)
        env.step(torch.randint(8, (episodes,), generator=generator))
    seen = maps.sum(1)
    mean = float(seen.float().mean())
    print(f"GATEWARD: {mean:.2f} maps in the mean of {episodes} players in {steps:,} steps, {int(seen.max())} at most")


def main():
    parser = argparse.ArgumentParser(description="Measure what random actions reach.")
    parser.add_argument("--stage", default="stage1", help="name of a file in homeward/")
    parser.add_argument("--episodes", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gateward", type=int, metavar="STEPS", help="count the maps of GATEWARD seen in STEPS steps")
    args = parser.parse_args()
    if args.gateward:
        return count_maps(args.gateward, args.episodes, args.seed)
    codec = CODECS[DEFAULT_CODEC]
    stage = json.loads((HERE / "homeward" / f"{args.stage}.json").read_text())
    emulator = Emulator(HERE / stage["rom"], NUM_ENVS)

    def play(names):
        for action in codec.parse(names):
            emulator.step(torch.full((NUM_ENVS,), codec.to_buttons(action), dtype=torch.uint8))

    play(stage["start_actions"])
    start = emulator.save(0)
    play(stage["solve_actions"])
    goal = emulator.screen[0].clone()

    buttons = np.array([codec.to_buttons(action) for action in range(codec.num_actions)], np.uint8)
    random = np.random.default_rng(args.seed)
    successes = played = 0
    while played < args.episodes:
        emulator.load(start)
        in_a_row = torch.zeros(NUM_ENVS, dtype=torch.int64)
        solved = torch.zeros(NUM_ENVS, dtype=torch.bool)
        for _ in range(stage["max_steps"]):
            emulator.step(torch.from_numpy(buttons[random.integers(0, len(buttons), NUM_ENVS)]))
            in_a_row = (in_a_row + 1) * (emulator.screen == goal).all(2).all(1)
            solved |= in_a_row == GOAL_STEPS
        successes += int(solved.sum())
        played += NUM_ENVS
    print(f"{args.stage}: {successes} of {played} episodes = {successes / played:.2%} in {stage['max_steps']} steps")


if __name__ == "__main__":
    main()
