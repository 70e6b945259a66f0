"""Advice on a training that cannot learn, or learns something other than what was meant: a line each, once."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import torch

from gbxcule_puffer.emulator.protocol import EmulatorLike
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.env.protocol import EnvLike
from gbxcule_puffer.tasks.actions import BUTTONS, ActionCodec
from gbxcule_puffer.tasks.goals.advice import never_near
from gbxcule_puffer.tasks.observe.pixels import signed
from gbxcule_puffer.tasks.task import PREFIX

PATIENCE = 1_000_000  # steps without a goal that comes near, another reward, another statistic
ENOUGH = 10  # episodes, before a statistic of them says anything
# Steps without another picture: of all Game Boys together, and of each.
PICTURES_PATIENCE, PICTURES_EACH = 100_000, 256
SHOWN = 64  # Game Boys whose pictures are compared
HARDLY = 0.02  # share of the pixels: those of a text that blinks are less, of a hero who takes a step more
PROBED_FRAMES = 240  # in which a start has to answer to a button
MOST_STARTS = 4  # that are tried
MOST_LISTED = 4  # statistics in a line
DIRECTIONS = 15  # the D-pad's bits of `Emulator.step`'s buttons


def advise(text: str | None) -> None:
    """The advice as a line on stderr, if there is any."""
    if text:
        print(f"warning: {text}", file=sys.stderr, flush=True)


class Watch(Protocol):
    """A watch for something that may go wrong in a training."""

    def look(self, steps: int, infos: Mapping[str, float]) -> str | None:
        """Takes the infos of a record after `steps` steps of the watch. None where the watch goes on; else it is over:
        with the advice, or with an empty text where everything is well."""
        ...


class Watches:
    """The watches of a run, from the step `begun` on."""

    def __init__(self, envs: Sequence[EnvLike], begun: int, each: int) -> None:
        """each: Game Boys of all processes."""
        self._begun = begun
        self._open: list[Watch] = [Nearness()] if envs[0].has_goal else []
        self._open += [Stalls(envs[0])] if envs[0].milestones is not None else []
        self._open += [
            Rewards(envs),
            Statistics(envs[0]),
            Pictures(envs[0], max(PICTURES_PATIENCE, PICTURES_EACH * each)),
        ]

    def look(self, step: int, infos: Mapping[str, float]) -> None:
        """Takes the infos of a record at `step`, and says what has gone wrong."""
        found = [(watch, watch.look(step - self._begun, infos)) for watch in self._open]
        for _, text in found:
            advise(text)
        self._open = [watch for watch, text in found if text is None]


class Nearness:
    """A watch on whether a Game Boy comes near the goal."""

    def __init__(self) -> None:
        self._nearest: float | None = None  # the least env/dist_p10 so far

    def look(self, steps: int, infos: Mapping[str, float]) -> str | None:
        if (tenth := infos.get("env/dist_p10")) is not None:
            self._nearest = min(tenth, self._nearest or 1.0)
        if infos.get("charts/success_rate", 0) > 0 or infos.get("env/dist_below_tau", 0) > 0:
            return ""
        return never_near(steps, self._nearest) if steps >= PATIENCE else None


class Stalls:
    """A watch on milestones. It says once, after each milestone, that no new one has come: after as many steps as the
    run had taken until then, and at least PATIENCE."""

    def __init__(self, env: EnvLike) -> None:
        self._env = env
        self._reached, self._since, self._is_said = -1.0, 0, False

    def look(self, steps: int, infos: Mapping[str, float]) -> str | None:
        found = self._env.milestones
        assert found is not None
        if (reached := infos.get("env/milestones/reached", 0.0)) > self._reached:
            self._reached, self._since, self._is_said = reached, steps, False
        if reached >= len(found.names):
            return ""
        if not self._is_said and steps - self._since >= max(PATIENCE, self._since):
            self._is_said = True
            advise(self._text(found.names, steps - self._since))
        return None

    def _text(self, names: Sequence[str], steps: int) -> str:
        assert self._env.milestones is not None
        table = self._env.milestones.table()
        before = [row["name"] for row in table if row["reached"]]
        following = [row["name"] for row in table if not row["reached"]]
        since = f"after {before[-1]}" if before else "at all"
        known = f"{len(before)} of {len(names)} reached, next {following[0]}"
        return (
            f"no new milestone {since} in {steps:,} steps ({known}): play on from its state in the run's folder "
            "(`puffer play --start-state`) to see what is missing, explore more (--visit-bonus, --entropy-coef), or "
            "add a milestone in between"
        )


class Rewards:
    """A watch on Tasks that give the same reward in every step."""

    def __init__(self, envs: Sequence[EnvLike]) -> None:
        self._envs = envs

    def look(self, steps: int, infos: Mapping[str, float]) -> str | None:
        ranges = [env.reward_ranges() for env in self._envs]
        same = {
            name: low
            for name, (low, _) in ranges[0].items()
            if min(found[name][0] for found in ranges) == max(found[name][1] for found in ranges)
        }
        if not same or steps < PATIENCE:
            return None if same else ""
        listed = " and ".join(f"{reward:g} by {name}" for name, reward in same.items())
        return (
            f"the reward was the same in all of {steps:,} steps ({listed}), which teaches nothing: compare the bytes "
            "that it is made of with what you see (--watch shows both), begin nearer to a reward (--start-state), "
            "or reward smaller progress"
        )


class Statistics:
    """A watch on statistics of Tasks that have the same mean in every record. Those of milestones are left to
    Stalls."""

    def __init__(self, env: EnvLike) -> None:
        self._env = env
        names = () if env.milestones is None else env.milestones.names
        self._milestones = {f"{PREFIX}{name}" for name in names}
        self._first: dict[str, float] = {}
        self._still: set[str] = set()
        self._records = self._episodes = 0

    def look(self, steps: int, infos: Mapping[str, float]) -> str | None:
        found = {name.removeprefix("env/"): value for name, value in infos.items()}
        found = {name: value for name, value in found.items() if name.startswith(PREFIX)}
        found = {name: value for name, value in found.items() if name not in self._milestones}
        if not found:
            return None if self._env.statistics().keys() - self._milestones else ""
        if not self._records:
            self._first, self._still = found, set(found)
        self._records += 1
        self._episodes += int(infos.get("env/episodes", 0))
        for name, value in found.items():
            if abs(value - self._first[name]) > 1e-9 * max(1.0, abs(value)):
                self._still.discard(name)
        if not self._still or steps < PATIENCE or self._records < 2 or self._episodes < ENOUGH:
            return None if self._still else ""
        still = [f"{name} {value:g}" for name, value in self._first.items() if name in self._still]
        listed = ", ".join(still[:MOST_LISTED])
        listed += f" and {len(still) - MOST_LISTED} more" if len(still) > MOST_LISTED else ""
        return (
            f"a statistic was the same in all of {self._episodes:,} episodes ({listed}): compare the bytes that it is "
            "made of with what you see (--watch shows both), or begin nearer to what it counts (--start-state)"
        )


class Pictures:
    """A watch on whether anything happens on the screens of the first Game Boys, seen at each record."""

    def __init__(self, env: EnvLike, patience: int) -> None:
        self._env, self._patience = env, patience
        self._first: torch.Tensor | None = None
        self._changed: torch.Tensor | None = None  # pixels that any of them has changed

    def look(self, steps: int, infos: Mapping[str, float]) -> str | None:
        pictures = signed(self._env.pictures(slice(SHOWN)))
        if self._first is None or self._changed is None:
            self._first = pictures.clone()
            self._changed = torch.zeros(pictures.shape[1:], dtype=torch.bool, device=pictures.device)
            return None
        self._changed |= (pictures != self._first).any(0)
        share = float(self._changed.float().mean())
        if share > HARDLY or steps < self._patience:
            return "" if share > HARDLY else None
        return (
            f"the screen has hardly changed in {steps:,} steps ({share:.1%} of its pixels in any Game Boy), as on a "
            "title screen: begin where the game is played (--start-state with a state that `puffer play` saved there), "
            "or give --action-codec the button that leads there"
        )


@torch.no_grad()
def unlike_play(env: EnvLike, seed: int) -> str | None:
    """Advice where a start of the env does not answer to the D-pad, as a title screen or a text box, else None. Plays
    a few seconds from the first starts that `seed` gives; the env has to be reset after it."""
    emulator = env.emulator
    if emulator is None:
        return None
    env.reset(seed=seed)
    hashes = emulator.state_hash().tolist()
    rows = sorted(hashes.index(each) for each in dict.fromkeys(hashes))[:MOST_STARTS]
    for start in [emulator.save(row) for row in rows]:
        answers = _answers(emulator, env.codec, start)
        if answers is None:
            continue
        known = [start for stage in env.stages for start in stage.starts]
        which = "the start" if len(known) == 1 else "a start" if known else "power-on, where episodes begin,"
        only = f"only {', '.join(answers)} changes" if answers else "no button changes"
        return (
            f"{which} does not look like play: {only} the picture within {PROBED_FRAMES // 60} seconds, as on a title "
            "screen or in a text: begin where the player can move (--start-state with a state that `puffer play` saved "
            "there), or leave the directions out of --action-codec where the game has none"
        )
    return None


def _answers(emulator: EmulatorLike, codec: ActionCodec, start: Snapshot) -> list[str] | None:
    """Names of the buttons that change the picture within PROBED_FRAMES from `start`. None if one of the D-pad's does,
    or if the actions have no direction and any button does."""
    used = 0
    for action in range(codec.num_actions):
        used |= codec.to_buttons(action)
    bits = [1 << bit for bit in range(8) if used >> bit & 1]  # the D-pad's first
    steps = max(2, -(-PROBED_FRAMES // emulator.frames_per_step))
    idle: list[torch.Tensor] = []  # the pictures where nothing is pressed
    answering = set()
    for chunk in _chunks([0, *bits], emulator.num_envs):
        emulator.load(start)
        buttons = torch.zeros(emulator.num_envs, dtype=torch.uint8, device=emulator.device)
        buttons[: len(chunk)] = torch.tensor(chunk, dtype=torch.uint8)
        for step in range(steps):
            emulator.step(buttons)
            pictures = signed(emulator.colors if emulator.model == "cgb" else emulator.screen)[: len(chunk)]
            if chunk[0] == 0:
                idle.append(pictures[0].clone())
            different = (pictures != idle[step]).flatten(1).any(1).tolist()
            answering |= {button for button, differs in zip(chunk, different, strict=True) if differs}
            if any(button & DIRECTIONS for button in answering):
                return None
    if answering and not used & DIRECTIONS:
        return None
    names = {dpad | button << 4: name for name, (dpad, button, _) in BUTTONS.items()}
    return [names[button] for button in sorted(answering)]


def _chunks(values: list[int], size: int) -> Iterable[list[int]]:
    return (values[first : first + size] for first in range(0, len(values), size))
