"""Observations: the pictures of the last steps, and vectors of numbers."""
