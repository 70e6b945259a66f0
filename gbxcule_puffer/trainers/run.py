"""A training run: its folder, envs, evaluations, pictures, checkpoints, records and report."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn

from gbxcule_puffer import progress
from gbxcule_puffer.device import free_bytes, size_text
from gbxcule_puffer.env.protocol import EnvLike
from gbxcule_puffer.errors import ConfigError, DeviceError
from gbxcule_puffer.layout import SUITE_GAMES, is_suite
from gbxcule_puffer.tasks.goals.advice import hardly_apart, met_by_chance
from gbxcule_puffer.tasks.source import ROM
from gbxcule_puffer.tasks.task import PREFIX
from gbxcule_puffer.trainers.advice import Watches, advise, unlike_play
from gbxcule_puffer.trainers.after_update import AfterUpdate
from gbxcule_puffer.trainers.blocks.graphs import Replayed
from gbxcule_puffer.trainers.blocks.groups import unsettled
from gbxcule_puffer.trainers.boards.tracking import Tracking
from gbxcule_puffer.trainers.checkpoints import Resumed, save_checkpoint
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.envs import make_env, task_files
from gbxcule_puffer.trainers.evaluation import PolicyMaker
from gbxcule_puffer.trainers.evaluator import open_evaluator
from gbxcule_puffer.trainers.flags import RunFlags, flags_to_save
from gbxcule_puffer.trainers.folder import CHECKPOINT, METRICS, NOTE, RunFolder
from gbxcule_puffer.trainers.media import record_coverage
from gbxcule_puffer.trainers.meters import Means, Stopwatch
from gbxcule_puffer.trainers.milestones import MilestoneLog
from gbxcule_puffer.trainers.pace import Pace
from gbxcule_puffer.trainers.parts import Parts
from gbxcule_puffer.trainers.report import SUCCESS, how_long, report
from gbxcule_puffer.trainers.runlog import RunLog, manifest_of, merge_infos

if TYPE_CHECKING:
    from gbxcule_puffer.trainers.wall.wall import Wall

NEVER = 2**62  # log_interval of the envs: their infos are read for each record
SEED_STEP = 10_000  # between the env seeds of groups and processes
TIMED = 8  # every eighth record has the times of a step's parts, for which a GPU's host has to wait
RUNS = Path("runs")  # relative to the folder in which a trainer is started
Network = TypeVar("Network", bound=nn.Module)
Function = TypeVar("Function", bound=Callable[..., Any])


class Run(AbstractContextManager):
    """One run of one process; the first process has its folder, evaluates, records and saves for all.

    A script calls `open_envs`, then `restore` once its networks exist, and iterates over `updates`; in each update it
    calls `log`.
    """

    def __init__(self, args: RunFlags, exp_name: str, world: World, resumed: Resumed | None = None) -> None:
        """Raises: ConfigError or StorageError if the run's folder cannot be used."""
        self.args, self.exp_name, self.world, self.resumed = args, exp_name, world, resumed
        self.first = world.rank == 0
        self.counters = {"global_step": 0, "passed": 0}
        self._advice: str | None = None  # on the start, after the first update: before it a Task's errors stand alone
        self._note: dict[str, str] | None = None  # of --task
        self.envs: list[EnvLike] = []
        self.eval_env: EnvLike | None = None
        self.wall: Wall | None = None
        self._records: RunLog | None = None
        self._held: RunFolder | None = None
        if args.run_dir:
            self.run_dir = Path(args.run_dir)
        elif resumed:
            self.run_dir = resumed.path.parent
        else:
            played = args.env if args.game is None else Path(args.game).name
            self.run_dir = world.tell(RUNS / f"{played}__{exp_name}__{args.seed}__{int(time.time())}")
        if self.first:
            goes_on = resumed is not None and resumed.path.parent.resolve() == self.run_dir.resolve()
            self._held = RunFolder(self.run_dir, goes_on)

    def __exit__(self, fault: type[BaseException] | None, *_: object) -> None:
        """Closes the envs and releases the folder; a new run that fails before its first record leaves nothing
        behind."""
        progress.listen(None)
        if self.wall:
            failed = fault is not None and not issubclass(fault, KeyboardInterrupt)
            self.wall.close("failed" if failed else "ended" if fault is None else "been stopped")
        for env in (*self.envs, self.eval_env):
            if env is not None:
                env.close()
        if self._records:
            self._records.close(failed=fault is not None)
        if self._held:
            failed = fault is not None and issubclass(fault, Exception)  # Ctrl-C and failure.json are none
            self._held.leave(remove=self._records is None or (failed and self._held.is_bare()))

    def check_memory(self, parts: Mapping[str, int], remedy: str) -> None:
        """Prints what will be allocated, in bytes by name. Raises: DeviceError with the `remedy` if it does not fit."""
        device, total = torch.device(self.args.device), sum(parts.values())
        free = free_bytes(device)
        listed = ", ".join(f"{name} {size_text(size)}" for name, size in parts.items())
        text = (
            f"memory estimate on {device}: {listed}; {size_text(total)} in all beside the env, {size_text(free)} free"
        )
        if total > free:
            raise DeviceError(f"{text}: {remedy}")
        if self.first:
            print(text)

    def open_envs(self, groups: int = 1) -> list[EnvLike]:
        """`groups` envs with --num-envs Game Boys in all, at the start of their first episodes; seeds torch's random
        numbers with --seed.

        Raises: GBxCuLEError for bad input.
        """
        args: Any = self.args
        if args.num_envs % groups:
            raise ConfigError(f"--num-envs {args.num_envs} must be a multiple of --env-groups {groups}")
        if self.first:
            progress.listen(partial(print, flush=True))
        files = task_files(args, self.run_dir, self.world)
        for name, path in files.items():  # saved with the flags: a resumed run uses the same files
            setattr(args, name, None if path == str(ROM) else path)
        args.start_actions = None  # start_state has what they lead to
        size, options = args.num_envs // groups, {"info_mode": args.info_mode, "log_interval": NEVER}
        for group in range(groups):
            seed = args.seed + SEED_STEP * (self.world.rank * groups + group)
            self.envs.append(make_env(args, size, args.device, files, seed, **options))
        self.device = self.envs[0].device
        if args.task:
            from gbxcule_puffer.trainers.known_tasks import remember

            self._note = remember(args.task)
        if self.first:
            self._evaluator = open_evaluator(args, files)
            self.eval_env = self._evaluator.evaluations.env
            if not (is_suite(args.env) or args.game in SUITE_GAMES):  # whose games begin as they are meant to
                self._advice = unlike_play(self.eval_env, args.seed)
        for env in self.envs:
            env.reset()
        for stage in self.envs[0].stages if self.first else ():
            if stage.goal is not None and "calibration" in stage.goal.meta:
                advise(hardly_apart(stage.goal.meta["calibration"].get("start_distance", 1.0), stage.name))
        if self.first and args.watch:
            self._open_wall()
        torch.manual_seed(args.seed)
        return self.envs

    def _open_wall(self) -> None:
        """The page on which the run is watched."""
        from gbxcule_puffer.trainers.wall.wall import Wall  # loaded only where it is asked for

        facts = {"algorithm": self.exp_name, "device": str(self.device)}
        given: Any = {"follow": True, "facts": facts, "records": self.run_dir / METRICS}
        self.wall = Wall(self.envs[0], self.run_dir.name, self._status, self.args.watch_address, **given)
        print(f"watch          {self.wall.url}", flush=True)

    def to_device(self, network: Network, channels_last: bool = False) -> Network:
        """The network on the run's device, in all processes with the weights of the first."""
        memory_format = torch.channels_last if channels_last else torch.preserve_format
        network = network.to(self.device, memory_format=memory_format)  # pyright: ignore[reportCallIssue]
        self.world.share_weights(network)
        return network

    def restore(
        self, losses: Sequence[str], shared: Mapping[str, nn.Module | torch.optim.Optimizer], **own: Any
    ) -> None:
        """Restores everything from a resumed run's checkpoint, and defines the contents of later checkpoints.

        losses: the names of the sums in `self.losses`; shared: networks and optimizer, equal in all processes; own:
        each process's policy memory, tensors, and Replay. A part that is None is not saved.

        Raises: StateError if the checkpoint is of another task, network or number of processes.
        """
        self.losses = Means(losses, self.device)
        self._parts = Parts(self.envs, shared, {"losses": self.losses, **own})
        before = 0.0
        if self.resumed is not None and self.resumed.state is not None:
            self._parts.load(self.resumed, self.world)
            self.counters |= self.resumed.state["counters"]
            before = self.resumed.state["seconds"]
        self._pace = Pace(self._parts.optimizer_steps, before)

    def compiled(self, function: Function) -> Function:
        """A model or a loss; with --compile, through torch.compile."""
        compiled: Any = torch.compile(function) if self.args.compile else function
        return compiled

    def recorded(self, work: Callable[[Stopwatch], None], as_graph: bool) -> Callable[[], None]:
        """`work` with the clock of an update; with `as_graph`, as a CUDA graph in updates without times."""
        replayed = Replayed(partial(work, Stopwatch(self.device, False)), unsettled=partial(unsettled, self.envs))
        return lambda: replayed() if as_graph and not self.clock.on else work(self.clock)

    def replayed(self, function: Function, as_graph: bool) -> Function:
        """A function of tensors; with `as_graph`, as a CUDA graph (`Replayed`)."""
        replayed: Any = Replayed(function) if as_graph else function
        return replayed

    def updates(self, steps: int, log_every: int, play: PolicyMaker) -> Iterator[int]:
        """Numbers from 1 of the remaining updates; each update takes `steps` steps of every env.

        After an update come the evaluation, the pictures and the checkpoint that are due. The run ends, with its
        report, at --total-env-steps or --max-seconds, or when two evaluations in a row have reached --stop-at-success.

        log_every: updates between two records; play(env, greedy, seed): the current policy, for another env.

        Raises: ConfigError if a resumed run has already ended.
        """
        self.steps_of_each = steps
        self.steps = steps * sum(env.num_envs for env in self.envs) * self.world.size
        self.total_updates = -(-self.args.total_env_steps // self.steps)
        begun = self.counters["global_step"] // self.steps
        self._refuse_ended(begun)
        after = self._begin(begun * self.steps)
        for update in itertools.count(begun + 1):
            self.step = update * self.steps
            record, rest = divmod(update, log_every)
            self.due = rest == 0
            self.clock = Stopwatch(self.device, self.due and record % TIMED == 1)
            yield update
            advise(self._advice)
            self._advice = None
            if self.wall:
                self.wall.look_at_graph()
            self.counters["global_step"] = self.step
            most = self.args.max_seconds
            late = most is not None and self.world.tell(self._pace.seconds >= most)
            with self._pace.left_out():
                last = late or update == self.total_updates
                ended = after.finish(self.step, self.steps, self.due, last, play)
            if self._records:
                may_stop = self.args.stop_at_success <= 1 and self.envs[0].has_success
                total = self.total_updates * self.steps
                self._records.progress(self.step, total, self._pace.seconds, ended, may_stop)
            if ended:
                break
        if self._records:
            self._report(self._records, after.result)

    def _begin(self, step: int) -> AfterUpdate:
        """Opens the records and begins to count the time, at `step`."""
        args = self.args
        if self.first:
            resumed_at = self.counters["global_step"] if self.resumed else None
            manifest = manifest_of(args, self.exp_name, self.run_dir, self.world.size, self._note)
            project, entity = args.wandb_project_name, args.wandb_entity
            tracking = Tracking(self.run_dir, project, entity, manifest) if args.track else None
            self._records = RunLog(self.run_dir, manifest, resumed_at, tracking)
        self._milestones = MilestoneLog(self.run_dir, self.envs, self.world, step if self.resumed else None)
        self._watches = Watches(self.envs, step, self.steps // self.steps_of_each)
        self._pace.begin(step)
        evaluator = self._evaluator if self.first else None
        after = AfterUpdate(args, self.world, self.envs[0], evaluator, self._records, self._save, self.counters)
        if evaluator is not None:
            evaluator.start()
        return after

    def log(self, charts: Mapping[str, float | torch.Tensor]) -> None:
        """In every `log_every`-th update: a record of the losses, the episodes and the `charts`, and in some records
        the times of a step's parts. Charts on the device are read for a record only: the host waits for them."""
        if not self.due:
            return
        self._milestones.look(self.step, self._pace.all_seconds)
        losses = self.losses.read(self.world)
        infos = self.world.gather([env.read_infos() for env in self.envs])
        self._pace.add_parts(self.clock.seconds)
        if self._records:
            metrics = losses | {name: part / self.steps_of_each for name, part in self.clock.seconds.items()}
            metrics |= self._pace.charts(self.step) | {"charts/eval_share": self._evaluator.budget.taken}
            merged = merge_infos(list(itertools.chain(*infos)))
            read = {name: float(value) for name, value in charts.items()}
            self._records.record(self.step, metrics | read | merged)
            self._watches.look(self.step, merged)
            if SUCCESS in merged:
                self._evaluator.count(merged[SUCCESS], merged["env/episodes"])
        self._pace.end_record(self.step)

    def _status(self) -> dict[str, float]:
        """The newest figures of the run, for those who watch; seconds since its start and, at most, to its end."""
        figures: dict[str, float] = {"step": self.counters["global_step"]}
        if self._records:
            total, seconds = self.total_updates * self.steps, self._pace.seconds
            left = self._records.seconds_left(self.counters["global_step"], total, seconds)
            if self.args.max_seconds is not None:
                left = min(left, max(0.0, self.args.max_seconds - seconds))
            figures |= {"total": total, "elapsed": seconds, "left": left, **self._records.last}
        return figures

    def _refuse_ended(self, begun: int) -> None:
        """Raises: ConfigError if the resumed run has already ended."""
        if begun >= self.total_updates:
            step = self.counters["global_step"]
            raise ConfigError(f"run {self.run_dir} is at step {step}: give more --total-env-steps to go on")
        if self.resumed and self.resumed.state and self.counters["passed"] >= 2:
            if self.args.stop_at_success == self.resumed.flags.get("stop_at_success"):
                reached = f"has reached --stop-at-success {self.args.stop_at_success} in two evaluations"
                raise ConfigError(f"run {self.run_dir} {reached}: give a higher one to go on")
            self.counters["passed"] = 0

    def _save(self) -> None:
        """Writes a checkpoint; each process gives its part."""
        processes = self.world.gather(self._parts.of_process())
        visits = self.world.gather([env.coverage.cells() for env in self.envs if env.coverage is not None])
        if self._records:
            self._records.check_weights(self.step, self._parts.networks)
            record_coverage(self._records, self.step, list(itertools.chain(*visits)))
            state = {"exp_name": self.exp_name, "counters": self.counters, "env_config": self.envs[0].config}
            state |= {"args": flags_to_save(self.args, self.run_dir), "processes": processes}
            state |= {"seconds": self._pace.all_seconds}
            state |= {name: part.state_dict() for name, part in self._parts.shared.items()}
            state |= {NOTE: self._note} if self._note else {}
            save_checkpoint(self.run_dir / CHECKPOINT, state, self.args.keep_checkpoints)

    def _report(self, records: RunLog, result: Mapping[str, float]) -> None:
        """The last record, and the run's `result` in words."""
        random, pace = self._evaluator.of_random(), self._pace
        passed, share = self.counters["passed"] >= 2, self._evaluator.budget.taken
        trained = how_long(self.args, self.step, pace.seconds, pace.steps_per_second(self.step), share, passed)
        shown = [name for name in random if name in ("success_rate", "return") or name.startswith(PREFIX)]
        records.record(self.step, {f"eval/random_{name}": random[name] for name in shown})
        advise(met_by_chance(random.get("success_rate", 0.0), self.envs[0].has_goal))
        of_each = self.step // (self.steps // self.steps_of_each)
        print(report(self.run_dir, result, random, records.last, pace.parts, trained, of_each))
