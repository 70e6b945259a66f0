"""A run's TensorBoard: scalars, the actions as one histogram, pictures and films, flags as text and as hparams."""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image
from tensorboard.compat.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]
from torch.utils.tensorboard.summary import hparams
from torch.utils.tensorboard.writer import SummaryWriter

ACTIONS = "env/action_hist/"  # name of the shares of actions among the metrics
RESULTS = ("eval/success_rate", "eval/greedy_success", "eval/return", "charts/SPS")  # of a run, beside its hparams
# The page "Custom scalars": the most important curves. Names are regular expressions.
LAYOUT = {
    "Run": {
        "success": ["Multiline", ["charts/success_rate", "eval/success_rate", "eval/greedy_success"]],
        "return": ["Multiline", ["charts/episodic_return", "eval/return", "eval/greedy_return"]],
        "steps per second": ["Multiline", ["charts/SPS"]],
    },
    "Learning": {"losses": ["Multiline", ["losses/.*"]], "seconds of a step": ["Multiline", ["time/.*"]]},
}
TASK = {"Task": {"statistics": ["Multiline", ["env/task/.*"]]}}  # where a run has one
STAGES = {"Stages": {"success": ["Multiline", ["eval/stage/.*"]]}}  # if a run has several


class TensorBoard:
    """The event file of a run. Raises: OSError, from every call, if it cannot be written."""

    def __init__(self, run_dir: Path, config: Mapping[str, Any], resumed_at: int | None = None) -> None:
        """resumed_at: the step after which earlier records are hidden."""
        threading.excepthook = _report_of_thread
        self._writer = SummaryWriter(str(run_dir), purge_step=None if resumed_at is None else resumed_at + 1)
        if config and resumed_at is None:
            rows = "\n".join(f"|{name}|{_text(value)}|" for name, value in config.items())
            self._writer.add_text("config", f"|flag|value|\n|-|-|\n{rows}")
            stages = {} if config.get("stages") is None else STAGES
            task = TASK if config.get("task") or config.get("game") else {}
            self._writer.add_custom_scalars(LAYOUT | task | stages)
            plain = {name: v if isinstance(v, bool | int | float) else _text(v) for name, v in config.items()}
            for summary in hparams(plain, dict.fromkeys(RESULTS, 0.0)):
                self._writer._get_file_writer().add_summary(summary)

    def add(self, step: int, metrics: Mapping[str, float]) -> None:
        """One record."""
        shares = [value for name, value in metrics.items() if name.startswith(ACTIONS)]
        for name, value in metrics.items():
            if not name.startswith(ACTIONS):
                self._writer.add_scalar(name, value, step)
        if shares:
            self._add_actions(step, shares)

    def _add_actions(self, step: int, shares: list[float]) -> None:
        """A bar for each action, by its number."""
        numbers = range(len(shares))
        self._writer.add_histogram_raw(
            ACTIONS.rstrip("/"),
            min=-0.5,
            max=len(shares) - 0.5,
            num=sum(shares),
            sum=sum(number * share for number, share in zip(numbers, shares, strict=True)),
            sum_squares=sum(number**2 * share for number, share in zip(numbers, shares, strict=True)),
            bucket_limits=[number + 0.5 for number in numbers],
            bucket_counts=shares,
            global_step=step,
        )

    def add_image(self, tag: str, step: int, encoded: bytes) -> None:
        """A PNG or GIF file's bytes, which TensorBoard plays; its own add_video would need moviepy."""
        with Image.open(io.BytesIO(encoded)) as picture:
            width, height = picture.size
        image = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=encoded)
        summary = Summary(value=[Summary.Value(tag=tag, image=image)])
        self._writer._get_file_writer().add_summary(summary, step)

    def close(self) -> None:
        self._writer.close()


def _text(value: object) -> str:
    """A flag's value as text for a table."""
    return str(value).replace("|", "\\|")


def _report_of_thread(args: threading.ExceptHookArgs) -> None:
    """Leaves out what TensorBoard's thread could not write; the thread passes the error to the next write."""
    if not (isinstance(args.exc_value, OSError) and type(args.thread).__module__.startswith("tensorboard.")):
        threading.__excepthook__(args)
