"""PuffeRL's metrics in TensorBoard's files and metrics.jsonl, beside its checkpoints."""

from __future__ import annotations

import json
import math
import os
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch.utils.tensorboard.writer import SummaryWriter

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import write_text


class TensorBoardLogger:
    """A logger as PuffeRL calls it, in `data_dir/run_id`; every rank of a distributed run has its own."""

    def __init__(self, config: Mapping[str, Any], load_id: str | None = None) -> None:
        """config: the whole configuration, or its [train] section with the env's name as PuffeRL gives it.

        Raises: ConfigError where data_dir cannot be written.
        """
        train = config.get("train", config)
        env = config.get("env_name") or config["env"]
        rank = os.environ.get("LOCAL_RANK", "0")
        self.run_id = load_id or f"{env}__{train['seed']}__{time.time_ns() // 1_000_000}"
        self.run_id += "" if rank == "0" else f"__rank{rank}"
        self.folder = Path(train["data_dir"]) / self.run_id
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"--train.data-dir {train['data_dir']} cannot be written ({error.strerror})") from None
        write_text(self.folder / "config.json", json.dumps(config, indent=1, default=str) + "\n")
        self.writer = SummaryWriter(str(self.folder))
        self.last: dict[str, float] = {}

    def log(self, logs: Mapping[str, object], step: int) -> None:
        """Writes one record; values that are not numbers are left out, NaN and infinities are words."""
        numbers = {name: float(value) for name, value in logs.items() if isinstance(value, int | float)}
        self.last |= numbers
        for name, value in numbers.items():
            self.writer.add_scalar(name, value, step)
        strict = {name: value if math.isfinite(value) else str(value) for name, value in numbers.items()}
        with (self.folder / "metrics.jsonl").open("a") as lines:
            lines.write(json.dumps({"global_step": int(step), **strict}) + "\n")

    def close(self, model_path: str) -> None:
        self.writer.close()
        if "environment/success" in self.last:
            print(f"success      {self.last['environment/success']:.2f} of the episodes since the last update")
        print(f"model        {model_path}")
        print(f"metrics      {self.folder / 'metrics.jsonl'}")
        print(f"TensorBoard  tensorboard --logdir {shlex.quote(str(self.folder))}")
