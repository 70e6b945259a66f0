"""`puffer train`: PufferLib's own commands on our environments."""
