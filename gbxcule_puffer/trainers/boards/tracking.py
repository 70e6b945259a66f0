"""--track: a run's records, films and flags in Weights & Biases, as CleanRL's scripts send them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from gbxcule_puffer.errors import ConfigError

REMEDY = "pip install wandb, or leave --track out"


def check_tracking() -> None:
    """Raises: ConfigError if Weights & Biases is not installed."""
    if importlib.util.find_spec("wandb") is None:
        raise ConfigError(f"--track needs Weights & Biases: {REMEDY}")


class Tracking:
    """A run of Weights & Biases with the name of the run's folder; a resumed run continues it. WANDB_MODE=offline keeps
    it in the folder, for `wandb sync`."""

    def __init__(self, run_dir: Path, project: str, entity: str | None, manifest: Mapping[str, Any]) -> None:
        """Raises: ConfigError if it cannot begin, for example without a login."""
        import wandb  # pyright: ignore[reportMissingImports]

        self._wandb: ModuleType = wandb
        name = run_dir.resolve().name
        facts = {name: value for name, value in manifest.items() if name != "config"}
        try:
            self._run: Any = wandb.init(
                project=project,
                entity=entity,
                name=name,
                id="".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)[:64],
                dir=str(run_dir),
                config={**manifest.get("config", {}), **facts},
                resume="allow",
                settings=wandb.Settings(silent=True),
            )
        except (wandb.errors.Error, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ConfigError(f"--track: Weights & Biases does not start ({reason}): see `wandb login`") from None
        self._run.define_metric("*", step_metric="global_step")
        print(f"tracked        {self._run.url or f'offline, in {self._run.dir}'}", file=sys.stdout, flush=True)

    def add(self, step: int, metrics: Mapping[str, float]) -> None:
        """One record."""
        self._run.log({"global_step": step, **metrics})

    def add_image(self, tag: str, step: int, path: Path) -> None:
        """A PNG, or a GIF as a film."""
        kind = self._wandb.Video(str(path), format="gif") if path.suffix == ".gif" else self._wandb.Image(str(path))
        self._run.log({"global_step": step, tag: kind})

    def close(self, failed: bool) -> None:
        """Ends the run there."""
        self._run.finish(exit_code=int(failed))
