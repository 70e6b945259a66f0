"""PufferLib's modes on our environments, by its own functions; every other environment goes to PufferLib's command."""

from __future__ import annotations

import functools
import sys
import threading
import types
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.integrations.pufferl import has_trainer

OWN = ("gbxcule",)
# The module from which PufferLib imports the package of our .ini, without a file of ours in its folder.
MODULE = "pufferlib.environments.gbxcule_puffer"
INSTALL = "`pip install 'gbxcule-puffer[puffer]'` in an environment of its own (in a clone `make puffer`)"


def load_pufferl() -> types.ModuleType:
    """The module pufferlib.pufferl.

    Raises: ConfigError with the install command if only pufferlib-core is installed, or if its kernel is missing.
    """
    if not has_trainer():
        raise ConfigError(
            f"this is a mode of PufferLib, and only pufferlib-core is installed: get all of it by {INSTALL}"
        )
    try:
        import pufferlib.pufferl  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ConfigError(f"PufferLib does not start ({error}): install it by {INSTALL}") from None
    return pufferlib.pufferl


def run(mode: str, env_name: str, arguments: Sequence[str]) -> None:
    """One mode of PufferLib's command line.

    Raises: ConfigError and the errors of the env; PufferLib's errors for bad input are converted to these.
    """
    pufferl = load_pufferl()
    import pufferlib

    misuse = getattr(pufferlib, "APIUsageError", RuntimeError)
    try:
        if env_name in OWN:
            run_own(pufferl, mode, env_name, arguments)
        else:
            sys.argv = ["puffer", mode, env_name, *arguments]
            pufferl.main()
    except misuse as error:
        raise ConfigError(f"PufferLib: {' '.join(str(error).split())}") from None
    finally:
        # PuffeRL's monitor is a thread that survives an error and keeps the process alive.
        monitors: list[Any] = [each for each in threading.enumerate() if isinstance(each, pufferl.Utilization)]
        for monitor in monitors:
            monitor.stop()


def run_own(pufferl: types.ModuleType, mode: str, env_name: str, arguments: Sequence[str]) -> None:
    """One mode of PufferLib's command line on one of OWN, by its function of that name."""
    from gbxcule_puffer.integrations.pufferl.config import load, settle
    from gbxcule_puffer.integrations.pufferl.logger import TensorBoardLogger

    args = load(pufferl, env_name, arguments)
    settle(args, mode)
    torch.manual_seed(args["train"]["seed"])  # PuffeRL leaves the weights and the sampled actions to chance
    register(args["env"])
    vars(pufferl)["NoLogger"] = TensorBoardLogger
    if mode == "train":
        vecenv, policy = make(pufferl, env_name, args)
        pufferl.train(env_name, args=args, vecenv=vecenv, policy=policy)
    elif mode == "eval":
        args["vec"] = {"backend": "Serial", "num_envs": 1}
        vecenv, policy = make(pufferl, env_name, args)
        watch(pufferl, env_name, args, vecenv, policy)
    elif mode == "sweep":
        if not (args["wandb"] or args["neptune"]):
            # A sweep requires a logger with a server; ours replaces it.
            vars(pufferl)["WandbLogger"], args["wandb"] = TensorBoardLogger, True
        pufferl.sweep(args=args, env_name=env_name)
    elif mode == "export":
        vecenv, policy = make(pufferl, env_name, args)
        pufferl.export(args=args, env_name=env_name, vecenv=vecenv, policy=policy)
    else:
        # Autotune: the mean of no resets is a warning, which PufferLib turns into an error; our envs reset themselves.
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        pufferl.autotune(args=args, env_name=env_name)


def register(env_options: dict[str, Any]) -> None:
    """Lets PufferLib import our env creator and policies as one of its environment packages."""
    from gbxcule_puffer.integrations.pufferl import policies
    from gbxcule_puffer.integrations.pufferl.env import make_env

    module: Any = types.ModuleType(MODULE)
    # autotune makes the env without its options, so they are bound here; the other modes pass them again.
    module.env_creator = lambda _: functools.partial(make_env, **env_options)
    module.torch = policies
    sys.modules[MODULE] = module


def make(pufferl: types.ModuleType, env_name: str, args: dict[str, Any]) -> tuple[Any, Any]:
    """PufferLib's env and policy of a configuration.

    Raises: StateError for a model that does not fit the policy, ConfigError for an unknown policy or keyword.
    """
    from gbxcule_puffer.integrations.pufferl import policies

    for name in (args["policy_name"], args["rnn_name"]):
        if name is not None and not hasattr(policies, name):
            raise ConfigError(f"policy {name!r} is unknown: give PixelCNN as --policy-name, PixelLSTM as --rnn-name")
    if args["rnn_name"] and args["rnn"]["input_size"] != args["policy"]["hidden_size"]:
        raise ConfigError("--rnn.input-size and --policy.hidden-size differ: give the same number")
    vecenv = pufferl.load_env(env_name, args)
    try:
        return vecenv, pufferl.load_policy(args, vecenv)
    except Exception as error:
        if not args["load_model_path"]:
            raise
        # torch has no common type for a damaged file or other weights, and PufferLib reads the file in the same call
        reason = " ".join(str(error).split())[:120]
        raise StateError(
            f"model {args['load_model_path']} does not fit this policy ({reason}): give its flags"
        ) from None


class EvalOver(Exception):
    """Ends PufferLib's endless eval once its GIF is written."""


def watch(pufferl: types.ModuleType, env_name: str, args: dict[str, Any], vecenv: Any, policy: torch.nn.Module) -> None:
    """PufferLib's eval, which plays until Ctrl-C; with --save-frames it ends after that many frames."""
    driver, wanted = vecenv.driver_env, args["save_frames"]
    render, calls = driver.render, 0

    def counted() -> object:
        nonlocal calls
        calls += 1
        if wanted and calls > wanted:
            raise EvalOver
        return render()

    driver.render = counted
    if driver.render_mode == "ansi":
        print("\x1b[2J", end="")
    try:
        pufferl.eval(env_name, args=args, vecenv=vecenv, policy=policy)
    except EvalOver:
        done = driver.successes
        print(f"{args['gif_path']}: {wanted} steps, {len(done)} episodes, {sum(done)} solved")
