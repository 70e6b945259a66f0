"""Where episodes begin, and what exploration pays."""
