"""The parts of a step that can be measured separately, built from the environment's own parts."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
from gbxcule_puffer.baselines.pyboy_workers import PyBoyWorker
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.fields import EnvTensors
from gbxcule_puffer.env.options import EnvOptions
from gbxcule_puffer.env.score import GoalScore
from gbxcule_puffer.env.step_end.step_end import StepEnd
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.tasks.observe.stack import FrameStack


class PartialStep:
    """`emulate_only`: only the frames. `reward_only`: also the distance to the goal, the reward and whether the goal is
    reached. `obs_only`: the frames and the observation. Without resets, infos or checks of actions.

    env: a started GBxCuLEEnv or pyboy_puffer_single, whose emulator, codec and goal are used; observations, rewards:
    buffers to fill, allocated here if None.
    """

    def __init__(
        self,
        stage: str,
        env: GBxCuLEEnv | PyBoyPufferSingle,
        observations: torch.Tensor | None = None,
        rewards: torch.Tensor | None = None,
    ) -> None:
        emulator, codec, n = env.emulator, env.codec, env.num_envs
        device = torch.device(emulator.device)
        # The host reads PyBoy's pictures; the Warp kernel always draws into device memory.
        self._advance = getattr(emulator, "step_undrawn", emulator.step) if stage == "emulate_only" else emulator.step
        buttons = [codec.to_buttons(action) for action in range(codec.num_actions)]
        self._table = torch.tensor(buttons, dtype=torch.uint8, device=device)
        self._index = torch.zeros(n, dtype=torch.int64, device=device)
        self._buttons = torch.zeros(n, dtype=torch.uint8, device=device)
        self.stage, self._step_end = stage, StepEnd(n, device, env.layout.kind.in_color)
        colors = emulator.colors if emulator.model == "cgb" else None
        self._step_end.use(**FrameStack(emulator.screen, env.layout, observations, colors).members)
        if stage == "reward_only":
            envs = EnvTensors(n, device, **({} if rewards is None else {"rewards": rewards}))
            score = GoalScore(env.stages, EnvOptions(), envs)
            self._step_end.use(**score.members, **envs.members(), locked=emulator.locked)

    def step(self, actions: torch.Tensor) -> None:
        """actions (num_envs,), integers on the device."""
        self._index.copy_(actions)
        torch.index_select(self._table, 0, self._index, out=self._buttons)
        self._advance(self._buttons)
        if self.stage != "emulate_only":
            self._step_end.run(self.stage)


class StageWorker(PyBoyWorker):
    """A worker of pyboy_puffer_vec that does one stage of the step and reports its games' state."""

    def __init__(self, rom: bytes | StrPath, num_envs: int, *, stage: str, **options: Any) -> None:
        self._stage = stage
        self._partial: PartialStep | None = None
        super().__init__(rom, num_envs, **options)

    def reset(self, seed: int | None = None) -> tuple[Any, list[dict[str, float]]]:
        """As PyBoyWorker.reset."""
        result = super().reset(seed)
        if self._stage != "full_step":
            buffers = torch.from_numpy(self.observations), torch.from_numpy(self.rewards)
            self._partial = PartialStep(self._stage, self, *buffers)
        return result

    def step(self, actions: np.ndarray) -> tuple[Any, Any, Any, Any, list[dict[str, float]]]:
        """The stage's part of a step; the buffers of the other parts keep the values of the reset."""
        if self._partial is None:
            return super().step(actions)
        self._partial.step(torch.from_numpy(actions))
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def receipt(self) -> tuple[list[int], list[bytes]]:
        """The PC of each env and a digest of its picture."""
        return pyboy_receipt(self)


class StageVec(PyBoyPufferVec):
    """pyboy_puffer_vec whose workers do one stage, given in worker_options."""

    worker_class = StageWorker


def pyboy_receipt(env: PyBoyPufferSingle) -> tuple[list[int], list[bytes]]:
    """PCs and digests of the pictures of a pyboy_puffer_single."""
    env.emulator.draw()
    return [env.registers(index)["pc"] for index in range(env.num_envs)], picture_digests(env.emulator.screen.numpy())


def picture_digests(pictures: np.ndarray) -> list[bytes]:
    """A digest of each picture (num_envs, rows, columns)."""
    return [hashlib.blake2b(picture.tobytes(), digest_size=16).digest() for picture in np.ascontiguousarray(pictures)]
