"""Observations: the pictures of the last steps, and numbers beside them."""
