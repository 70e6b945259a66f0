"""`puffer sweep`: a search for good settings of a trainer."""
