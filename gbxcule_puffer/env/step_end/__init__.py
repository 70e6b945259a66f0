"""The end of a step in one kernel: observation, score, statistics, and the start of the next episode."""
