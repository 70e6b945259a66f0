"""`puffer record`: films of agents."""
