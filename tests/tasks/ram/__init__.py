"""Tests of what a task sees of the memory."""
