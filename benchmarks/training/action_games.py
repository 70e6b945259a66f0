"""What the length of a step, START among the buttons and sticky actions do to action games (docs/action-games.md).

    python -m benchmarks.training.action_games --device cuda --steps 20000000 --seeds 1,2,3 --out action_games.json

Two games, ORCHARD of the suite and Rex Runner of the shared homebrew; each variant differs from the first one in one
thing, and is a training of its own with PPO, for the same steps. All episodes last as many frames at most, so the
scores are of the same time in the game. A policy is measured as it was trained, and its likeliest actions with sticky
ones, too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.workload import ROOT, shared_folder
from gbxcule_puffer.device import resolve_device
from gbxcule_puffer.errors import ConfigError, GBxCuLEError
from gbxcule_puffer.files import check_target, write_json
from gbxcule_puffer.layout import SCRIPTS
from gbxcule_puffer.provenance import cpu_name, device_name, git_sha
from gbxcule_puffer.tasks.start import play_to_start
from gbxcule_puffer.trainers.evaluation import evaluate
from gbxcule_puffer.trainers.trained import Trained

NEVER = 10**15
EPISODE = 6144  # frames at most, a minute and three quarters
STICKY = 0.25
BUTTONS = {"orchard": "NOOP,LEFT,RIGHT", "rex": "NOOP,A"}  # that the games use
# Frames of a step, frames after which its buttons are released, more buttons, probability of a sticky action.
VARIANTS: dict[str, tuple[int, int, str, float]] = {
    "8 frames": (8, 8, "", 0.0),
    "4 frames": (4, 4, "", 0.0),
    "24 frames": (24, 8, "", 0.0),
    "with START": (8, 8, ",START", 0.0),
    "sticky": (8, 8, "", STICKY),
}
POLICIES = ("sampled", "greedy", "greedy_sticky", "random")
BEGIN = ["NOOP"] * 6 + ["A", "NOOP"]  # from power-on to where Rex runs


def flags_of(game: str, variant: str, folder: Path) -> dict[str, object]:
    """The flags of a training that say what is played; makes Rex Runner's start in `folder`.

    Raises: ConfigError where the shared homebrew is missing.
    """
    frames, release, more, sticky = VARIANTS[variant]
    flags: dict[str, object] = {"frames_per_step": frames, "release_after_frames": release}
    flags["action_codec"] = BUTTONS[game] + more
    flags |= {"sticky_actions": sticky, "max_steps": EPISODE // frames, "start_waits": 15}
    if game == "orchard":
        return flags | {"env": "gbxcule_orchard"}
    shared = shared_folder()
    if shared is None:
        raise ConfigError("Rex Runner is in the shared homebrew: put it beside the repository as ../shared")
    rom, start, names = shared / "roms/homebrew/rex-runner.gb", folder / "rex.state", folder / "begin.txt"
    names.write_text(" ".join(BEGIN))
    play_to_start(rom, names).to_file(start)
    return flags | {"rom": rom, "start_state": start, "task": f"{ROOT / 'docs/rex_runner.py'}:Runner"}


def run(plan: Any, game: str, variant: str, seed: int, folder: Path) -> dict[str, Any]:
    """A training and its two measurements, as a row of the record."""
    own = flags_of(game, variant, folder)
    run_dir = folder / f"{game}-{variant.replace(' ', '-')}-{seed}"
    flags = own | {"seed": seed, "device": plan.device, "run_dir": run_dir, "total_env_steps": plan.steps}
    flags |= {"eval_every_steps": NEVER, "checkpoint_every": NEVER, "media_every": NEVER}
    flags |= {"num_envs": plan.num_envs} if plan.num_envs else {}
    flags |= {"eval_envs": plan.episodes, "eval_episodes": plan.episodes}
    _call(SCRIPTS / "ppo_lite.py", flags)
    records = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    last = {name: value for record in records for name, value in record.items()}
    found: dict[str, Any] = {"game": game, "variant": variant, "seed": seed, "steps": last["global_step"]}
    for policy, prefix in (("sampled", "eval/"), ("greedy", "eval/greedy_"), ("random", "eval/random_")):
        found[policy] = last[f"{prefix}task/score"]
    if "eval/task/paused" in last:
        found["paused"] = last["eval/task/paused"]
    trained = Trained(run_dir)
    env = trained.open_env(plan.episodes, resolve_device(plan.device), seed, sticky_actions=STICKY)
    found["greedy_sticky"] = evaluate(trained.policy(env, seed, True), env, plan.episodes, seed)["task/score"]
    env.close()
    return found


def _call(script: Path, flags: dict[str, object]) -> None:
    """Runs a script.

    Raises: RuntimeError with its last message where it fails.
    """
    words = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    done = subprocess.run([sys.executable, str(script), *words], capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(f"{script.name}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows' mean scores over their seeds as a Markdown table."""
    columns = ("steps", *POLICIES)
    lines = [
        f"| game | variant | seeds | {' | '.join(columns)} |",
        "| --- | --- " + "| ---: " * (1 + len(columns)) + "|",
    ]
    for game, variant in dict.fromkeys((row["game"], row["variant"]) for row in rows):
        own = [row for row in rows if (row["game"], row["variant"]) == (game, variant)]
        means = {name: sum(row[name] for row in own) / len(own) for name in columns}
        cells = [
            game,
            variant,
            str(len(own)),
            f"{means.pop('steps'):,.0f}",
            *(f"{mean:.1f}" for mean in means.values()),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Trains and measures every variant, writes the record after each, and prints the table."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.training.action_games", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--game", default="orchard,rex", help="games, with commas between them (default: both)")
    parser.add_argument("--variant", default=",".join(VARIANTS), help="variants, with commas (default: all)")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--steps", type=int, default=20_000_000, help="of a training (default: 20,000,000)")
    parser.add_argument("--episodes", type=int, default=64, help="of an evaluation, all at once (default: 64)")
    parser.add_argument("--num-envs", type=int, help="Game Boys (default: the trainer's)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True, help="JSON file for the record")
    plan = parser.parse_args(argv)
    try:
        check_target(plan.out)
        name = device_name(plan.device) if plan.device.startswith("cuda") else cpu_name()
        record: dict[str, Any] = {"device": name, "git_sha": git_sha(), "steps": plan.steps, "rows": []}
        with tempfile.TemporaryDirectory() as folder:
            for seed in map(int, plan.seeds.split(",")):
                for game in plan.game.split(","):
                    for variant in plan.variant.split(","):
                        row = run(plan, game, variant, seed, Path(folder))
                        record["rows"].append(row)
                        write_json(plan.out, record)
                        print(row, flush=True)
        print(table(record["rows"]))
    except (RuntimeError, GBxCuLEError) as error:
        print(f"benchmarks.training.action_games: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
