"""The sound unit: its registers as in PyBoy with sound_emulated=True; and those of a real DMG, without channels."""
