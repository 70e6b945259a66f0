"""A game's folder, tried: whether it begins in play, rewards, ends, and what random and no buttons reach."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import torch

from gbxcule_puffer.apps.game.playing import replay, statistic_key
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.games.game import Game
from gbxcule_puffer.games.make import make_game_env
from gbxcule_puffer.games.parts import PLAYED
from gbxcule_puffer.games.writing import address_text
from gbxcule_puffer.progress import counted, say
from gbxcule_puffer.tasks.actions import MOST_STEPS
from gbxcule_puffer.tasks.ram import Numbers
from gbxcule_puffer.trainers.advice import unlike_play

OK, HINT, WRONG = "ok", "hint", "wrong"
D_PAD = 0x0F  # of the bits of buttons
AT_ONCE = 2  # steps: an episode that ends by itself within them began at its end
SAME = 1e-6
STEPS = 1_000  # of an episode, where the folder has no [scores]
ROUNDING = 0.005  # of a score in game.toml, which people write with few digits


@dataclass(frozen=True)
class Finding:
    """A subject, its state (ok, hint or wrong), and a sentence with the remedy."""

    subject: str
    state: str
    text: str


_LOCKED = Finding("machine", WRONG, "a Game Boy came to an illegal instruction: check ROM, patches, pokes and start")


@dataclass
class Played:
    """The first episodes of all envs, or their first steps where a limit cut them off.

    returns, lengths: of each env; ends: number of episodes that ended as success, failure, truncation, or not at all;
    rewarded: share of the envs with a reward other than the one that every step pays; ranges: lowest and highest value
    of each statistic; last: its last values, and of `success` 1 or 0; numbers: lowest and highest value of each number
    that terms read, by its column; locked: Game Boys that came to an illegal instruction.
    """

    returns: list[float]
    lengths: list[int]
    ends: dict[str, int]
    rewarded: float
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    last: dict[str, list[float]] = field(default_factory=dict)
    numbers: list[tuple[int, int]] = field(default_factory=list)
    locked: float = 0.0

    @property
    def mean(self) -> float:
        """The mean return."""
        return sum(self.returns) / len(self.returns)

    def values(self, statistic: str) -> list[float]:
        """The last values of a statistic, also by the name that it has in game.toml."""
        return self.last[statistic_key(self.last, statistic)]

    @property
    def spread(self) -> float:
        """The standard deviation of the returns."""
        return math.sqrt(sum((each - self.mean) ** 2 for each in self.returns) / len(self.returns))


@dataclass(frozen=True)
class Report:
    """The findings of a check, what random and no buttons reached, and for a folder with [scores] the scores that were
    measured: noop, random, and if there is a played.json, played."""

    findings: Sequence[Finding]
    random: Played
    idle: Played
    scores: Mapping[str, float] | None = None

    @property
    def is_wrong(self) -> bool:
        """True if anything has to be mended."""
        return any(each.state == WRONG for each in self.findings)

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        scores = {
            name: {"mean": played.mean, "std": played.spread, "rewarded": played.rewarded, **_ends(played)}
            for name, played in (("random", self.random), ("idle", self.idle))
        }
        findings = [asdict(each) for each in self.findings]
        found: dict[str, object] = {"ok": not self.is_wrong, "findings": findings, **scores}
        return found if self.scores is None else found | {"scores": dict(self.scores)}


def check_game(
    game: Game,
    *,
    rom: StrPath | None = None,
    variant: str | None = None,
    num_envs: int = 64,
    steps: int | None = None,
    device: str = "cpu",
    seed: int = 0,
    symbols: StrPath | None = None,
) -> Report:
    """Plays at most `steps` steps of a first episode in each of `num_envs` envs with random buttons, then with none,
    and for a folder with [scores] its played.json. steps: None for 1,000, or with [scores] for whole episodes.

    Raises: the errors of Game.options and of the env.
    """
    options = {"rom": rom, "variant": variant, "symbols": symbols, "io": "torch", "seed": seed, "autotune": False}
    scored = game.scores is not None and steps is None and variant is None
    if scored:
        options["levels"] = game.scored_levels
    limit = MOST_STEPS if scored else steps or STEPS
    env = make_game_env(game, GBxCuLEEnv, num_envs, device, **options)
    try:
        advice = unlike_play(env, seed)
        pad = any(env.codec.to_buttons(action) & D_PAD for action in range(env.codec.num_actions))
        say(f"playing {num_envs:,} Game Boys with random buttons, at most {limit:,} steps of an episode")
        random = play(env, game, limit, seed, pressing=True)
    finally:
        env.close()
    still = make_game_env(game, GBxCuLEEnv, num_envs, device, **options, action_codec="NOOP,A", blocked_actions=())
    try:
        say("playing them without a button")
        idle = play(still, game, limit, seed, pressing=False)
    finally:
        still.close()
    answers = f"the picture answers to {'the D-pad' if pad else 'a button'}"
    start = Finding("start", HINT, advice) if advice else Finding("start", OK, answers)
    found = [_LOCKED] if random.locked or idle.locked else []
    findings = [
        start,
        *found,
        *_rewards(random, idle, limit, paid=idle.rewarded > 0 or (scored and game.played is not None)),
        *_ends_of(game, random, idle),
        *_statistics(game, random),
    ]
    if not scored:
        return Report(findings, random, idle)
    if game.played is not None:
        say(f"replaying {PLAYED}")
    scores, compared = compare_scores(game, {"noop": idle, "random": random}, rom)
    return Report([*findings, *compared], random, idle, scores)


def compare_scores(
    game: Game, plays: Mapping[str, Played], rom: StrPath | None
) -> tuple[dict[str, float], list[Finding]]:
    """The scores that were measured, and whether they are those of [scores]: means within four standard errors, the
    played episode's to the bit.

    Raises: ConfigError for a played.json that does not replay.
    """
    stated = game.scores
    assert stated is not None
    scores, found = {}, []
    for name, played in plays.items():
        values = played.values(stated.statistic)
        mean = scores[name] = statistics.fmean(values)
        said = getattr(stated, name)
        error = 4 * math.sqrt(2 * statistics.pvariance(values) / len(values)) + ROUNDING * max(abs(said), 1)
        text = f"{name}: {stated.statistic} {mean:.6g} on average over {len(values)} episodes"
        if abs(mean - said) > error:
            found.append(Finding("score", WRONG, f"{text}, not {said:g}: write what is measured into [scores]"))
        else:
            found.append(Finding("score", OK, text))
    if game.played is None:
        return scores, [*found, Finding("score", HINT, "played: there is no played.json, so nothing proves it")]
    episode = replay(game, rom)
    assert episode.score is not None
    scores["played"] = episode.score
    text = f"played: played.json replays to {stated.statistic} {episode.score:.12g}"
    if episode.score != stated.played:
        found.append(Finding("score", WRONG, f"{text}, not {stated.played:g}: write this into [scores]"))
    else:
        found.append(Finding("score", OK, f"{text} in {len(episode.trace.actions):,} steps"))
    return scores, found


@torch.no_grad()
def play(env: GBxCuLEEnv, game: Game, steps: int, seed: int, pressing: bool) -> Played:
    """The first episodes of an env's Game Boys, with random actions, or always the first one."""
    n, device = env.num_envs, env.device
    env.reset(seed=seed)
    generator = torch.Generator(device).manual_seed(seed)
    running = torch.ones(n, dtype=torch.bool, device=device)
    total, length = (torch.zeros(n, dtype=torch.float64, device=device) for _ in range(2))
    numbers = _Seen(env, game)
    lowest = torch.full((n,), math.inf, dtype=torch.float64, device=device)
    highest = -lowest
    ends: dict[str, int] = dict.fromkeys(("success", "failure", "truncation"), 0)
    locked, succeeded = 0.0, torch.zeros_like(running)
    ranges, last = dict[str, tuple[float, float]](), dict[str, torch.Tensor]()
    for _ in counted(steps, "steps"):
        actions = torch.randint(env.codec.num_actions if pressing else 1, (n,), device=device, generator=generator)
        if env.codec.factors:
            actions = torch.stack(env.codec.split(actions), 1)
        _, rewards, terminals, truncations, infos = env.step(actions)
        numbers.look()
        locked = max(locked, *(info.get("locked", 0.0) for info in infos), 0.0)
        paid = rewards.double()
        total += torch.where(running, paid, 0)
        length += running
        lowest = torch.where(running, torch.minimum(lowest, paid), lowest)
        highest = torch.where(running, torch.maximum(highest, paid), highest)
        some = bool((terminals | truncations).any())  # only then the statistics are those of this step
        for name, values in env.statistics().items() if some else ():
            values = values.double()
            low, high = ranges.get(name, (math.inf, -math.inf))
            mine = values[running & ~values.isnan()]  # NaN: of another variant
            if not len(mine):
                continue
            ranges[name] = (min(low, float(mine.min())), max(high, float(mine.max())))
            last[name] = torch.where(running, values, last.get(name, values))
        ended = running & (terminals | truncations)
        succeeded |= ended & terminals & ~env.failures
        ends["failure"] += int((ended & env.failures).sum())
        ends["success"] += int((ended & terminals & ~env.failures).sum())
        ends["truncation"] += int((ended & ~terminals).sum())
        running &= ~ended
        if not bool(running.any()):
            break
    ends["running"] = int(running.sum())
    return Played(
        total.tolist(), [int(each) for each in length.tolist()], ends, float((highest > lowest + SAME).double().mean()),
        ranges, {name: values.tolist() for name, values in (last | {"success": succeeded.double()}).items()},
        numbers.ranges(), locked,
    )  # fmt: skip


class _Seen:
    """The ranges of the numbers that a game's terms read, in all envs."""

    def __init__(self, env: GBxCuLEEnv, game: Game) -> None:
        self._numbers = Numbers(env.ram, game.terms.numbers) if game.terms.numbers else None
        self._ends: tuple[torch.Tensor, torch.Tensor] | None = None

    def look(self) -> None:
        """Takes the numbers as they are now."""
        if self._numbers is None:
            return
        low, high = self._numbers.read().aminmax(dim=0)
        if self._ends is not None:
            low, high = torch.minimum(low, self._ends[0]), torch.maximum(high, self._ends[1])
        self._ends = (low.clone(), high.clone())

    def ranges(self) -> list[tuple[int, int]]:
        """(lowest, highest) by column."""
        return [] if self._ends is None else list(zip(*(each.tolist() for each in self._ends), strict=True))


def _rewards(random: Played, idle: Played, steps: int, paid: bool) -> list[Finding]:
    """paid: something else than random buttons shows that the reward comes."""
    score = f"random {random.mean:.2f} ± {random.spread:.2f}, no button {idle.mean:.2f} ± {idle.spread:.2f}"
    if random.rewarded == 0:
        text = (
            f"random buttons were never rewarded in {max(random.lengths):,} steps: compare the numbers with what you "
            "see (`puffer play` shows both), begin nearer to a reward, or reward smaller progress, such as first_visit"
        )
        return [Finding("reward", HINT if paid else WRONG, text)]
    found = [Finding("reward", OK, f"{random.rewarded:.0%} of the Game Boys got some; {score}")]
    if abs(random.mean) > SAME and random.spread < SAME <= abs(random.mean - idle.mean):
        text = f"every Game Boy got exactly {random.mean:g} from random buttons: rather a state than a score"
        found.append(Finding("reward", HINT, f"{text}; compare its bytes with what you see"))
    if idle.mean > random.mean + 2 * max(random.spread, SAME):
        text = f"pressing nothing is rewarded more than random buttons ({score}): check the sign of the terms"
        found.append(Finding("reward", HINT, text))
    if abs(random.mean - idle.mean) < SAME and random.spread < SAME:
        text = f"it is the same whatever is pressed ({score}), which teaches nothing: reward what the player does"
        found.append(Finding("reward", WRONG, text))
    return found


def _ends(played: Played) -> dict[str, int]:
    return {name: count for name, count in played.ends.items() if count}


def _ends_of(game: Game, random: Played, idle: Played) -> list[Finding]:
    count, shown = len(random.returns), ", ".join(f"{name} {number}" for name, number in _ends(random).items())
    text = (
        f"of {count} episodes with random buttons: {shown}; after {min(random.lengths)} to {max(random.lengths)} steps"
    )
    by_itself = random.ends["success"] + random.ends["failure"]
    early = sum(each <= AT_ONCE for each in random.lengths) / count
    found = [Finding("end", OK, text)]
    if early > 0.5:
        remedy = "a condition of [end] holds at the start: look at its numbers there, or begin elsewhere"
        return [Finding("end", WRONG, f"{early:.0%} of the episodes end within {AT_ONCE} steps: {remedy}")]
    terms = game.terms
    played = (random, idle)
    still = (
        [] if terms.failure is None or by_itself + idle.ends["failure"] else _never_changed(game, terms.failure, played)
    )
    if still:
        remedy = "compare the address with what you see (`puffer play`)"
        found.append(Finding("end", WRONG, f"failure cannot come: {', '.join(still)} never changed: {remedy}"))
    elif by_itself == 0 and (terms.success is not None or terms.failure is not None):
        remedy = "play to where it should end (`puffer play`), and see whether the numbers do what [end] says"
        found.append(
            Finding("end", HINT, f"no episode came to an end of its own in {max(random.lengths):,} steps: {remedy}")
        )
    elif by_itself == 0 and terms.truncation is None and not game.task:
        text = "only max_steps ends an episode: name what a lost game changes in [end], as failure, if it can be lost"
        found.append(Finding("end", HINT, text))
    if idle.ends["failure"] == len(idle.returns) and max(idle.lengths) < min(random.lengths):
        found.append(Finding("end", HINT, "without a button every episode fails sooner than with random ones"))
    return found


def _never_changed(game: Game, node: int, plays: Sequence[Played]) -> list[str]:
    """The numbers of a term with their value, where none of them changed in any play; else none."""
    nodes, open_, columns = game.terms.tape.nodes, [node], set[int]()
    while open_:
        each = nodes[open_.pop()]
        open_ += each.args
        if each.operation == "number" and isinstance(each.value, int):
            columns.add(each.value)
    found = []
    for column in sorted(columns):
        low, high = min(each.numbers[column][0] for each in plays), max(each.numbers[column][1] for each in plays)
        if low != high:
            return []
        number = game.terms.numbers[column]
        names = [name for name, own in game.numbers.items() if own == number]
        found.append(f"{names[0] if names else address_text(number.where)} ({low})")
    return found


def _statistics(game: Game, random: Played) -> list[Finding]:
    found = []
    if (game.terms.statistics or game.terms.milestones) and not random.ranges:
        text = f"no episode has ended in {max(random.lengths):,} steps, so none is known: give more --steps"
        return [Finding("statistic", HINT, text)]
    for name, (low, high) in random.ranges.items():
        short = name.partition("/")[2] or name
        if short in game.terms.milestones:
            share = statistics.fmean(value for value in random.last[name] if value == value)
            found.append(
                Finding("milestone", OK, f"{short}: {share:.0%} of the episodes with random buttons came there")
            )
        elif low == high:
            text = f"{short} was {low:g} at the end of each episode with random buttons: fine if that is always so"
            found.append(Finding("statistic", HINT, text))
        else:
            found.append(Finding("statistic", OK, f"{short}: {low:g} to {high:g}"))
    return found


def lines_of(report: Report) -> list[str]:
    """The findings for a terminal."""
    rows = [(each.state, each.subject, each.text) for each in report.findings]
    width = max(len(subject) for _, subject, _ in rows)
    ordered = itertools.chain.from_iterable([row for row in rows if row[0] == state] for state in (WRONG, HINT, OK))
    return [f"{state:6} {subject:{width}}  {text}" for state, subject, text in ordered]
