"""What an agent sees: the cost of a step and its options, training speed, scores on the suite."""
