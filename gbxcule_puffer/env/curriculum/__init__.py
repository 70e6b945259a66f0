"""The curriculum: the states in which episodes begin, and the rewards of exploration."""
