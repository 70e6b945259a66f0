"""Damaged files of every format that is read: `make fuzz-files`, and test_files.py with a few hundred of each."""
