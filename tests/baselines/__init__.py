"""Tests of PyBoy behind the environment's API."""
