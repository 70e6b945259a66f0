"""The tests, laid out as the package is, beside conformance/ (shared references), fuzz/, hostile/ and support/."""
