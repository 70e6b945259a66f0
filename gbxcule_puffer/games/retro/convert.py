"""A stable-retro folder as a folder of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gbxcule_puffer.games.retro.reading import RetroFolder
from gbxcule_puffer.games.retro.scenario import codec_of, end_of, reward_of, used_variables
from gbxcule_puffer.games.retro.variables import Names, read_variables
from gbxcule_puffer.games.writing import Draft, game_name

FRAMES_PER_STEP = 4  # stable-retro steps single frames; trainings repeat an action for four
MAX_STEPS = 4_500


@dataclass(frozen=True)
class Conversion:
    """draft: of the game.toml; notes: what was not converted, or is not the same, with the reason."""

    draft: Draft
    notes: Sequence[str]


def convert(folder: RetroFolder, sha256: str, model: str, frames_per_step: int = FRAMES_PER_STEP) -> Conversion:
    """Numbers, reward, end and actions of a folder, for the ROM with this digest; the start is another part."""
    notes: list[str] = []
    names = Names()
    variables = read_variables(folder.data.get("info"), names, notes)
    if not folder.scenario:
        notes.append("scenario: there is none in the folder: neither reward nor end is written")
    reward = reward_of(folder.scenario, variables, Names(), notes)
    ends = end_of(folder.scenario, variables, notes)
    if ends:
        notes.append("scenario: done: does not say whether a game is won or lost: it is written as failure")
    notes += _rest(folder.scenario)
    used = {name: variables[name] for name in used_variables(folder.scenario, variables)}
    statistics, names = {}, Names()
    for name, variable in used.items():
        statistics[names.of(name)] = variable.term
    title = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", folder.name)[:200]
    draft = Draft(sha256, game_name(folder.name), title.strip() or folder.path.name, model)
    draft.env = {
        "action_codec": codec_of(folder.scenario, notes),
        "frames_per_step": frames_per_step,
        "release_after_frames": frames_per_step,  # buttons stay pressed, as in stable-retro
        "max_steps": MAX_STEPS,
    }
    draft.numbers = {part: number for each in variables.values() for part, number in each.numbers.items()}
    draft.reward, draft.statistics = reward, statistics
    draft.end = {"failure": ends} if ends else {}
    if frames_per_step > 1:
        notes.append(
            f"steps: are {frames_per_step} frames, not 1: a reward or an end that comes and goes within a step is not "
            "seen (--frames-per-step 1 is as stable-retro)"
        )
    notes.append(f"episodes: stable-retro has no limit of steps: max_steps {MAX_STEPS:,} is written")
    return Conversion(draft, notes)


def _rest(scenario: Mapping[str, Any]) -> list[str]:
    """Notes on what else a scenario has."""
    notes = []
    for name in ("crop", "crops"):
        given = scenario.get(name)
        if given and re.search(r"[1-9]", str(given)[:10_000]):
            notes.append(f"scenario: {name}: {given!s:.40}: pictures are not cut")
    if scripts := scenario.get("scripts"):
        notes.append(f"scenario: scripts: {scripts!s:.60} is code, which is not run")
    return notes
