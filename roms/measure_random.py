"""Measure what uniformly random actions reach: how often they solve a stage of HOMEWARD within its max_steps, how many
maps of GATEWARD they see, how often they come from one milestone of GATEWARD to the next, or which milestones they
reach with an archive of states; and which battles of GATEWARD are won by pressing A.

    PYTHONPATH=. python3 roms/measure_random.py --stage stage1 --episodes 2048
    PYTHONPATH=. python3 roms/measure_random.py --gateward 10000 --episodes 64
    PYTHONPATH=. python3 roms/measure_random.py --milestones 512 --episodes 8
    PYTHONPATH=. python3 roms/measure_random.py --archive 2000000 --behind 0.6
    PYTHONPATH=. python3 roms/measure_random.py --battles 250

An episode counts as a success when the picture of the stage's last state is seen at the end of 4 steps in a row.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.registry import env_creator
from gbxcule_puffer.tasks.actions import CODECS, DEFAULT_CODEC

HERE = Path(__file__).parent
GOAL_STEPS = 4
NUM_ENVS = 256
CELL = "ram:wCurMap,wYCoord,wXCoord,wTextBoxOpen,wIsInBattle,wPartyMon1Level,milestones"


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


def keep_states(folder):
    """Replay the scripted win of GATEWARD; write a state for its start and each milestone but the last. Returns their
    names and steps, with the win's own."""
    env = env_creator("gbxcule", game="gateward")(1, io="torch", info_mode="none", milestone_slots=1, milestone_share=0)
    env.reset(seed=1)
    actions = json.loads((HERE / "gateward/played.json").read_text())["actions"]
    found, before = [("start", 0)], env.milestones.held[:, 0].clone()
    env.emulator.save(0).to_file(folder / "00.state")
    for step, action in enumerate(actions[:-1], 1):
        env.step(torch.tensor([env.codec.actions.index(action)]))
        new = env.milestones.held[:, 0] & ~before
        if new.any():
            env.emulator.save(0).to_file(folder / f"{len(found):02}.state")
            found.append((env.milestones.names[int(new.nonzero()[-1])], step))
            before = env.milestones.held[:, 0].clone()
    return [*found[: len(env.milestones.names)], (env.milestones.names[-1], len(actions))]


def count_next(steps, episodes, seed):
    """Print how many random players come from each milestone of GATEWARD to a further one in this many steps, without
    START and NOOP, and how many steps the scripted player takes."""
    with tempfile.TemporaryDirectory() as folder:
        found = keep_states(Path(folder))
        starts = sorted(map(str, Path(folder).glob("*.state")))[: len(found) - 1]
        options = {"io": "torch", "info_mode": "none", "max_steps": steps + 1, "milestone_slots": 1}
        options |= {"milestone_share": 0, "action_codec": "A,B,UP,DOWN,LEFT,RIGHT"}
        options |= {"start_state": starts, "curriculum": "by_env"}
        env = env_creator("gbxcule", game="gateward")(len(starts) * episodes, **options)
    env.reset(seed=seed)
    generator = torch.Generator().manual_seed(seed)
    before = env.milestones.held.sum(0)
    for _ in range(steps):
        env.step(torch.randint(6, before.shape, generator=generator))
    came = (env.milestones.held.sum(0) > before).view(episodes, -1).sum(0).tolist()  # env i begins at start i % starts
    for (name, at), (then, later), count in zip(found, found[1:], came, strict=False):
        print(f"{name:18} to {then:18} {later - at:4} steps; random: {count} of {episodes}")


def explore(steps, seed, behind, repeat):
    """Print when random players with an archive of states reach each milestone of GATEWARD. Each button is the last one
    with the chance `repeat`."""
    options = {"io": "torch", "info_mode": "none", "max_steps": 512, "action_codec": "A,B,UP,DOWN,LEFT,RIGHT"}
    options |= {"archive_slots": 16384, "archive_share": 0.98, "archive_steps": 64, "archive_behind": behind}
    options |= {"visit_key": CELL, "sticky_actions": repeat, "visited_obs": 0, "ram_obs": None}
    env = env_creator("gbxcule", game="gateward")(128, **options)
    env.reset(seed=seed)
    generator, known = torch.Generator().manual_seed(seed), set()
    for step in range(0, steps, 128):
        env.step(torch.randint(6, (128,), generator=generator))
        new = {} if step % 8192 else set(env.milestones.reached.nonzero()[:, 0].tolist()) - known
        for number in sorted(new):
            known.add(number)
            print(f"{env.milestones.names[number]:18} by step {step:,}", flush=True)


def press_on(steps):
    """Print which of the battles with trainers in the scripted win of GATEWARD are won by pressing A this often."""
    env = env_creator("gbxcule", game="gateward")(1, io="torch", info_mode="none")
    env.reset(seed=1)
    actions, known = json.loads((HERE / "gateward/played.json").read_text())["actions"], 0
    names = ["wTrainerNo", "wPartyMon1Level", "wBattlesWon", "wBlackouts"]
    with tempfile.TemporaryDirectory() as folder:
        starts, before = [], []
        for action in actions[:-1]:
            env.step(torch.tensor([env.codec.actions.index(action)]))
            known, was = int(env.ram["wIsInBattle"]), known
            if known == 2 and was != 2:
                starts.append(str(Path(folder) / f"{len(starts):02}.state"))
                env.emulator.save(0).to_file(starts[-1])
                before.append(env.ram[names][0].tolist())
        options = {"io": "torch", "info_mode": "none", "start_state": starts, "curriculum": "by_env"}
        env = env_creator("gbxcule", game="gateward")(len(starts), max_steps=steps + 1, **options)
    env.reset(seed=1)
    ended = torch.zeros(len(starts), dtype=torch.int64)  # 1 won, 2 lost
    for _ in range(steps):
        env.step(torch.full((len(starts),), env.codec.actions.index("A")))
        change = env.ram[names][:, 2:] - torch.tensor(before)[:, 2:]
        ended = torch.where(ended > 0, ended, (change[:, 0] > 0) + 2 * (change[:, 1] > 0))
    for (trainer, level, *_), end in zip(before, ended.tolist(), strict=True):
        print(f"trainer {trainer:2}, level {level}: {('not over', 'won', 'lost')[end]}")
    print(f"{int((ended == 1).sum())} of {len(starts)} won, {int((ended == 2).sum())} lost")


def main():
    parser = argparse.ArgumentParser(description="Measure what random actions reach.")
    parser.add_argument("--stage", default="stage1", help="name of a file in homeward/")
    parser.add_argument("--episodes", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gateward", type=int, metavar="STEPS", help="count the maps of GATEWARD seen in STEPS steps")
    parser.add_argument("--milestones", type=int, metavar="STEPS", help="from each milestone of GATEWARD, STEPS steps")
    parser.add_argument("--archive", type=int, metavar="STEPS", help="with an archive of states, STEPS steps of all")
    parser.add_argument("--behind", type=float, default=0.6, help="archive_behind of --archive")
    parser.add_argument("--repeat", type=float, default=0.5, help="sticky_actions of --archive")
    parser.add_argument("--battles", type=int, metavar="STEPS", help="of GATEWARD's scripted win, STEPS presses of A")
    args = parser.parse_args()
    if args.battles:
        return press_on(args.battles)
    if args.archive:
        return explore(args.archive, args.seed, args.behind, args.repeat)
    if args.milestones:
        return count_next(args.milestones, args.episodes, args.seed)
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
