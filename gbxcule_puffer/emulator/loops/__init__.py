"""Loops of a ROM that are skipped, many rounds at once: finding, packing and skipping them, for both kernels."""
