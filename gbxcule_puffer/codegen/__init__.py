"""From the instruction table to kernels."""
