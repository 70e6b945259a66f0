"""The step on the device, from actions to rewards, ends and new episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from gbxcule_puffer.emulator.protocol import EmulatorLike
from gbxcule_puffer.env.action_input import ActionInput, range_error
from gbxcule_puffer.env.buffers import StepBuffers
from gbxcule_puffer.env.coverage import Coverage
from gbxcule_puffer.env.curriculum.bonuses import VisitBonus
from gbxcule_puffer.env.curriculum.curriculum import Curriculum
from gbxcule_puffer.env.curriculum.visits import VisitCounter
from gbxcule_puffer.env.env_task import EnvTask, counts_visits, follows_milestones
from gbxcule_puffer.env.fields import EnvTensors
from gbxcule_puffer.env.options import EnvOptions
from gbxcule_puffer.env.randomness import STAGGER, CounterRandom, Seed
from gbxcule_puffer.env.saved_state import checked_tensors
from gbxcule_puffer.env.score import GoalScore
from gbxcule_puffer.env.statistics import EpisodeStats
from gbxcule_puffer.env.step_end.step_end import StepEnd
from gbxcule_puffer.env.task_runner import TaskRunners
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.observe.objects import ObjectReader
from gbxcule_puffer.tasks.observe.pixels import signed
from gbxcule_puffer.tasks.observe.stack import FrameStack
from gbxcule_puffer.tasks.ram import Ram, RamWatch
from gbxcule_puffer.tasks.ram.addresses import has_milestones
from gbxcule_puffer.tasks.task import StepInfo


class Episodes:
    """The episodes of an emulator's envs: `step` plays them, `begin_all` starts them again.

    envs: tensors of each env (env/fields.py); final_observation: the observations that the last step's resets replaced;
    final_pictures: the pictures that they replaced, after `keep_pictures`.
    """

    def __init__(
        self,
        emulator: EmulatorLike,
        task: EnvTask,
        out: StepBuffers,
        options: EnvOptions,
    ) -> None:
        n, device = emulator.num_envs, out.rewards.device
        self.emulator, self.out, self._stagger = emulator, out, options.stagger
        observed, colors = task.layout.kind, emulator.colors if emulator.model == "cgb" else None
        self._objects = objects = None if observed.is_picture else ObjectReader(emulator, observed)
        shown = emulator.screen if objects is None else objects.values
        self.stack = stack = FrameStack(shown, task.layout, out.observations, colors)
        self.final_observation = torch.zeros_like(stack.observations)
        self._vectors, self._final_vectors = map(stack.layout.split, (stack.observations, self.final_observation))
        self.envs = EnvTensors(n, device, rewards=out.rewards, terminals=out.terminals, truncations=out.truncations)
        self.random = CounterRandom(n, device, options.first_env)
        codec, blocked, sticky = task.codec, options.blocked_actions, options.sticky_actions
        self._codec, blocks = codec, any(each.blocks for each in task.tasks)
        self.input = ActionInput(codec, blocked, sticky, self.envs, self.random, emulator.frames_per_step, blocks)
        self.score = GoalScore(task.stages, options, self.envs)
        self.stats = EpisodeStats(n, codec.num_actions, device, bool(options.until or codec.frames))
        self.ram, key = Ram(emulator, task.symbols), task.visit_key
        kind = key if isinstance(key, str) else RamWatch(self.ram, key)
        archive = options.archive_slots > 0
        self.visits = VisitCounter(emulator.screen, kind, archive) if counts_visits(options) else None
        bonus = () if self.visits is None else (VisitBonus(self.visits, options.visit_bonus),)
        t = self.envs
        info = StepInfo(t.action, t.length, emulator.frames, t.was_locked, t.terminals, t.truncations)
        self.tasks = TaskRunners((*bonus, *task.tasks), self.ram, info, t, self.random, options.reward_scale)
        follows = self.tasks.followed(task.task) if follows_milestones(options) else None
        self.curriculum = Curriculum(emulator, task.stages, self.score, t, self.visits, self.random, options, follows)
        self.milestones = self.tasks.milestones = self.curriculum.milestones
        if self.visits is not None and self.milestones is not None and has_milestones(options.visit_key):
            self.visits.follow(self.milestones.held)
        self.coverage = None
        if options.coverage:
            if task.position is None:
                raise ConfigError("coverage needs position: give MAP,ROW,COLUMN or ROW,COLUMN in RAM")
            self.coverage = Coverage(self.ram, task.position)
        pool = self.curriculum.pool
        # One kernel ends the step and begins episodes, unless torch has something to do in between.
        between = self.tasks.active or self.curriculum.learns or objects or self.coverage
        self._at_once = bool(pool.members) and not between
        self.step_end = StepEnd(n, device, stack.layout.kind.in_color)
        self.final_pictures: torch.Tensor | None = None
        parts = (self.score, self.curriculum.starts, pool)
        for members in (self.envs.members(), stack.members, *(part.members for part in parts)):
            self.step_end.use(**members)
        self.step_end.use(locked=emulator.locked, final_observation=stack.layout.words(self.final_observation))

    def step(self, actions: torch.Tensor, seed: Seed) -> None:
        """One action in every env. No allocation, no branch on device data, no host synchronisation."""
        self.input.take(actions, seed)
        if self.milestones is not None:
            self.milestones.seed = seed
        self.emulator.step(self.envs.buttons, self.input.frames)
        if self._objects is not None:
            self._objects.read()
        if self._at_once and self.final_pictures is None:
            self.curriculum.sample(seed)
            self.step_end.run("full_step")
        else:
            self.step_end.run("end")
            if self.final_pictures is not None:
                self.final_pictures.copy_(self._shown)
            self.tasks.step(self.emulator.screen)
            self.tasks.observe(self.emulator.screen, self._final_vectors)
            self.step_end.run("count")
            self.curriculum.count()
            if self.coverage is not None:
                self.coverage.count()
            self._begin(seed)
        t = self.envs
        ends = (t.terminals, t.failures, t.truncations, t.was_locked)
        self.stats.count(t.action, t.rewards, t.length, *ends, self.emulator.frames)

    def keep_pictures(self) -> None:
        """From now on, each step fills final_pictures: shades, or a Game Boy Color's colours."""
        if self.final_pictures is None:
            self.final_pictures = self._shown.clone()

    def reset(self, seed: Seed) -> None:
        """Forgets everything and starts an episode in every env."""
        for tensor in {**self.env_tensors(), **self.run_tensors()}.values():
            tensor.zero_()
        self.envs.clear()
        self.tasks.clear()
        self.curriculum.reset()
        self.begin_all(seed)

    def begin_all(self, seed: Seed) -> None:
        """Starts an episode in every env."""
        self.begin_where(torch.ones_like(self.envs.ended), seed)
        if self._stagger:
            limit = self.envs.limit
            limit.copy_(self.random.sample(seed, STAGGER, self.envs.episode) % limit + 1)

    def begin_where(self, mask: torch.Tensor, seed: Seed) -> None:
        """Starts an episode in the envs of `mask` (num_envs,) bool. Their previous episodes count for nothing;
        final_observation and `ended` of the other envs stay."""
        before = self.envs.ended.clone()
        self.envs.ended.copy_(mask)
        self.stats.returns.masked_fill_(mask, 0)
        self._begin(seed)
        replaced = [(self.stack.observations, self.final_observation)]
        if self.final_pictures is not None:
            replaced.append((self._shown, self.final_pictures))
        for new, final in replaced:
            new, final = signed(new), signed(final)
            torch.where(mask.view(-1, *[1] * (final.dim() - 1)), new, final, out=final)
        torch.gt(before, mask, out=self.envs.ended)

    @property
    def _shown(self) -> torch.Tensor:
        """The pictures as people see them."""
        return self.emulator.colors if self.emulator.model == "cgb" else self.emulator.screen

    def read(self, absent: Sequence[str], action_shares: bool) -> dict[str, float]:
        """Statistics since the last read, by a few host reads, without those that are `absent`; action_shares: with
        the share of each action.

        Raises: ActionError if an action of these steps was out of range.
        """
        envs = self.envs
        taus = self.score.members["taus"][envs.stage]
        info, shares, out_of_range = self.stats.read(envs.distance, taus, envs.bad_action.any())
        if out_of_range:
            raise range_error(self._codec)
        info = {name: value for name, value in info.items() if name not in absent}
        if action_shares:
            info |= {f"action_hist/{name}": share for name, share in zip(self._codec.actions, shares, strict=True)}
        info |= {} if self.coverage is None else self.coverage.read()
        return info | self.curriculum.read() | self.tasks.read()

    def env_tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that each env's next steps depend on, besides its machine."""
        own = self.envs.saved() | self.stats.tensors() | self.tasks.tensors()
        own |= {} if self.milestones is None else self.milestones.env_tensors()
        own |= {} if self.input.blocked is None else {"blocked": self.input.blocked}
        return {**own, "observations": signed(self.stack.observations)}

    def run_tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that all envs share: progress at the stages, the archive, visits, coverage."""
        counts = [part.tensors() for part in (self.visits, self.coverage) if part is not None]
        return {**self.curriculum.tensors(), **{name: part for each in counts for name, part in each.items()}}

    def checked_saved(self, tensors: Mapping[str, torch.Tensor], saved: object) -> Mapping[str, torch.Tensor]:
        """`saved`, which can be copied into `tensors`, those of env_tensors and run_tensors.

        Raises: StateError if it cannot.
        """
        starts = self.curriculum.starts
        values = int(self.stack.layout.box.high.max()) + 1
        numbers = {"stages": len(self.curriculum.names), "slots": len(starts.stage), "values": values}
        found = checked_tensors(tensors, saved, {**numbers, "actions": len(self.stats.histogram)})
        if len(self.curriculum.filled):
            self.curriculum.pool.check_spare(found, found["spare_filled"])
        return found

    def _begin(self, seed: Seed) -> None:
        """Starts an episode in every env that has `ended`."""
        slots, pool = self.curriculum.sample(seed), self.curriculum.pool
        if pool.members and self._objects is None:
            self.step_end.run("start")
        else:  # PyBoy restores by itself, and objects are read between the two
            pool.reset(self.envs.ended, slots)
            if self._objects is not None:
                self._objects.read(self.envs.ended)
            self.step_end.run("start_restored")
        self.tasks.reset(self.envs.ended, seed)
        if self.milestones is not None:
            self.milestones.begin(self.envs.ended)
        if self.input.blocked is not None:
            self.tasks.block(self._codec.actions, self.input.blocked)
        self.tasks.observe(self.emulator.screen, self._vectors)
