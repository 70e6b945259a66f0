"""`puffer autotune`: a mode of PufferLib."""
