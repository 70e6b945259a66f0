"""The schedule of a step on a GPU: the env of each lane, and the launch shape (docs/schedule.md)."""
