"""PyBoy on all cores behind the environment's API: pyboy_puffer_single in the workers of pufferlib.vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, NoReturn

import numpy as np
import pufferlib
import pufferlib.vector
import torch

from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.baselines.pyboy_workers import PyBoyWorker, Split, Workers
from gbxcule_puffer.closing import check_open, close_for_good
from gbxcule_puffer.env.action_input import checked_actions, checked_mask
from gbxcule_puffer.env.options import EnvOptions, options_of, signature
from gbxcule_puffer.env.protocol import Infos
from gbxcule_puffer.env.randomness import Seed, checked_seed
from gbxcule_puffer.env.saved_state import check_parts, checked_tensors
from gbxcule_puffer.env.statistics import OF_DISTANCES, OF_SUCCESS, EpisodeStats
from gbxcule_puffer.env.task_runner import means
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.tasks.observe.layout import Array, Given, ShowsPictures

OF_A_SLOT = ("seed", "first_env")  # options that differ between workers
STEP_BUFFERS = ("observations", "rewards", "terminals", "truncations")
Answer = tuple[Any, Any, Any, Any, Infos]


class PyBoyPufferVec(pufferlib.PufferEnv, ShowsPictures, Generic[Given]):  # pyright: ignore[reportAttributeAccessIssue]
    """`num_envs` PyBoys as one PufferEnv, by default on all cores; the same numbers as `gbxcule`, element by element.

    backend: 'serial' (this process), 'mp_sync' (processes; every `step` waits for all of them) or 'mp_async' (processes
    that answer in batches: `recv` returns the next batch while the others still play; use `async_reset`, `recv` and
    `send`, and the env ids that `recv` returns).
    num_workers: processes, by default one per core; batch_size: envs per `recv` of 'mp_async', by default half of them.
    worker_options: more keyword arguments of `worker_class`. io="torch": CPU tensors that share the workers' memory.

    Args: the others as in GBxCuLEEnv; device must be 'cpu', num_threads has no effect. Infos are those of episodes and,
    except with 'mp_async', of Tasks, without those of a curriculum.
    Raises: the errors of GBxCuLEEnv.
    """

    worker_class: type[PyBoyWorker] = PyBoyWorker
    emulator = launches = None  # the PyBoys are the workers'

    def __init__(
        self,
        rom: bytes | StrPath,
        num_envs: int = 1,
        device: str = "cpu",
        *,
        backend: str = "mp_sync",
        num_workers: int | None = None,
        batch_size: int | None = None,
        worker_options: Mapping[str, object] | None = None,
        buf: Mapping[str, np.ndarray] | None = None,
        **options: object,
    ) -> None:
        self.options = chosen = options_of(options, EnvOptions)
        # Checks the arguments, knows the spaces, and is never started.
        spec = PyBoyPufferSingle(rom, num_envs, device, **{**options, "io": "numpy"})
        self.split = Split.make(backend, spec.num_envs, num_workers, batch_size)
        if self.split.num_workers > 1 and (chosen.curriculum == "progress" or chosen.visit_bonus):
            raise ConfigError("curriculum='progress' and visit_bonus learn from all envs together: give num_workers=1")
        if chosen.archive_slots:
            raise ConfigError(f"archive_slots {chosen.archive_slots}: PyBoy cannot save live envs; leave it out")
        if buf is not None and chosen.io == "torch":
            raise ConfigError("io='torch' has its own tensors: leave buf out, or give io='numpy'")
        if buf is not None and self.split.batch_size != num_envs:
            raise ConfigError("backend 'mp_async' answers for some envs at a time and cannot fill a given buf")
        self.device, self.io, self.config = spec.device, chosen.io, spec.config
        self.seed: Seed = spec.seed
        self._has_own_seeds = False  # the workers
        self._has_tasks = chosen.task is not None
        self.cartridge, self.codec, self.schedule = spec.cartridge, spec.codec, spec.schedule
        self.position, self.symbols = spec.position, spec.symbols
        self.stages, self.goal, self.tau, self.k_consecutive = spec.stages, spec.goal, spec.tau, spec.k_consecutive
        self.obs, self.stack_k, self.max_steps, self.action_mask = (
            spec.obs,
            spec.stack_k,
            spec.max_steps,
            spec.action_mask,
        )
        self.layout, self.single_observation_space = spec.layout, spec.single_observation_space
        self.single_action_space = spec.single_action_space
        self.num_agents, self.agents_per_batch = spec.num_envs, self.split.batch_size
        self.infos: Infos = []

        own = {"io": "numpy", "info_mode": "none", **(worker_options or {})}
        self._worker_options = {name: value for name, value in {**vars(chosen), **own}.items() if name not in OF_A_SLOT}
        self._given = buf
        self._workers: Workers | None = None
        size = self.split.batch_size
        kind = (size, self.codec.num_actions, self.device, bool(chosen.until or self.codec.frames))
        self._stats = [EpisodeStats(*kind) for _ in range(self.num_agents // size)]
        self._age = torch.zeros(self.num_agents, dtype=torch.int32)
        self._no_locks = torch.zeros(size, dtype=torch.int32)  # PyBoy does not tell
        self._steps = [0] * len(self._stats)
        # As in GBxCuLEEnv: PufferLib makes one env only to read its spaces, and it must cost nothing.
        super().__init__(self._start() if self.io == "torch" else buf)

    @property
    def num_envs(self) -> int:
        return self.num_agents

    milestones = coverage = None
    """Each worker has its own."""

    @property
    def has_goal(self) -> bool:
        """As of GBxCuLEEnv."""
        return self.goal is not None

    @property
    def has_success(self) -> bool:
        """As of GBxCuLEEnv; with 'mp_async', whose workers cannot be asked between batches, True with any Task."""
        if self.has_goal or not self._has_tasks or self._workers is None:
            return self.has_goal
        return len(self._stats) > 1 or any(self.call("may_succeed"))

    @property
    def emulated(self) -> dict[str, np.dtype] | bool:
        """As of GBxCuLEEnv."""
        return self.layout.emulated

    @property
    def final_observation(self) -> Given:
        """As of GBxCuLEEnv, of all envs; with 'mp_async' take the rows of the env ids that `recv` returned."""
        return self._shared("final_observation")

    @property
    def final_mask(self) -> Given:
        """As of GBxCuLEEnv, of all envs; with 'mp_async' take the rows of the env ids that `recv` returned."""
        return self._shared("final_mask")

    @property
    def failures(self) -> Given:
        """As of GBxCuLEEnv, of all envs."""
        return self._shared("failures")

    @property
    def taken_actions(self) -> Given:
        """As of GBxCuLEEnv, of all envs."""
        return self._shared("taken_actions")

    @property
    def episode_returns(self) -> Given:
        """As of GBxCuLEEnv, of all envs."""
        return self._give(torch.cat([stats.returns for stats in self._stats]))

    @property
    def stage(self) -> Given:
        """As of GBxCuLEEnv, of all envs."""
        return self._shared("stage")

    @property
    def frames(self) -> Given:
        """As of GBxCuLEEnv, of all envs."""
        return self._shared("frames")

    def reset(self, seed: int | Sequence[int] | None = None) -> tuple[Any, Infos]:
        """Starts an episode in every env, as GBxCuLEEnv.reset. 'mp_async': of the first batch."""
        self.async_reset(seed)
        observations, *_ = self.recv()
        return observations, self.infos

    def step(self, actions: Array) -> Answer:
        """One action in every env, as GBxCuLEEnv.step; with 'mp_async' `send`, then `recv` of the next batch.

        Raises: ActionError.
        """
        self.send(actions)
        return (*self.recv()[:4], self.infos)

    def async_reset(self, seed: int | Sequence[int] | None = None) -> None:
        """Starts an episode in every env of every worker; `recv` returns the first observations."""
        if seed is not None:
            self.seed = checked_seed(seed, self.num_agents)
        self._run().wait(every=True)
        if isinstance(self.seed, tuple) or self._has_own_seeds:
            self._has_own_seeds, each = isinstance(self.seed, tuple), self.split.envs_per_worker
            starts = range(0, self.num_agents, each)
            self.call("take_seeds", [self.seed[i : i + each] if isinstance(self.seed, tuple) else None for i in starts])
        self._run().vec.async_reset(0 if isinstance(self.seed, tuple) else self.seed)
        for stats in self._stats:
            for tensor in stats.tensors().values():
                tensor.zero_()
        self._age.zero_()
        self._steps = [-1] * len(self._stats)  # the first answer of each batch is the reset's

    def send(self, actions: Array) -> None:
        """Sends the envs of the last `recv` their actions and returns at once (except for 'serial').

        Raises: ActionError; ConfigError before a reset.
        """
        if self._workers is None or self._workers.vec.flag != pufferlib.vector.SEND:
            raise ConfigError("actions before reset, or twice without recv: call reset first")
        tensor = checked_actions(actions, self.codec, self.device, self.io, self.split.batch_size)
        choices = torch.stack(self.codec.split(tensor), 1) if self.codec.factors else tensor
        self._workers.vec.send(choices.numpy().astype(np.int32))

    def recv(self) -> tuple[Any, Any, Any, Any, Infos, np.ndarray, Any]:
        """(observations, rewards, terminals, truncations, infos, env ids, masks) of the next batch that is ready."""
        workers = self._run()
        workers.wait()
        *_, ids, _ = workers.vec.recv()  # newer releases of pufferlib-core have one value more before these
        rows = slice(int(ids[0]), int(ids[-1]) + 1)
        self._fill_given()
        self.infos = self._count(rows)
        whole = self.split.batch_size == self.num_envs
        parts = [getattr(self, name) if whole else getattr(self, name)[rows] for name in (*STEP_BUFFERS, "masks")]
        return *parts[:4], self.infos, ids, parts[4]

    def reset_envs(self, mask: Array) -> Given:
        """As GBxCuLEEnv.reset_envs.

        Raises: StateError with 'mp_async', whose envs are at different steps; ConfigError.
        """
        self._check_sync("begun anew one by one")
        if self._workers is None:
            raise ConfigError("reset_envs before reset: call reset first")
        chosen = checked_mask(mask, self.num_envs, self.device)
        self.call("reset_envs", chosen.numpy().reshape(self.split.num_workers, -1))
        self._stats[0].returns.masked_fill_(chosen, 0)
        self._age.masked_fill_(chosen, 0)
        self._fill_given()
        return self.observations

    def read_infos(self) -> dict[str, float]:
        """The infos since the last read, regardless of log_interval; with 'mp_async' those of the first batch."""
        return self._read_infos(0)

    def statistics(self) -> dict[str, torch.Tensor]:
        """As GBxCuLEEnv.statistics; the workers are asked for them."""
        found = self.call("statistics") if self._has_tasks else [{}]
        return {name: torch.cat([part[name] for part in found]) for name in found[0]}

    def reward_ranges(self) -> dict[str, tuple[float, float]]:
        """As GBxCuLEEnv.reward_ranges."""
        found = self.call("reward_ranges") if self._has_tasks else [{}]
        return {name: (min(part[name][0] for part in found), max(part[name][1] for part in found)) for name in found[0]}

    def wait(self) -> None:
        """Waits until every worker has finished its requests."""
        self._run().wait(every=True)

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """The results of a method of PyBoyPufferSingle in each worker, e.g. call("registers") -> the first env's of
        each; an argument is a sequence with one value for each worker."""
        return self._run().call(method, *arguments)

    def worker_pids(self) -> list[int]:
        """Process ids of the workers; none for 'serial' and before the start."""
        return [] if self._workers is None else self._workers.pids()

    def state_dict(self, machines: bool = True) -> dict[str, Any]:
        """Everything that the next steps depend on; without `machines`, as GBxCuLEEnv.state_dict.

        Raises: StateError with 'mp_async', whose envs are at different steps.
        """
        self._check_sync("saved")
        if self._workers is None:
            raise StateError("an env that has not started has no state: call reset first")
        tensors = {name: tensor.clone() for name, tensor in self._tensors().items()}
        return {
            "workers": self.call("state_dict", [machines] * self.split.num_workers),
            "tensors": tensors,
            "steps": self._steps[0],
            "seed": self.seed,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues exactly from the state of `state_dict`.

        Raises: StateError if it is from another number of envs or workers, or another configuration.
        """
        self._check_sync("loaded")
        check_parts(state, workers=list, tensors=Mapping, steps=int, seed=int | tuple)
        if (found := len(state["workers"])) != self.split.num_workers:
            raise StateError(f"saved env state has {found} workers, not {self.split.num_workers}: use its num_workers")
        tensors = self._tensors()
        checked_tensors(tensors, state["tensors"], {})
        self.reset()
        self.call("load_state_dict", state["workers"])
        if state["workers"][0]["machines"] is None:
            return
        for name, tensor in tensors.items():
            tensor.copy_(state["tensors"][name])
        self._steps, self.seed = [state["steps"]], state["seed"]

    def close(self) -> None:
        """Ends the workers; every other call is an error from then on."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None
        close_for_good(self)

    def __reduce__(self) -> NoReturn:
        raise ConfigError("PyBoyPufferVec cannot be copied: make another one, and give it state_dict()")

    # ----------------------------------------------------------------------------------------------------------------

    def _start(self) -> dict[str, Any]:
        """Starts the workers; PufferLib's buffers, as tensors for io='torch'."""
        shape = self.single_observation_space.shape
        shared = {
            "final_observation": (self.single_observation_space.dtype, shape),
            "final_mask": (np.bool_, ()),
            "failures": (np.bool_, ()),
            "taken_actions": (np.int64, ()),
            "distance": (np.float32, ()),
            "stage": (np.int64, ()),
            "frames": (np.int32, ()),
        }
        seed = self.options.seed or 0
        self._workers = Workers(
            self.worker_class, self.cartridge, self.split, seed, self.options.first_env, self._worker_options, shared
        )
        buffers = self._workers.buffers()
        buffers["masks"][:] = True
        self._taus = torch.tensor([stage.tau for stage in self.stages])
        self._facts = {name: torch.from_numpy(array) for name, array in self._workers.shared.items()}
        self._numbers = {name: torch.from_numpy(buffers[name]) for name in STEP_BUFFERS[1:]}
        if self.io == "torch":
            tensors = {name: torch.from_numpy(array) for name, array in buffers.items()}
            return {**tensors, "teacher_actions": torch.zeros_like(tensors["actions"])}  # newer PufferEnvs keep them
        return buffers

    def _run(self) -> Workers:
        if self._workers is None:
            check_open(self)
            buffers = self._start()
            if self._given is None:
                for name, array in buffers.items():
                    setattr(self, name, array)
        assert self._workers is not None
        return self._workers

    def _fill_given(self) -> None:
        """Copies the workers' results to the caller's buffers, if there are any."""
        if self._given is not None:
            for name, array in self._run().buffers().items():
                if name in STEP_BUFFERS:
                    np.copyto(self._given[name], array)

    def _shared(self, name: str) -> Given:
        self._run()
        return self._give(self._facts[name])

    def _give(self, tensor: torch.Tensor) -> Given:
        given: Any = tensor if self.io == "torch" else tensor.numpy()
        return given

    def _tensors(self) -> dict[str, torch.Tensor]:
        """This process's tensors for a saved state."""
        return {"age": self._age} | self._stats[0].tensors()

    def _count(self, rows: slice) -> list[dict[str, float]]:
        """Adds a batch's answer to its statistics; its infos where they are due."""
        batch = rows.start // self.split.batch_size
        stats, age = self._stats[batch], self._age[rows]
        self._steps[batch] += 1
        if self._steps[batch] == 0 or self.options.info_mode == "none":
            return []
        age.add_(1)
        rewards, terminals, truncations = (self._numbers[name][rows] for name in STEP_BUFFERS[1:])
        actions, failures, frames = (self._facts[name][rows] for name in ("taken_actions", "failures", "frames"))
        stats.count(actions, rewards, age, terminals, failures, truncations, self._no_locks, frames)
        age.mul_(~self._facts["final_mask"][rows])
        return [] if self._steps[batch] % self.options.log_interval else [self._read_infos(batch)]

    def _read_infos(self, batch: int) -> dict[str, float]:
        size = self.split.batch_size
        rows = slice(batch * size, (batch + 1) * size)
        distances, taus = self._facts["distance"][rows], self._taus[self._facts["stage"][rows]]
        info, shares, _ = self._stats[batch].read(distances, taus, torch.zeros((), dtype=torch.bool))
        absent = (() if self.has_goal else OF_DISTANCES) + (() if self.has_success else OF_SUCCESS)
        info = {name: value for name, value in info.items() if name not in absent}
        if self.options.info_mode == "full":
            info |= {f"action_hist/{name}": share for name, share in zip(self.codec.actions, shares, strict=True)}
        if self._has_tasks and len(self._stats) == 1:
            info |= means(*self.call("task_totals"))
        return info

    def _check_sync(self, done: str) -> None:
        if len(self._stats) > 1:
            raise StateError("backend 'mp_async' has envs at different steps, which cannot be " + done)


PyBoyPufferVec.__signature__ = signature(PyBoyPufferVec.__init__)  # pyright: ignore[reportAttributeAccessIssue]
