"""The report of a sweep: the best settings as a command, and a table of all trials."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from gbxcule_puffer.apps.sweep.plots import draw
from gbxcule_puffer.apps.sweep.search import ERROR, SCORE, SECONDS, STEPS, WHOLE, Plan, in_words, ranked, values_of
from gbxcule_puffer.commandline import as_words
from gbxcule_puffer.files import write_text
from gbxcule_puffer.layout import trainers

TABLE, BEST, PICTURE = "sweep.md", "best.txt", "sweep.png"  # in the folder of a sweep
SHOWN = 5  # trials on the terminal


def write_report(plan: Plan, study: Study) -> bool:
    """Writes table, picture and the best command, and prints them in short; False where no trial came to its end."""
    trials = ranked(study)
    whole = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    text = f"# {plan.script.stem}: {len(trials)} trials\n\n{table(plan, trials)}\n"
    print(f"\n{table(plan, trials[:SHOWN])}\n\nall trials     {plan.out / TABLE}")
    if whole:
        draw(plan, study, plan.out / PICTURE)
        command = best_command(plan, whole[0])
        write_text(plan.out / BEST, f"{command}\n")
        text += f"\nThe best settings:\n\n```sh\n{command}\n```\n\n![Picture of the sweep]({PICTURE})\n"
        print(f"picture        {plan.out / PICTURE}\nbest settings  {plan.out / BEST}\n\n{command}")
    write_text(plan.out / TABLE, text)
    return bool(whole)


def table(plan: Plan, trials: Sequence[FrozenTrial]) -> str:
    """A Markdown table with a line for each trial."""
    names = [each.name.replace("_", "-") for each in plan.space]
    head = ["trial", *([] if plan.reach is None else [f"{plan.unit} to {plan.reach:g}"]), "score", "seconds", "steps"]
    lines = ["| " + " | ".join([*head, *names, ""]) + " |"]
    lines.append("| " + " | ".join(["---:"] * (len(head) + len(names)) + ["---"]) + " |")
    for trial in trials:
        values, facts = values_of(plan.space, trial), trial.user_attrs
        cells = [str(trial.number)]
        if plan.reach is not None:
            cells.append(f"{trial.value:,.4g}" if plan.has_reached(trial) else "")
        cells.append("" if facts.get(SCORE) is None else f"{facts[SCORE]:.4g}")
        cells += [f"{facts.get(SECONDS, 0):.0f}", f"{facts.get(STEPS, 0):,}"]
        cells += [in_words({"": values[each.name]}).strip().strip('"') for each in plan.space]
        note = "the defaults" if values == plan.defaults else ""
        if trial.state == TrialState.PRUNED:
            early = "" if trial.last_step is None else f"ended at {trial.last_step}/{WHOLE}"
            note = ", ".join(filter(None, [note, f"failed: {facts[ERROR]}" if facts.get(ERROR) else early]))
        lines.append("| " + " | ".join([*cells, note.replace("|", "/")]) + " |")
    return "\n".join(lines)


def best_command(plan: Plan, best: FrozenTrial) -> str:
    """The command that trains with a trial's settings."""
    name = next((name for name, path in trainers().items() if path == plan.script), None)
    start = ["puffer", "train", name] if name else [Path(sys.executable).name, str(plan.script)]
    return shlex.join([*start, *plan.words, *as_words(values_of(plan.space, best))])
