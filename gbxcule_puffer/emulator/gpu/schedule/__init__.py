"""The schedule of a step on a GPU: which lane runs which env, in which launch shape (docs/schedule.md)."""
