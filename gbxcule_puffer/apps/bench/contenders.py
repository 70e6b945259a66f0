"""Environments under `puffer bench`: start them, step them through rows of actions, collect facts."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from gbxcule_puffer.apps.bench import NAMES
from gbxcule_puffer.apps.bench.workload import Workload
from gbxcule_puffer.apps.watchdog import limit, patience
from gbxcule_puffer.baselines.pyboy_machine import BOOT_FRAMES
from gbxcule_puffer.device import resolve_device
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.provenance import cpu_name, device_name, resident_bytes
from gbxcule_puffer.registry import env_creator

if TYPE_CHECKING:
    from gbxcule_puffer.apps.bench.stages import PartialStep
    from gbxcule_puffer.emulator import Emulator
    from gbxcule_puffer.env import GBxCuLEEnv

ENVS_PER_CORE = 8  # envs per core of a PyBoy contender: enough to balance the workers, and more are not faster


class Contender(Protocol):
    """An environment under measurement: `start` brings it to the workload's start, `run` steps it and waits."""

    name: str
    num_envs: int
    vec_backend: str

    def start(self) -> None: ...

    def run(self, rows: slice) -> None: ...

    def bytes_in_use(self) -> int: ...

    def facts(self) -> dict[str, Any]: ...

    def close(self) -> None: ...


def make_contender(
    name: str, workload: Workload, num_envs: int, *, device: str = "cpu", cores: int, vec_backend: str = "mp_async"
) -> Contender:
    """A contender that has not started; its options are checked.

    Raises: ConfigError, RomError, StateError, GoalError or DeviceError.
    """
    if name == "pyboy_puffer_vec":
        return VecContender(workload, num_envs, cores, vec_backend)
    if name == "gbxcule":
        return NativeContender(name, workload, num_envs, device, cores)
    if name == "pyboy_puffer_single":
        return NativeContender(name, workload, num_envs, "cpu", 1)
    raise ConfigError(f"environment {name!r} is unknown: give one of {', '.join(NAMES)}")


class NativeContender:
    """`gbxcule` or `pyboy_puffer_single` in this process, with io='torch'."""

    vec_backend = "native"

    def __init__(self, name: str, workload: Workload, num_envs: int, device: str, cores: int) -> None:
        self.name, self.workload, self.num_envs, self.cores = name, workload, num_envs, cores
        self.device = resolve_device(device)
        # An env with NumPy buffers starts nothing before its reset: this one only checks the arguments.
        self._make("numpy").close()
        self._env: Any = None
        self._partial: PartialStep | None = None
        self._actions: torch.Tensor | None = None

    def start(self) -> None:
        with self._limit():
            self._env = self._make("torch")
            self._env.reset(seed=self.workload.seed)
        if self.workload.stage != "full_step":
            from gbxcule_puffer.apps.bench.stages import PartialStep

            self._partial = PartialStep(self.workload.stage, self._env)
        self._actions = torch.from_numpy(self.workload.action_rows(self.num_envs)).to(self.device)

    def run(self, rows: slice) -> None:
        """Steps through these rows of the actions, and waits until the device has finished."""
        assert self._actions is not None
        step = self._env.step if self._partial is None else self._partial.step
        for row in self._actions[rows]:
            with self._limit():
                step(row)
        if self.device != "cpu":
            torch.cuda.synchronize(self.device)
        if self.workload.native and not rows.start and self._env.emulator.native is not None:  # after the warm-up
            self._env.emulator.native.find_now()

    def bytes_in_use(self) -> int:
        """Memory held on the GPU by torch and Warp; on the CPU this process's resident memory."""
        if self.device == "cpu":
            return resident_bytes([os.getpid()])
        import warp as wp

        return torch.cuda.memory_allocated(self.device) + wp.get_mempool_used_mem_current(self.device)

    def facts(self) -> dict[str, Any]:
        """The program counters and pictures of the envs after the last step, and other facts for the record."""
        emulator = self._env.emulator
        if self.name == "gbxcule":
            facts = warp_facts(emulator)
        else:
            from gbxcule_puffer.apps.bench.stages import pyboy_receipt

            facts = receipt_counts([pyboy_receipt(self._env)])
        facts |= {"device_name": cpu_name(), "cores": self.cores, "peak_device_bytes": 0}
        if self.device == "cpu":
            return facts | {"peak_device_bytes": resident_bytes([os.getpid()], peak=True)}
        import warp as wp

        peak = torch.cuda.max_memory_allocated(self.device) + wp.get_mempool_used_mem_high(self.device)
        return facts | {"device_name": device_name(self.device), "peak_device_bytes": peak}

    def close(self) -> None:
        if self._env is not None:
            self._env.close()
        self._env = self._partial = self._actions = None
        if self.device != "cpu":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)

    def _limit(self) -> AbstractContextManager[None]:
        """PyBoy's time limit. The Warp kernels always return, and may take long to compile at first."""
        return nullcontext() if self.name == "gbxcule" else limit(seconds(self.workload, self.num_envs))

    def _make(self, io: str) -> GBxCuLEEnv:
        make = env_creator(self.name)
        options = {**self.workload.env_options(), "num_threads": self.cores, "native": self.workload.native}
        return make(self.workload.rom, self.num_envs, self.device, io=io, **options)


class VecContender:
    """`pyboy_puffer_vec` on `cores` cores; with mp_async, a batch gets its next actions as soon as it has answered."""

    name = "pyboy_puffer_vec"

    def __init__(self, workload: Workload, num_envs: int, cores: int, vec_backend: str) -> None:
        from gbxcule_puffer.apps.bench.stages import StageVec
        from gbxcule_puffer.baselines.pyboy_workers import largest_divisor

        self.workload, self.num_envs, self.vec_backend = workload, num_envs, vec_backend
        self.workers = 1 if vec_backend == "serial" else largest_divisor(num_envs, cores)
        self.env = StageVec(
            workload.rom, num_envs, backend=vec_backend, num_workers=self.workers, **workload.env_options(),
            worker_options={"stage": workload.stage},
        )  # fmt: skip

    def start(self) -> None:
        self._actions = self.workload.action_rows(self.num_envs)
        with limit(seconds(self.workload, self.num_envs)):
            self.env.async_reset(self.workload.seed)
            self.env.wait()

    def run(self, rows: slice) -> None:
        """As NativeContender.run: every env does all rows, and at the end all have answered."""
        batches = self.num_envs // self.env.agents_per_batch
        for row in self._actions[rows]:
            for _ in range(batches):
                with limit(seconds(self.workload, self.num_envs)):
                    ids = self.env.recv()[5]
                    self.env.send(row[ids])
        with limit(seconds(self.workload, self.num_envs)):
            self.env.wait()

    def bytes_in_use(self) -> int:
        """Resident memory of this process and its workers."""
        return resident_bytes(self._processes())

    def facts(self) -> dict[str, Any]:
        """As NativeContender.facts."""
        counts = receipt_counts(self.env.call("receipt"))
        peak = resident_bytes(self._processes(), peak=True)
        return {**counts, "device_name": cpu_name(), "cores": self.workers, "peak_device_bytes": peak}

    def close(self) -> None:
        self.env.close()

    def _processes(self) -> list[int]:
        return [os.getpid(), *self.env.worker_pids()]


def seconds(workload: Workload, num_envs: int) -> float:
    """The most that starting or stepping the PyBoys can take."""
    return patience(num_envs * max(BOOT_FRAMES, workload.frames_per_step))


def receipt_counts(receipts: list[tuple[list[int], list[bytes]]]) -> dict[str, int]:
    """Numbers of different program counters and pictures; both are 1 if all envs did the same."""
    pcs = {pc for part, _ in receipts for pc in part}
    return {"unique_pcs": len(pcs), "distinct_pictures": len({digest for _, part in receipts for digest in part})}


def warp_facts(emulator: Emulator) -> dict[str, Any]:
    """The same for a Warp emulator, and the instructions of its last step."""
    from gbxcule_puffer.apps.bench.stages import picture_digests
    from gbxcule_puffer.emulator.state import INDEX

    fields = emulator.machine.state.numpy()
    instructions = fields[INDEX["instructions"]]
    return {
        "kernel": emulator.kernel_version,
        "native": emulator.native is not None and emulator.native.pieces is not None,
        "unique_pcs": len(np.unique(fields[INDEX["pc"]])),
        "distinct_pictures": len(set(picture_digests(emulator.screen.cpu().numpy()))),
        "locked_envs": int(emulator.locked.sum()),
        "instructions_a_step_mean": round(float(instructions.mean()), 1),
        "instructions_a_step_max": int(instructions.max()),
        "skipped_a_step_mean": round(float(emulator.skipped.float().mean()), 1),
    }
