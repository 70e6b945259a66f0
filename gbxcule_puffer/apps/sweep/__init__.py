"""`puffer sweep`: a mode of PufferLib."""
