"""The configuration of a PuffeRL run: PufferLib's own .ini parser on our .ini, then the values that depend on the
machine."""

from __future__ import annotations

import configparser
import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import Field, fields
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from gbxcule_puffer.device import resolve_device
from gbxcule_puffer.env.options import EnvOptions, type_of
from gbxcule_puffer.errors import ConfigError

CONFIG = Path(__file__).with_name("gbxcule.ini")
# [env].num_envs and [train].total_timesteps, minibatch_size where they are "auto".
DEVICE_DEFAULTS = {
    "cpu": {"num_envs": 64, "total_timesteps": 400_000, "minibatch_size": 1024},
    "cuda": {"num_envs": 8192, "total_timesteps": 100_000_000, "minibatch_size": 32768},
}
# Options of the environment that PufferLib or `settle` sets.
SET_BY_PUFFERL = ("io", "info_mode", "seed", "first_env")
# Sizes that a sweep cannot sample separately: they depend on num_envs, which depends on the device.
NOT_SWEPT = ("bptt_horizon", "minibatch_size")


def load(pufferl: ModuleType, env_name: str, arguments: Sequence[str]) -> dict[str, Any]:
    """`pufferl.load_config` of our .ini with the flags in `arguments`.

    Raises: ConfigError of one line for a flag that it refuses; SystemExit after --help.
    """
    saved, message = sys.argv, io.StringIO()
    sys.argv = ["puffer", *arguments]
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(message):
            path = Path(folder, CONFIG.name)
            with path.open("w") as file:
                own_config().write(file)
            # PufferLib looks for .ini files in its own folder only: for our environments it finds this one instead.
            vars(pufferl)["glob"] = SimpleNamespace(glob=lambda *_, **__: [str(path)])
            return pufferl.load_config(env_name)
    except SystemExit as end:
        if not end.code:
            raise
        text = message.getvalue().strip().rpartition("error: ")[2]
        raise ConfigError(f"{' '.join(text.split())} (see puffer train {env_name} --help)") from None
    finally:
        sys.argv = saved


def own_config(kind: type[EnvOptions] = EnvOptions) -> configparser.ConfigParser:
    """Our .ini with all of the environment's options in its [env] section, so that each is a flag."""
    parser = configparser.ConfigParser()
    parser.read(CONFIG)
    for option in fields(kind):
        if option.name not in (*SET_BY_PUFFERL, *parser["env"]):
            parser["env"][option.name] = ini_text(option)
    return parser


def ini_text(option: Field[object]) -> str:
    """An option's default for PufferLib's parser: its type becomes the flag's type, and "auto" allows a number."""
    default = option.default
    if default is None:
        return "auto" if type_of(option)[0].flag in (int, float) else "''"
    if isinstance(default, tuple):
        return f"'{' '.join(default)}'"
    return str(int(default)) if isinstance(default, bool) else str(default)


def from_ini(option: Field[object], value: object) -> object:
    """An option's value from the result of PufferLib's parser."""
    kind, optional = type_of(option)
    if optional and value in ("", "auto"):
        return None
    if kind.flag is bool and value in (0, 1):
        return bool(value)
    return tuple(value.split()) if isinstance(option.default, tuple) and isinstance(value, str) else value


def settle(args: dict[str, Any], mode: str) -> None:
    """Replaces `auto` and `latest` by values, in place.

    Raises: ConfigError, or DeviceError for a device that does not exist.
    """
    train, env = args["train"], args["env"]
    train["device"] = train["device"] or ("cuda" if torch.cuda.is_available() else "cpu")
    resolve_device(train["device"])
    if train["device"] != "cpu" and "LOCAL_RANK" in os.environ:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))  # from now on, PufferLib's "cuda" is this rank's device
    # Eval plays one Game Boy: a CPU core runs it faster than a GPU, to the same bits.
    env["device"] = env["device"] or ("cpu" if mode == "eval" else train["device"])
    defaults = DEVICE_DEFAULTS["cpu" if train["device"] == "cpu" else "cuda"]
    for section, name in ((env, "num_envs"), (train, "total_timesteps")):
        if section[name] == "auto":
            section[name] = defaults[name]
    if train["minibatch_size"] == "auto":
        rollout = env["num_envs"] * args["vec"]["num_envs"] * train["bptt_horizon"]
        train["minibatch_size"] = min(defaults["minibatch_size"], rollout)
    if mode == "eval":
        _settle_eval(args)
    if mode == "sweep":
        sweep = args["sweep"]
        sweep.pop("vec", None)
        sweep["train"] = {name: space for name, space in sweep["train"].items() if name not in NOT_SWEPT}
    # The env's own vectorisation gives tensors; PufferLib's backends share NumPy buffers between processes.
    native = args["vec"]["backend"] == "PufferEnv" and mode in ("train", "sweep", "export")
    env["io"] = "torch" if native else "numpy"
    if args["vec"]["backend"] == "PufferEnv":
        args["vec"] = {"backend": "PufferEnv", "num_envs": args["vec"]["num_envs"]}
    args["rnn_name"] = args["rnn_name"] or None
    train["use_rnn"] = args["rnn_name"] is not None
    args["load_model_path"] = find_model(args["load_model_path"], train["data_dir"])


def _settle_eval(args: dict[str, Any]) -> None:
    """Eval shows one Game Boy: as text, or with --save-frames as pictures for the GIF."""
    mode = args["render_mode"]
    if mode == "auto":
        mode = "frames" if args["save_frames"] else "ansi"
    if args["save_frames"] and mode == "ansi":
        raise ConfigError("--save-frames needs pictures, and --render-mode ansi gives text: leave --render-mode out")
    args["env"] |= {"num_envs": 1, "render_mode": mode}


def find_model(path: str | None, data_dir: str) -> str | None:
    """`path`, or the newest model of `data_dir` for `latest`.

    Raises: ConfigError if there is none.
    """
    if path == "latest":
        models = sorted(Path(data_dir).glob("*.pt"), key=lambda model: model.stat().st_mtime)
        if not models:
            raise ConfigError(f"--load-model-path latest: no model in {data_dir}, train one or give its path")
        return str(models[-1])
    if path is not None and not Path(path).is_file():
        raise ConfigError(f"--load-model-path {path} is not a file: give a model_*.pt of a PuffeRL run, or latest")
    return path
