"""Checks actions, applies blocked and sticky ones, and turns them into buttons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gbxcule_puffer.env.fields import EnvTensors
from gbxcule_puffer.env.randomness import RANGE, STICKY, CounterRandom, Seed
from gbxcule_puffer.errors import ActionError, ConfigError
from gbxcule_puffer.tasks.actions import ActionCodec, allowed_actions

WIDE_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


def checked_actions(actions: object, codec: ActionCodec, device: torch.device, io: str, count: int) -> torch.Tensor:
    """`actions` (count,), or (count, choices) for a codec with several choices, as an integer tensor (count,) on
    `device`. Values are checked only on a CPU.

    Raises: ActionError for another type, dtype, device, shape or value.
    """
    kind = torch.Tensor if io == "torch" else np.ndarray
    if not isinstance(actions, kind):
        raise ActionError(
            f"actions are of type {type(actions).__name__}: io={io!r} takes {kind.__module__}.{kind.__name__}"
        )
    if isinstance(actions, torch.Tensor):
        integers = not (actions.is_floating_point() or actions.is_complex() or actions.dtype == torch.bool)
    else:
        integers = np.issubdtype(actions.dtype, np.integer)
    if not integers:
        raise ActionError(f"actions have dtype {actions.dtype}: give integers, e.g. int32")
    if not isinstance(actions, torch.Tensor):  # as int64, because torch cannot do much with uint16 to uint64
        tensor = torch.from_numpy(np.ascontiguousarray(actions, np.int64)).to(device)
    else:
        tensor = actions.to(torch.int64) if actions.dtype in WIDE_UNSIGNED else actions
    if tensor.device != device:
        raise ActionError(f"actions are on {tensor.device}, the env on {device}: move them there")
    wanted = f"({count},), one action an env"
    if codec.factors:
        wanted += f", or ({count}, {len(codec.factors)}), its choices"
        if tuple(tensor.shape) == (count, len(codec.factors)):
            tensor = codec.join(tensor)
    if tuple(tensor.shape) != (count,):
        raise ActionError(f"actions have shape {tuple(tensor.shape)}: give {wanted}")
    if device.type == "cpu" and (int(tensor.min()) < 0 or int(tensor.max()) >= codec.num_actions):
        raise range_error(codec)
    return tensor


def checked_mask(mask: object, num_envs: int, device: torch.device) -> torch.Tensor:
    """A mask of envs, (num_envs,) bool, as a tensor on `device`.

    Raises: ConfigError for another shape or type.
    """
    tensor = torch.as_tensor(mask, device=device)
    if tensor.shape != (num_envs,) or tensor.dtype != torch.bool:
        raise ConfigError(f"mask has shape {tuple(tensor.shape)} of {tensor.dtype}: give ({num_envs},) of bool")
    return tensor


def range_error(codec: ActionCodec) -> ActionError:
    choices = f", and choices below {', '.join(map(str, codec.factors))}" if codec.factors else ""
    return ActionError(f"an action is out of range: {codec.name} takes 0..{codec.num_actions - 1}{choices}")


class ActionInput:
    """The action of each env: fills `action`, the action taken, and `buttons` of the env's tensors.

    A blocked action presses nothing. With probability `sticky` a step repeats the previous action, except in an
    episode's first step. Allocates only here.

    frames: of each env's step, (num_envs,) int32; None if all actions take frames_per_step. blocked: the actions that
    a Task blocks now, (num_envs, actions) bool; None without such a Task.
    """

    def __init__(
        self,
        codec: ActionCodec,
        blocked: Sequence[str],
        sticky: float,
        envs: EnvTensors,
        random: CounterRandom,
        frames_per_step: int,
        is_blocked: bool = False,
    ) -> None:
        allowed = allowed_actions(codec, blocked)
        masks = [codec.to_buttons(action) * allowed[action] for action in range(codec.num_actions)]
        self.table = torch.tensor(masks, dtype=torch.uint8, device=envs.action.device)
        self.largest, self.threshold = codec.num_actions - 1, int(sticky * RANGE)
        self.envs, self.random = envs, random
        self.frames = None
        if codec.frames:
            lengths = [frames or frames_per_step for frames in codec.frames]
            self._lengths = torch.tensor(lengths, dtype=torch.int32, device=envs.action.device)
            self.frames = torch.zeros(len(envs.action), dtype=torch.int32, device=envs.action.device)
        self._flag = torch.zeros_like(envs.bad_action)
        shape = (len(envs.action), codec.num_actions)
        self.blocked = torch.zeros(shape, dtype=torch.bool, device=envs.action.device) if is_blocked else None

    def take(self, actions: torch.Tensor, seed: Seed) -> None:
        """Takes checked `actions`. A value out of range is clamped and recorded in `bad_action`."""
        t = self.envs
        t.action.copy_(actions).clamp_(0, self.largest)
        torch.ne(t.action, actions, out=self._flag)
        t.bad_action.logical_or_(self._flag)
        if self.threshold:
            torch.lt(self.random.sample(seed, STICKY, t.clock), self.threshold, out=self._flag)
            self._flag.logical_and_(t.age)  # an episode's first action is never the previous episode's
            torch.where(self._flag, t.last_action, t.action, out=t.action)
            t.last_action.copy_(t.action)
        torch.index_select(self.table, 0, t.action, out=t.buttons)
        if self.blocked is not None:
            t.buttons.masked_fill_(self.blocked.gather(1, t.action[:, None])[:, 0], 0)
        if self.frames is not None:
            torch.index_select(self._lengths, 0, t.action, out=self.frames)
        t.clock.add_(1)
