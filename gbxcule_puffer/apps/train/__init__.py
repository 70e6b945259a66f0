"""`puffer train`: the single-file trainers, and PufferLib's own modes on our environments."""
