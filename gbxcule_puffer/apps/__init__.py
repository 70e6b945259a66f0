"""The commands of `puffer`, one folder each."""
