"""`puffer profile`: why a game is as fast as it is, in plain words."""
