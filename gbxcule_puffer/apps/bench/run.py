"""A whole benchmark: checks everything, measures one comparison at a time, writes records, report and plot, and checks
limits."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from typing import TextIO

import torch

from gbxcule_puffer.apps.bench.baseline import losses
from gbxcule_puffer.apps.bench.contenders import ENVS_PER_CORE, Contender, make_contender
from gbxcule_puffer.apps.bench.live import LiveTable
from gbxcule_puffer.apps.bench.measure import compare
from gbxcule_puffer.apps.bench.records import Record
from gbxcule_puffer.apps.bench.report import write_report
from gbxcule_puffer.apps.bench.summary import tables, text
from gbxcule_puffer.apps.bench.workload import Workload
from gbxcule_puffer.baselines.pyboy_workers import end_children
from gbxcule_puffer.errors import ConfigError, DeviceError
from gbxcule_puffer.files import write_json
from gbxcule_puffer.layout import child_environment

RECORDS = "records.json"
BUSY = 0.25  # load average for each core, above which what runs on the cores is measured too slow


@dataclass(frozen=True)
class Plan:
    """A measurement: each workload at each number of envs, ascending, of `name` and of `versus` (if not None).

    versus_num_envs: envs of `versus`; ENVS_PER_CORE per core if None. max_mem_delta: bytes that `name` may allocate
    after its warm-up; min_ratio: the least ratio at the largest number of envs of each workload; None: no limit.
    baseline: earlier records; `name` may be slower by `max_loss`. json_out: where else the records go, a file or '-'
    for stdout, which then has nothing else.
    """

    name: str
    versus: str | None
    workloads: Sequence[Workload]
    sizes: Sequence[int]
    device: str
    cores: int
    vec_backend: str
    versus_num_envs: int | None
    max_mem_delta: int | None
    min_ratio: float | None
    baseline: Sequence[Record] = ()
    max_loss: float = 0.0
    json_out: str | None = None

    @property
    def messages(self) -> TextIO:
        """The stream for tables and paths."""
        return sys.stderr if self.json_out == "-" else sys.stdout


def run(plan: Plan, out: Path, command: str) -> int:
    """The exit code: 0, 1 if a limit is missed, 130 after Ctrl-C; completed measurements are in `out`.

    Raises: the errors of make_contender, or ConfigError for an output folder that cannot be used; nothing is left
    behind.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError("the report's plot needs matplotlib: pip install matplotlib")
    records: list[Record] = []
    fresh = not out.exists()
    with tempfile.TemporaryDirectory() as folder, workers_from_a_clean_process():
        try:
            plan = replace(plan, workloads=[workload.with_goal(Path(folder)) for workload in plan.workloads])
            for workload in plan.workloads:
                workload.check()
                for contender in contenders_of(plan, workload, max(plan.sizes)):
                    contender.close()
            _prepare(out)
            if busy := warning_where_busy(plan):
                print(f"warning: {busy}", file=plan.messages)
            _measure(plan, out, records)
        except KeyboardInterrupt:
            complete = f"{len(records)} complete records in {out / RECORDS}" if records else "nothing was measured"
            print(f"\ninterrupted: {complete}", file=sys.stderr)
            return 130
        finally:
            if fresh and not records:
                with contextlib.suppress(OSError):  # it was not made
                    out.rmdir()
    report = write_report(out, records, command)
    for title, rows in tables(records, plan.name).items():
        print(f"\n{text(title, rows)}", file=plan.messages)
    print(f"\nrecords {out / RECORDS}\nreport  {report}\nplot    {out / 'scaling.png'}", file=plan.messages)
    if plan.json_out == "-":
        print(json.dumps(records, indent=2))
    elif plan.json_out is not None:
        write_json(plan.json_out, records)
    return judge(plan, records)


def warning_where_busy(plan: Plan) -> str | None:
    """A line for a machine that does other work, with what that slows down here: PyBoy, or the CPU's kernel."""
    on_cores = [name for name in (plan.name, plan.versus) if name and (name != "gbxcule" or plan.device == "cpu")]
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if not on_cores or load <= BUSY * cores:
        return None
    slow = " and ".join(on_cores)
    higher = ", and so is the ratio too high" if plan.versus in on_cores and plan.device != "cpu" else ""
    return (
        f"the load average is {load:.1f} on {cores} cores: {slow} will be measured too slow{higher}: end what else "
        "runs here, and wait a minute"
    )


def contenders_of(plan: Plan, workload: Workload, size: int) -> list[Contender]:
    """The contenders of one comparison, not started."""
    make = partial(make_contender, device=plan.device, cores=plan.cores, vec_backend=plan.vec_backend)
    contenders = [make(plan.name, workload, size)]
    if plan.versus is not None:
        usual = size if plan.versus == "gbxcule" else ENVS_PER_CORE * plan.cores
        contenders.append(make(plan.versus, workload, plan.versus_num_envs or usual))
    return contenders


def _measure(plan: Plan, out: Path, records: list[Record]) -> None:
    """Adds to `records`, and to the file, one comparison at a time."""
    table = LiveTable(plan.messages)
    for workload in plan.workloads:
        for size in sorted(plan.sizes):
            try:
                found = compare(contenders_of(plan, workload, size), workload, partial(table.watch, workload))
            except torch.OutOfMemoryError:
                raise DeviceError(
                    f"--num-envs {size} does not fit into the memory of {plan.device}: give less"
                ) from None
            finally:
                table.stop()
            table.finish(found)
            write_json(out / RECORDS, [*records, *found])
            records += found


def judge(plan: Plan, records: Sequence[Record]) -> int:
    """1 if a limit is missed, with a line for each."""
    missed = []
    for record in records:
        name = f"{record['rom']} {record['stage']}, {record['num_envs']} envs"
        allocated = record["bytes_allocated_after_warmup"]
        if record["backend"] != plan.name:
            continue
        if plan.max_mem_delta is not None and allocated > plan.max_mem_delta:
            missed.append(
                f"{name}: allocated {allocated:,} bytes after the warm-up, {plan.max_mem_delta:,} are allowed"
            )
        largest = record["num_envs"] == max(plan.sizes)
        if plan.min_ratio is not None and largest and record["ratio"] < plan.min_ratio:
            missed.append(f"{name}: {record['ratio']} times {record['versus']}, {plan.min_ratio:g} are asked for")
    if plan.baseline:
        missed += losses([record for record in records if record["backend"] == plan.name], plan.baseline, plan.max_loss)
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return int(bool(missed))


def _prepare(out: Path) -> None:
    """Makes the output folder.

    Raises: ConfigError if that or writing to it fails, or if it already has records.
    """
    if (out / RECORDS).exists():
        raise ConfigError(f"--out {out} already holds {RECORDS}: give another folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be written ({error.strerror}): give another folder") from None


@contextlib.contextmanager
def workers_from_a_clean_process() -> Iterator[None]:
    """Inside, PyBoy's workers are forked from a server process, not from this one, whose threads and CUDA context must
    not be forked. None of them is left at the end, however that comes."""
    before, children = multiprocessing.get_start_method(allow_none=True), set(multiprocessing.active_children())
    multiprocessing.set_forkserver_preload(["gbxcule_puffer.apps.bench.stages"])
    multiprocessing.set_start_method("forkserver", force=True)
    environment = dict(os.environ)
    os.environ.update(child_environment())  # the server imports what is preloaded before it has this process's sys.path
    try:
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(environment)
    try:
        yield
    finally:
        end_children(children)
        multiprocessing.set_start_method(before, force=True)
