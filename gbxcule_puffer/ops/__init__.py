"""Device code: instruction templates, one for each family of isa.py, and the arithmetic that they call."""
