"""GBxCuLEEnv: the emulator as a native PufferLib environment; reward, episodes, resets and statistics on the device."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import pufferlib
import torch

from gbxcule_puffer.actions import DEFAULT_CODEC, Schedule, get_codec
from gbxcule_puffer.buffers import StepBuffers
from gbxcule_puffer.cartridge import load_cartridge
from gbxcule_puffer.device import resolve_device
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.episode_stats import QUANTILES, EpisodeStats
from gbxcule_puffer.errors import ActionError, ConfigError, StateError
from gbxcule_puffer.goals import GoalDistance, GoalTemplate
from gbxcule_puffer.observations import LAYOUTS, FrameStack, observation_shape
from gbxcule_puffer.pool import SnapshotPool
from gbxcule_puffer.randomness import RANGE, CounterRandom
from gbxcule_puffer.snapshot import Snapshot
from gbxcule_puffer.state_files import load_state_file

StrPath = str | os.PathLike[str]
INFO_MODES = ("full", "stats", "none")


class GBxCuLEEnv(pufferlib.PufferEnv):  # pyright: ignore[reportAttributeAccessIssue]
    """`num_envs` Game Boys as one PufferEnv: reach the pictures of `goal_dir` from `start_state` by buttons alone.

    reward = step_cost + alpha * (previous distance - distance) + goal_bonus * done, where done = distance < tau for
    k_consecutive steps. Without a goal the reward is step_cost and only max_steps ends an episode.

    io="numpy": PufferLib's buffers, filled in place. io="torch": tensors on the device, no copy, no host
    synchronisation but for the infos, which are read once every log_interval steps; info_mode="none" makes `step`
    safe to capture in a CUDA graph.
    """

    pool_class: Any = SnapshotPool

    def __init__(
        self,
        rom: bytes | StrPath,
        num_envs: int = 1,
        device: str = "cpu",
        *,
        io: str = "numpy",
        obs: str = "shades",
        stack_k: int = 1,
        action_codec: str = DEFAULT_CODEC,
        frames_per_step: int = 24,
        release_after_frames: int = 8,
        start_state: StrPath | Sequence[StrPath] | None = None,
        start_waits: int = 0,
        sticky_actions: float = 0.0,
        goal_dir: StrPath | None = None,
        max_steps: int = 128,
        step_cost: float = -0.01,
        alpha: float = 10.0,
        goal_bonus: float = 5.0,
        tau: float | None = None,
        k_consecutive: int | None = None,
        log_interval: int = 64,
        info_mode: str = "stats",
        num_threads: int | None = None,
        seed: int | None = 0,
        buf: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Checks everything and names what is wrong; the emulator starts with the first `reset`.

        start_state: one state file (ours or PyBoy's) or several, each episode draws one; the post-boot state if None.
        start_waits: each episode starts after 0..start_waits steps without a button.
        sticky_actions: probability that a step repeats the previous action.
        tau, k_consecutive: the goal's own when None.

        Raises: ConfigError, RomError, StateError, GoalError or DeviceError.
        """
        self.codec = get_codec(action_codec)
        self.schedule = Schedule(frames_per_step, release_after_frames)
        shape = observation_shape(obs, stack_k)
        for name, value, least in (
            ("num_envs", num_envs, 1),
            ("max_steps", max_steps, 1),
            ("log_interval", log_interval, 1),
            ("start_waits", start_waits, 0),
        ):
            if value < least:
                raise ConfigError(f"{name} {value} must be at least {least}")
        for name, text, known in (("io", io, ("numpy", "torch")), ("info_mode", info_mode, INFO_MODES)):
            if text not in known:
                raise ConfigError(f"{name} {text!r} is unknown: give one of {', '.join(known)}")
        if io == "torch" and buf is not None:
            raise ConfigError("io='torch' has its own tensors: leave buf out, or give io='numpy'")
        if not 0 <= sticky_actions < 1:
            raise ConfigError(f"sticky_actions {sticky_actions} must be a probability below 1")

        self.device = torch.device(resolve_device(device))
        self.io, self.obs, self.stack_k, self.info_mode = io, obs, stack_k, info_mode
        self.max_steps, self.log_interval, self.num_threads = max_steps, log_interval, num_threads
        self.step_cost, self.alpha, self.goal_bonus = step_cost, alpha, goal_bonus
        self.start_waits, self.sticky_actions, self.seed = start_waits, sticky_actions, seed or 0
        self.cartridge = load_cartridge(rom)
        paths = [start_state] if isinstance(start_state, str | os.PathLike) else start_state or []
        self.start_snapshots = [load_state_file(path, self.cartridge) for path in paths]
        self.goal = None if goal_dir is None else GoalTemplate.load(goal_dir)
        if self.goal is not None:
            self.goal.check(self.config, LAYOUTS[obs][:2])
        meta = self.goal.meta if self.goal is not None else {"tau": 0.0, "k_consecutive": 1}
        self.tau = float(meta["tau"] if tau is None else tau)
        self.k_consecutive = int(meta["k_consecutive"] if k_consecutive is None else k_consecutive)

        self.num_agents = num_envs
        self.single_observation_space = gymnasium.spaces.Box(0, 255 if obs == "packed" else 3, shape, np.uint8)
        self.single_action_space = gymnasium.spaces.Discrete(self.codec.num_actions)
        self.infos: list[dict[str, float]] = []
        self.emulator: Any = None  # and the rest of _start
        self._pool: Any = None
        self._stack: Any = None
        self._steps: int | None = None
        if io == "torch":
            super().__init__(self._start(None))
        else:
            # PufferLib's vector backends make one env more, only to read its spaces, and then fork: with the emulator
            # started late that one costs nothing and the workers inherit no threads and no CUDA context.
            super().__init__(buf)

    @property
    def num_envs(self) -> int:
        return self.num_agents

    @property
    def final_observation(self) -> Any:
        """The observation each env's action led to, shaped like `observations` and equal to it but where final_mask."""
        return self._final_observation if self.io == "torch" else self._final_observation.cpu().numpy()

    @property
    def final_mask(self) -> Any:
        """Where the last step ended an episode and its autoreset replaced the observation, (num_envs,) bool."""
        return self._final_mask if self.io == "torch" else self._final_mask.cpu().numpy()

    @property
    def config(self) -> dict[str, Any]:
        """What observations, goals and checkpoints depend on."""
        return {
            "rom_sha256": self.cartridge.sha256,
            "action_codec": self.codec.name,
            "frames_per_step": self.schedule.frames_per_step,
            "release_after_frames": self.schedule.release_after_frames,
            "stack_k": self.stack_k,
            "obs": self.obs,
        }

    def reset(self, seed: int | None = None) -> tuple[Any, list[dict[str, float]]]:
        """Starts an episode in every env; the same seed gives the same episodes."""
        if seed is not None:
            self.seed = seed
        if self.emulator is None:
            if self.io == "torch":
                raise ConfigError("reset after close: make another env")
            names = ("observations", "rewards", "terminals", "truncations")
            self._start({name: getattr(self, name) for name in names})
        for tensor in self._state_tensors().values():
            tensor.zero_()
        self._steps = 0
        self.masks[:] = True
        for tensor in (self._out.rewards, self._out.terminals, self._out.truncations):
            tensor.zero_()
        self._final_mask.fill_(True)
        self._begin_episodes()
        self._final_mask.zero_()
        self._final_observation.copy_(self._stack.observations)
        self._out.publish()
        self.infos = []
        return self.observations, self.infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, list[dict[str, float]]]:
        """One action in every env; an episode that ends is reported and replaced by a new one in the same step.

        Raises: ActionError. On a GPU a value out of range is found when the infos are read, up to log_interval later.
        """
        if self._steps is None:
            raise ConfigError("step before reset: call reset first")
        self._advance(self._check_actions(actions))
        self._out.publish()
        self._steps += 1
        due = self.info_mode != "none" and self._steps % self.log_interval == 0
        self.infos = [self._read_infos()] if due else []
        return self.observations, self.rewards, self.terminals, self.truncations, self.infos

    def close(self) -> None:
        """Drops the emulator and its memory."""
        self.emulator = self._pool = self._stack = self._steps = None

    def state_dict(self) -> dict[str, Any]:
        """All that the next steps depend on, the emulators' state included."""
        tensors = {name: tensor.clone() for name, tensor in self._state_tensors().items()}
        saved = self.emulator.save()
        machines = {name: torch.from_numpy(getattr(saved, name)) for name in ("state", "memory", "screen")}
        return {"tensors": tensors, "machines": machines, "steps": self._steps, "seed": self.seed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues exactly where `state_dict` was taken.

        Raises: StateError when it was taken with another number of envs or another configuration.
        """
        self.reset()
        tensors = self._state_tensors()
        for name, tensor in tensors.items():
            saved = state["tensors"].get(name)
            if saved is None or saved.shape != tensor.shape:
                raise StateError(
                    f"saved env state does not fit in {name}: use the num_envs and options it was saved with"
                )
        arrays = {name: tensor.numpy() for name, tensor in state["machines"].items()}
        self.emulator.load(Snapshot(self.cartridge.sha256, **arrays))
        for name, tensor in tensors.items():
            tensor.copy_(state["tensors"][name])
        self._steps, self.seed = state["steps"], state["seed"]
        self._out.publish()

    # -- one step on the device: no allocation, no branch on device data, no host synchronisation --------------------

    def _advance(self, actions: torch.Tensor) -> None:
        self._index.copy_(actions).clamp_(0, self.codec.num_actions - 1)
        torch.ne(self._index, actions, out=self._flag)
        self._bad_actions.logical_or_(self._flag)
        if self.sticky_actions:
            draw = self._random.draw(self.seed, 1, self._clock)
            torch.lt(draw, int(self.sticky_actions * RANGE), out=self._flag)
            self._flag.logical_and_(self._age)  # an episode's first action is never the previous episode's
            torch.where(self._flag, self._last_index, self._index, out=self._index)
            self._last_index.copy_(self._index)
        torch.index_select(self._button_table, 0, self._index, out=self._buttons)
        self._clock.add_(1)
        self._age.add_(1)

        self.emulator.step(self._buttons)
        self._stack.push()
        self._score()
        out = self._out
        self._stats.count(self._index, out.rewards, self._age, out.terminals, out.truncations, self.emulator.locked)
        self._final_observation.copy_(self._stack.observations)
        self._begin_episodes()

    def _score(self) -> None:
        """Distance, reward, terminals and truncations of the picture just drawn; final_mask is either of the two."""
        out = self._out
        if self._goal_distance is not None:
            self._goal_distance.measure(self.emulator.screen, self._distance)
            torch.lt(self._distance, self.tau, out=self._flag)
            self._hold.add_(1).mul_(self._flag)
            torch.ge(self._hold, self.k_consecutive, out=out.terminals)
        # Products and sums apart: a fused multiply-add would round differently on the GPU.
        torch.sub(self._previous, self._distance, out=out.rewards)
        out.rewards.mul_(self.alpha).add_(self.step_cost).add_(out.terminals, alpha=self.goal_bonus)
        self._previous.copy_(self._distance)
        torch.ge(self._age, self.max_steps, out=out.truncations)
        out.truncations.logical_or_(self.emulator.locked)
        torch.gt(out.truncations, out.terminals, out=out.truncations)  # and not terminal
        torch.logical_or(out.terminals, out.truncations, out=self._final_mask)

    def _begin_episodes(self) -> None:
        """Restores a start state in every env of final_mask and sets its episode's counters."""
        mask = self._final_mask
        if len(self._start_distance) > 1:
            draw = self._random.draw(self.seed, 0, self._episode)
            self._slots.copy_(draw.remainder_(len(self._start_distance)))
        self._pool.reset(mask, self._slots)
        self._stack.refill(mask)
        torch.index_select(self._start_distance, 0, self._slots, out=self._scratch)
        torch.where(mask, self._scratch, self._previous, out=self._previous)
        self._episode.add_(mask)
        torch.logical_not(mask, out=self._flag)
        self._age.mul_(self._flag)
        self._hold.mul_(self._flag)

    # -- the host's side --------------------------------------------------------------------------------------------

    def _check_actions(self, actions: Any) -> torch.Tensor:
        wanted = torch.Tensor if self.io == "torch" else np.ndarray
        if not isinstance(actions, wanted):
            raise ActionError(f"actions are a {type(actions).__name__}: io={self.io!r} takes a {wanted.__name__}")
        if isinstance(actions, torch.Tensor):
            integers = not (actions.is_floating_point() or actions.is_complex() or actions.dtype == torch.bool)
        else:
            integers = np.issubdtype(actions.dtype, np.integer)
        if not integers:
            raise ActionError(f"actions have dtype {actions.dtype}: give integers, e.g. int32")
        if isinstance(actions, torch.Tensor):
            tensor = actions
        else:  # as int64, because torch cannot do much with uint16 to uint64
            tensor = torch.from_numpy(np.ascontiguousarray(actions, np.int64)).to(self.device)
        if tensor.device != self.device:
            raise ActionError(f"actions are on {tensor.device}, the env on {self.device}: move them there")
        if tuple(tensor.shape) != (self.num_envs,):
            raise ActionError(f"actions have shape {tuple(tensor.shape)}: give ({self.num_envs},), one action an env")
        if self.device.type == "cpu" and (int(tensor.min()) < 0 or int(tensor.max()) >= self.codec.num_actions):
            raise self._range_error()
        return tensor

    def _range_error(self) -> ActionError:
        return ActionError(f"an action is out of range: {self.codec.name} takes 0..{self.codec.num_actions - 1}")

    def _read_infos(self) -> dict[str, float]:
        info, shares, out_of_range = self._stats.read(self._distance, self._bad_actions.any())
        if out_of_range:
            raise self._range_error()
        if self.goal is None:
            info = {name: value for name, value in info.items() if name not in QUANTILES}
        if self.info_mode == "full":
            info |= {f"action_hist/{name}": share for name, share in zip(self.codec.actions, shares, strict=True)}
        return info

    def _make_emulator(self) -> Any:
        return Emulator(
            self.cartridge.data,
            self.num_agents,
            str(self.device),
            screen="full" if self.obs == "full" else "half",
            frames_per_step=self.schedule.frames_per_step,
            release_after_frames=self.schedule.release_after_frames,
            num_threads=self.num_threads,
        )

    def _start(self, numpy_buffers: Mapping[str, np.ndarray] | None) -> dict[str, Any]:
        """Makes the emulator and every tensor of the step, and returns the tensors under PufferLib's names."""
        n, device = self.num_agents, self.device
        if multiprocessing.parent_process() is not None:
            # Workers share the cores, and OpenMP hangs in a process forked after the parent used its threads.
            torch.set_num_threads(1)

        def zeros(*shape: int, dtype: torch.dtype) -> torch.Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self.emulator = self._make_emulator()
        self._out = StepBuffers(n, observation_shape(self.obs, self.stack_k), device, numpy_buffers)
        self._stack = FrameStack(self.emulator.screen, self.obs, self.stack_k, self._out.observations)
        self._final_observation = torch.zeros_like(self._stack.observations)
        self._final_mask = zeros(n, dtype=torch.bool)

        buttons = [self.codec.to_buttons(action) for action in range(self.codec.num_actions)]
        self._button_table = torch.tensor(buttons, dtype=torch.uint8, device=device)
        self._buttons = zeros(n, dtype=torch.uint8)
        self._index, self._last_index = zeros(n, dtype=torch.int64), zeros(n, dtype=torch.int64)
        self._clock, self._episode = zeros(n, dtype=torch.int64), zeros(n, dtype=torch.int64)
        self._age, self._hold = zeros(n, dtype=torch.int32), zeros(n, dtype=torch.int32)
        self._flag, self._bad_actions = zeros(n, dtype=torch.bool), zeros(n, dtype=torch.bool)
        self._distance, self._previous = zeros(n, dtype=torch.float32), zeros(n, dtype=torch.float32)
        self._scratch = zeros(n, dtype=torch.float32)
        self._stats = EpisodeStats(n, self.codec.num_actions, device)
        self._slots = zeros(n, dtype=torch.int32)
        self._random = CounterRandom(n, device)
        self._goal_distance = None if self.goal is None else GoalDistance(self.goal.frames, n, device)
        self._pool, self._start_distance = self._make_pool()
        return {
            "observations": self._stack.observations,
            "rewards": self._out.rewards,
            "terminals": self._out.terminals,
            "truncations": self._out.truncations,
            "masks": torch.ones(n, dtype=torch.bool, device=device),
            "actions": self._index,
        }

    def _make_pool(self) -> tuple[Any, torch.Tensor]:
        """The start states on the device, each also after 1..start_waits idle steps, and their distances."""
        emulator, states, distances = self.emulator, [], []
        if not self.start_snapshots:
            emulator.reset()
            self.start_snapshots = [emulator.save(0)]
        for snapshot in self.start_snapshots:
            emulator.load(snapshot, 0)
            for wait in range(self.start_waits + 1):
                if wait:
                    emulator.step(self._buttons.zero_())
                if self._goal_distance is not None:
                    self._goal_distance.measure(emulator.screen, self._distance)
                states.append(emulator.save(0))
                distances.append(self._distance[0].clone())
        return self.pool_class(emulator, states), torch.stack(distances)

    def _state_tensors(self) -> dict[str, torch.Tensor]:
        names = ("clock", "episode", "age", "hold", "last_index", "bad_actions", "distance", "previous")
        tensors = {name: getattr(self, f"_{name}") for name in names}
        return {**tensors, **self._stats.tensors(), "observations": self._stack.observations}
