"""The curriculum: where episodes begin, and what exploration pays."""
