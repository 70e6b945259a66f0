"""`puffer stage`: make the stages of a game."""
