"""The work after an update of a run: evaluation, pictures and checkpoint, each when it is due."""

from __future__ import annotations

import time
from collections.abc import Callable

from gbxcule_puffer.env.protocol import EnvLike
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.evaluation import GIVEN_UP, PolicyMaker, lowest_success
from gbxcule_puffer.trainers.evaluator import Evaluator
from gbxcule_puffer.trainers.flags import RunFlags
from gbxcule_puffer.trainers.media import record_media
from gbxcule_puffer.trainers.runlog import RunLog

SAVE_SECONDS = 30.0  # between two checkpoints, if no flag says how often


class AfterUpdate:
    """Evaluates, films and saves a run after its updates, and decides when it ends.

    evaluator, records: of the first process, None in the others; save: writes a checkpoint, in all processes.
    counters: the run's; "passed" is how many evaluations in a row have reached --stop-at-success.
    """

    def __init__(
        self,
        args: RunFlags,
        world: World,
        env: EnvLike,
        evaluator: Evaluator | None,
        records: RunLog | None,
        save: Callable[[], None],
        counters: dict[str, int],
    ) -> None:
        self._args, self._world, self._env, self._save, self._counters = args, world, env, save, counters
        self._evaluator, self._records = evaluator, records
        self._saved_at, self._film_due = time.time(), False
        self.result: dict[str, float] = {}  # eval/... of the newest evaluation

    def finish(self, step: int, steps: int, records_now: bool, last: bool, play: PolicyMaker) -> bool:
        """Does what is due after the update that ended at `step` and took `steps`; True if the run ends with it.

        records_now: the update has a record; last: the run ends in any case; play: the current policy.
        """
        args, every = self._args, self._args.eval_every_steps

        def due(interval: int) -> bool:
            return step // interval > (step - steps) // interval

        self._film_due |= due(args.media_every)
        save_every = args.checkpoint_every or every
        saves = save_every is not None and due(save_every)
        if last or (records_now if every is None else due(every)):
            found = self._evaluate(step, last, play)
            late = time.time() - self._saved_at >= SAVE_SECONDS
            found, late = self._world.tell((found, late))
            saves = saves or (late and save_every is None)
            last = self._count(found) or last
        if last or self._film_due:
            self._film(step, last, play)
        if last or saves:
            self._save()
            self._saved_at = time.time()
        return last

    def _evaluate(self, step: int, last: bool, play: PolicyMaker) -> dict[str, float]:
        """eval/... of an evaluation that has ended now, as a record; else nothing, or GIVEN_UP."""
        if not self._evaluator or not self._records:
            return {}
        found = self._evaluator.evaluate(play, self._args.seed + step, last)
        if found and GIVEN_UP not in found:
            self._records.record(step, found)
        return found

    def _film(self, step: int, last: bool, play: PolicyMaker) -> None:
        """Writes the pictures: of an evaluation that has ended, or the `last` ones."""
        if not self._evaluator or not self._records:
            return
        if last or self._args.eval_every_steps is not None or self._evaluator.filmed:
            with self._evaluator.budget.spend():
                films = self._evaluator.film(play, self._args.seed + step)
                record_media(self._records, step, self._env, films)
            self._film_due = False

    def _count(self, found: dict[str, float]) -> bool:
        """Counts an evaluation, if one has ended; True if two in a row have reached --stop-at-success."""
        if not found:
            return False
        if GIVEN_UP not in found:
            self.result = found
        reached = lowest_success(found, self._args.stop_greedy) >= self._args.stop_at_success
        self._counters["passed"] = self._counters["passed"] + 1 if reached else 0
        return self._counters["passed"] == 2
