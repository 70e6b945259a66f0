"""The choice of the state in which each episode begins: the stages' starts, their success rates, and the archive."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gbxcule_puffer.device import room_for
from gbxcule_puffer.emulator.protocol import EmulatorLike
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.env.curriculum.archive import Archive
from gbxcule_puffer.env.curriculum.milestones import Holds, Milestones
from gbxcule_puffer.env.curriculum.progress import BayesProgressTracker
from gbxcule_puffer.env.curriculum.starts import Starts
from gbxcule_puffer.env.curriculum.visits import VisitCounter
from gbxcule_puffer.env.fields import EnvTensors
from gbxcule_puffer.env.options import EnvOptions
from gbxcule_puffer.env.randomness import CounterRandom, Seed
from gbxcule_puffer.env.score import GoalScore
from gbxcule_puffer.tasks.stages.open import Stage


class Curriculum:
    """Samples a slot of the snapshot `pool` for each episode; `learns` from the ends of episodes, if anything depends
    on them.

    Each start state has a slot, and another for each of 1..start_waits idle steps; then come the archive's slots.
    Allocates only here.

    Raises: ConfigError if an archive is requested with an emulator that cannot save envs during play, such as PyBoy's;
    DeviceError if the slots do not fit into the memory.
    """

    def __init__(
        self,
        emulator: EmulatorLike,
        task: Sequence[Stage],
        score: GoalScore,
        envs: EnvTensors,
        visits: VisitCounter | None,
        random: CounterRandom,
        options: EnvOptions,
        follows: tuple[Sequence[str], Holds] | None = None,
    ) -> None:
        each, names = options.milestone_slots, follows[0] if follows is not None else ()
        spare = options.archive_slots + each * len(names)
        states, stages, distances = _play_starts(emulator, task, score, envs, options.start_waits)
        device = envs.distance.device
        self.starts = Starts(
            stages,
            torch.stack(distances),
            per_start=options.start_waits + 1,
            spare=spare,
            archive_steps=options.archive_steps,
            curriculum=options.curriculum,
            random=random,
            envs=envs,
        )
        self.envs = envs
        self.names = [stage.name for stage in task]
        self.tracker = BayesProgressTracker(self.names, len(random.lane), device) if len(task) > 1 else None
        tracker = self.tracker if options.curriculum == "progress" else None
        self._weights = self.starts.weights if tracker is None else tracker.weights
        slots, (first, *_) = len(states) + spare, states
        needed = slots * sum(part.nbytes for part in (first.state, first.memory, first.screen))
        of = "milestone_slots" if each and not options.archive_slots else "archive_slots"
        name = f"{of} {spare:,}" if spare else f"start_waits {options.start_waits:,}"
        with room_for(needed, str(device), name, "use fewer"):
            self.pool = emulator.pool(states, spare)
        self.filled = torch.zeros(spare, dtype=torch.bool, device=device)
        of_milestones, of_archive = self.filled.split([each * len(names), options.archive_slots])
        self.archive = self.milestones = None
        if options.archive_slots:
            assert visits is not None
            by_chance, share = options.curriculum == "progress", options.archive_share
            size = options.archive_slots
            self.archive = Archive(self.pool, self.starts, visits, size, share, by_chance, random, envs, of_archive)
        if follows is not None:
            own = (self.pool, self.starts, of_milestones, envs, random, options, emulator.cartridge)
            self.milestones = Milestones(*follows, *own)
            if self.archive is not None and options.archive_behind < 1:
                self.archive.follow(self.milestones, options.archive_behind)
        self.learns = any(part is not None for part in (self.tracker, self.archive, self.milestones))

    def count(self) -> None:
        """Learns from the last step: goals reached, episodes ended, states for the archive."""
        if self.tracker is not None:
            t = self.envs
            self.tracker.count(t.stage_before, t.reached, t.truncations, t.from_start)
        if self.archive is not None:
            self.archive.offer()
        if self.milestones is not None:
            if self.archive is not None:
                self.milestones.record(self.archive.admitted, self.archive.slots)
            self.milestones.count()

    def sample(self, seed: Seed) -> torch.Tensor:
        """The pool's slot (num_envs,) for each env's next episode: `sampled_slot` of the env's tensors."""
        episode = self.envs.episode
        slots = self.starts.sample(seed, episode, self._weights)
        if self.archive is not None:
            slots = self.archive.sample(seed, episode, slots)
        return slots if self.milestones is None else self.milestones.sample(seed, episode, slots)

    def read(self) -> dict[str, float]:
        """Statistics for the infos; nothing for a single stage without an archive."""
        info = {} if self.tracker is None else self.tracker.read()
        parts = (self.archive, self.milestones)
        return info | {name: value for part in parts if part is not None for name, value in part.read().items()}

    def slot_statistics(self) -> list[dict[str, float]]:
        """For each slot of the pool: its stage, the episodes that began there and ended, the successes among them, and
        the sum of their steps. An archive's slot counts only its present state."""
        rows = zip(self.starts.stage.tolist(), *self.starts.counts.tolist(), strict=True)
        return [
            {"stage": self.names[stage], "episodes": episodes, "successes": won, "steps": steps}
            for stage, episodes, won, steps in rows
        ]

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that a saved state holds beside each env's slot."""
        parts = (self.starts, self.tracker, self.archive, self.milestones)
        own = {name: tensor for part in parts if part is not None for name, tensor in part.tensors().items()}
        return own | ({"spare_filled": self.filled, **self.pool.spare_tensors()} if len(self.filled) else {})

    def reset(self) -> None:
        """Computes the weights after everything in `tensors` was set to 0."""
        for tracker in (self.tracker, None if self.milestones is None else self.milestones.tracker):
            if tracker is not None:
                tracker.update()


def _play_starts(
    emulator: EmulatorLike, task: Sequence[Stage], score: GoalScore, envs: EnvTensors, start_waits: int
) -> tuple[list[Snapshot], list[int], list[torch.Tensor]]:
    """(snapshots, stages, distances) of every start after 0..start_waits idle steps."""
    snapshots, stages, distances = [], [], []
    idle = torch.zeros(emulator.num_envs, dtype=torch.uint8, device=emulator.device)
    for number, stage in enumerate(task):
        if not stage.starts:
            emulator.reset()
        for start in stage.starts or [emulator.save(0)]:
            emulator.load(start, 0)
            for wait in range(start_waits + 1):
                if wait:
                    emulator.step(idle)
                envs.stage.fill_(number)
                score.measure(emulator)
                snapshots.append(emulator.save(0))
                stages.append(number)
                distances.append(envs.distance[0].clone())
    return snapshots, stages, distances
