"""Access to the machines from the host: registers and memory, hooks, and the condition that ends a step."""
