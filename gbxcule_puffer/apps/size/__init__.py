"""`puffer size`: what the kernels compile to."""
