"""Streaming A2C on HOMEWARD with thousands of Game Boys: success and entropy over steps, with and without the floor.

    python -m benchmarks.training.a2c_sizes --out benchmarks/results/h100/a2c_sizes.json

Each training is a process of its own, `--at-once` of them share the GPU; so no time is recorded. A curve's row has the
steps over all environments, the share of episodes that reach the goal, and the entropy of the policy in nats.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

from gbxcule_puffer.files import check_target, write_json
from gbxcule_puffer.layout import SCRIPTS
from gbxcule_puffer.provenance import device_name, git_sha

NO_FLOOR = 1e-6  # the least that the trainer takes
CURVE = ("charts/success_rate", "losses/entropy")
ROWS = 40  # of a curve


def train(num_envs: int, adv_floor: float, seed: int, steps: int, folder: Path) -> dict[str, Any]:
    """One training, as an entry of the record.

    Raises: RuntimeError with the trainer's last line where it fails.
    """
    run_dir = folder / f"{num_envs}-{adv_floor}-{seed}"
    words = ["--env", "gbxcule", "--num-envs", num_envs, "--adv-floor", adv_floor, "--seed", seed]
    words += ["--total-env-steps", steps, "--eval-every-steps", steps, "--media-every", 10**12, "--run-dir", run_dir]
    command = [sys.executable, str(SCRIPTS / "a2c_streaming.py"), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{run_dir.name}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    records = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    last = {name: value for record in records for name, value in record.items()}
    curve = [[record["global_step"], *(record.get(name) for name in CURVE)] for record in records if CURVE[1] in record]
    return {
        **{"num_envs": num_envs, "adv_floor": adv_floor, "seed": seed, "steps": last["global_step"]},
        **{name: last.get(name) for name in ("eval/success_rate", "eval/greedy_success")},
        "curve": curve[:: max(1, len(curve) // ROWS)],
    }


def main() -> int:
    """Trains all of them and writes the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-envs", type=int, nargs="+", default=[8_192, 16_384])
    parser.add_argument("--adv-floor", type=float, nargs="+", default=[0.1, NO_FLOOR])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=20_000_000, help="of each training, over all environments")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--out", type=Path, required=True, help="JSON file for the record")
    args = parser.parse_args()
    check_target(args.out)
    plans = list(product(args.num_envs, args.adv_floor, args.seeds))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.at_once) as pool:
        runs = list(pool.map(lambda plan: train(plan[0], plan[1], plan[2], args.steps, Path(folder)), plans))
    record = {"device": device_name("cuda"), "git_sha": git_sha(), "curve": ["step", *CURVE], "runs": runs}
    write_json(args.out, record)
    for run in runs:
        found = [run["num_envs"], run["adv_floor"], run["seed"], run["steps"], *run["curve"][-1][1:]]
        print(*found, run["eval/success_rate"], run["eval/greedy_success"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
