"""Which env runs on which lane of a GPU's warps. Never changes a result."""
