"""Kernels from device code: the interpreter from templates, instances with other constants, and their cache."""
