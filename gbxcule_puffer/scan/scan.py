"""`scan`: from a ROM to candidates for what its bytes of RAM mean."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.cartridge import Rom, load_cartridge
from gbxcule_puffer.emulator.saves.state_files import load_state_file
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.scan import kinds
from gbxcule_puffer.scan.choose import choose
from gbxcule_puffer.scan.find_start import find_start
from gbxcule_puffer.scan.numbers import find_carries
from gbxcule_puffer.scan.play import BRANCHES, FORK_LOOKS, LOOK_FRAMES, RANDOM_LOOKS, Rounds
from gbxcule_puffer.scan.pokes import Causes, poke_all
from gbxcule_puffer.scan.recording import Recording
from gbxcule_puffer.scan.result import Candidate, ScanResult, Start
from gbxcule_puffer.scan.shown import find_shown
from gbxcule_puffer.scan.statistics import count, measure, rules
from gbxcule_puffer.tasks.start import play_to_start

LEAST_ENVS, CPU_ENVS, GPU_ENVS = 2 * len(BRANCHES), 64, 16_384
SECONDS = 100  # of the game that are played from the start, by default
GPU_SECONDS = 50
WALKERS = 2_048  # the most Game Boys that look for a start


class Scan:
    """A scan in its steps: `play`, then `judge`. Its emulator holds buttons from a look to the next one.

    Raises: ConfigError, RomError, StateError.
    """

    def __init__(
        self,
        rom: Rom,
        *,
        num_envs: int | None = None,
        device: str = "cpu",
        seed: int = 0,
        header: str = "strict",
        model: str | None = "dmg",
    ) -> None:
        num_envs = num_envs or (CPU_ENVS if device == "cpu" else GPU_ENVS)
        if num_envs < LEAST_ENVS or num_envs % len(BRANCHES):
            raise ConfigError(f"num_envs {num_envs} must be a multiple of {len(BRANCHES)}, at least {LEAST_ENVS}")
        self.cartridge, self.seed = load_cartridge(rom, header, model), seed
        self.device = device
        self.emulator = self._emulator(num_envs)
        self.seconds: dict[str, float] = {}  # of each step
        self._began = time.monotonic()

    def _lap(self, step: str) -> None:
        """Ends a step: what has passed since the last one is its time."""
        if self.emulator.device != "cpu":
            torch.cuda.synchronize(self.emulator.device)
        now = time.monotonic()
        self.seconds[step], self._began = round(now - self._began, 2), now

    def _emulator(self, num_envs: int) -> Emulator:
        """Game Boys that hold their buttons from look to look."""
        return Emulator(
            self.cartridge,
            num_envs,
            self.device,
            screen="full",
            frames_per_step=LOOK_FRAMES,
            release_after_frames=LOOK_FRAMES,
        )

    def start(self, state: StrPath | Snapshot | None = None, actions: StrPath | Sequence[str] | None = None) -> Start:
        """The start that is given, or one that is found."""
        found = self._start(state, actions)
        self._lap("start")
        return found

    def _start(self, state: StrPath | Snapshot | None, actions: StrPath | Sequence[str] | None) -> Start:
        if isinstance(state, Snapshot):
            return Start(state, None)
        if actions is not None:
            names = tuple(actions) if isinstance(actions, list | tuple) else None
            return Start(play_to_start(self.cartridge, actions, state, model=self.emulator.model), names)
        if state is not None:
            return Start(load_state_file(state, self.cartridge).doubled(), None)
        if self.emulator.num_envs <= WALKERS:
            return find_start(self.emulator, self.seed)
        few = self._emulator(WALKERS)
        try:
            return find_start(few, self.seed)
        finally:
            few.close()

    def play(self, start: Start, seconds: float | None = None) -> Recording:
        """Plays from a start and records it: at least two rounds."""
        if seconds is None:
            seconds = SECONDS if self.emulator.device == "cpu" else GPU_SECONDS
        self.rounds = Rounds(self.emulator, start.state, self.seed)
        looks = seconds * 60 / LOOK_FRAMES
        self.rounds.play(max(2, round(looks / (1 + FORK_LOOKS + RANDOM_LOOKS))))
        self.recording = self.rounds.recording
        self._lap("play")
        self.recording.close()
        self._lap("recording")
        return self.recording

    def judge(self) -> list[Candidate]:
        """The candidates, from statistics, and from changing bytes."""
        recording = self.recording
        tally = count(recording)
        stats = measure(recording, tally)
        carries = find_carries(tally, stats)
        usable = ~(recording.is_stack | recording.is_hardware).to(recording.values.device)
        stats["rules"] = torch.zeros_like(stats["rate"])
        stats |= find_shown(recording.filmed, recording.tiles, usable & kinds.counts(stats))
        self._lap("statistics")
        guess = torch.stack([*kinds.judge(stats, Causes.unknown(len(usable), usable.device)).values()])
        causes = poke_all(self.rounds, torch.where(usable, guess.amax(0), -1.0))
        self._lap("changed bytes")
        axes = [kinds.position(stats, causes, axis) * usable for axis in kinds.AXES]
        best = torch.cat([axis.topk(min(3, len(axis))).indices for axis in axes])
        stats["rules"] = rules(recording, best[torch.cat([a.topk(min(3, len(a))).values for a in axes]) > 0.2])
        chances = {kind: (chance * usable).cpu() for kind, chance in kinds.judge(stats, causes).items()}
        stats = {name: values.cpu() for name, values in stats.items()}
        found = choose(recording, chances, stats, causes.cpu(), carries)
        self._lap("candidates")
        return found


def scan(
    rom: Rom,
    *,
    start: StrPath | Snapshot | None = None,
    start_actions: StrPath | Sequence[str] | None = None,
    num_envs: int | None = None,
    device: str = "cpu",
    seed: int = 0,
    seconds: float | None = None,
    header: str = "strict",
    model: str | None = "dmg",
) -> ScanResult:
    """Find out what the bytes of a game's RAM mean, by playing it on `num_envs` Game Boys at once.

    start: a state, or its file; start_actions: actions that lead to the start, as play_to_start takes them; without
    both, the scan looks for one from power-on. num_envs: 64 on a CPU, 16,384 on a GPU, a multiple of 8; seconds: of the
    game that each env plays.

    Raises: ConfigError, RomError, StateError, ActionError, DeviceError.
    """
    began = time.monotonic()
    run = Scan(rom, num_envs=num_envs, device=device, seed=seed, header=header, model=model)
    try:
        origin = run.start(start, start_actions)
        recording = run.play(origin, seconds)
        candidates = run.judge()
        facts: dict[str, Any] = {
            "rom_sha256": run.cartridge.sha256, "title": run.cartridge.title, "num_envs": run.emulator.num_envs,
            "device": run.emulator.device, "bytes_that_change": len(recording.where),
            "game_seconds": round(len(recording.values) * LOOK_FRAMES / 60),
            "seconds": round(time.monotonic() - began, 1), "seconds_of_steps": run.seconds,
        }  # fmt: skip
        return ScanResult(origin, candidates, recording, facts)
    finally:
        run.emulator.close()
