"""`scan`: from a ROM to candidates for what its bytes of RAM mean."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.cartridge import Rom, load_cartridge
from gbxcule_puffer.emulator.saves.state_files import load_state_file
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.progress import say
from gbxcule_puffer.scan import kinds
from gbxcule_puffer.scan.choose import choose
from gbxcule_puffer.scan.film import FILM_LOOKS
from gbxcule_puffer.scan.find_start import TESTED, find_start
from gbxcule_puffer.scan.numbers import find_carries
from gbxcule_puffer.scan.play import BRANCHES, LOOK_FRAMES, ROUND_LOOKS, Rounds
from gbxcule_puffer.scan.pokes import Causes, poke_all
from gbxcule_puffer.scan.recording import Recording
from gbxcule_puffer.scan.result import Candidate, ScanResult, Start
from gbxcule_puffer.scan.shown import find_shown
from gbxcule_puffer.scan.statistics import count, like_sprites, measure, rules
from gbxcule_puffer.tasks.start import play_to_start

LEAST_ENVS, CPU_ENVS, GPU_ENVS = 2 * len(BRANCHES), 64, 16_384
SECONDS = 100  # of the game that are played from the start, by default
GPU_SECONDS = 36
WALKERS = 512  # the most that look for a start


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
        say("looking for a start")
        walkers = min(self.emulator.num_envs, WALKERS)
        copies = 1 if self.emulator.device == "cpu" else len(TESTED)
        if walkers * copies == self.emulator.num_envs:
            return find_start(self.emulator, self.seed, copies)
        few = self._emulator(walkers * copies)
        try:
            return find_start(few, self.seed, copies)
        finally:
            few.close()

    def play(self, start: Start, seconds: float | None = None) -> Recording:
        """Plays from a start and records it: at least two rounds.

        Raises: ConfigError if no byte of RAM changes.
        """
        seconds = played_seconds(seconds, self.emulator.device)
        say(f"playing {self.emulator.num_envs:,} Game Boys for {seconds:g} seconds each")
        self.rounds = Rounds(self.emulator, start.state, self.seed)
        self.rounds.play(rounds_of(seconds))
        self.recording = self.rounds.recording
        self._lap("play")
        self.recording.close()
        self._lap("recording")
        if not self.recording.where:
            raise ConfigError(
                f"no byte of RAM changes in {seconds:g} seconds, whatever the buttons: "
                "give a start from which the game is played (--start-state or --start-actions)"
            )
        return self.recording

    def judge(self) -> list[Candidate]:
        """The candidates, from statistics, and from changing bytes."""
        say("comparing bytes, and changing them to see what follows")
        recording = self.recording
        tally = count(recording)
        stats = measure(recording, tally) | like_sprites(recording)
        carries = find_carries(tally, stats)
        device = recording.values.device
        sprites = recording.is_sprite.to(device)
        usable = ~(recording.is_stack | recording.is_register).to(device) & ~sprites
        stats["rules"] = torch.zeros_like(stats["rate"])
        stats |= find_shown(recording.filmed, recording.tiles, usable & kinds.counts(stats), carries.into)
        self._lap("statistics")
        unknown = Causes.unknown(len(usable), device)
        axes = {axis: kinds.position(stats, unknown, axis) for axis in kinds.AXES}
        guess = torch.stack([*kinds.judge(stats, unknown, axes).values()]).amax(0)
        moved = torch.stack([*axes.values()]).amax(0)
        interest = torch.where(sprites & (moved > kinds.LEAST_MOVED), moved, -1.0)
        causes = poke_all(self.rounds, torch.where(usable, guess, interest))
        self._lap("changed bytes")
        axes = kinds.positions(stats, causes, usable, sprites)
        best = [chance.topk(min(3, len(chance))) for chance in axes.values()]
        stats["rules"] = rules(recording, torch.cat([each.indices[each.values > 0.2] for each in best]))
        judged = kinds.judge(stats, causes, axes)
        chances = {kind: (chance if kind in axes else chance * usable).cpu() for kind, chance in judged.items()}
        stats = {name: values.cpu() for name, values in stats.items()}
        found = choose(recording, chances, stats, causes.cpu(), carries)
        self._lap("candidates")
        return found


def played_seconds(seconds: float | None, device: str) -> float:
    """The seconds that each Game Boy plays; None: by default on a device."""
    return seconds if seconds is not None else SECONDS if device == "cpu" else GPU_SECONDS


def rounds_of(seconds: float) -> int:
    """The number of rounds that fill about this number of seconds."""
    return max(2, round(seconds * 60 / LOOK_FRAMES / ROUND_LOOKS))


def film_pictures(seconds: float | None, device: str) -> int:
    """The number of pictures of a scan's film, 0 is the start."""
    return -(-rounds_of(played_seconds(seconds, device)) * ROUND_LOOKS // FILM_LOOKS)


def _name(rom: Rom) -> str:
    """The name of a ROM whose header has no title."""
    return Path(rom).stem if isinstance(rom, str | os.PathLike) else "game"


def memory_used(device: str) -> int:
    """MiB that are taken: of a GPU, by all programs, with what torch keeps for later; else the most of this process."""
    if device == "cpu":
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most >> (20 if sys.platform == "darwin" else 10)
    free, total = torch.cuda.mem_get_info(device)
    return (total - free) >> 20


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
            "rom_sha256": run.cartridge.sha256, "title": run.cartridge.title or _name(rom),
            "num_envs": run.emulator.num_envs, "device": run.emulator.device, "bytes_that_change": len(recording.where),
            "game_seconds": round(len(recording.values) * LOOK_FRAMES / 60),
            "seconds": round(time.monotonic() - began, 1), "seconds_of_steps": run.seconds,
            "memory_mib": memory_used(run.emulator.device),
        }  # fmt: skip
        return ScanResult(origin, candidates, recording, facts)
    finally:
        run.emulator.close()
