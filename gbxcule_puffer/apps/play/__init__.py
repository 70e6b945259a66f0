"""`puffer play`: play a game by hand."""
