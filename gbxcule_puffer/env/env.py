"""GBxCuLEEnv: the emulator as a native PufferLib environment; reward, episodes, resets and statistics on the device."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic

import numpy as np
import torch

from gbxcule_puffer.closing import close_for_good, closed_line, is_closed
from gbxcule_puffer.device import resolve_device, room_for
from gbxcule_puffer.emulator import Emulator, EmulatorLike
from gbxcule_puffer.emulator.cartridge import Rom, load_cartridge
from gbxcule_puffer.emulator.protocol import Launches
from gbxcule_puffer.env.action_input import checked_actions, checked_mask
from gbxcule_puffer.env.buffers import StepBuffers
from gbxcule_puffer.env.copies import EnvCopies
from gbxcule_puffer.env.coverage import Coverage
from gbxcule_puffer.env.curriculum.milestones import Milestones
from gbxcule_puffer.env.env_task import EnvTask
from gbxcule_puffer.env.episodes import Episodes
from gbxcule_puffer.env.needed import prepare_env
from gbxcule_puffer.env.options import EnvOptions, options_of, signature, whole_number
from gbxcule_puffer.env.protocol import Infos
from gbxcule_puffer.env.puffer_env import NativeEnv
from gbxcule_puffer.env.randomness import Seed, checked_seed
from gbxcule_puffer.env.saved_state import arrays_of, check_config, packed, saved_machines, unpacked
from gbxcule_puffer.env.statistics import OF_DISTANCES, OF_SUCCESS
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.observe.layout import Array, Given, ShowsPictures
from gbxcule_puffer.tasks.observe.pixels import rows_of
from gbxcule_puffer.tasks.ram import Ram


class GBxCuLEEnv(EnvCopies, NativeEnv, ShowsPictures, Generic[Given]):
    """`num_envs` Game Boys as one PufferEnv: reach the pictures of `goal_dir` from `start_state` by buttons alone.

    reward = step_cost + alpha * (previous distance - distance) + goal_bonus * done, where done = distance < tau for
    k_consecutive steps. Without a goal the reward is step_cost, and only max_steps ends an episode. `stages` gives
    several such tasks (docs/exploration.md): each episode begins at one of them.

    io="numpy": PufferLib's buffers, filled in place. io="torch": tensors on the device, without copies, and without
    host synchronisation except for the infos, which are read once every log_interval steps. With info_mode="none" a
    CUDA graph can capture `step`.
    """

    options_class = EnvOptions

    def __init__(
        self,
        rom: Rom,
        num_envs: int = 1,
        device: str = "cpu",
        *,
        buf: Mapping[str, np.ndarray] | None = None,
        **options: object,
    ) -> None:
        """Checks everything and names what is wrong; with io="numpy" the emulator starts with the first `reset`.

        rom: a path or the image's bytes; device: 'cpu', 'cuda' or 'cuda:N'; buf: PufferLib's buffers to fill, the env's
        own by default; options: see EnvOptions (docs/environment.md).

        Raises: ConfigError, RomError, StateError, GoalError or DeviceError.
        """
        self.options = options_of(options, self.options_class)
        self.num_agents = whole_number("num_envs", num_envs)
        if self.options.io == "torch" and buf is not None:
            raise ConfigError("io='torch' has its own tensors: leave buf out, or give io='numpy'")
        self.device = torch.device(resolve_device(device))
        self.cartridge = load_cartridge(rom, self.options.header, self.options.model, self.options.sound)
        self._task = EnvTask(self.cartridge, self.options)
        self._take(self._task)
        self.seed: Seed = self.options.seed or 0
        self.infos: Infos = []
        self._started: Episodes | None = None  # by _start
        self._steps: int | None = None
        self.single_observation_space = self.layout.box
        self.single_action_space = self.codec.space
        if self.io == "torch":
            super().__init__(self._start(None))
        else:
            # PufferLib's vector backends make one env more, only to read its spaces, and then fork: with the emulator
            # started late that one costs nothing and the workers inherit no threads and no CUDA context.
            size = 0 if buf is not None else self.num_agents * self.layout.dtype.itemsize
            with room_for(size, "cpu", f"num_envs {self.num_agents:,}", "use fewer envs"):
                super().__init__(buf)

    def _take(self, task: EnvTask) -> None:
        """The public parts of the task."""
        options = self.options
        self.io, self.obs, self.stack_k = options.io, options.obs, options.stack_k
        self.codec, self.schedule, self.layout, self.symbols = task.codec, task.schedule, task.layout, task.symbols
        self.config, self.stages, self.position = task.config, task.stages, task.position
        self.task, self.until, self.allowed = task.task, task.until, task.allowed
        first, limits = task.stages[0], [stage.max_steps for stage in task.stages]
        self.goal, self.tau, self.k_consecutive = first.goal, first.tau, first.k_consecutive
        self.max_steps = sum(limits) if options.chain else max(limits)
        if task.task is not None and options.step_cost is None and not any(stage.goal for stage in task.stages):
            self.options = replace(options, step_cost=0.0)  # the Task's reward is all there is

    @property
    def num_envs(self) -> int:
        return self.num_agents

    @property
    def emulator(self) -> EmulatorLike:
        """The Game Boys. Raises: ConfigError before a reset."""
        return self._episodes.emulator

    @property
    def launches(self) -> Launches | None:
        """The launches of the Game Boys' steps; None on a CPU."""
        return self.emulator.launches

    @property
    def has_goal(self) -> bool:
        """True if the env compares pictures with those of a goal."""
        return self.goal is not None

    @property
    def has_success(self) -> bool:
        """True where an episode may end as a success: at a goal, or because a Task gives `terminal`, which is known
        after its first step."""
        return self.has_goal or (self._started is not None and self._started.tasks.may_succeed)

    @property
    def final_observation(self) -> Given:
        """The observation that each env's action led to, shaped like `observations`; they differ only where final_mask
        is True."""
        return self._give(self._episodes.final_observation)

    @property
    def final_mask(self) -> Given:
        """Mask of the envs whose last step ended an episode, so that their observation is from a new one, (num_envs,)
        bool."""
        return self._give(self._episodes.envs.ended)

    def pictures(self, rows: torch.Tensor | slice = slice(None)) -> torch.Tensor:
        """The current pictures of the envs of `rows`, an index; those of a Game Boy Color in colour."""
        if self.cartridge.model == "dmg":
            return super().pictures(rows) if self.layout.kind.is_picture else self.emulator.screen[rows]
        return rows_of(self.emulator.colors, rows)

    def final_pictures(self, rows: torch.Tensor | slice = slice(None)) -> torch.Tensor:
        """The pictures that each env's action led to; in colour after `keep_pictures`.

        Raises: ConfigError before keep_pictures where the observations are not pictures.
        """
        kept = self._episodes.final_pictures
        return super().final_pictures(rows) if kept is None else rows_of(kept, rows)

    def keep_pictures(self) -> None:
        """From the next step on, final_pictures are there whatever is observed, those of Game Boy Colors in colour."""
        if self.cartridge.model == "cgb" or not self.layout.kind.is_picture:
            self._episodes.keep_pictures()

    @property
    def failures(self) -> Given:
        """Mask of the envs whose episode a Task ended in the last step as a failure, (num_envs,) bool; `terminals` has
        them, too."""
        return self._give(self._episodes.envs.failures)

    @property
    def distance(self) -> Given:
        """Distance to the env's goal of the picture at the end of the last step, (num_envs,) float32."""
        return self._give(self._episodes.envs.distance)

    @property
    def taken_actions(self) -> Given:
        """The actions of the last step, after sticky actions, (num_envs,) int64."""
        return self._give(self._episodes.envs.action)

    @property
    def episode_returns(self) -> Given:
        """Sums of the rewards of the current episodes, (num_envs,) float32; needs info_mode stats or full."""
        return self._give(self._episodes.stats.returns)

    @property
    def stage(self) -> Given:
        """The stage each env is at, (num_envs,) int64; names in `stages`."""
        return self._give(self._episodes.envs.stage)

    @property
    def ram(self) -> Ram:
        """The current memory of all envs, by address or symbol. Raises: ConfigError before a reset."""
        return self._episodes.ram

    @property
    def frames(self) -> Given:
        """Frames of the last step, (num_envs,) int32: frames_per_step, or fewer with `until`."""
        return self._give(self._episodes.emulator.frames)

    def hook(self, bank: int | None, address: int | str) -> None:
        """Counts from the next step on how often an instruction in ROM begins; `ram.executions` returns the counts.
        bank: None with a symbol, or with an address below 4000.

        Raises: ConfigError for code that is not in ROM, an unknown symbol, or before a reset.
        """
        self.ram.hook(address if bank is None else (bank, address))

    @property
    def action_mask(self) -> Given:
        """Mask of the actions that are not blocked, (num_actions,) bool, for a policy's logits; where a Task blocks
        some, of each env, (num_envs, num_actions)."""
        allowed = torch.tensor(self.allowed, device=self.device)
        blocked = None if self._started is None else self._started.input.blocked
        return self._give(allowed if blocked is None else allowed & ~blocked)

    @property
    def emulated(self) -> dict[str, np.dtype] | bool:
        """False, or, if an observation has more than pictures, the types for pufferlib.pytorch.nativize_dtype."""
        return self.layout.emulated

    def reset(self, seed: int | Sequence[int] | None = None) -> tuple[Any, Infos]:
        """Starts an episode in every env; the same seed gives the same episodes. With a seed for each env, env i plays
        the episodes of one alone with the i-th seed."""
        if seed is not None:
            self.seed = checked_seed(seed, self.num_agents)
        if self._started is None:
            self._start({name: getattr(self, name) for name in ("observations", "rewards", "terminals", "truncations")})
        self._episodes.reset(self.seed)
        self._steps = 0
        self.masks[:] = True
        self._out.publish()
        self.infos = []
        return self.observations, self.infos

    def step(self, actions: Array) -> tuple[Any, Any, Any, Any, Infos]:
        """One action in every env. An episode that ends is reported, and a new one begins in the same step.

        Raises: ActionError. On a GPU, a value out of range is found when the infos are read, up to log_interval steps
        later.
        """
        if self._steps is None:
            raise ConfigError("step before reset: call reset first")
        self._episodes.step(self.check_actions(actions), self.seed)
        self._out.publish()
        self._steps += 1
        due = self.options.info_mode != "none" and self._steps % self.options.log_interval == 0
        self.infos = [self.read_infos()] if due else []
        return self.observations, self.rewards, self.terminals, self.truncations, self.infos

    def reset_envs(self, mask: Array) -> Given:
        """Begins an episode now in the envs of `mask` (num_envs,) bool; returns the observations of all. The other envs
        continue. The episodes that are cut off count in no statistics.

        Raises: ConfigError for another shape or type, or before a reset.
        """
        if self._steps is None:
            raise ConfigError("reset_envs before reset: call reset first")
        self._episodes.begin_where(checked_mask(mask, self.num_envs, self.device), self.seed)
        self._out.publish()
        return self.observations

    def read_infos(self) -> dict[str, float]:
        """Statistics since the last read, by a few host reads; `step` calls it every log_interval steps.

        Raises: ActionError if an action of these steps was out of range.
        """
        absent = (() if self.has_goal else OF_DISTANCES) + (() if self.has_success else OF_SUCCESS)
        return self._episodes.read(absent, self.options.info_mode == "full")

    def statistics(self) -> dict[str, torch.Tensor]:
        """The Tasks' statistics of the episodes that the last step ended, (num_envs,) float64 by their names in the
        infos; ignore the other rows."""
        return self._episodes.tasks.statistics()

    def reward_ranges(self) -> dict[str, tuple[float, float]]:
        """The least and the greatest reward since the reset of each Task that pays, by its name."""
        return self._episodes.tasks.reward_ranges()

    def close(self) -> None:
        """Ends the emulator and frees its memory; every other call is an error from then on."""
        if self._started is not None:
            self._started.tasks.close()
            self._started.emulator.close()
        self._started = self._steps = None
        close_for_good(self)

    def check_actions(self, actions: object, count: int | None = None) -> torch.Tensor:
        """`actions` (count or num_envs,) as a tensor on the device; values are checked only on a CPU.

        Raises: ActionError.
        """
        return checked_actions(actions, self.codec, self.device, self.io, count or self.num_envs)

    def slot_statistics(self) -> list[dict[str, Any]]:
        """Episodes and successes from each start and each slot of the archive since the reset (Curriculum)."""
        return self._episodes.curriculum.slot_statistics()

    @property
    def milestones(self) -> Milestones | None:
        """The milestones that are followed, with their states; None unless an option asks for it."""
        return self._episodes.milestones

    @property
    def coverage(self) -> Coverage | None:
        """The visits of each position; None without the option."""
        return self._episodes.coverage

    def state_dict(self, machines: bool = True) -> dict[str, Any]:
        """Everything that the next steps depend on. Without `machines`, which are gigabytes for thousands of envs, only
        the statistics of stages, visits and the archive: loading it begins new episodes."""
        tensors = self._episodes.run_tensors() | (self._episodes.env_tensors() if machines else {})
        totals = self._episodes.tasks.totals() if machines else {}
        state = {"tensors": packed(tensors | totals), "machines": arrays_of(self.emulator.save()) if machines else None}
        return {**state, "config": self.config, "steps": self._steps, "seed": self.seed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues exactly from the state of `state_dict`; without machines, with new episodes.

        Raises: StateError if it is from another number of envs or another configuration.
        """
        check_config(state, self.config)
        if self._started is None:
            self.reset()
        snapshot = saved_machines(state, self.emulator)
        tensors = self._episodes.run_tensors() | ({} if snapshot is None else self._episodes.env_tensors())
        saved = self._episodes.checked_saved(tensors, unpacked(state["tensors"], tensors))
        self.reset(None if snapshot is None else state["seed"])
        if snapshot is not None:
            self.emulator.load(snapshot)
            self._steps = state["steps"]
            self._episodes.tasks.load_totals(saved)
        for name, tensor in tensors.items():
            tensor.copy_(saved[name])
        if snapshot is None:
            self._episodes.begin_all(self.seed)
        self._out.publish()

    @property
    def _episodes(self) -> Episodes:
        """Raises: ConfigError before the first reset of an env with io="numpy", and after close."""
        if self._started is None:
            raise ConfigError(closed_line(self) if is_closed(self) else "the env is not running: call reset first")
        return self._started

    def _give(self, tensor: torch.Tensor) -> Given:
        given: Any = tensor if self.io == "torch" else tensor.cpu().numpy()
        return given

    def _make_emulator(self) -> EmulatorLike:
        return Emulator(
            self.cartridge,
            self.num_agents,
            str(self.device),
            screen=self.layout.kind.screen,
            frames_per_step=self.schedule.frames_per_step,
            release_after_frames=self.schedule.release_after_frames,
            num_threads=self.options.num_threads,
            instruction_budget=self.options.instruction_budget,
            autotune=self.options.autotune,
            native=self.options.native,
        )

    def _start(self, numpy_buffers: Mapping[str, np.ndarray] | None) -> dict[str, torch.Tensor]:
        """Makes the emulator and every tensor of the step, and returns the tensors under PufferLib's names."""
        n, device = self.num_agents, self.device
        if multiprocessing.parent_process() is not None:
            # Workers share the cores, and OpenMP hangs in a process forked after the parent used its threads.
            torch.set_num_threads(1)

        emulator = self._make_emulator()
        emulator.end_steps_when(self.until)
        prepare_env(self._task, str(device))
        size = 2 * n * self.layout.dtype.itemsize  # observations, and those that new episodes replace
        with room_for(size, str(device), f"num_envs {n:,}", "use fewer envs, or smaller observations"):
            self._out = StepBuffers(n, self.layout.box, device, numpy_buffers)
            self._started = Episodes(emulator, self._task, self._out, self.options)
        return {
            "observations": self._episodes.stack.observations,
            "rewards": self._out.rewards,
            "terminals": self._out.terminals,
            "truncations": self._out.truncations,
            "masks": torch.ones(n, dtype=torch.bool, device=device),
            "actions": self._episodes.envs.action,
            "teacher_actions": torch.zeros_like(self._episodes.envs.action),  # newer PufferEnvs keep them
        }


GBxCuLEEnv.__signature__ = signature(GBxCuLEEnv.__init__)  # pyright: ignore[reportAttributeAccessIssue]
