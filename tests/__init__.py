"""The tests, laid out as the package is, plus conformance/ (shared references) and gpu/ (needs an NVIDIA GPU)."""
