"""PyBoy, the CPU emulator that the project is compared with: for correctness and for speed."""
