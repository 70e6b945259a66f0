"""`puffer goal`: make goals and stages of a game."""
