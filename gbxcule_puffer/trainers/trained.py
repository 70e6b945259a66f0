"""A checkpoint as an agent: the script that trained it, its policy, and an env as in its training."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.env.options import first_difference
from gbxcule_puffer.env.protocol import EnvLike, PlayedEnv, Policy
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.layout import is_suite, trainer_scripts
from gbxcule_puffer.tasks.source import ROM
from gbxcule_puffer.trainers.checkpoints import read_checkpoint
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.envs import make_env, task_files
from gbxcule_puffer.trainers.flags import CODE, flags_of
from gbxcule_puffer.trainers.folder import CHECKPOINT, METRICS, NOTE
from gbxcule_puffer.trainers.known_tasks import recall, remember
from gbxcule_puffer.trainers.weights import SUFFIX, own_agent, read_weights


class Trained:
    """The checkpoint at `path`, or the newest in that run's folder, opened for playing; or weights.py's file; or, for
    the name of a game that comes with the package, the agent that comes with it."""

    def __init__(self, path: StrPath) -> None:
        """Raises: StateError if it cannot be read, or no script here has written it."""
        self.path = _newest(path)
        checkpoint = read_weights(self.path) if self.path.suffix == SUFFIX else read_checkpoint(self.path)
        self.script = _script(self.path, checkpoint["exp_name"])
        self.args: Any = flags_of(self.script.Args, checkpoint["args"], self.path, self.script.EXP_NAME)
        self.task, self._note = checkpoint["args"].get(CODE), checkpoint.get(NOTE)
        self.checkpoint = {**checkpoint, "args": vars(self.args)}

    def policy(self, env: PlayedEnv, seed: int, greedy: bool) -> Policy:
        """The policy in `env`: its likeliest actions, or sampled as in training with random numbers from `seed`.

        Raises: StateError if the network is another version's.
        """
        return self.script.load_policy(self.checkpoint, env, seed, greedy)

    def open_env(self, num_envs: int, device: str, seed: int, *, chain: bool = False, **given: Any) -> EnvLike:
        """An env of the trained task, without incentives. chain: all of its stages in one episode.

        given: values, unless None, for env, game, variant, levels, rom, start_state, goal_dir, max_steps and task in
        place of the run's.

        Raises: GBxCuLEError of the kind that the input deserves; StateError for a task of another kind, or whose code
        was not run from here.
        """
        args = self.args
        args.chain, before = args.chain or chain, args.variant
        if given.get("goal_dir"):
            args.start_state = args.stages = None
        for name, value in given.items():
            if value is not None:
                setattr(args, name, value)
        own_task = args.env == "toy" or is_suite(args.env) or args.game is not None
        if not own_task:
            self.check_rom(args.rom or ROM)
        if self.task and not args.task:
            args.task = recall(self.task, self._note, self.path)
        if not own_task and not (args.goal_dir or args.stages or args.task):
            raise StateError(f"checkpoint {self.path} names no goal: give --rom and --goal-dir")
        # Nothing is written into the run's folder, which may be a stranger's: training has made all files of its task.
        with tempfile.TemporaryDirectory() as folder:
            env = make_env(args, num_envs, device, task_files(args, Path(folder), World()), seed, incentives=False)
        if given.get("task"):
            remember(given["task"])
        trained = dict(self.checkpoint["env_config"])
        if args.game is not None and given.get("variant") is not None:  # which may have another ROM
            self._check_game(args.game, before)
            trained["rom_sha256"] = env.config["rom_sha256"]
        if found := first_difference(trained, env.config):
            name, was, now = found
            raise StateError(
                f"checkpoint {self.path} was trained with {name} {was!s:.80}, not {now!s:.80}: give the same"
            )
        return env

    def _check_game(self, path: StrPath, variant: str | None) -> None:
        """Raises: StateError unless it is the game of the training, which was on this variant."""
        from gbxcule_puffer.games import load_game

        game = load_game(path)
        if game.cartridge(game.chosen(variant), self.args.rom).sha256 != self.checkpoint["env_config"].get(
            "rom_sha256"
        ):
            raise StateError(
                f"checkpoint {self.path} was trained on another ROM than {path}: give the game of its training"
            )

    def check_rom(self, rom: StrPath) -> None:
        """Raises: RomError or StateError unless it is the ROM of the training."""
        if load_cartridge(rom, self.args.header).sha256 != self.checkpoint["env_config"].get("rom_sha256"):
            text = f"checkpoint {self.path} was trained on another ROM than {rom}"
            raise StateError(f"{text}: give the one of its training")


def _newest(path: StrPath) -> Path:
    """A checkpoint's path: the given file, the newest in the given run's folder, or the agent of a game of ours.

    Raises: StateError for a folder without one.
    """
    if not os.path.exists(path) and (own := own_agent(os.fspath(path))) is not None:
        return own
    if not os.path.isdir(path):
        return Path(path)
    found = Path(path, CHECKPOINT)
    if not found.exists() and Path(path, METRICS).exists():
        raise StateError(f"run {path} has no checkpoint yet: wait for its first one, which comes with an evaluation")
    if not found.exists():
        raise StateError(f"folder {path} holds no run: give one with a {CHECKPOINT}, such as runs/NAME")
    return found


def _script(path: Path, name: str) -> ModuleType:
    """The script that wrote a checkpoint and knows its network.

    Raises: StateError if it is none of those here.
    """
    scripts = trainer_scripts()
    if name not in scripts:
        raise StateError(f"checkpoint {path} is of trainer {name!r:.40}: give one of {', '.join(scripts)}")
    return load_script(scripts[name])


def load_script(path: Path) -> ModuleType:
    """One of the scripts of cleanrl_style as a module."""
    full = f"cleanrl_style.{path.stem}"
    if full in sys.modules:
        return sys.modules[full]
    spec = importlib.util.spec_from_file_location(full, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[full] = importlib.util.module_from_spec(spec)  # dataclasses look up their names there
    spec.loader.exec_module(module)
    return module
