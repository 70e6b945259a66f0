"""Measure how often uniformly random actions leave the house of HOMEWARD within 128 steps.

    python3 roms/measure_stage1.py --episodes 400

An episode counts as a success when the picture of homeward/stage1.json's last state is seen
at the end of 4 steps in a row. Needs pyboy and numpy.
"""

import argparse
import io
import json
import multiprocessing
import time
from pathlib import Path

import numpy
from pyboy import PyBoy

HERE = Path(__file__).parent
ACTIONS = ("NOOP", "A", "B", "START", "UP", "DOWN", "LEFT", "RIGHT")
BOOT_FRAMES, PRESS_FRAMES, RELEASE_FRAMES = 65, 8, 16
EPISODE_STEPS, GOAL_STEPS = 128, 4


class Game:
    """HOMEWARD in PyBoy, at the start of stage 1."""

    def __init__(self):
        self.stage = json.loads((HERE / "homeward" / "stage1.json").read_text(encoding="utf-8"))
        rom = (HERE / self.stage["rom"]).read_bytes()
        self.pyboy = PyBoy(io.BytesIO(rom), window="null", sound_emulated=False, cgb=False)
        for _ in range(BOOT_FRAMES):
            self.pyboy.tick(1, True, False)
        self.play(self.stage["start_actions"])

    def step(self, action):
        """One action: press, 8 frames, release, 16 frames."""
        if action != "NOOP":
            self.pyboy.button_press(action.lower())
        self.pyboy.tick(PRESS_FRAMES, False, False)
        if action != "NOOP":
            self.pyboy.button_release(action.lower())
        self.pyboy.tick(RELEASE_FRAMES, True, False)

    def play(self, actions):
        """Several actions."""
        for action in actions:
            self.step(action)

    def picture(self):
        """The screen's red channel, a copy."""
        return self.pyboy.screen.ndarray[:, :, 0].copy()


def run_episodes(job):
    """(steps to success or None) for each of `count` episodes."""
    seed, count = job
    random = numpy.random.default_rng(seed)
    game = Game()
    start = io.BytesIO()
    game.pyboy.save_state(start)
    game.play(game.stage["solve_actions"])
    goal = game.picture()
    results = []
    for _ in range(count):
        start.seek(0)
        game.pyboy.load_state(start)
        in_a_row, result = 0, None
        for step in range(EPISODE_STEPS):
            game.step(ACTIONS[random.integers(len(ACTIONS))])
            in_a_row = in_a_row + 1 if numpy.array_equal(game.picture(), goal) else 0
            if in_a_row == GOAL_STEPS:
                result = step + 1
                break
        results.append(result)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    each = -(-args.episodes // args.processes)
    jobs = [(args.seed + 1000 * n, each) for n in range(args.processes)]
    began = time.perf_counter()
    with multiprocessing.Pool(args.processes) as pool:
        results = [r for batch in pool.map(run_episodes, jobs) for r in batch]
    wall = time.perf_counter() - began
    steps = sum(result or EPISODE_STEPS for result in results)
    successes = [result for result in results if result]
    print(f"success {len(successes)}/{len(results)} = {len(successes) / len(results):.1%}")
    print(f"{wall / steps * args.processes * 1000:.2f} ms per step and process")


if __name__ == "__main__":
    main()
