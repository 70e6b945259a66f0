"""The choice of the env that each lane of a GPU's warps runs. Never changes a result."""
