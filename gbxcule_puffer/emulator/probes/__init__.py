"""Looks into the machines: registers and memory from the host, hooks, and the condition that ends a step."""
