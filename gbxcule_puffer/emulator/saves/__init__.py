"""States as files: our own snapshots, states of PyBoy and save RAM."""
