"""PyBoy, the CPU emulator with which the project compares correctness and speed."""
