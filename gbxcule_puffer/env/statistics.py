"""Episode statistics: summed over envs on the device every step, and read by the host once per log interval."""

from __future__ import annotations

import torch

# Columns summed over envs and steps; the first four describe episodes that ended.
SUMS = ("episodes", "episode_return", "episode_length", "success", "truncated", "locked")
QUANTILES = {"dist_p10": 0.1, "dist_p50": 0.5, "dist_p90": 0.9}
OF_DISTANCES = (*QUANTILES, "dist_below_tau")
OF_SUCCESS = ("success", "done_rate")


class EpisodeStats:
    """Sums of finished episodes' returns, lengths and successes, and counts of each action; if steps have different
    lengths, also of their frames."""

    def __init__(self, num_envs: int, num_actions: int, device: torch.device, has_lengths: bool = False) -> None:
        self.returns = torch.zeros(num_envs, device=device)
        self.sums = torch.zeros(len(SUMS), dtype=torch.float64, device=device)
        self.histogram = torch.zeros(num_actions, dtype=torch.int64, device=device)
        self.frames = torch.zeros(num_envs if has_lengths else 0, dtype=torch.int64, device=device)
        self._columns = torch.zeros((len(SUMS), num_envs), device=device)
        self._step_sums = torch.zeros(len(SUMS), device=device)
        self._ones = torch.ones(num_envs, dtype=torch.int64, device=device)
        self._probabilities = torch.tensor(list(QUANTILES.values()), device=device)

    def count(
        self,
        actions: torch.Tensor,
        rewards: torch.Tensor,
        lengths: torch.Tensor,
        terminals: torch.Tensor,
        failures: torch.Tensor,
        truncations: torch.Tensor,
        locked: torch.Tensor,
        frames: torch.Tensor | None = None,
    ) -> None:
        """Adds one step of all envs. `lengths` are the episodes' steps so far, including this one; `frames` are its
        frames. Terminals that are not failures are successes."""
        self.histogram.scatter_add_(0, actions, self._ones)
        if len(self.frames) and frames is not None:
            self.frames.add_(frames)
        self.returns.add_(rewards)
        finished, returns, steps, success, truncated, lock = self._columns.unbind(0)
        torch.logical_or(terminals, truncations, out=finished)
        torch.mul(self.returns, finished, out=returns)
        torch.mul(lengths, finished, out=steps)
        torch.gt(terminals, failures, out=success)
        truncated.copy_(truncations)
        lock.copy_(locked)
        self.returns.sub_(returns)  # the next episode starts at 0
        torch.sum(self._columns, dim=1, out=self._step_sums)
        self.sums.add_(self._step_sums)

    def read(
        self, distances: torch.Tensor, taus: torch.Tensor, flag: torch.Tensor
    ) -> tuple[dict[str, float], list[float], bool]:
        """(means and rates since the last read, share of each action, `flag`) by one host read; then the sums begin at
        0. `distances` and the `taus` that they are compared with are the current ones, (num_envs,)."""
        quantiles = torch.quantile(distances, self._probabilities)
        below = (distances < taus).float().mean()
        *numbers, frames = torch.cat(
            [self.sums, self.histogram, quantiles, below[None], flag[None], self.frames.sum()[None]]
        ).tolist()
        for tensor in (self.sums, self.histogram, self.frames):
            tensor.zero_()
        split = len(numbers) - 1 - len(OF_DISTANCES)
        totals = dict(zip(SUMS, numbers, strict=False))
        steps = max(1.0, sum(numbers[len(SUMS) : split]))
        episodes = totals["episodes"]
        info = {"episodes": episodes, "locked": totals["locked"]}
        if episodes:
            info |= {name: totals[name] / episodes for name in ("episode_return", "episode_length", "success")}
        info |= {"done_rate": totals["success"] / steps, "trunc_rate": totals["truncated"] / steps}
        info |= {"reset_rate": episodes / steps, **({"step_frames": frames / steps} if len(self.frames) else {})}
        info |= dict(zip(OF_DISTANCES, numbers[split:], strict=False))
        return info, [count / steps for count in numbers[len(SUMS) : split]], bool(numbers[-1])

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that a saved state holds."""
        own = {"frames": self.frames} if len(self.frames) else {}
        return {"returns": self.returns, "sums": self.sums, "histogram": self.histogram, **own}
