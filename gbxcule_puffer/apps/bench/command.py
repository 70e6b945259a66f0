"""`puffer bench`: environments measured in turns, with records, a report and a plot."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from gbxcule_puffer.apps.bench import ACTIONS, NAMES, STAGES
from gbxcule_puffer.apps.flags import GAME, STEP, DeviceFlags, FolderFlags, StartFlags, check_rom
from gbxcule_puffer.commandline import at_most_one, command, flag, word
from gbxcule_puffer.env.option_flags import Later, option_flag
from gbxcule_puffer.env.options import RUNNING
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.actions import Schedule

if TYPE_CHECKING:
    from gbxcule_puffer.apps.bench.run import Plan
    from gbxcule_puffer.apps.bench.workload import Workload

SIZES = {"cpu": (16, 64), "cuda": (1024, 4096, 16384)}
STEPS, MANY_STEPS = (100, 200), (24, 8)  # steps of warm-up and of a repeat; for a suite of many games
MANY_SIZES = {"cpu": (16,), "cuda": (16384,)}
LENGTH, LIMITS, WRITTEN = "How long", "Exit code 1 for", "Output"
USUAL = {device: ",".join(map(str, sizes)) for device, sizes in SIZES.items()}
FEWER_ROOM = f"{Schedule().release_after_frames}, or fewer where --frames-per-step is less"


@command
class Bench(StartFlags, FolderFlags, DeviceFlags):
    """Measure steps per second, alone or beside another environment.

    Both step in turns, with the same ROM, state and actions.
    """

    may_hang: ClassVar[bool] = True

    env: str = word("environment to measure", "ENV", "gbxcule", one_of=NAMES)
    vs: str | None = flag(
        None,
        "a second environment, and the ratio of both (default: none; for --suite corpus and folders pyboy_puffer_vec)",
        one_of=(*NAMES, "none"),
        metavar="ENV",
    )
    num_envs: tuple[int, ...] = flag(
        (), f"Game Boys (default: {USUAL['cpu']}; on a GPU {USUAL['cuda']})", metavar="N,...", least=1
    )
    autotune: bool = flag(False, "instead, find and save the fastest way to launch this GPU's kernel")
    fit: tuple[int, ...] = flag(
        (),
        "instead, say how many Game Boys fit into GPUs with these GiB of memory, also with a trainer's rollouts",
        metavar="GIB,...",
        least=1,
    )
    rom: tuple[str, ...] = flag((), "Game Boy images (default: HOMEWARD)", GAME, metavar="ROM")
    suite: str | None = flag(
        None,
        "micro: three small programs with --actions striped; corpus: HOMEWARD and the shared homebrew; or a folder of "
        "your own Game Boy images",
        GAME,
        metavar="NAME",
    )
    sound: bool = option_flag("sound", GAME)
    native: bool = flag(
        False, "on a CPU, compile each game's native code after the warm-up, which takes half a minute", RUNNING
    )
    goal_dir: str | None = option_flag("goal_dir", GAME, Later("a checkerboard"))
    stage: tuple[str, ...] = flag(("full_step",), "part of a step to measure", STEP, metavar="STAGE,...", one_of=STAGES)
    actions: str | None = flag(
        None, "striped: Game Boy i repeats action i mod n (default: random)", STEP, one_of=ACTIONS
    )
    reset_every: tuple[int, ...] = flag(
        (0,), "end all episodes after K steps; 0: never", STEP, metavar="K,...", least=0
    )
    obs: str = option_flag("obs", STEP)
    stack_k: int = option_flag("stack_k", STEP)
    action_codec: str = option_flag("action_codec", STEP)
    frames_per_step: int = option_flag("frames_per_step", STEP)
    info_mode: str = option_flag("info_mode", STEP)
    release_after_frames: int | None = option_flag("release_after_frames", STEP, Later(FEWER_ROOM))
    warmup: int | None = flag(
        None,
        f"steps before the first repeat (default: {STEPS[0]}; {MANY_STEPS[0]} for --suite corpus and folders)",
        LENGTH,
        least=0,
    )
    steps: int | None = flag(
        None,
        f"steps of a repeat (default: {STEPS[1]}; {MANY_STEPS[1]} for --suite corpus and folders)",
        LENGTH,
        least=1,
    )
    repeat: int = flag(3, "repeats; the median counts", LENGTH, least=1)
    min_ratio: float | None = flag(None, "a ratio to --vs below this, with the most Game Boys", LIMITS, least=1e-6)
    max_mem_delta: int | None = flag(None, "more than this allocated after warm-up", LIMITS, metavar="BYTES", least=0)
    baseline: str | None = flag(
        None, "a measurement slower than in this records.json of an earlier run", LIMITS, metavar="FILE"
    )
    max_loss: float | None = flag(
        None, "how much slower than --baseline is allowed (default: 0.05, 5 %)", LIMITS, least=0, below=1
    )
    out: str | None = flag(
        None, "folder for records, report and plot (default: runs/bench/TIME)", WRITTEN, metavar="DIR"
    )
    json: str | None = flag(
        None,
        "also write the records here; without FILE, or with -, to stdout, and everything else to stderr",
        WRITTEN,
        metavar="FILE",
        bare="-",
    )
    device: str = flag("auto", "gbxcule's: cpu, cuda or cuda:N (auto: a GPU if there is one)", RUNNING)
    seed: int = flag(0, "seed of the random actions", RUNNING, least=0)
    cores: int | None = flag(None, "PyBoy's processes, gbxcule's CPU threads (default: all cores)", RUNNING, least=1)
    vec_backend: str = flag(
        "mp_async", "backend of pyboy_puffer_vec", RUNNING, one_of=("serial", "mp_sync", "mp_async")
    )
    vs_num_envs: int | None = flag(None, "Game Boys of --vs (default: 8 for each core)", RUNNING, least=1)

    def defaults(self) -> dict[str, Any]:
        """The values in the folder of --game."""
        at_most_one(self, "game", "rom", "suite")
        found = self.of_folder(writes=True)
        return {**found, "rom": (found["rom"],)} if found else {}

    @property
    def is_many(self) -> bool:
        """True for a suite of many games; each is then measured for a shorter time."""
        return self.suite not in (None, "micro")

    @property
    def versus(self) -> str | None:
        """The second environment."""
        usual = "pyboy_puffer_vec" if self.is_many and self.env == "gbxcule" else "none"
        return None if (self.vs or usual) == "none" else self.vs or usual

    def run(self) -> int | None:
        self._check()
        from gbxcule_puffer.apps.bench.run import run

        if self.fit:
            from gbxcule_puffer.apps.bench.fit import fit

            (first, *_) = self.workloads()
            words = ["--model", first.model, "--obs", first.obs, "--stack-k", str(first.stack_k)]
            return fit(self.fit, first.rom, first.model, words)
        plan = self.plan()
        if self.autotune:
            from gbxcule_puffer.apps.bench.autotune import autotune

            return autotune(plan.workloads[0], plan.sizes, plan.device)
        out = Path(self.out or Path("runs/bench") / time.strftime("%Y%m%d-%H%M%S"))
        return run(plan, out, shlex.join(["puffer", *sys.argv[1:]]))

    def _check(self) -> None:
        """Raises: ConfigError for flags that exclude each other; RomError for a ROM that cannot be read."""
        from gbxcule_puffer.provenance import usable_cores

        if self.game is None:
            at_most_one(self, "rom", "suite")
        if self.min_ratio is not None and self.versus is None:
            raise ConfigError("--min-ratio needs --vs: give what to compare with, e.g. --vs pyboy_puffer_vec")
        if self.versus == self.env:
            raise ConfigError(f"--vs {self.vs} is the environment that is measured: give another one")
        if self.cores is not None and self.cores > usable_cores():
            raise ConfigError(f"--cores {self.cores}: this process may use {usable_cores()}")
        if self.max_loss is not None and self.baseline is None:
            raise ConfigError("--max-loss needs --baseline: give the records.json of an earlier run")
        for rom in self.rom:
            check_rom(rom, model=self.model)

    def plan(self) -> Plan:
        """The measurement that the flags describe."""
        import torch

        from gbxcule_puffer.apps.bench.baseline import load
        from gbxcule_puffer.apps.bench.run import Plan
        from gbxcule_puffer.device import resolve_device
        from gbxcule_puffer.files import check_output
        from gbxcule_puffer.provenance import usable_cores

        auto = "cuda" if torch.cuda.is_available() else "cpu"
        device = resolve_device(auto if self.device == "auto" else self.device)
        usual = MANY_SIZES if self.is_many else SIZES
        sizes = self.num_envs or usual[device.split(":")[0] if self.env == "gbxcule" else "cpu"]
        workloads = self.workloads()
        if self.json not in (None, "-"):
            check_output(self.json)
        return Plan(
            name=self.env,
            versus=self.versus,
            workloads=workloads,
            sizes=sizes,
            device=device,
            cores=self.cores or usable_cores(),
            vec_backend=self.vec_backend,
            versus_num_envs=self.vs_num_envs,
            max_mem_delta=self.max_mem_delta,
            min_ratio=self.min_ratio,
            baseline=() if self.baseline is None else load(Path(self.baseline)),
            max_loss=0.05 if self.max_loss is None else self.max_loss,
            json_out=self.json,
        )

    def workloads(self) -> list[Workload]:
        """One workload for each ROM, stage and length of episodes."""
        from gbxcule_puffer.apps.bench.suites import roms_of_suite
        from gbxcule_puffer.apps.bench.workload import Workload
        from gbxcule_puffer.layout import find_rom
        from gbxcule_puffer.tasks.source import default_rom

        if self.suite is not None:
            roms = roms_of_suite(self.suite)
        else:
            roms = [Path(find_rom(rom)) for rom in self.rom] or [default_rom()]
        for name in ("start_state", "goal_dir"):
            if getattr(self, name) is not None and len(roms) > 1:
                raise ConfigError(f"--{name.replace('_', '-')} belongs to one game: give one --rom")
        warmup, steps = MANY_STEPS if self.is_many else STEPS
        start, goal = (None if path is None else Path(path) for path in (self.start_state, self.goal_dir))
        names = (
            "game",
            "variant",
            "model",
            "sound",
            "native",
            "obs",
            "stack_k",
            "action_codec",
            "frames_per_step",
            "info_mode",
            "repeat",
            "seed",
        )
        held = max(1, min(Schedule().release_after_frames, self.frames_per_step - 1))
        return [
            Workload(
                rom,
                start,
                goal,
                **{name: getattr(self, name) for name in names},
                release_after_frames=self.release_after_frames or held,
                actions=self.actions or ("striped" if self.suite == "micro" else "random"),
                warmup=warmup if self.warmup is None else self.warmup,
                steps=self.steps or steps,
                stage=stage,
                reset_every=reset_every,
            )
            for rom in roms
            for stage in self.stage
            for reset_every in self.reset_every
        ]


COMMAND = Bench
