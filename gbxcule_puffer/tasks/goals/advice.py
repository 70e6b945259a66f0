"""Advice on goals that cannot be learned, or that teach nothing: the finding and a remedy."""

from __future__ import annotations

HARDLY_APART = 0.03  # distance: with the default alpha, the path to the goal then pays less than 30 steps cost
BY_CHANCE = 0.5  # share of random episodes that reach the goal


def hardly_apart(start_distance: float, name: str = "goal") -> str | None:
    """Advice if the picture of the start is nearly the goal's, else None. `start_distance` is in [0, 1]."""
    if start_distance >= HARDLY_APART:
        return None
    return (
        f"{name}: start and goal are hardly apart (distance {start_distance:.4f}), so that coming closer earns next to "
        "nothing: raise --alpha, add --visit-bonus 0.1, or reward what RAM tells with --game or --task"
    )


def met_by_chance(success: float, is_picture: bool = True) -> str | None:
    """Advice if random play succeeds in at least half of its episodes, by a goal's picture or by a Task, else None."""
    if success < BY_CHANCE:
        return None
    if not is_picture:
        return (
            f"random play succeeds in {success:.0%} of its episodes, so that success says little: have the task end "
            "them farther from the start, or lower --max-steps"
        )
    return (
        f"random play reaches the goal in {success:.0%} of its episodes, so that success says little: end the way "
        "farther from the start, lower --max-steps, or raise --k-consecutive if the goal is mistaken"
    )


def never_near(steps: int, nearest_tenth: float | None) -> str:
    """Advice if no Game Boy reached the goal; `nearest_tenth`: the smallest 10th percentile of distances so far."""
    if nearest_tenth is not None and nearest_tenth < HARDLY_APART:
        return (
            f"no episode reached the goal in {steps:,} steps, though a tenth of the Game Boys was {nearest_tenth:.3f} "
            "away from its picture: another position looks nearly like it (see it with --watch). Explore, and reward "
            "less for coming closer (--alpha 1, --visit-bonus 0.1, --archive-slots 4096), take away the button that "
            "leads there (--blocked-actions START), or reward what RAM tells with --game or --task"
        )
    how_near = "" if nearest_tenth is None else f"; the nearest tenth of the Game Boys was {nearest_tenth:.3f} away"
    return (
        f"no episode came near the goal in {steps:,} steps{how_near}: begin nearer (several stages with --stages and "
        "--curriculum progress), explore more (--visit-bonus 0.1, --archive-slots 256), or raise --max-steps"
    )
