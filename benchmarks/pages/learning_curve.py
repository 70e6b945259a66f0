"""Draw the README's learning curves from the metrics.jsonl of two runs.

python -m benchmarks.pages.learning_curve --out docs/images/learning_curve.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from gbxcule_puffer.files import new_file

RESULTS = Path(__file__).resolve().parents[1] / "results"
CPU = RESULTS / "a2c_homeward_cpu_metrics.jsonl"
H200 = RESULTS / "h200" / "a2c_homeward_8192_seed1_metrics.jsonl"


def success(path: Path) -> tuple[list[float], list[float], float]:
    """Steps, success rate of the episodes that ended, and the random policy's rate.

    Two records are averaged: an interval shorter than an episode has either all of its truncations or none.
    """
    records = [json.loads(line) for line in path.read_text().splitlines()]
    random = next(r["eval/random_success_rate"] for r in records if "eval/random_success_rate" in r)
    timed = [r for r in records if "charts/success_rate" in r]
    steps, rates = [], []
    for first, second in zip(timed[::2], timed[1::2], strict=False):
        counts = first["env/episodes"], second["env/episodes"]
        won = first["charts/success_rate"] * counts[0] + second["charts/success_rate"] * counts[1]
        steps.append(second["global_step"])
        rates.append(won / sum(counts))
    return steps, rates, random


def main() -> None:
    """Write the picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    figure, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
    panels = ((CPU, 1e3, "thousands (64 envs, 2 CPU cores)"), (H200, 1e6, "millions (8,192 envs, one H200)"))
    for axis, (path, unit, label) in zip(axes, panels, strict=True):
        steps, rates, random = success(path)
        axis.plot([step / unit for step in steps], rates, lw=1.5, label="streaming A2C")
        axis.axhline(random, color="gray", ls="--", lw=1, label="random policy")
        axis.set_xlabel(f"env steps, {label}")
        axis.set_ylim(0, 1.03)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.2)
    axes[0].set_ylabel("success rate")
    axes[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    with new_file(args.out) as file:
        figure.savefig(file, format="png", dpi=110)


if __name__ == "__main__":
    main()
