"""Native code of a ROM's most executed pieces, for the interpreter on a CPU."""
