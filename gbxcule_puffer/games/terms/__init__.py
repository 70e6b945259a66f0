"""Terms: expressions over numbers in RAM, read from text without running any of it."""
