"""The times at which a run's policy is evaluated and filmed, and how long that may take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

import torch

from gbxcule_puffer.trainers.envs import make_env
from gbxcule_puffer.trainers.evaluation import GIVEN_UP, GREEDY, SAMPLED, Evaluations, PolicyMaker
from gbxcule_puffer.trainers.flags import RunFlags
from gbxcule_puffer.trainers.media import BothEnds, both_ends
from gbxcule_puffer.trainers.meters import Budget, Recent

RESERVE = 3.0  # seconds of the share that are put aside for a run's last evaluation
LEAST_SECONDS = 0.25  # for the last evaluation of a run that is too short for that
PLAYED = 2 / 3  # of the time of a last evaluation; the rest is for its films


class Evaluator:
    """A run's evaluations and films.

    Without --eval-every-steps, each record is followed by as much of an evaluation as --eval-share has time for. It
    plays the policy as it was when it began, and takes as many records as its longest episode needs. If the training's
    own episodes reach --stop-at-success, an evaluation of the new policy begins at once, with the seconds that were put
    aside for the last one, which it may be. Once such a one cannot pass any more it is given up, so that there is time
    for the next policy's.
    """

    def __init__(
        self, args: RunFlags, evaluations: Evaluations, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.args, self.evaluations, self._clock = args, evaluations, clock
        self._successes, self._sure = Recent(args.eval_episodes), False
        self._films: BothEnds | None = None  # of the newest evaluation
        self._seed = 0  # of it
        self.start()

    def start(self) -> None:
        """Begins to count the time."""
        self.budget = Budget(self.args.eval_share, RESERVE, self._clock)

    def count(self, success: float, episodes: float) -> None:
        """Takes the success rate of the training's episodes that ended since the last record."""
        self._successes.add(success, episodes)

    def evaluate(self, play: PolicyMaker, seed: int, last: bool) -> dict[str, float]:
        """With --eval-every-steps a `whole` evaluation, else `some` of one."""
        return self.some(play, seed, last) if self.args.eval_every_steps is None else self.whole(play, seed)

    def whole(self, play: PolicyMaker, seed: int) -> dict[str, float]:
        """eval/...: an evaluation to its end."""
        with self.budget.spend():
            self._begin(play, seed)
            return self.evaluations.advance()

    def some(self, play: PolicyMaker, seed: int, last: bool) -> dict[str, float]:
        """Evaluates as long as it may: eval/... if that has ended an evaluation, else nothing, or GIVEN_UP alone. The
        `last` one ends in any case, if need be with fewer episodes, or with parts of episodes (`Play.results`)."""
        sure = self._successes.mean >= self.args.stop_at_success and self.args.eval_share > 0
        seconds = self.budget.left + (RESERVE - LEAST_SECONDS if sure else 0)
        if last:
            seconds = self._last_seconds()
        if seconds <= 0:
            return {}
        if self.evaluations.env.device.type == "cuda":
            torch.cuda.synchronize(self.evaluations.env.device)  # waiting for its work is the training's time
        with self.budget.spend():
            if last or not self.evaluations.running or (sure and not self._sure):
                self._begin(play, seed, last, sure and not last)
            self._sure = sure
            found = self.evaluations.advance(seconds, last)
        if GIVEN_UP in found:
            self._films = None
        return found

    def of_random(self) -> dict[str, float]:
        """`evaluate` of random actions, in the time that a last evaluation has."""
        by_time = self.args.eval_every_steps is None
        with self.budget.spend():
            return self.evaluations.of_random(self._last_seconds() if by_time else math.inf)

    @property
    def filmed(self) -> bool:
        """True if there are films of an evaluation that has ended."""
        return self._films is not None and not self.evaluations.running

    def film(self, play: PolicyMaker, seed: int) -> BothEnds:
        """Films of the last evaluation's episodes. With --eval-every-steps they are of the policy as it is now; where
        there are none, episodes are played for them."""
        films = self._films if self.filmed else None
        if films is None or (self.args.eval_every_steps is not None and self._seed != seed):
            env = self.evaluations.env
            films = both_ends(play(env, False, seed), env, seed)
        self._films = None
        return films

    def _last_seconds(self) -> float:
        return max(LEAST_SECONDS, PLAYED * (self.budget.left + RESERVE))

    def _begin(self, play: PolicyMaker, seed: int, last: bool = False, must_pass: bool = False) -> None:
        self._films, self._seed = BothEnds(self.evaluations.env), seed
        wanted = [SAMPLED, GREEDY] if self.args.stop_greedy else [SAMPLED]
        goals = dict.fromkeys(wanted, self.args.stop_at_success) if must_pass else None
        self.evaluations.begin(play, seed, self._films, last, goals)


def open_evaluator(args: RunFlags, files: Mapping[str, str | None]) -> Evaluator:
    """An evaluator with an env of its own, of the task's `files`, which the caller closes."""
    device = args.eval_device or args.device
    size = args.eval_envs * (1 if device == "cpu" else 3)  # on a GPU, policies side by side take no longer
    env = make_env(args, size, device, files, args.seed, incentives=False)
    return Evaluator(args, Evaluations(env, args.eval_envs, args.eval_episodes, args.seed))
