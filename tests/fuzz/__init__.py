"""Fuzzing: random programs and random bytes, in lockstep with PyBoy. See `python -m tests.fuzz --help`."""
