"""`puffer export`: a mode of PufferLib."""
