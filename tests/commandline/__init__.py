"""Tests of the room for command lines."""
