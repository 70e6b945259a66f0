"""Random network distillation (RND): rewards for pictures that a network cannot predict yet, because they are rare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.observe.pixels import signed
from gbxcule_puffer.trainers.blocks.graphs import Replayed
from gbxcule_puffer.trainers.blocks.layers import Patches, layer_init
from gbxcule_puffer.trainers.blocks.objects import object_layers
from gbxcule_puffer.trainers.blocks.optimizers import Adam
from gbxcule_puffer.trainers.blocks.returns import ReturnScale
from gbxcule_puffer.trainers.blocks.rollout import rows
from gbxcule_puffer.trainers.distributed import World

FEATURES, HIDDEN = 128, 256
LEAST = 1e-4  # variance of a pixel from 0 to 1: one that was constant until now is as new as the clip allows
CLIP = 5.0  # deviations of a pixel
PREDICTOR_LR, CRITIC_LR = 1e-4, 1e-3


class Novelty(nn.Module):
    """Rewards of Burda et al. 2018, "Exploration by Random Network Distillation", https://arxiv.org/abs/1810.12894, for
    the steps of a rollout: the error with which `predictor`, which learns on the way, gives the features that a random
    network gives, of the newest picture to which a step led, normalised pixel by pixel.

    They are a second stream beside the game's rewards: `rollout` has it as the learner's own, in units of the
    deviation of its returns, with values of a network of its own. It goes on over the ends of episodes, whose last
    step leads to the start of the next one.
    """

    moments: Tensor  # mean and mean square of each pixel, over all rollouts
    rollouts: Tensor

    def __init__(
        self, layout: ObservationLayout, rollout: Mapping[str, Tensor], gamma: float, world: World, device: torch.device
    ) -> None:
        """rollout: the learner's, whose tensors keep their addresses; gamma: discount factor of these rewards."""
        super().__init__()
        self.layout, self.world, self.obs = layout, world, rollout["obs"]
        # Of a stack of pictures the newest, of tiles and objects, which are not normalised, all.
        self.channels = layout.picture_shape[0] // (layout.stack_k if layout.kind.is_picture else 1)
        self.register_buffer("moments", torch.zeros(2, self.channels, *layout.picture_shape[1:]))
        self.register_buffer("rollouts", torch.zeros(()))
        self.target = nn.Sequential(*self._layers(1, self.channels), layer_init(nn.Linear(HIDDEN, FEATURES)))
        self.target.requires_grad_(False)
        deeper = layer_init(nn.Linear(HIDDEN, HIDDEN)), nn.ReLU(), layer_init(nn.Linear(HIDDEN, FEATURES))
        self.predictor = nn.Sequential(*self._layers(1, self.channels), *deeper)
        self.critic = nn.Sequential(*self._layers(layout.kind.most, layout.picture_shape[0]))
        self.value = layer_init(nn.Linear(HIDDEN, 1), 1.0)
        self.to(device)
        groups = [(self.predictor, PREDICTOR_LR), (self.critic, CRITIC_LR), (self.value, CRITIC_LR)]
        self.optimizer = Adam([{"params": part.parameters(), "lr": lr} for part, lr in groups], eps=1e-5)
        self.scale = ReturnScale(self.obs.shape[1], gamma, world, device)
        self.rollout = {name: torch.zeros_like(rollout["values"]) for name in ("rewards", "values", "next_values")}
        self.rollout |= {name: torch.zeros_like(rollout["terminals"]) for name in ("terminals", "truncations")}
        self.returns = torch.zeros_like(rollout["values"])
        self._judge: Callable[[Tensor], Any] = self.judge
        self._gradients: Callable[[Tensor], Any] = self.gradients
        self.error = torch.zeros((), device=device)  # mean of the newest rollout, before it is scaled

    def record(self) -> None:
        """From now on its passes are CUDA graphs."""
        self._judge, self._gradients = Replayed(self.judge), Replayed(self.gradients)

    def look(self, observations: Tensor) -> None:
        """Fills `rollout` for the learner's newest one, after whose last step the observations (num_envs, *shape)
        are."""
        if self.layout.kind.is_picture:
            self._count()
        self._judge(observations)
        self.error.copy_(self.rollout["rewards"].mean())
        self.scale.scale(self.rollout, self.value)

    @torch.no_grad()
    def judge(self, observations: Tensor) -> None:
        """The errors and values of the learner's rollout, step by step."""
        steps = [*self.obs, signed(observations)]
        for step, (before, after) in enumerate(pairwise(steps)):
            self.rollout["rewards"][step] = self._errors(after)
            self.rollout["values"][step] = self._values(before)
        self.rollout["next_values"][:-1] = self.rollout["values"][1:]
        self.rollout["next_values"][-1] = self._values(steps[-1])

    def learn(self, minibatches: int) -> None:
        """One pass over the learner's rollout: the predictor learns its pictures, the critic the `returns`."""
        for index in torch.randperm(self.returns.numel(), device=self.returns.device).chunk(minibatches):
            self._gradients(index)
            self.world.average_gradients(self)
            self.optimizer.step()

    def gradients(self, index: Tensor) -> None:
        """Computes those of a minibatch: the steps `index` of the rollout's."""
        obs, returns = rows(self.obs.flatten(0, 1), index), self.returns.flatten()[index]
        loss = self._errors(obs).mean() + 0.5 * (self._values(obs) - returns).square().mean()
        self.optimizer.zero_grad(set_to_none=False)  # a recorded minibatch adds to the same tensors
        loss.backward()

    def _layers(self, most: int, channels: int) -> list[nn.Module]:
        """Layers from pictures, tiles or objects to HIDDEN numbers."""
        first = object_layers(self.layout) or nn.Sequential(
            Patches(most),
            layer_init(nn.Conv2d(16 * channels, 16, 2)),
            nn.ReLU(),
            layer_init(nn.Conv2d(16, 32, 4, stride=2)),
            nn.Flatten(),  # before ReLU: on a CPU, gradients in two orders of memory take it ten times as long
            nn.ReLU(),
        )
        size = first(torch.zeros(1, channels, *self.layout.picture_shape[1:])).shape[1]
        return [first, layer_init(nn.Linear(size, HIDDEN)), nn.ReLU()]

    @torch.no_grad()
    def _count(self) -> None:
        """Adds the rollout's pictures to the moments; all rollouts have the same weight."""
        sums = torch.zeros_like(self.moments)
        for obs in self.obs:
            newest = self._newest(obs)
            sums += torch.stack([newest.mean(0), newest.square().mean(0)]) / len(self.obs)
        self.world.average(sums)
        self.rollouts += 1
        self.moments.lerp_(sums, 1 / self.rollouts)

    def _newest(self, obs: Tensor) -> Tensor:
        return self.layout.pixels(obs)[:, -self.channels :].float() / self.layout.kind.most

    def _errors(self, obs: Tensor) -> Tensor:
        """(batch,) of observations (batch, *shape)."""
        if self.layout.kind.is_picture:
            mean, square = self.moments
            deviation = (square - mean.square()).clamp(min=LEAST).sqrt()
            seen = ((self._newest(obs) - mean) / deviation).clamp(-CLIP, CLIP)
        else:
            seen = self.layout.pixels(obs)
        return (self.predictor(seen) - self.target(seen)).square().mean(1)

    def _values(self, obs: Tensor) -> Tensor:
        """(batch,) of observations (batch, *shape); their vectors are left out."""
        return self.value(self.critic(self.layout.pixels(obs))).squeeze(1)
