"""The launches of GBxCuLEEnv's reset and step, as a GPU runs them, recorded without one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.build.variant import build
from gbxcule_puffer.emulator.gpu.schedule.lane_order import Sizes
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import MEASURED, LaunchShape
from gbxcule_puffer.emulator.gpu.schedule.twins import BINS
from gbxcule_puffer.emulator.launch import CUDA_LANES, fill
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.step_end import kernels as step_end
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.games.task import GameTask
from gbxcule_puffer.native import kernels
from gbxcule_puffer.native.launches import (
    COUNTERS,
    ENV_LANES,
    ENVS,
    LANES,
    LEARNERS,
    SEED,
    WANTED,
    WARPS,
    WHOLE,
    Array,
    Launch,
    PackedLaunch,
    Recording,
    combine,
)
from gbxcule_puffer.native.terms import compile_terms

NUM_ENVS = (32, 64, 160)  # of the recordings


class RecordedEnv(GBxCuLEEnv):
    """The env with the GPU's kernels, on a CPU."""

    def _make_emulator(self) -> Emulator:
        return Emulator(
            self.cartridge,
            self.num_agents,
            screen=self.layout.kind.screen,
            frames_per_step=self.schedule.frames_per_step,
            release_after_frames=self.schedule.release_after_frames,
            num_threads=1,
            kernel="datapath",
            instruction_budget=self.options.instruction_budget,
        )


@dataclass(frozen=True)
class Record:
    """The arrays of an env and its launches, first those of a reset, then those of a step."""

    env: GBxCuLEEnv
    shape: LaunchShape
    arrays: list[Array]
    resets: list[PackedLaunch]
    steps: list[PackedLaunch]


def record(make: Callable[[int], RecordedEnv], shape: LaunchShape, lanes: int = CUDA_LANES) -> Record:
    """Records the env that `make` returns for a number of envs.

    shape: of the launches; lanes: threads that share an env at a step's end, 1 for a CPU.
    Raises: ConfigError for an env whose step needs Python.
    """
    recordings, envs = [], []
    for number in NUM_ENVS:
        env = make(number)
        check(env)
        env.reset()
        resets, steps, named = _launches(env, shape, lanes)
        recordings.append(Recording([*resets, *steps], named))
        envs.append(env)
    arrays, launches = combine(NUM_ENVS, recordings)
    return Record(envs[0], shape, arrays, launches[: len(resets)], launches[len(resets) :])


def check(env: GBxCuLEEnv) -> None:
    """Raises: ConfigError for an env whose step needs Python."""
    options, has = env.options, ""
    if env.task is not None and not isinstance(env.task, GameTask):
        has = f"task {type(env.task).__name__} needs Python"
    elif options.reward_scale != 1:
        has = "reward_scale needs Python"
    elif not env.layout.kind.is_picture:
        has = f"obs {env.obs!r} needs Python"
    elif env.layout.vectors:
        has = f"observations {', '.join(env.layout.vectors)} beside pictures need Python"
    elif options.milestone_slots or options.milestone_steps or options.coverage:
        has = "milestone_slots, milestone_steps and coverage need Python"
    elif env.task is not None and env.task.blocks:
        has = "[blocked] needs Python"
    elif options.visit_bonus or options.archive_slots:
        has = "visit_bonus and archive_slots need Python"
    elif options.curriculum in ("progress", "by_env") or options.stagger:
        has = f"curriculum {options.curriculum!r} or stagger needs Python"
    if has:
        raise ConfigError(f"{has}, and a native env runs without it: leave it out, or train with `puffer train`")


def shape_for(num_envs: int) -> LaunchShape:
    """The measured launch shape for a number of envs."""
    return MEASURED[min((size for size in MEASURED if size >= num_envs), default=max(MEASURED))]


def _launches(env: RecordedEnv, shape: LaunchShape, lanes: int) -> tuple[list[Launch], list[Launch], dict[int, str]]:
    """The launches of a reset, those of a step, and the names of the arrays that a program gives, by address."""
    episodes = env._episodes
    emulator: Any = episodes.emulator
    emulator.machine.draw_later = 1
    batch, given = _batch(env)
    episode, in_color = episodes.step_end._episode, episodes.step_end.in_color
    lane_order = emulator._lanes
    machines = (emulator._state, emulator._memory, emulator._screen, emulator._skipped)
    for tensor in (*machines, episodes.stack.observations, lane_order.order, lane_order.took, lane_order.path):
        tensor.zero_()  # a reset fills them
    episodes.envs.clear()
    lane_order._kind.fill_(-1)
    buttons = wp.from_torch(emulator._buttons)
    cut = (ENVS, lanes)
    begin = Launch(kernels.kernel_begin, (ENVS,), (batch, SEED))

    sizes: Any = Sizes(ENVS, WARPS, LANES, 0, WANTED, LEARNERS, COUNTERS, WHOLE)  # pyright: ignore[reportArgumentType]
    updates = []
    for kernel, dim, inputs in lane_order.launches(buttons, shape, sizes):
        own = (dim, BINS) if kernel is None else dim if isinstance(dim, tuple) else (dim,)
        updates.append(Launch(kernel or kernels.kernel_sums, own, tuple(inputs)))
    built = build("datapath", emulator._variant)
    frames = 0 if env.codec.frames else env.schedule.frames_per_step
    release = env.schedule.release_after_frames
    release = 0 if release == env.schedule.frames_per_step else release
    step = (emulator.machine, buttons, 0, frames, release, shape.patience)
    draw = (ENVS if lanes == 1 else ENV_LANES,)
    steps = [
        Launch(kernels.kernel_press, (ENVS,), (batch, SEED)),
        *updates,
        Launch(built.step, (LANES,), (*step, 0), shape.block_dim),
        Launch(built.draw, draw, (emulator.machine, lanes)),
        Launch(built.step, (LANES,), (*step, 1), shape.block_dim),
    ]

    def end(name: str) -> Launch:
        return Launch(step_end.kernel(name, in_color), cut, (episode, lanes))

    report = Launch(kernels.kernel_report, (ENVS,), (batch,))
    if not isinstance(env.task, GameTask):
        return [begin, end("start")], [*steps, end("native_step"), report], given
    terms = compile_terms(env, env.task)
    pay = Launch(terms.module.kernel_terms, (ENVS,), (terms.arrays,))
    again = Launch(terms.module.kernel_begin_terms, (ENVS,), (batch, terms.arrays, SEED))
    return [begin, end("start"), again], [*steps, end("native_end"), pay, end("native_rest"), again, report], given


def _batch(env: RecordedEnv) -> tuple[Any, dict[int, str]]:
    """The Batch of the kernels in kernels.py, and the names of the arrays that a program gives, by address."""
    episodes = env._episodes
    emulator: Any = episodes.emulator
    t, codec, source, n = episodes.envs, env.codec, episodes.input, env.num_envs
    starts, observations = episodes.curriculum.starts, episodes.stack.observations
    choices = list(codec.factors) or [codec.num_actions]
    cumulative = torch.zeros(0, dtype=torch.int64)
    if starts.given > 1:
        cumulative = torch.cumsum(starts.weights[starts.stage], 0)
    actions = torch.zeros((n, len(choices)), dtype=torch.float32)
    terminals, logs = torch.zeros(n), torch.zeros((n, len(kernels.LOGS)))
    lengths = [frames or env.schedule.frames_per_step for frames in codec.frames or [0] * codec.num_actions]
    batch = fill(
        kernels.Batch(),
        actions=actions, terminals=terminals, rewards=t.rewards, logs=logs, returns=torch.zeros(n),
        choices=torch.tensor(choices, dtype=torch.int32), table=source.table,
        lengths=torch.tensor(lengths, dtype=torch.int32), sets_frames=int(bool(codec.frames) or bool(env.until)),
        sticky=source.threshold, action=t.action, last_action=t.last_action, clock=t.clock, episode=t.episode,
        age=t.age, length=t.length, sampled_slot=t.sampled_slot, ended=t.ended, was_locked=t.was_locked,
        reached_end=t.terminals, failures=t.failures, truncations=t.truncations, buttons=emulator._buttons,
        frames=emulator.frames, cumulative=cumulative, first_env=env.options.first_env,
    )  # fmt: skip
    given = {
        "observations": observations,
        "actions": actions,
        "rewards": t.rewards,
        "terminals": terminals,
        "logs": logs,
    }
    return batch, {tensor.untyped_storage().data_ptr(): name for name, tensor in given.items()}
