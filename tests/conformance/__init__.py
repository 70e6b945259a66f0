"""The emulator against shared references: single-step cases, game pictures, test ROMs and PyBoy itself."""
