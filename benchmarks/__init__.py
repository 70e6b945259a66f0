"""Measurements, each a command that writes JSON records, and the workloads that they share with the tests."""
