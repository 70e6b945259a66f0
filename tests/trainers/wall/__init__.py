"""Tests of the wall."""
