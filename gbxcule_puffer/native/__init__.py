"""The environment for programs in C: kernels and data in a folder, and a small library that runs them."""
