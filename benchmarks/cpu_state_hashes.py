"""Write what the CPU kernel computes for the eight games; tests/emulator/gpu compares a GPU with it.

    python -m benchmarks.cpu_state_hashes            # rewrites benchmarks/results/cpu_state_hashes.json

The machine with the GPU may have no compiler for CPU kernels, so the CPU's side of the comparison is stored. Write it
anew after a change of the machine's state; tests/emulator/test_cpu_state_hashes.py fails when it is out of date.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.workload import GAMES, ROOT, find_rom, random_buttons, seed_of, sha256
from gbxcule_puffer.files import write_json
from gbxcule_puffer.provenance import git_sha, versions

STORED = ROOT / "benchmarks" / "results" / "cpu_state_hashes.json"
NUM_ENVS = 64
STEPS = 200
CHECKPOINTS = (10, 50, 200)
"""Steps after which hashes are taken: the first that differs narrows a search down."""


def seed_of_game(game: str) -> int:
    """The seed of the game's button streams."""
    return seed_of(f"state-hash/{game}")


def run_game(game: str, device: str, num_envs: int = NUM_ENVS, last_step: int = STEPS) -> dict[str, dict[str, str]]:
    """Step number -> `states`, a hash for each environment, and `pictures`, one hash of all their 72x80 shades.

    Every stream has STEPS actions whatever `last_step`, so that env i plays the same in a shorter or narrower run.
    """
    from gbxcule_puffer.emulator import Emulator

    emulator = Emulator(find_rom(game), num_envs, device)
    buttons = torch.from_numpy(random_buttons(seed_of_game(game), STEPS, num_envs)).to(device)
    taken = {}
    for step in range(1, last_step + 1):
        emulator.step(buttons[step - 1])
        if step in CHECKPOINTS:
            pictures = np.ascontiguousarray(emulator.screen.cpu().numpy())
            taken[str(step)] = {
                "pictures": hashlib.blake2b(pictures.tobytes(), digest_size=8).hexdigest(),
                "states": " ".join(f"{int(state):016x}" for state in emulator.state_hash()),
            }
    return taken


def load_stored() -> dict[str, Any]:
    """The stored hashes."""
    return json.loads(STORED.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu (what the tests expect) or cuda:0")
    parser.add_argument("--out", type=Path, default=STORED, help="the JSON file to write")
    args = parser.parse_args()
    games = {}
    for game in GAMES:
        games[game] = {
            "rom_sha256": sha256(find_rom(game).read_bytes()),
            "action_seed": seed_of_game(game),
            "hashes": run_game(game, args.device),
        }
        final = games[game]["hashes"][str(STEPS)]["states"].split()
        print(f"{game}: {len(set(final))} distinct states of {NUM_ENVS}", flush=True)
    content = {
        "about": "random pokemonred_puffer_v1 actions from the booted state, benchmarks/cpu_state_hashes.py",
        "device": args.device,
        "num_envs": NUM_ENVS,
        "steps": STEPS,
        "frames_per_step": 24,
        "release_after_frames": 8,
        "git_sha": git_sha(),
        "versions": versions(),
        "games": games,
    }
    write_json(args.out, content)


if __name__ == "__main__":
    main()
