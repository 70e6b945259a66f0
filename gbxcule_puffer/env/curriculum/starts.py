"""The starts of episodes: pool slots sampled by weight, their contents, and the results of their episodes."""

from __future__ import annotations

from typing import Any

import torch
import warp as wp

from gbxcule_puffer.emulator.launch import Launcher
from gbxcule_puffer.env.curriculum.progress import UNIT
from gbxcule_puffer.env.fields import EnvTensors
from gbxcule_puffer.env.randomness import SHIFT, START, CounterRandom, Seed
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.actions import MOST_STEPS

SLOT_COUNTS = ("episodes", "successes", "steps")


@wp.kernel(enable_backward=False)
def kernel_cumulate(
    weights: wp.array(dtype=wp.int64),
    stages: wp.array(dtype=wp.int64),
    cumulative: wp.array(dtype=wp.int64),
):
    """Running sum of the slots' weights, each that of its stage; one thread, because there are few slots."""
    total = wp.int64(0)
    for slot in range(cumulative.shape[0]):
        total += weights[int(stages[slot])]
        cumulative[slot] = total


def check_curriculum(curriculum: str, num_stages: int, archive_slots: int) -> None:
    """Raises: ConfigError for a curriculum that needs several stages, or an archive."""
    if num_stages > 1 or curriculum not in ("first", "progress"):
        return
    if curriculum == "first" or not archive_slots:
        needs = "several stages" if curriculum == "first" else "several stages or an archive"
        raise ConfigError(f"curriculum {curriculum!r} needs {needs}: give stages, a stages.json file")


class Starts:
    """The slots of a pool as starts of episodes: first the `given` ones, `per_start` slots for each start (one per
    number of waits), then `spare` ones for an archive. An episode from the archive takes at most `archive_steps` steps.

    curriculum: 'uniform' samples all starts equally, 'first' those of the first stage only, 'progress' by the weights
    of a BayesProgressTracker; 'by_env' always gives env i start i modulo the number of starts. The waits are always
    sampled.

    envs: the env's tensors (env/fields.py); it fills their `sampled_slot`; stage, distance (slots,): the stage of
    each slot and the distance of its picture to that stage's goal; counts (3, slots) int64: SLOT_COUNTS of the episodes
    that began there (env/step_end/parts.py); weights (stages,) int64: those of a curriculum without a tracker.
    Allocates only here.
    """

    def __init__(
        self,
        stage: list[int],
        distance: torch.Tensor,
        *,
        per_start: int,
        spare: int,
        archive_steps: int | None,
        curriculum: str,
        random: CounterRandom,
        envs: EnvTensors,
    ) -> None:
        device = distance.device
        self.given, self.per_start, self.random = len(stage), per_start, random
        self.stage = torch.tensor(stage + [0] * spare, dtype=torch.int64, device=device)
        self.distance = torch.cat([distance, distance.new_zeros(spare)])
        self.counts = torch.zeros((len(SLOT_COUNTS), len(self.stage)), dtype=torch.int64, device=device)
        weights = [UNIT] * (max(stage) + 1)
        if curriculum == "first":
            weights[1:] = [0] * (len(weights) - 1)
        self.weights = torch.tensor(weights, dtype=torch.int64, device=device)
        self._by_env = None
        if curriculum == "by_env":
            self._by_env = random.lane.remainder(self.given // per_start) * per_start
        self._cumulative = torch.zeros(self.given, dtype=torch.int64, device=device)
        self._sampled = envs.sampled_slot
        self._launch = Launcher(device)
        self.members: dict[str, Any] = {
            "given": self.given,
            "archive_steps": archive_steps or MOST_STEPS,
            "slot_stage": self.stage,
            "slot_distance": self.distance,
            "slot_counts": self.counts,
        }

    def sample(self, seed: Seed, episode: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """A slot for each env's next episode; `episode` (num_envs,) int64 is its number, `weights` (stages,) int64 are
        in units of 1 / UNIT. Valid until the next sample."""
        if self.given == 1:
            return self._sampled.zero_()  # an archive may have written to it
        value = self.random.sample(seed, START, episode)
        if self._by_env is not None:
            value.mul_(self.per_start).bitwise_right_shift_(SHIFT).add_(self._by_env)
            return self._sampled.copy_(value)
        self._launch(kernel_cumulate, 1, weights, self.stage, self._cumulative)
        return pick(value, self._cumulative, self._sampled)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that a saved state holds."""
        spare = {"slot_stage": self.stage[self.given :], "slot_distance": self.distance[self.given :]}
        return {"slot_counts": self.counts, **(spare if len(self.stage) > self.given else {})}


def pick(value: torch.Tensor, cumulative: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Finds the index in whose part of the running sum `cumulative` (int64) a sample `value` (int64, overwritten)
    falls; writes it to `out` int32. The products stay below 2**63: sums may be up to 2**38."""
    value.mul_(cumulative[-1:]).bitwise_right_shift_(SHIFT)
    return torch.searchsorted(cumulative, value, right=True, out_int32=True, out=out)
