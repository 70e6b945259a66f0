"""Looks into the machines."""
