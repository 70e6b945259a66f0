"""Writer of docs/performance.md, its plot and README.md's figures: `python -m benchmarks.pages.performance`.

Read are the records in benchmarks/results/h200: every bench_*.json as `puffer bench` writes it, pyboy_alone.json,
stages_16384.json, step_cost.json and training_sps.json; in benchmarks/results/h100: games_*.json of
benchmarks/kernel/compare_trees.py; and in benchmarks/results/cpu: games/records.json and step_cost.json. Every
figure of the two pages is in a record.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.workload import ROOT
from gbxcule_puffer.apps.bench.report import plot
from gbxcule_puffer.files import write_text

RESULTS = ROOT / "benchmarks" / "results"
GPU = RESULTS / "h200"
PAGE, README = ROOT / "docs" / "performance.md", ROOT / "README.md"
PLOT = ROOT / "docs" / "images" / "scaling.png"
TEXT = Path(__file__).with_name("performance_text.md")
OURS = "gbxcule"
BEGIN, END = "<!-- speed, by python -m benchmarks.pages.performance -->\n", "<!-- end of speed -->\n"
FIGURES, FIGURES_END = "<!-- figures, by python -m benchmarks.pages.performance -->\n", "<!-- end of figures -->\n"
README_SIZES = GAMES_SIZES = (16_384, 131_072)
CPU_ENVS = 64
README_TEXT = """\
Environment steps per second on one {device}, beside the best that PyBoy 2.8.1 reached on all {cores} cores of the same
host. A step is 24 frames with the 72x80 picture; actions are random.

{gpu}

With training included, and an update every four steps, streaming A2C reaches {training} steps per second on HOMEWARD
with 16,384 environments, and {fastest} with `--cuda-graph --bf16 --reuse-values`, while actions are random.

On one CPU core, with all that `env.step` does, {cpu_envs} environments beside PyBoy on one core:

{cpu}
"""
README_FIGURES = """\
| HOMEWARD, one step is 24 frames and a picture | steps per second |
| --- | ---: |
| {size} Game Boys on one {device} | {rate} ({ratio} times PyBoy on all {cores} cores of the host) |
| {train_size}, played at random, and A2C on them, `--update-every 4 --cuda-graph --bf16 --reuse-values` | {fastest} |
| {cpu_envs} Game Boys on one CPU core | {cpu_rate} ({cpu_ratio} times PyBoy) |
"""
Record = dict[str, Any]


def read(path: Path) -> list[Record]:
    """The records of a file."""
    return json.loads(path.read_text())


def load_records(folder: Path = GPU) -> list[Record]:
    """The records of `puffer bench`, ours first; of several of the same, that of the last file."""
    records = [record for path in sorted(folder.glob("bench_*.json")) for record in read(path)]
    last = {(record["backend"], record["rom"], record["num_envs"]): record for record in records}
    return sorted(last.values(), key=lambda record: record["backend"] != OURS)


def best(records: Iterable[Record], rom: str, num_envs: int | None = None) -> float:
    """Our steps per second with a number of envs, or PyBoy's highest."""
    chosen = [record for record in records if record["rom"] == rom]
    if num_envs is None:
        return max(record["sps"] for record in chosen if record["backend"] != OURS)
    return next(record["sps"] for record in chosen if record["backend"] == OURS and record["num_envs"] == num_envs)


def rounded(value: float) -> str:
    """Three digits of a rate."""
    return f"{float(f'{value:.3g}'):,.0f}"


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def scaling_table(records: list[Record], alone: list[Record]) -> str:
    """A row for each game, a column for each number of envs; PyBoy's best rate, and the ratio to it at the largest
    number of envs that all games have."""
    ours = [record for record in records if record["backend"] == OURS]
    sizes = sorted({record["num_envs"] for record in ours})
    roms = dict.fromkeys(record["rom"] for record in ours)
    common = max(size for size in sizes if {r["rom"] for r in ours if r["num_envs"] == size} == set(roms))
    heads = ["game", *(f"{size:,} envs" for size in sizes), "PyBoy, all cores", f"ratio at {common:,}"]
    rows = []
    for rom in roms:
        rates = {record["num_envs"]: record["sps"] for record in ours if record["rom"] == rom}
        pyboy = best([*records, *alone], rom)
        last = max((record for record in ours if record["rom"] == rom), key=lambda record: record["num_envs"])
        counts = f"{last['instructions_a_step_mean']:,.0f} (most {last['instructions_a_step_max']:,})"
        cells = [f"{rates[size]:,.0f}" if size in rates else "" for size in sizes]
        rows.append([rom, *cells, f"{pyboy:,.0f}", f"{rates[common] / pyboy:.0f}", counts])
    return markdown([*heads, "instructions per step"], rows)


def parts_table() -> str:
    """What a step takes, part by part."""
    names = {
        "emulate_only": "the frames alone",
        "obs_only": "the frames and the observation",
        "reward_only": "the frames, the distance to the goal and the reward",
        "full_step": "all of `env.step`",
    }
    found = {(r["stage"], r["reset_every"]): r["ms_per_step"] for r in read(GPU / "stages_16384.json")}
    rows = [(f"{text} (`--stage {stage}`)", f"{found[stage, 0]:.2f}") for stage, text in names.items()]
    resets = ((every, ms) for (_, every), ms in sorted(found.items(), key=lambda item: item[0][1]) if every)
    rows += [(f"the same, each episode {every} step{'s'[: every - 1]} long", f"{ms:.2f}") for every, ms in resets]
    return markdown(["HOMEWARD, 16,384 envs", "ms per step"], rows)


def joined_table() -> str:
    """The step end as one kernel, beside the commit before it: the least of all measurements."""
    rows = []
    for device, path in (("one H200", GPU / "step_cost.json"), ("one CPU core", RESULTS / "cpu" / "step_cost.json")):
        records = read(path)
        before, after = dict.fromkeys(record["git_sha"] for record in records)
        for size in dict.fromkeys(record["num_envs"] for record in records):
            own = {sha: [r for r in records if (r["git_sha"], r["num_envs"]) == (sha, size)] for sha in (before, after)}
            ms = [f"{min(ms for r in own[sha] for ms in r['ms_a_step']):.3g}" for sha in (before, after)]
            python = [f"{min(ms for r in own[s] for ms in r.get('ms_in_python', [0])):.2g}" for s in (before, after)]
            launches = [str(own[sha][0].get("device_operations", "")) for sha in (before, after)]
            on_gpu = ["" if "H200" not in device else ", ".join(cell) for cell in (python, launches)]
            rows.append([f"{device}, {size:,} env{'s'[: size - 1]}", ", ".join(ms), *on_gpu])
    return markdown(["", "ms per step, before and after", "of it Python", "kernels and copies"], rows)


def games_tables() -> dict[str, str]:
    """The games before and after the kernel's speed work, as the text's words: the table, and the ratios."""
    found = {}
    for size in GAMES_SIZES:
        record = json.loads((RESULTS / "h100" / f"games_{size}.json").read_text())
        ratios = [game["ratio"] for game in record["games"]]
        found |= {
            f"mean_{size}": f"{record['geometric_mean']:.2f}",
            f"range_{size}": f"{min(ratios):.2f} to {max(ratios):.2f}",
            f"count_{size}": str(len(ratios)),
            f"warmup_{size}": str(record["warmup"]),
            f"old_{size}": record["old"],
            f"new_{size}": record["new"],
        }
        rows = [
            [game["game"], *(f"{sum(game[tree]) / 2:,.0f}" for tree in ("old", "new")), f"{game['ratio']:.2f}"]
            for game in sorted(record["games"], key=lambda game: -game["ratio"])
        ]
        found[f"games_{size}"] = markdown(["game", "steps/s before", "after", "ratio"], rows)
    return found


def page(records: list[Record]) -> str:
    """docs/performance.md."""
    ours = [record for record in records if record["backend"] == OURS]
    return TEXT.read_text().format(
        device=ours[0]["device_name"],
        commits=", ".join(sorted({record["git_sha"] for record in ours})),
        table=scaling_table(records, read(GPU / "pyboy_alone.json")),
        parts=parts_table(),
        joined=joined_table(),
        **games_tables(),
    )


def readme(records: list[Record]) -> str:
    """README.md with the tables of today's records."""
    ours = [record for record in records if record["backend"] == OURS]
    alone = [*records, *read(GPU / "pyboy_alone.json")]
    rows = []
    for rom in dict.fromkeys(record["rom"] for record in ours):
        rates, pyboy = [best(ours, rom, size) for size in README_SIZES], best(alone, rom)
        ratios = (f"{rate / pyboy:.0f}" for rate in rates)
        rows.append([rom, *(rounded(rate) for rate in rates), rounded(pyboy), " and ".join(ratios)])
    cpu_records, cpu_rows = read(RESULTS / "cpu" / "games" / "records.json"), []
    for rom in dict.fromkeys(record["rom"] for record in ours):
        record = next(r for r in cpu_records if (r["rom"], r["backend"], r["num_envs"]) == (rom, OURS, CPU_ENVS))
        rate, ratio = record["sps"], record["ratio"]
        cpu_rows.append([rom, rounded(rate), rounded(rate / ratio), f"{ratio:.1f}"])
    training = {r["variant"]: r["sps"] for r in reversed(read(GPU / "training_sps_d339fc4.json"))}  # the first counts
    device = ours[0]["device_name"]
    cores = next(record["cores"] for record in records if record["backend"] != OURS)
    fastest = rounded(training["overlap+graph+bf16+reuse"])
    text = README_TEXT.format(
        device=device,
        cores=cores,
        gpu=markdown(["game", *(f"{size:,} envs" for size in README_SIZES), "PyBoy", "ratio"], rows),
        training=rounded(training["overlap"]),
        fastest=fastest,
        cpu_envs=CPU_ENVS,
        cpu=markdown(["game", "gbxcule-puffer", "PyBoy", "ratio"], cpu_rows),
    )
    homeward, on_cpu = rows[0], cpu_rows[0]
    figures = README_FIGURES.format(
        size=f"{README_SIZES[-1]:,}",
        device=device,
        rate=homeward[len(README_SIZES)],
        ratio=homeward[-1].split()[-1],
        cores=cores,
        train_size=f"{README_SIZES[0]:,}",
        fastest=fastest,
        cpu_envs=CPU_ENVS,
        cpu_rate=on_cpu[1],
        cpu_ratio=on_cpu[-1],
    )
    return between(between(README.read_text(), BEGIN, text, END), FIGURES, figures, FIGURES_END)


def between(page: str, begin: str, text: str, end: str) -> str:
    """A page with other text between two marks."""
    before, rest = page.split(begin)
    return before + begin + text + end + rest.split(end)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    records = load_records()
    write_text(PAGE, page(records))
    write_text(README, readme(records))
    plot(records, PLOT)


if __name__ == "__main__":
    main()
