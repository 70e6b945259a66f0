"""The processes that torchrun has started, as far as flags depend on them; imported without torch, for --help."""

import os


def in_all(num_envs: int) -> int:
    """Game Boys of all processes, where each has `num_envs`."""
    size = os.environ.get("WORLD_SIZE", "1")
    return num_envs * int(size) if size.isdigit() else num_envs  # distributed.World refuses what is not a number
