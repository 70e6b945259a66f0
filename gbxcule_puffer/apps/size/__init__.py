"""`puffer size`: size and registers of the compiled kernels."""
