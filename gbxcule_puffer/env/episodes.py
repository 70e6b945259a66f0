"""The step on the device, from actions to rewards, ends and new episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gbxcule_puffer.emulator.launch import words
from gbxcule_puffer.env.action_input import ActionInput
from gbxcule_puffer.env.buffers import StepBuffers
from gbxcule_puffer.env.curriculum.bonuses import Incentives
from gbxcule_puffer.env.curriculum.curriculum import Curriculum
from gbxcule_puffer.env.options import EnvOptions
from gbxcule_puffer.env.randomness import CounterRandom
from gbxcule_puffer.env.score import GoalScore
from gbxcule_puffer.env.statistics import EpisodeStats
from gbxcule_puffer.env.step_end.step_end import Epilog
from gbxcule_puffer.tasks.actions import ActionCodec
from gbxcule_puffer.tasks.observations import FrameStack
from gbxcule_puffer.tasks.quest import Condition
from gbxcule_puffer.tasks.task import Stage


class Episodes:
    """The episodes of an emulator's envs: `step` plays them, `begin_all` starts them anew.

    final_observation and final_mask: what the last step's resets replaced, and where. Allocates only here.
    """

    def __init__(
        self,
        emulator: Any,
        task: Sequence[Stage],
        quest: Sequence[Condition],
        codec: ActionCodec,
        out: StepBuffers,
        stack: FrameStack,
        options: EnvOptions,
    ) -> None:
        n, device = emulator.num_envs, out.rewards.device
        self.emulator, self.out, self.stack = emulator, out, stack
        self.final_observation = torch.zeros_like(stack.observations)
        self.final_mask = torch.zeros(n, dtype=torch.bool, device=device)
        self.number = torch.zeros(n, dtype=torch.int64, device=device)
        self.random = CounterRandom(n, device, options.first_env)
        self.input = ActionInput(codec, options.blocked_actions, options.sticky_actions, n, device)
        self.score = GoalScore(task, options, n, device)
        self.stats = EpisodeStats(n, codec.num_actions, device)
        self.incentives = Incentives(emulator, device, quest, options)
        visits = self.incentives.visits
        self.curriculum = Curriculum(emulator, task, self.score, visits, self.random, options)
        pool = self.curriculum.pool
        # Else something of torch's is to be done between a step's end and the next episode's start.
        self._at_once = bool(pool.fields) and not self.incentives.active and not self.curriculum.learns
        self.epilog = Epilog(n, device)
        for fields in (stack.fields, self.score.fields, self.curriculum.starts.fields, pool.fields):
            self.epilog.use(**fields)
        self.epilog.use(
            locked=emulator.locked,
            rewards=out.rewards,
            terminals=out.terminals,
            truncations=out.truncations,
            ended=self.final_mask,
            final_observation=words(self.final_observation),
            number=self.number,
        )

    def step(self, actions: torch.Tensor, seed: int) -> None:
        """One action in every env. No allocation, no branch on device data, no host synchronisation."""
        out, score, ended = self.out, self.score, self.final_mask
        self.input.take(actions, self.random, seed, score.age)
        self.emulator.step(self.input.buttons)
        if self._at_once:
            self.curriculum.draw(seed, self.number)
            self.epilog.run("full_step")
        else:
            self.epilog.run("end")
            self.incentives.pay(out.rewards)
            self.incentives.count(ended)
            self.curriculum.count(score, ended, out.truncations)
            self._begin(seed)
        self.stats.count(
            self.input.index, out.rewards, score.length, out.terminals, out.truncations, score.was_locked
        )  # fmt: skip

    def reset(self, seed: int) -> None:
        """Forgets everything and starts an episode in every env."""
        for tensor in {**self.env_tensors(), **self.run_tensors()}.values():
            tensor.zero_()
        self.curriculum.reset()
        for tensor in (self.out.rewards, self.out.terminals, self.out.truncations):
            tensor.zero_()
        self.begin_all(seed)

    def begin_all(self, seed: int) -> None:
        """Starts an episode in every env."""
        self.begin_where(torch.ones_like(self.final_mask), seed)

    def begin_where(self, mask: torch.Tensor, seed: int) -> None:
        """Starts an episode in the envs of `mask` (num_envs,) bool; those they were in count for nothing, and the
        others' final_observation and final_mask stay."""
        ended, final = self.final_mask.clone(), self.final_observation
        self.final_mask.copy_(mask)
        self.stats.returns.masked_fill_(self.final_mask, 0)
        self._begin(seed)
        torch.where(mask[:, None, None, None], self.stack.observations, final, out=final)
        torch.gt(ended, mask, out=self.final_mask)

    def env_tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that each env's next steps depend on, beside its machine."""
        quest = self.incentives.quest
        parts = (self.input, self.score, self.stats, *(() if quest is None else (quest,)))
        own = {name: tensor for part in parts for name, tensor in part.tensors().items()}
        slots = self.curriculum.starts.slots
        return {"episode": self.number, "slots": slots, **own, "observations": self.stack.observations}

    def run_tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that all envs have filled together: progress at the stages, the archive, visits."""
        visits = self.incentives.visits
        return {**self.curriculum.tensors(), **({} if visits is None else visits.tensors())}

    def _begin(self, seed: int) -> None:
        """Starts an episode in every env of final_mask."""
        slots, pool = self.curriculum.draw(seed, self.number), self.curriculum.pool
        if pool.fields:
            self.epilog.run("start")
        else:  # PyBoy restores by itself
            pool.reset(self.final_mask, slots)
            self.epilog.run("start_restored")
        self.incentives.begin(self.final_mask)
