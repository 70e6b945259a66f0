"""`puffer record`: record what an agent sees."""
