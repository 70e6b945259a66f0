"""`puffer verify`: compare the emulator with PyBoy."""
