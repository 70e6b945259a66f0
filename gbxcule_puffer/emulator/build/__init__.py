"""Kernels from device code: the interpreter made of templates, instances with other constants, and their cache."""
