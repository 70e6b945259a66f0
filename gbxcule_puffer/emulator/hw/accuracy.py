"""The machine that the kernels are: a constant, of which cpu/interpreter.py compiles both values."""

HARDWARE = 0
"""0: PyBoy. 1: a DMG, where public test ROMs show that PyBoy is not one (docs/accuracy.md lists what differs)."""
