"""Loops of a ROM that are skipped, many rounds at once: how they are found, packed and skipped, for both kernels."""
