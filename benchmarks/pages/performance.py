"""Writer of docs/performance.md, docs/lab/games.md and README.md's figures: `python -m benchmarks.pages.performance`.

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
GAMES = ROOT / "docs" / "lab" / "games.md"
PLOT = ROOT / "docs" / "images" / "scaling.png"
TEXT = Path(__file__).with_name("performance_text.md")
OURS = "gbxcule"
FIGURES, FIGURES_END = "<!-- figures, by python -m benchmarks.pages.performance -->\n", "<!-- end of figures -->\n"
README_SIZE, TRAINING_SIZE = 131_072, 16_384
GAMES_SIZES = (16_384, 131_072)
ONE_CORE = RESULTS / "cpu" / "one_core.json"
FEW = 4  # times PyBoy's core: the page says how many games are below
README_FIGURES = """\
| measured | steps per second | beside PyBoy 2.8.1 |
| --- | ---: | ---: |
| {games} games, {size} Game Boys on one {device}, random actions | {gpu_rates} | {gpu_ratios} times all {cores} cores |
| streaming A2C on HOMEWARD, {train_size} Game Boys on one {device} | {training} | |
| {cpu_games} games, {cpu_envs} Game Boys on one CPU core | {cpu_rates} | {cpu_mean} times one core ({cpu_ratios}) |

A step is one action of one Game Boy: 24 frames and a picture. \
[docs/performance.md](docs/performance.md) has the games and the method.
"""
GAMES_INTRO = """\
# Lab: games before and after

Written by `python -m benchmarks.pages.performance`. Steps per second of two trees, before and after the work on games
that nobody had tuned: one H100, in turns, with equal states, 24 to 26 steps of warm-up and random actions
(`python -m benchmarks.kernel.compare_trees`)."""
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
    heads = ["game", *(f"{size:,} Game Boys" for size in sizes), "PyBoy, all cores", f"ratio at {common:,}"]
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
    return markdown(["HOMEWARD, 16,384 Game Boys", "ms per step"], rows)


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
            rows.append([f"{device}, {size:,} Game Boy{'s'[: size - 1]}", ", ".join(ms), *on_gpu])
    heads = ["machine", "ms per step, before and after", "of these in Python", "kernels and copies, before and after"]
    return markdown(heads, rows)


def games_page() -> str:
    """docs/lab/games.md: each game before and after the work on games that nobody tuned on."""
    parts = [GAMES_INTRO]
    for size in GAMES_SIZES:
        record = json.loads((RESULTS / "h100" / f"games_{size}.json").read_text())
        rows = [
            [game["game"], *(f"{sum(game[tree]) / 2:,.0f}" for tree in ("old", "new")), f"{game['ratio']:.2f}"]
            for game in sorted(record["games"], key=lambda game: -game["ratio"])
        ]
        mean = f"{record['geometric_mean']:.2f} times in the geometric mean"
        parts.append(f"## {size:,} Game Boys\n\nCommits {record['old']} and {record['new']}: {mean}.")
        parts.append(markdown(["game", "before, steps/s", "after, steps/s", "ratio"], rows))
    return "\n\n".join(parts) + "\n"


def training() -> tuple[str, str]:
    """Steps per second of streaming A2C: as it is by default, and at its fastest."""
    rates = {r["variant"]: r["sps"] for r in reversed(read(GPU / "training_sps_d339fc4.json"))}  # the first counts
    return rounded(rates["overlap"]), rounded(rates["overlap+graph+bf16+reuse"])


def on_one_core() -> dict[str, str]:
    """What the pages say of one CPU core, by name."""
    record = json.loads(ONE_CORE.read_text())
    games, mean = record["games"], record["geometric_mean_to_pyboy"]
    ratios = [game["to_pyboy"]["native"] for game in games]
    rates = [game["steps_per_second"]["native"] for game in games]
    header = ["game", "PyBoy, steps/s", "interpreter, steps/s", "native code, steps/s", "native code / PyBoy"]
    by_ratio = sorted(games, key=lambda game: game["to_pyboy"]["native"])
    few = [game for game in by_ratio if game["to_pyboy"]["native"] < FEW]
    shown = [*few, *by_ratio[len(few) :: 9]]
    rows = [
        (game["game"], *map(rounded, game["steps_per_second"].values()), f"{game['to_pyboy']['native']:.1f}")
        for game in shown
    ]
    return {
        "cpu_envs": str(record["num_envs"]),
        "cpu_games": str(len(games)),
        "cpu_rates": f"{rounded(min(rates))} to {rounded(max(rates))}",
        "cpu_ratios": f"{min(ratios):.1f} to {max(ratios):.0f}",
        "cpu_mean": f"{mean['native']:.1f}",
        "cpu_interpreter": f"{mean['interpreter']:.1f}",
        "cpu_shown": (
            f"the games below {FEW} times ({len(few)}), and every ninth of\nthe others" if few else "every ninth game"
        ),
        "cpu": markdown(header, rows),
    }


def page(records: list[Record]) -> str:
    """docs/performance.md."""
    ours = [record for record in records if record["backend"] == OURS]
    usual, fastest = training()
    return TEXT.read_text().format(
        device=ours[0]["device_name"],
        commits=", ".join(sorted({record["git_sha"] for record in ours})),
        table=scaling_table(records, read(GPU / "pyboy_alone.json")),
        training=usual,
        fastest=fastest,
        parts=parts_table(),
        joined=joined_table(),
        **on_one_core(),
    )


def readme(records: list[Record]) -> str:
    """README.md with the figures of today's records."""
    ours = [record for record in records if record["backend"] == OURS]
    roms = list(dict.fromkeys(record["rom"] for record in ours))
    alone = [*records, *read(GPU / "pyboy_alone.json")]
    rates = [best(ours, rom, README_SIZE) for rom in roms]
    ratios = [rate / best(alone, rom) for rate, rom in zip(rates, roms, strict=True)]
    figures = README_FIGURES.format(
        games=len(roms),
        size=f"{README_SIZE:,}",
        device=ours[0]["device_name"],
        gpu_rates=f"{rounded(min(rates))} to {rounded(max(rates))}",
        gpu_ratios=f"{min(ratios):.0f} to {max(ratios):.0f}",
        cores=next(record["cores"] for record in records if record["backend"] != OURS),
        train_size=f"{TRAINING_SIZE:,}",
        training=training()[1],
        **on_one_core(),
    )
    return between(README.read_text(), FIGURES, figures, FIGURES_END)


def between(page: str, begin: str, text: str, end: str) -> str:
    """A page with other text between two marks."""
    before, rest = page.split(begin)
    return before + begin + text + end + rest.split(end)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    records = load_records()
    write_text(PAGE, page(records))
    write_text(GAMES, games_page())
    write_text(README, readme(records))
    plot(records, PLOT)


if __name__ == "__main__":
    main()
