"""`puffer native`: an environment for programs in C and CUDA."""
